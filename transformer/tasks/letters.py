"""The base of tasks on random strings of letters: what they draw, hold out and accept."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from transformer.errors import InputError
from transformer.tasks.corpus import HELD_OUT_SEED, Corpus, Links, Pair, chosen_by_hash
from transformer.tasks.writing import LETTERS

HOLD_OUT_FROM = 3
"""Length in letters from which words are held out: there are too few shorter words."""
EVERYDAY_WORDS = tuple((Path(__file__).parent / "everyday.txt").read_text(encoding="utf-8").split())
"""Names of animals, as words that a user may type; the list was written for this project."""
_TRACKED_WORDS = ("playground", "banana", "strawberry", "kayak", "cat")
_UNSPLIT = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i"})
"""Replacements of letters that Unicode does not decompose into one of a to z and an accent."""
ALPHABET = np.frombuffer(string.ascii_lowercase.encode(), dtype=np.uint8)


def is_held_out(word: str) -> bool:
    """Whether training never sees this word: one in ten, by hash, from three letters on."""
    return len(word) >= HOLD_OUT_FROM and chosen_by_hash(word)


def _random_word(rng: np.random.Generator, length: int) -> str:
    return ALPHABET[rng.integers(0, 26, length)].tobytes().decode()


class Letters(Corpus):
    """A corpus of random words; a subclass defines the answer to a word, and its links if they differ.

    Every such task but `Repeat` draws the same words in the same order, so that tasks can be compared.

    Args:
        shortest: letters of the shortest training word.
        longest: letters of the longest, L; at least three.
    """

    src = tgt = LETTERS
    same_length = True

    def __init__(self, shortest: int, longest: int) -> None:
        self.shortest: int = shortest
        self.longest: int = longest
        if self.same_length:
            self.mean_lengths = range(max(HOLD_OUT_FROM, shortest), longest + 1)

    def answer(self, word: str) -> str:
        """The right answer to a word; with `same_length`, it has as many letters as the word."""
        raise NotImplementedError

    def links(self, word: str) -> Links:
        """For each letter of the answer, the place in the word that it comes from; by default its own."""
        return tuple((i,) for i in range(len(word)))

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Words to train on: lengths uniform, letters uniform, none of them held out."""
        # Draw lengths, then letters, then replacements of held-out words: recorded runs depend on this order.
        lengths = rng.integers(self.shortest, self.longest + 1, count)
        letters = rng.integers(0, 26, (count, self.longest))
        words = [
            ALPHABET[row[:n]].tobytes().decode() for row, n in zip(letters, lengths.tolist(), strict=True)
        ]
        for i, word in enumerate(words):
            while is_held_out(word):
                word = _random_word(rng, len(word))
            words[i] = word
        return [Pair(word, self.answer(word), self.links(word)) for word in words]

    def held_out_draws(self) -> Iterator[Pair]:
        """Held-out words, lengths about uniform from three letters (or the shortest, if longer) to L."""
        rng = np.random.default_rng(HELD_OUT_SEED)
        while True:
            word = _random_word(rng, int(rng.integers(max(HOLD_OUT_FROM, self.shortest), self.longest + 1)))
            if is_held_out(word):
                yield self._pair(word)

    def tracked_words(self) -> Sequence[str]:
        """Up to five everyday words of trained lengths, or three held-out words if there are none."""
        return tuple(filter(self._fits, _TRACKED_WORDS)) or [pair.source for pair in self.held_out()[:3]]

    def everyday(self) -> Sequence[str]:
        """Real words of trained lengths."""
        return tuple(filter(self._fits, EVERYDAY_WORDS))

    def read(self, text: str) -> str:
        """Clean and check a typed word.

        Raises:
            InputError: the word is empty, has accents (the message suggests the word without them) or other
                characters than a to z, or has more than 2 L letters.
        """
        word = text.strip().lower()
        if not word:
            raise InputError("The word is empty; type one, such as banana.", "probe_words")
        limit = 2 * self.longest
        if len(word) > limit:
            raise InputError(
                f"The word has {len(word)} letters; this run learns up to {self.longest} and accepts up "
                f"to {limit}. Type a shorter word.",
                "probe_words",
            )
        if not re.fullmatch("[a-z]+", word):
            split = unicodedata.normalize("NFKD", text.strip().casefold())  # which makes ß two letters
            plain = re.sub("[^a-z]", "", split.translate(_UNSPLIT))
            strange = sorted(set(re.sub("[a-z]", "", word)))
            advice = f"Try {plain}." if plain else "Type a word such as banana."
            shown = ", ".join("a space" if c.isspace() else f"“{c}”" for c in strange[:5])
            raise InputError(
                f"Only the letters a to z are in the alphabet, not {shown}. {advice}",
                "probe_words",
                plain[:limit] or None,
            )
        return word

    def find(self, source: str) -> Pair | None:
        """Any string of letters a to z with its answer, of any length; None for another text."""
        return self._pair(source) if re.fullmatch("[a-z]+", source) else None

    def report_lengths(self) -> tuple[int, ...]:
        """Lengths on which accuracy is reported: from the shortest word to L plus a third (or 2, if more)."""
        return tuple(range(self.shortest, self.longest + max(2, self.longest // 3) + 1))

    def words_of_length(self, length: int, count: int) -> list[str]:
        """`count` fixed random words of one length, held-out ones from three letters on; words may repeat."""
        rng = np.random.default_rng([HELD_OUT_SEED, length])
        words: list[str] = []
        while len(words) < count:
            word = _random_word(rng, length)
            if is_held_out(word) or length < HOLD_OUT_FROM:
                words.append(word)
        return words

    def hardest(self, tokens: Sequence[str]) -> list[str]:
        """Words that repeat one blocked letter (a if none is blocked), of every trained length."""
        letters = sorted(token for token in tokens if len(token) == 1) or ["a"]
        return [letter * n for letter in letters for n in range(self.shortest, self.longest + 1)]

    def _fits(self, word: str) -> bool:
        return self.shortest <= len(word) <= self.longest

    def _pair(self, word: str) -> Pair:
        return Pair(word, self.answer(word), self.links(word), held_out=is_held_out(word))
