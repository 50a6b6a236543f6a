"""What a mask that is off does to a run, in words made from its numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping

from transformer.interventions import PAD
from transformer.player.sentences import written
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
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


def two_losses(frame: Frame | None) -> str:
    """The loss of held-out words twice, side by side: reading the right answer, and writing freely."""
    losses = {
        "reading the right answer": frame.evaluation.loss if frame else None,
        "writing by itself": frame.evaluation.free_loss if frame else None,
    }
    at = "" if frame is None else f" at step {frame.evaluation.step:,}"
    shown = (
        f"<span><small>loss{at}, {name}</small> <b>{'–' if loss is None else f'{loss:.3f}'}</b></span>"
        for name, loss in losses.items()
    )
    return f"<div class='hl-losses'>{''.join(shown)}</div>"


def learned_with(view: RunView) -> str:
    """What a mask does not teach that was switched in the middle of a training; empty where none was."""
    configured = view.config.model.masks
    switched = [mask for mask, on in view.masks.items() if on != configured[mask]]
    if not switched or not view.step:
        return ""
    when = max(moment.step for moment in view.moments if f"{switched[0]} mask" in moment.text)
    if not when:
        return ""
    how = "with" if configured[switched[0]] else "without"
    other = "without" if configured[switched[0]] else "with"
    return (
        f"It has learned {how} the {switched[0]} mask up to step {when:,}: what it does now is not what a "
        f"model learns {other} it. For that, train one {other} it from the first step, beside this one."
    )


def compared(before: RunView, now: RunView, chosen: str) -> str:
    """A run beside the one that it was started from, which has other masks: losses, words right, outputs."""
    rows = "".join(_compared_row(view, chosen) for view in (before, now))
    return (
        "<table class='hl-both'><tr><th></th><th>loss reading the right answer</th>"
        f"<th>loss writing by itself</th><th>words right</th><th>writes</th></tr>{rows}</table>"
        f"<p>{_lesson(before, now)}</p>"
    )


def _compared_row(view: RunView, chosen: str) -> str:
    frame, masks = view.frame, view.config.model.masks
    if frame is None:
        return ""
    off = [mask for mask, on in masks.items() if not on]
    name = f"without the {' and the '.join(off)} mask" if off else "with both masks"
    measured = frame.evaluation
    right, asked = measured.counted
    losses = "".join(
        f"<td><b>{'–' if loss is None else f'{loss:.3f}'}</b></td>"
        for loss in (measured.loss, measured.free_loss)
    )
    probes = sorted(frame.probes, key=lambda probe: probe.text != chosen)[:2]
    return (
        f"<tr><th>{name}, step {measured.step:,}</th>{losses}"
        f"<td><b>{right:,} / {asked:,}</b></td>"
        f"<td>{' · '.join(written(probe) for probe in probes)}</td></tr>"
    )


def _lesson(before: RunView, now: RunView) -> str:
    """One sentence on what is seen, from the numbers of both."""
    without, with_it = sorted((before, now), key=lambda view: view.config.model.masks["causal"])
    one, other = without.frame, with_it.frame
    if one is None or other is None or without.config.model.masks["causal"]:
        return "Each row is what one run has learned; the masks are all that differs between them."
    found = one.evaluation
    if found.loss is None or found.free_loss is None:
        return "The run without the mask is being trained: its losses come with its first evaluation."
    if found.loss < 0.5 * found.free_loss:
        return (
            f"Without the causal mask a row reads the very letter that it is to write: its loss falls to "
            f"{found.loss:.3f} while it learns nothing to write with. By itself it gets {found.counted[0]:,} "
            f"of {found.counted[1]:,} words right, the run with the mask {other.evaluation.counted[0]:,} of "
            f"{other.evaluation.counted[1]:,}."
        )
    return "Not yet told apart: without the causal mask the loss falls faster, and the words stay wrong."


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
