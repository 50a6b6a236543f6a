"""What a mask that is off does to a run, in words made from its numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping

from pages.parts.plain import plain
from transformer.insight.names import full_head_name
from transformer.interventions import PAD
from transformer.recording.frame import Frame
from transformer.runs.watched import Watched

_WHO = {
    "cross": "**Cross-attention** reads the finished word, so nothing lies in the future",
    "encoder": "**Encoder self-attention** may look both ways along the word",
    "decoder": "**Decoder self-attention** is to write letters one by one",
    "sequence": "**Self-attention over question and answer** is to write letters one by one",
}


def explained(kind: str, masks: Mapping[str, bool]) -> str:
    """Who looks at whom in one kind of attention, and what the masks that are on hide from it."""
    hidden = []
    if masks["causal"] and kind in ("decoder", "sequence"):
        hidden.append("a row may not read what comes after it")
    if masks["padding"]:
        hidden.append("no row may read padding")
    return f"{_WHO[kind]}; {' and '.join(hidden) if hidden else 'nothing is hidden from it now'}."


def without_masks(frame: Frame) -> str:
    """One sentence for each mask that is not as the topology needs it; empty where all are."""
    own = next(axes for axes in frame.axes.values() if axes.writes and axes.query == axes.key)
    said = []
    if own.kind != "encoder" and not own.causal:
        said.append(_reading_ahead(frame))
    if own.kind == "encoder" and own.causal:
        said.append(
            "**Causal mask on an encoder:** no letter sees those behind it, but the answer begins with the "
            "last one: that cannot be known."
        )
    if not own.padding:
        said.append(_looking_at_padding(frame))
    return " ".join(said)


def _reading_ahead(frame: Frame) -> str:
    known = frame.evaluation
    return (
        "**No causal mask:** a row may read the letter that it is to write. Given the right answer to read, "
        f"{known.token_accuracy:.0%} of the letters come out right; writing by itself, the model gets "
        f"{known.right:,} of {known.total:,} words{_measured_at(frame)}."
    )


def _measured_at(frame: Frame) -> str:
    """Of which step the newest evaluation is, where that is not the frame's."""
    step = frame.evaluation.step
    return "" if step == frame.step else f" at step {step:,}"


def _looking_at_padding(frame: Frame) -> str:
    row = min(range(len(frame.probes)), key=lambda i: len(frame.probes[i].text))  # it has the most of it
    shares = {
        (site, head): float(share)
        for site in frame.axes
        for head, share in enumerate(frame.on_padding(row, site))
    }
    site, head = max(shares, key=lambda one: shares[one])
    return (
        f"**No padding mask:** in “{plain(frame.probes[row].text)}”, [PAD] gets "
        f"{sum(shares.values()) / len(shares):.0%} of all attention, and {shares[site, head]:.0%} of that of "
        f"{full_head_name(site, head)}. What it writes depends on it, so words are filled up as in training."
    )


def two_losses(frame: Frame | None) -> str:
    """The loss of held-out words twice, side by side: reading the right answer, and writing freely."""
    losses = {
        "reading the right answer": frame.evaluation.loss if frame else None,
        "writing by itself": frame.evaluation.free_loss if frame else None,
    }
    at = "" if frame is None else _measured_at(frame)
    shown = (
        f"<span><small>loss{at}, {name}</small> <b>{'–' if loss is None else f'{loss:.3f}'}</b></span>"
        for name, loss in losses.items()
    )
    return f"<div class='hl-losses'>{''.join(shown)}</div>"


def batch_table(run: Watched, chosen: str) -> str:
    """The probes as one batch of tokens; [PAD] told apart by its look."""
    words = [question.text for question in run.questions]
    batch = run.task.encode(words, filled=not run.view.masks["padding"])
    rows = []
    for word, ids in zip(words, batch.src.tolist(), strict=True):
        cells = "".join(
            f"<td class='{'pad' if token == PAD else ''}'>{html.escape(token)}</td>"
            for token in run.task.src_tokenizer.tokens(ids)
        )
        rows.append(f"<tr class='{'chosen' if word == chosen else ''}'>{cells}</tr>")
    return f"<table class='hl-batch'>{''.join(rows)}</table>"
