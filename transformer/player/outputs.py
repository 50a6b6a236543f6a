"""HTML of a model's free-running outputs: tables of tracked words and of samples, and accuracy by length."""

from __future__ import annotations

import html
import math

from transformer.recording.frame import Frame, RecordedWord

GROUPS = 4
"""Maximum number of groups of neighbouring lengths; more would not fit in a line."""


def _marked(tracked: RecordedWord) -> str:
    """The free-running output. If the right answer is known, each token is marked right or wrong, and not by
    colour alone."""
    if not tracked.forced:  # the right answer is unknown
        return html.escape("".join(letter for letter, _ in tracked.marked))
    return "".join(
        f"<span class='{'ok' if right else 'no'}'>{html.escape(letter)}</span>"
        for letter, right in tracked.marked
    )


def _verdict(tracked: RecordedWord) -> str:
    """A tick or a cross for the whole output; a question mark if the right answer is unknown."""
    return "<b class='yes'>✓</b>" if tracked.right else "<b class='not'>✗</b>" if tracked.forced else "?"


def output_row(tracked: RecordedWord) -> str:
    """A table row: a tracked word with a remark, and below it the free-running output, or that there is none
    yet."""
    short, full = remark(tracked)
    written = f"{_verdict(tracked)} <samp>{_marked(tracked)}</samp>"
    if tracked.output_step is None:
        written, short = "<small>not asked yet</small>", ""
    return (
        f"<tr><td title='{full}'><small>{html.escape(tracked.text)}</small> "
        f"{short and f'<small>{short}</small>'}<br>{written}</td></tr>"
    )


def outputs(frame: Frame, chosen: str) -> str:
    """A table of the free-running output for each tracked word except mean maps, the chosen word first."""
    words = sorted(frame.asked, key=lambda tracked: tracked.text != chosen)
    rows = "".join(
        f"<tbody class='{'chosen' if tracked.text == chosen else ''}'>{output_row(tracked)}</tbody>"
        for tracked in words
    )
    written = {at for tracked in words if (at := tracked.output_step) not in (None, frame.step)}
    caption = (
        f"<small>As written at step {max(written, key=lambda at: at or 0):,}:</small>" if written else ""
    )
    return f"{caption}<table class='hl-outputs' data-step='{frame.step}'>{rows}</table>"


def remark(tracked: RecordedWord) -> tuple[str, str]:
    """(short, full) text on how this word relates to the training data; not for mean maps."""
    if not tracked.forced:
        return "unknown", (
            "the right answer is not known: the maps run over what the model wrote on its own at step "
            f"{tracked.written_at:,}"
        )
    if tracked.too_long:
        return "too long", "longer than anything trained on"
    if tracked.too_short:
        return "too short", "shorter than anything trained on"
    if tracked.held_out:
        return "never trained on", "a test word, held out by its hash"
    if tracked.drawn_at is not None:
        return "trained on", f"training drew it first at step {tracked.drawn_at:,}"
    return "never trained on", "training has not drawn it up to here"


def samples(frame: Frame) -> str:
    """A table of a few held-out sentences with the outputs at the newest evaluation; empty if the task is no
    translation."""
    rows = "".join(
        f"<tr><td>{html.escape(question)}</td><td>→ {html.escape(output) or '…'}</td></tr>"
        for question, output in frame.evaluation.samples
    )
    caption = (
        "<small>Test sentences, which are never trained on, and what the model writes on its own:</small>"
    )
    return f"{caption}<table class='hl-samples'>{rows}</table>" if rows else ""


def by_length(frame: Frame) -> str:
    """Share of right held-out examples, for each group of neighbouring lengths; then the everyday words that
    are right, and BLEU and chrF, where measured. Empty if nothing is."""
    evaluation = frame.evaluation
    lengths = list(evaluation.by_length.items())
    each = max(1, math.ceil(len(lengths) / GROUPS))
    cells = []
    for group in (lengths[at : at + each] for at in range(0, len(lengths), each)):
        (first, _), (last, _) = group[0], group[-1]
        right, asked = (sum(counted[i] for _, counted in group) for i in (0, 1))
        name = f"{first}" if first == last else f"{first}–{last}"
        cells.append(
            f"<span title='{right} of {asked} right'><b>{name}</b> {100 * right // max(1, asked)}%</span>"
        )
    if cells:
        cells.insert(0, "<small>right, by length:</small>")
    if evaluation.everyday is not None:
        right, asked = evaluation.everyday
        cells.append(f"<span><small>Real English words:</small> <b>{right:,}</b> of {asked:,} right</span>")
    if evaluation.bleu is not None and evaluation.chrf is not None:
        cells.append(
            f"<span><small>BLEU</small> {evaluation.bleu:.1f} "
            f"<small>chrF</small> {evaluation.chrf:.1f}</span>"
        )
    return f"<div class='hl-lengths'>{' '.join(cells)}</div>" if cells else ""
