"""Copying words: the task whose attention is the plain diagonal, to compare all others with."""

from __future__ import annotations

from transformer.tasks.letters import Letters
from transformer.tasks.pair import Links


class Copy(Letters):
    """Read a word, write it again."""

    name = "copy"

    def answer(self, word: str) -> str:
        """The word itself."""
        return word

    def links(self, word: str) -> Links:
        """Each letter from the one in its place."""
        return tuple((i,) for i in range(len(word)))
