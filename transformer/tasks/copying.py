"""Copying words: each letter is read in its own place, a baseline for the other tasks."""

from __future__ import annotations

from transformer.tasks.letters import Letters


class Copy(Letters):
    """Read a word, write it again."""

    name = "copy"

    def answer(self, word: str) -> str:
        """The word itself."""
        return word
