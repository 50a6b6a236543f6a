"""The effects of the masks on a run, in sentences made from its numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from transformer.interventions import PAD
from transformer.player.outputs import written
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.runs.watched import Watched


def two_losses(frame: Frame | None) -> str:
    """The loss of held-out words, teacher-forced and free-running."""
    losses = {
        "teacher-forced": frame.evaluation.loss if frame else None,
        "free-running": frame.evaluation.free_loss if frame else None,
    }
    at = "" if frame is None else f" at step {frame.evaluation.step:,}"
    shown = (
        f"<span><small>loss{at}, {name}</small> <b>{'–' if loss is None else f'{loss:.3f}'}</b></span>"
        for name, loss in losses.items()
    )
    return f"<div class='hl-losses'>{''.join(shown)}</div>"


def learned_with(view: RunView) -> str:
    """A note about a mask that was switched during training; empty if none was."""
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
        f"This run trained {how} the {switched[0]} mask up to step {when:,}. To see what a model learns "
        f"{other} it, train another run {other} it from the first step."
    )


def compared(before: RunView, now: RunView, chosen: str) -> str:
    """A table of a run and the one that it was started from, if only their masks differ."""
    frames = [view.frame for view in (before, now) if view.frame is not None]
    masks = [view.config.model.masks for view in (before, now)]
    rows = "".join(_compared_row(frame, on, chosen) for frame, on in zip(frames, masks, strict=True))
    return (
        "<table class='hl-both'><tr><th></th><th>teacher-forced loss</th>"
        f"<th>free-running loss</th><th>words right</th><th>output</th></tr>{rows}</table>"
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
    """What the two runs show, from their numbers."""
    by_mask = {on["causal"]: frame.evaluation for frame, on in zip(frames, masks, strict=True)}
    writes_alone = any(axes.writes and axes.kind != "encoder" for axes in frames[0].axes.values())
    # An encoder predicts each letter at its own position: both losses are equal.
    if len(by_mask) == 2 and writes_alone and by_mask[False].loss < 0.5 * by_mask[False].free_loss:
        without, with_it = by_mask[False], by_mask[True]
        return (
            "Without the causal mask, each row reads the letter that it has to predict. The teacher-forced "
            f"loss is {without.loss:.3f}, but the free-running output is right for "
            f"{without.counted[0]:,} of {without.counted[1]:,} words. With the mask, it is right for "
            f"{with_it.counted[0]:,} of {with_it.counted[1]:,}."
        )
    return "The two runs differ only in their masks."


def others(run: Watched, word: str) -> tuple[str, ...]:
    """The other tracked words, with which one is padded in a batch."""
    return tuple(question.text for question in run.questions if question.text != word)


def batch_table(run: Watched, chosen: str) -> str:
    """The tracked words as one batch of tokens, with [PAD] marked."""
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
