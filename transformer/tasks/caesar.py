"""Caesar's cipher: each letter is read in its own place, and another letter is written for it."""

from __future__ import annotations

from string import ascii_lowercase

from transformer.tasks.letters import Letters


class Caesar(Letters):
    """Read a word, write each letter shifted forward in the alphabet; after z comes a.

    Args:
        shortest: letters of the shortest training word.
        longest: letters of the longest training word.
        shift: number of places by which a letter is shifted, 1 to 25.
    """

    name = "caesar"

    def __init__(self, shortest: int, longest: int, shift: int) -> None:
        super().__init__(shortest, longest)
        self.shift = shift
        self._key = str.maketrans(ascii_lowercase, ascii_lowercase[shift:] + ascii_lowercase[:shift])

    def answer(self, word: str) -> str:
        """The encrypted word."""
        return word.translate(self._key)
