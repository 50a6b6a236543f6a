"""The words that training has drawn so far, exactly, in twelve bytes a word."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

MAX_WORDS = 2**20
"""Words that are remembered (12 MB): 16,384 steps of 64. What comes later is not looked up."""


class Drawn:
    """Remembers the hash of every word that training draws, in order."""

    def __init__(self) -> None:
        self.steps = 0
        """Steps that are remembered, from the first one on."""
        self._hashes, self._steps = array("q"), array("i")

    def note(self, step: int, words: Sequence[str]) -> None:
        """The words of the next step's batch."""
        if step != self.steps + 1 or len(self._hashes) + len(words) > MAX_WORDS:
            return  # a gap begins here: `steps` stays at the last step before it
        self._hashes.extend(map(hash, words))
        self._steps.extend([step] * len(words))
        self.steps = step

    def first_step(self, word: str) -> int | None:
        """The first step whose batch had this word, among the steps that are remembered."""
        found = np.flatnonzero(np.asarray(self._hashes) == hash(word))
        return self._steps[int(found[0])] if len(found) else None
