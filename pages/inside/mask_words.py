"""What a mask that is off does to a run, in words made from its numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from transformer.interventions import PAD
from transformer.player.outputs import written
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
    """A run beside the one that it was started from, where the masks are all that differs: losses, words
    right, outputs."""
    frames = [view.frame for view in (before, now) if view.frame is not None]
    masks = [view.config.model.masks for view in (before, now)]
    rows = "".join(_compared_row(frame, on, chosen) for frame, on in zip(frames, masks, strict=True))
    return (
        "<table class='hl-both'><tr><th></th><th>loss reading the right answer</th>"
        f"<th>loss writing by itself</th><th>words right</th><th>writes</th></tr>{rows}</table>"
        f"<p>{_lesson(frames, masks)}</p>"
    )


def _compared_row(frame: Frame, masks: Mapping[str, bool], chosen: str) -> str:
    off = [mask for mask, on in masks.items() if not on]
    name = f"without the {' and the '.join(off)} mask" if off else "with both masks"
    measured = frame.evaluation
    right, asked = measured.counted
    losses = "".join(f"<td><b>{loss:.3f}</b></td>" for loss in (measured.loss, measured.free_loss))
    probes = sorted(frame.probes, key=lambda probe: probe.text != chosen)[:2]
    return (
        f"<tr><th>{name}, step {measured.step:,}</th>{losses}"
        f"<td><b>{right:,} / {asked:,}</b></td>"
        f"<td>{' · '.join(written(probe) for probe in probes)}</td></tr>"
    )


def _lesson(frames: Sequence[Frame], masks: Sequence[Mapping[str, bool]]) -> str:
    """One sentence on what is seen, from the numbers of both."""
    by_mask = {on["causal"]: frame.evaluation for frame, on in zip(frames, masks, strict=True)}
    writes_alone = any(axes.writes and axes.kind != "encoder" for axes in frames[0].axes.values())
    # Where a letter is predicted in the place of each, both losses are one, and no row writes what it reads.
    if len(by_mask) == 2 and writes_alone and by_mask[False].loss < 0.5 * by_mask[False].free_loss:
        without, with_it = by_mask[False], by_mask[True]
        return (
            f"Without the causal mask a row reads the very letter that it is to write: its loss falls to "
            f"{without.loss:.3f} while it learns nothing to write with. By itself it gets "
            f"{without.counted[0]:,} of {without.counted[1]:,} words right, the run with the mask "
            f"{with_it.counted[0]:,} of {with_it.counted[1]:,}."
        )
    return "Each row is what one run has learned; the masks are all that differs between them."


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
    return (
        "<div class='hl-wide' tabindex='0' role='group' aria-label='The batch'>"
        f"<table class='hl-batch'>{''.join(rows)}</table></div>"
    )
