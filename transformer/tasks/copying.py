"""Copying words: the attention is the plain diagonal, a baseline for all other tasks."""

from __future__ import annotations

from transformer.tasks.letters import Letters


class Copy(Letters):
    """Read a word, write it again."""

    name = "copy"

    def answer(self, word: str) -> str:
        """The word itself."""
        return word
