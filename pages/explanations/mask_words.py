"""The effects of the masks on a run, in sentences made from its numbers."""

from __future__ import annotations

import html

from pages.controls.words import askable
from transformer.config import TASK_INFO
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.runs.any_run import AnyRun
from transformer.shared.interventions import PAD


def two_losses(frame: Frame | None, task: str) -> str:
    """The loss of test examples, teacher-forced and free-running."""
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
    """What the masks that are on do."""
    on = {
        "causal": "with the <b>causal mask</b>, a row sees only what was written before it",
        "padding": "with the <b>padding mask</b>, no row sees [PAD]",
    }
    sentence = "; ".join(text for mask, text in on.items() if view.masks[mask])
    return sentence and f"{sentence[0].upper()}{sentence[1:]}."


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


def others(run: AnyRun, word: str) -> tuple[str, ...]:
    """The other tracked words, which form a batch with this one and so decide its padding."""
    return tuple(text for text in askable(run) if text != word)


def batch_table(run: AnyRun, chosen: str) -> str:
    """The tracked words as one batch of tokens, with [PAD] marked."""
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
