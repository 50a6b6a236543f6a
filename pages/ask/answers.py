"""Answers as text, for the tabs of Ask."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer.answers import Answer
    from transformer.asking import Asked

NAMED = 3
"""Words whose answers are shown before and after."""
RIGHT = {True: "<b class='yes'>✓ right</b>", False: "<b class='not'>✗ wrong</b>"}


def short(token: str) -> str:
    """A token, shortened."""
    return "end" if token == "[EOS]" else token


def as_written(text: str, stopped: bool) -> str:
    """An output, with an ellipsis if it was cut off."""
    return text if stopped else f"{text}…"


def answered_otherwise(before: Asked, after: Asked) -> str:
    """The number of held-out words with a different output, and some of them, those first that were right."""
    pairs = [(word, *was, *after.held_out[word]) for word, was in before.held_out.items()]
    changed = sorted((pair for pair in pairs if pair[1] != pair[3]), key=lambda pair: pair[4] - pair[2])
    some = " · ".join(
        f"{html.escape(word)} → {_marked(was, was_right)} then {_marked(now, now_right)}"
        for word, was, was_right, now, now_right in changed[:NAMED]
    )
    count = f"<b>{len(changed)} of {len(pairs)}</b> held-out words have a different output"
    return f"<div class='hl-changed' data-changed='{len(changed)}'>{count}{': ' if some else ''}{some}.</div>"


def _marked(text: str, right: bool) -> str:
    mark = "<b class='yes'>✓</b>" if right else "<b class='not'>✗</b>"
    return f"<b>{html.escape(text) or '(nothing)'}</b> {mark}"


def verdict(name: str, answer: Answer, exact: tuple[int, int]) -> str:
    """The answer to a word, and how many held-out words are right."""
    right = f"{exact[0]} / {exact[1]} held-out words right"
    written = as_written(answer.output, answer.stopped)
    return (
        f"<div class='hl-verdict' data-right='{exact[0]}'><small>{name}</small> "
        f"{html.escape(answer.question.text)} → {_marked(written, answer.right)}<br><em>{right}</em></div>"
    )
