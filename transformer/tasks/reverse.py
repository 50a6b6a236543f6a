"""Reversing words: random lower-case strings to train on, held-out and everyday words to be asked."""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections.abc import Sequence

import numpy as np

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.tasks.everyday import EVERYDAY_WORDS
from transformer.tasks.task import Batch, Question
from transformer.tasks.tokenizer import CharacterTokenizer

N_HELD_OUT = 1000
HOLD_OUT_FROM = 3
"""Shorter words are too few to keep any from training."""
_LETTERS = np.frombuffer(string.ascii_lowercase.encode(), dtype=np.uint8)
_HELD_OUT_SEED = 20_171_206  # any fixed number: the held-out words are the same for every run


def is_held_out(word: str) -> bool:
    """Whether training never sees this word: one in ten, by hash, from three letters on."""
    if len(word) < HOLD_OUT_FROM:
        return False
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest()) % 10 == 0


class Reverse:
    """Read a word, write it backwards."""

    name = "reverse"

    def __init__(self, config: TrainConfig) -> None:
        self.shortest, self.longest = config.min_letters, config.max_letters
        self.batch_size, self.pad_to = config.batch_size, config.pad_to
        self.src_tokenizer = self.tgt_tokenizer = CharacterTokenizer()
        self.max_tokens = max(2 * self.longest + 2, self.pad_to or 0)

    def words(self, seed: int, k: int) -> list[str]:
        """The words of training batch k: lengths uniform, letters uniform, none of them held out."""
        rng = np.random.default_rng([seed, k])
        lengths = rng.integers(self.shortest, self.longest + 1, self.batch_size)
        letters = rng.integers(0, 26, (self.batch_size, self.longest))
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

    def encode(self, words: Sequence[str]) -> Batch:
        """Words with their right answers, padded to the longest of them."""
        return self._encode(words, None)

    def _encode(self, words: Sequence[str], pad_to: int | None) -> Batch:
        src = self.src_tokenizer.encode(words)
        tgt = self.tgt_tokenizer.encode([self.answer(word) for word in words])
        longest = pad_to or max(map(len, src))
        padded = np.full((3, len(words), longest), self.src_tokenizer.pad_id, dtype=np.int64)
        for i, (reading, writing) in enumerate(zip(src, tgt, strict=True)):
            padded[0, i, : len(reading)] = reading
            padded[1, i, : len(writing) - 1] = writing[:-1]
            padded[2, i, : len(writing) - 1] = writing[1:]
        return Batch(padded[0], padded[1, :, : longest - 1], padded[2, :, : longest - 1], tuple(words))

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
        return Question(word, self.answer(word), is_held_out(word), len(word) > self.longest)
