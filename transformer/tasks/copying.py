"""Copying words: the task whose attention is the plain diagonal, to compare all others with."""

from __future__ import annotations

from transformer.tasks.letters import Letters


class Copy(Letters):
    """Read a word, write it again."""

    name = "copy"

    def answer(self, word: str) -> str:
        """The word itself."""
        return word
