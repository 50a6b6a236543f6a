"""What a mask that is off does to a run, in words made from its numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping

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
