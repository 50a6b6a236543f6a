"""The effects of the masks on a run, as HTML made from its state and numbers."""

from __future__ import annotations

import html
import re

from pages.controls.words import askable
from transformer.config import TASK_INFO
from transformer.insight.moments import INTERVENTION
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.runs.any_run import AnyRun
from transformer.shared.interventions import PAD


def two_losses(frame: Frame | None, task: str) -> str:
    """The loss of test examples, teacher-forced and free-running, as HTML; dashes where it is not known.

    Args:
        frame: the frame with the losses, if there is one.
        task: name of the task, a key of `TASK_INFO`.
    """
    losses = {
        "given the right answer so far": frame.evaluation.loss if frame else None,
        "on its own": frame.evaluation.free_loss if frame else None,
    }
    shown = (
        f"<span><small>{name}</small> <b>{'–' if loss is None else f'{loss:.3f}'}</b></span>"
        for name, loss in losses.items()
    )
    at = "" if frame is None else f", measured at {frame.evaluation.step:,}"
    title = f"Loss of test {TASK_INFO[task].plural}{at}:"
    return f"<div class='hl-losses'><small>{title}</small>{''.join(shown)}</div>"


def with_masks(view: RunView) -> str:
    """What the masks that are on do, as a sentence of HTML; empty if none is on."""
    on = {
        "causal": "with the <b>causal mask</b>, a row sees only what was written before it",
        "padding": "with the <b>padding mask</b>, no row sees [PAD]",
    }
    sentence = "; ".join(text for mask, text in on.items() if view.masks[mask])
    return sentence and f"{sentence[0].upper()}{sentence[1:]}."


def learned_with(view: RunView) -> str:
    """A note on the first mask that now differs from the configuration; empty if none does, or if it was
    switched before the first step."""
    configured = view.config.model.masks
    switched = [mask for mask, on in view.masks.items() if on != configured[mask]]
    if not switched or not view.step:
        return ""
    mask = switched[0]
    when = _switched_at(view, mask)
    if not when:
        return ""
    now, other = ("off", "without") if configured[mask] else ("on", "with")
    return (
        f"The {mask} mask of this run has been {now} since step {when:,}. To see what a model learns "
        f"{other} it, train another run {other} it from the first step."
    )


def _switched_at(view: RunView, mask: str) -> int | None:
    """The step at which a mask was last switched to its present state; None if no moment says so yet.

    The text of a moment names the switched masks alone, or all interventions (`Interventions.change_text`).
    """
    configured = is_on = view.config.model.masks[mask]
    step = None
    for moment in view.moments:
        if moment.kind != INTERVENTION:
            continue
        named = re.search(rf"\b{mask} mask (?:switched )?(on|off)", moment.text)
        if named is not None:
            now = named[1] == "on"
        else:
            now = is_on if "mask switched" in moment.text else configured
        if now != is_on:
            is_on, step = now, moment.step
    return step if is_on == view.masks[mask] else None


def others(run: AnyRun, word: str) -> tuple[str, ...]:
    """The other tracked words, without mean maps; the batch of all tracked words decides the padding."""
    return tuple(text for text in askable(run) if text != word)


def batch_table(run: AnyRun, chosen: str) -> str:
    """The tracked words, without mean maps, as one batch of question tokens: a table of HTML, with [PAD] and
    the row of the word `chosen` marked."""
    words = askable(run)
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
