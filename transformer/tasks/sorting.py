"""Sorting letters: where a letter is read depends on all letters of the word, not on its place alone."""

from __future__ import annotations

from transformer.tasks.corpus import Links
from transformer.tasks.letters import Letters


class Sort(Letters):
    """Read a word, write its letters in alphabetical order."""

    name = "sort"

    def answer(self, word: str) -> str:
        """The letters from a to z, each as often as it occurs."""
        return "".join(sorted(word))

    def links(self, word: str) -> Links:
        """Each letter comes from its position in the word; equal letters keep their order."""
        return tuple((i,) for i in sorted(range(len(word)), key=word.__getitem__))
