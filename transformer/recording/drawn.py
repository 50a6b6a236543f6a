"""Which words training has drawn so far, exactly, in twelve bytes a word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MAX_WORDS = 2**20
"""Words that are remembered (12 MB): 16,384 steps of 64. What comes later is not looked up."""


class Drawn:
    """Remembers the hash of every word that training draws, in order."""

    def __init__(self, max_words: int = MAX_WORDS) -> None:
        self.steps = 0
        """Steps that are remembered, from the first one on."""
        self._max_words = max_words
        self._hashes = np.empty(4096, dtype=np.int64)
        self._steps = np.empty(4096, dtype=np.int32)
        self._n = 0

    def note(self, step: int, words: Sequence[str]) -> None:
        """The words of the next step's batch."""
        end = self._n + len(words)
        if step != self.steps + 1 or end > self._max_words:
            return  # there is a gap from here on, and `steps` says where it begins
        while end > len(self._hashes):
            self._hashes = np.concatenate([self._hashes, np.empty_like(self._hashes)])
            self._steps = np.concatenate([self._steps, np.empty_like(self._steps)])
        self._hashes[self._n : end] = [hash(word) for word in words]
        self._steps[self._n : end] = step
        self._n, self.steps = end, step

    def first_step(self, word: str) -> int | None:
        """The first step whose batch had this word, among the steps that are remembered."""
        found = np.flatnonzero(self._hashes[: self._n] == hash(word))
        return int(self._steps[found[0]]) if len(found) else None
