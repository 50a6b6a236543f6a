"""Reversing words: read a word, write it backwards."""

from __future__ import annotations

from transformer.tasks.corpus import Links
from transformer.tasks.letters import Letters


class Reverse(Letters):
    """The last letter first."""

    name = "reverse"

    def answer(self, word: str) -> str:
        """The word, last letter first."""
        return word[::-1]

    def links(self, word: str) -> Links:
        """Each letter comes from the one that stands opposite."""
        return tuple((i,) for i in reversed(range(len(word))))
