"""What a mask that is off does to a run, in words made from its numbers."""

from __future__ import annotations

import html

from transformer.insight.names import full_head_name
from transformer.interventions import PAD
from transformer.runs.run import Run
from transformer.runs.view import Frame, RunView


def without_masks(view: RunView, frame: Frame) -> str:
    """One sentence for each mask that is not as the topology needs it; empty where all are."""
    own = next(axes for axes in frame.axes.values() if axes.writes and axes.query == axes.key)
    said = []
    if own.kind != "encoder" and not own.causal:
        said.append(_reading_ahead(view, frame))
    if own.kind == "encoder" and own.causal:
        said.append(
            "**Causal mask on an encoder:** no letter sees those behind it, but the answer begins with the "
            "last one: that cannot be known."
        )
    if not own.padding:
        said.append(_looking_at_padding(frame))
    return " ".join(said)


def _reading_ahead(view: RunView, frame: Frame) -> str:
    said = "**No causal mask:** a row may read the letter that it is to write."
    steps, accuracy = view.metrics.columns("step", "held_out_token_accuracy")
    known = accuracy[(steps <= frame.step) & (accuracy == accuracy)]
    if not len(known) or frame.exact is None:
        return f"{said} Train, and compare the two losses."
    return (
        f"{said} Given the right answer to read, {known[-1]:.0%} of the letters come out right; writing by "
        f"itself, the model gets {frame.exact[0]:,} of {frame.exact[1]:,} words."
    )


def _looking_at_padding(frame: Frame) -> str:
    row = min(range(len(frame.probes)), key=lambda i: len(frame.probes[i].text))  # it has the most of it
    shares = {
        (site, head): float(share)
        for site in frame.axes
        for head, share in enumerate(frame.on_padding(row, site))
    }
    site, head = max(shares, key=lambda one: shares[one])
    return (
        f"**No padding mask:** in “{frame.probes[row].text}”, [PAD] gets "
        f"{sum(shares.values()) / len(shares):.0%} of all attention, and {shares[site, head]:.0%} of that of "
        f"{full_head_name(site, head)}. What it writes depends on it, so words are filled up as in training."
    )


def two_losses(view: RunView, frame: Frame | None) -> str:
    """The loss of held-out words twice, side by side: reading the right answer, and writing freely."""
    shown = []
    for name, column in (("reading the right answer", "held_out_loss"), ("writing by itself", "free_loss")):
        steps, values = view.metrics.columns("step", column)
        known = values[(values == values) & (steps <= (frame.step if frame else 0))]
        number = f"{known[-1]:.3f}" if len(known) else "–"
        shown.append(f"<span><small>loss, {name}</small> <b>{number}</b></span>")
    return f"<div class='hl-losses'>{''.join(shown)}</div>"


def batch_table(run: Run, chosen: str) -> str:
    """The probes as one batch of tokens; [PAD] told apart by its look."""
    words = [question.text for question in run.questions]
    rows = []
    for word, ids in zip(words, run.task.encode(words).src.tolist(), strict=True):
        cells = "".join(
            f"<td class='{'pad' if token == PAD else ''}'>{html.escape(token)}</td>"
            for token in run.task.src_tokenizer.tokens(ids)
        )
        rows.append(f"<tr class='{'chosen' if word == chosen else ''}'>{cells}</tr>")
    return f"<table class='hl-batch'>{''.join(rows)}</table>"
