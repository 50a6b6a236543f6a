"""Reversing words: random lower-case strings to train on, held-out and everyday words to be asked."""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.tasks.arrange import arrange, sequence_limit
from transformer.tasks.everyday import EVERYDAY_WORDS
from transformer.tasks.task import Batch, Question
from transformer.tasks.tokenizer import CharacterTokenizer

Array = np.ndarray[Any, np.dtype[Any]]

N_HELD_OUT = 1000
HOLD_OUT_FROM = 3
"""Shorter words are too few to keep any from training."""
_LETTERS = np.frombuffer(string.ascii_lowercase.encode(), dtype=np.uint8)
_FINITE = 50_021
"""Tells the draws of a finite set from those of batches."""
_HELD_OUT_SEED = 20_171_206  # any fixed number: the held-out words are the same for every run


def is_held_out(word: str) -> bool:
    """Whether training never sees this word: one in ten, by hash, from three letters on."""
    if len(word) < HOLD_OUT_FROM:
        return False
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest()) % 10 == 0


class Reverse:
    """Read a word, write it backwards."""

    name = "reverse"
    same_length = True

    def __init__(self, config: TrainConfig, topology: str) -> None:
        self.shortest, self.longest = config.min_letters, config.max_letters
        self.batch_size, self.pad_to, self.examples = config.batch_size, config.pad_to, config.examples
        self.steps_per_epoch = config.steps_per_epoch
        self.topology = topology
        self.src_tokenizer = self.tgt_tokenizer = CharacterTokenizer(separator=topology == "decoder-only")
        padded = sequence_limit(topology, (self.pad_to or 2) - 2)
        self.max_tokens = max(sequence_limit(topology, 2 * self.longest), padded)
        # Of the finite set: drawn once, not at every batch. Each is replaced whole, so threads may share it.
        self._kept_set: tuple[int, list[str]] | None = None
        self._kept_order: tuple[tuple[int, int], Array] | None = None

    def words(self, seed: int, k: int) -> list[str]:
        """The words of training batch k: lengths uniform, letters uniform, none of them held out.

        Of a finite set, batch k is a slice of the set in the order of its epoch; the last of an epoch is what
        is left.
        """
        if self.examples is None or self.steps_per_epoch is None:
            return self._drawn(np.random.default_rng([seed, k]), self.batch_size)
        epoch, part = divmod(k, self.steps_per_epoch)
        chosen = self._order(seed, epoch)[part * self.batch_size : (part + 1) * self.batch_size]
        every = self._finite_set(seed)
        return [every[i] for i in chosen.tolist()]

    def _finite_set(self, seed: int) -> list[str]:
        kept = self._kept_set
        if kept is None or kept[0] != seed:
            drawn = self._drawn(np.random.default_rng([seed, _FINITE]), self.examples or 0)
            kept = self._kept_set = seed, drawn
        return kept[1]

    def _order(self, seed: int, epoch: int) -> Array:
        kept = self._kept_order
        if kept is None or kept[0] != (seed, epoch):
            rng = np.random.default_rng([seed, _FINITE, epoch])
            kept = self._kept_order = (seed, epoch), rng.permutation(self.examples or 0)
        return kept[1]

    def _drawn(self, rng: np.random.Generator, count: int) -> list[str]:
        lengths = rng.integers(self.shortest, self.longest + 1, count)
        letters = rng.integers(0, 26, (count, self.longest))
        words = [
            _LETTERS[row[:n]].tobytes().decode() for row, n in zip(letters, lengths.tolist(), strict=True)
        ]
        for i, word in enumerate(words):
            while is_held_out(word):
                word = _LETTERS[rng.integers(0, 26, len(word))].tobytes().decode()
            words[i] = word
        return words

    def batch(self, seed: int, k: int) -> Batch:
        """Training batch k of this seed, a pure function of both."""
        return self._encode(self.words(seed, k), self.pad_to)

    def encode(self, words: Sequence[str], *, filled: bool = False) -> Batch:
        """Words with their right answers, padded to the longest of them.

        Args:
            filled: padded to the longest trained word at least, as a batch of training is; for a model that
                sees its padding, and so knows no other length.
        """
        longest = max(map(len, words), default=0) + 2
        return self._encode(words, max(longest, self.longest + 2, self.pad_to or 0) if filled else None)

    def _encode(self, words: Sequence[str], pad_to: int | None) -> Batch:
        answers = [self.answer(word) for word in words]
        return arrange(self.topology, self.src_tokenizer, words, answers, pad_to)

    def held_out(self) -> list[str]:
        """1,000 different held-out words, lengths uniform from three letters (or the shortest) to L."""
        rng = np.random.default_rng(_HELD_OUT_SEED)
        shortest = max(HOLD_OUT_FROM, self.shortest)
        found: dict[str, None] = {}
        while len(found) < N_HELD_OUT:
            n = int(rng.integers(shortest, self.longest + 1))
            word = _LETTERS[rng.integers(0, 26, n)].tobytes().decode()
            if is_held_out(word):
                found[word] = None
        return list(found)

    def everyday(self) -> list[str]:
        """Real words of up to L letters."""
        return [word for word in EVERYDAY_WORDS if self.shortest <= len(word) <= self.longest]

    def report_lengths(self) -> tuple[int, ...]:
        """From the shortest word to a third more than L letters."""
        return tuple(range(self.shortest, self.longest + max(2, self.longest // 3) + 1))

    def words_of_length(self, length: int, count: int) -> list[str]:
        """Random words; held out by hash where words of this length are."""
        rng = np.random.default_rng([_HELD_OUT_SEED, length])
        found: list[str] = []
        while len(found) < count:
            word = _LETTERS[rng.integers(0, 26, length)].tobytes().decode()
            if is_held_out(word) or length < HOLD_OUT_FROM:
                found.append(word)
        return found

    def answer(self, text: str) -> str:
        """The word, last letter first."""
        return text[::-1]

    def question(self, text: str) -> Question:
        """Clean and check a typed word.

        Raises:
            InputError: empty, with accents (the message offers the word without), with other characters
                than a to z, or of more than 2 L letters.
        """
        word = text.strip().lower()
        if not word:
            raise InputError("There is no word to ask; type one, such as banana.", "probe_words")
        limit = 2 * self.longest
        if len(word) > limit:
            raise InputError(
                f"{len(word)} letters is too long; this run learns up to {self.longest} letters and can be "
                f"asked up to {limit}. Type a shorter word.",
                "probe_words",
            )
        if not re.fullmatch("[a-z]+", word):
            plain = re.sub("[^a-z]", "", unicodedata.normalize("NFKD", word))
            strange = sorted(set(re.sub("[a-z]", "", word)))
            offer = f"Try {plain}." if plain else "Type a word such as banana."
            shown = ", ".join("a space" if c.isspace() else f"“{c}”" for c in strange[:5])
            raise InputError(
                f"Only the letters a to z are in the alphabet, not {shown}. {offer}",
                "probe_words",
                plain[:limit] or None,
            )
        long, short = len(word) > self.longest, len(word) < self.shortest
        return Question(word, self.answer(word), is_held_out(word), long, short)
