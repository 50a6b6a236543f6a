"""Reversing words: read a word, write it backwards."""

from __future__ import annotations

from transformer.tasks.corpus import Links
from transformer.tasks.letters import Letters


class Reverse(Letters):
    """Read a word, write its letters in reverse order."""

    name = "reverse"

    def answer(self, word: str) -> str:
        """The word, last letter first."""
        return word[::-1]

    def links(self, word: str) -> Links:
        """Each letter comes from the mirrored position of the word."""
        return tuple((i,) for i in reversed(range(len(word))))
