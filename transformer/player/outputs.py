"""What a model wrote by itself, as tables in HTML: tracked words, samples, and right by length."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable

from transformer.recording.frame import Frame, Probe

WIDE = 12
"""Where one sentence is longer, each stands in a line of its own."""
GROUPS = 4
"""Into which lengths are put together at most: more would not fit in a line."""


def _marked(probe: Probe) -> str:
    """What the model wrote by itself, every token marked right or wrong by more than colour."""
    if not probe.forced:  # nobody knows
        return html.escape("".join(letter for letter, _ in probe.marked))
    return "".join(
        f"<span class='{'ok' if right else 'no'}'>{html.escape(letter)}</span>"
        for letter, right in probe.marked
    )


def _verdict(probe: Probe) -> str:
    """Whether all of it is right; where nobody knows, a question mark."""
    return "<b class='yes'>✓</b>" if probe.right else "<b class='not'>✗</b>" if probe.forced else "?"


def written(probe: Probe) -> str:
    """A tracked word and what the model wrote by itself, in a line."""
    return f"<span class='hl-outputs'>{html.escape(probe.text)} → {_marked(probe)} {_verdict(probe)}</span>"


def are_wide(probes: Iterable[Probe]) -> bool:
    """Whether there are sentences among them, which stand above their translations."""

    def width(text: str) -> int:
        return sum(1 if letter < "\u2e80" else 2 for letter in text)  # Chinese takes twice the room

    texts = [probe.text for probe in probes]
    return any(width(text) > WIDE and not (text.isascii() and text.isalpha()) for text in texts)


def output_row(probe: Probe, wide: bool = False) -> str:
    """A tracked word and what the model wrote by itself: rows of a table.

    Args:
        wide: whether the word stands above its output, as `are_wide` says of all that are shown together.
    """
    letters, mark = _marked(probe), _verdict(probe)
    short, full = remark(probe)
    if probe.output_step is None:
        letters, mark, short = "<small>not asked yet</small>", "", ""
    row = f"<td>{html.escape(probe.text)}</td><td>→ {letters}</td>"
    if wide:
        return (
            f"<tr class='long'><td colspan='3'><small>{html.escape(probe.text)}</small></td></tr>"
            f"<tr class='long'><td colspan='2'>→ {letters}</td>"
            f"<td title='{full}'>{mark} <small>{short}</small></td></tr>"
        )
    if probe.too_long:  # its output needs the room, and this is worth reading
        return (
            f"<tr class='long'>{row}<td>{mark}</td></tr>"
            f"<tr><td colspan='3' title='{full}'><small>{full}</small></td></tr>"
        )
    return f"<tr>{row}<td title='{full}'>{mark} <small>{short}</small></td></tr>"


def outputs(frame: Frame, chosen: str) -> str:
    """What the model wrote by itself to each tracked word, the chosen one on top."""
    probes, wide = sorted(frame.probes, key=lambda probe: probe.text != chosen), are_wide(frame.probes)
    rows = "".join(
        f"<tbody class='{'chosen' if probe.text == chosen else ''}'>{output_row(probe, wide)}</tbody>"
        for probe in probes
    )
    written = {at for probe in probes if (at := probe.output_step) not in (None, frame.step)}
    said = f"<small>As written at step {max(written, key=lambda at: at or 0):,}:</small>" if written else ""
    return f"{said}<table class='hl-outputs' data-step='{frame.step}'>{rows}</table>"


def remark(probe: Probe) -> tuple[str, str]:
    """What training knows of this word, in short and in full."""
    if not probe.forced:
        return "unknown", (
            "nobody here knows the right answer: the maps run over what the model wrote by itself at step "
            f"{probe.written_at:,}"
        )
    if probe.too_long:
        return "too long", "longer than anything trained on"
    if probe.too_short:
        return "too short", "shorter than anything trained on"
    if probe.held_out:
        return "held out", "kept from training by its hash: training never draws it"
    if probe.drawn_at is not None:
        return f"step {probe.drawn_at:,}", f"training drew it first at step {probe.drawn_at:,}"
    return "unseen", "training has not drawn it up to here"


def samples(frame: Frame) -> str:
    """A few held-out sentences and what the model wrote at the newest evaluation; nothing for words."""
    rows = "".join(
        f"<tr><td>{html.escape(question)}</td><td>→ {html.escape(output) or '…'}</td></tr>"
        for question, output in frame.evaluation.samples
    )
    said = f"<small>Held-out sentences, as written at step {frame.evaluation.step:,}:</small>"
    return f"{said}<table class='hl-samples'>{rows}</table>" if rows else ""


def by_length(frame: Frame) -> str:
    """Share of held-out examples that are right, by their length: neighbouring lengths together."""
    lengths = list(frame.evaluation.by_length.items())
    each = max(1, math.ceil(len(lengths) / GROUPS))
    said = []
    for group in (lengths[at : at + each] for at in range(0, len(lengths), each)):
        (first, _), (last, _) = group[0], group[-1]
        right, asked = (sum(counted[i] for _, counted in group) for i in (0, 1))
        name = f"{first}" if first == last else f"{first}–{last}"
        said.append(
            f"<span title='{right} of {asked} right'><b>{name}</b> {100 * right // max(1, asked)} %</span>"
        )
    return f"<div class='hl-lengths'><small>right by length:</small> {' '.join(said)}</div>" if said else ""
