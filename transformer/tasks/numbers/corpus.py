"""Numbers: words become digits, or digits words, in a language where that is more or less straightforward."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import chain, zip_longest
from typing import NoReturn

import numpy as np

from transformer.errors import InputError
from transformer.tasks.corpus import HELD_OUT_SEED, N_HELD_OUT, Corpus, held_out_by_hash
from transformer.tasks.numbers.english import ENGLISH
from transformer.tasks.numbers.french import FRENCH
from transformer.tasks.numbers.german import GERMAN
from transformer.tasks.pair import Pair
from transformer.tasks.writing import LETTERS

LANGUAGES = {"en": ENGLISH, "fr": FRENCH, "de": GERMAN}
_PROBES = (342, 5006, 97, 34, 700_013, 80, 13, 7, 0)
_GROUPED = re.compile(r"[0-9]{1,3}(?:[ ,.'_][0-9]{3})+")


def is_held_out(number: int) -> bool:
    """Whether training never sees this number: one in ten, by hash, of those put together from others.

    Up to twenty, and whole tens up to ninety, are the words that all others are made of.
    """
    made_of_others = number >= 100 or (number > 20 and number % 10 > 0)
    return made_of_others and held_out_by_hash(str(number))


def _range(length: int) -> tuple[int, int]:
    """The numbers of so many digits: the first, and the first that is none of them."""
    return (10 ** (length - 1) if length > 1 else 0), 10**length


@lru_cache(maxsize=8)
def _held_out_numbers(digits: int) -> tuple[int, ...]:
    """Held-out numbers, of each length equally many as far as there are, in random order."""
    rng = np.random.default_rng(HELD_OUT_SEED)
    by_length = []
    for length in range(1, digits + 1):
        numbers = rng.permutation(np.arange(*_range(length)))[: 20 * N_HELD_OUT]
        by_length.append([number for number in numbers.tolist() if is_held_out(number)])
    in_turn = [n for n in chain.from_iterable(zip_longest(*by_length)) if n is not None][:N_HELD_OUT]
    return tuple(rng.permutation(np.array(in_turn, dtype=np.int64)).tolist())


class Numbers(Corpus):
    """Read a number in words, write it in digits; or the other way round.

    Args:
        language: of the words: en, fr or de.
        digits: of the largest number, 1 to 6. Of one digit nothing can be held out, of two little.
        to_words: whether digits are read and words written.
    """

    name = "numbers"

    def __init__(self, language: str, digits: int, to_words: bool) -> None:
        self.language, self.digits, self.to_words = LANGUAGES[language], digits, to_words
        self.largest = 10**digits - 1
        words = self.language.writing
        self.src, self.tgt = (LETTERS, words) if to_words else (words, LETTERS)

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Numbers to train on: their length uniform, so that short ones occur, none of them held out."""
        pairs = []
        for length in rng.integers(1, self.digits + 1, count).tolist():
            number = int(rng.integers(*_range(length)))
            while is_held_out(number):
                number = int(rng.integers(*_range(length)))
            pairs.append(self._pair(number))
        return pairs

    def held_out(self) -> Sequence[Pair]:
        """Up to 1,000 held-out numbers, lengths as uniform as there are enough of them."""
        return self._held_out

    @cached_property
    def _held_out(self) -> tuple[Pair, ...]:
        return tuple(map(self._pair, _held_out_numbers(self.digits)))

    def probes(self) -> Sequence[str]:
        """Three digits, zeros that no word tells, what is odd in French and in German, a long one."""
        return tuple(self._pair(number).source for number in _PROBES if number <= self.largest)[:5]

    def read(self, text: str) -> str:
        """Clean and check a typed number; words may be put as a person would, if they say a number.

        Raises:
            InputError: empty, no number, one on the wrong side, or one that is too large; the message names
                what is not understood, and offers what would be.
        """
        number = self._read_digits(text) if self.to_words else self._read_words(text)
        if number > self.largest:
            self._refuse(str(number))
        return self._pair(number).source

    def _read_digits(self, text: str) -> int:
        typed, example = LETTERS.clean(text), min(_PROBES[0], self.largest)
        if not typed:
            raise InputError(f"There is no number to ask; type one, such as {example}.", "probe_words")
        number = self._in_digits(typed)
        if number is not None:
            return number
        writing = self.language.writing
        spoken = self.language.number(writing.units(writing.clean(typed)))
        if spoken is not None:
            raise InputError(f"This run reads digits. Try {spoken}.", "probe_words", str(spoken))
        strange = sorted(set(re.sub("[0-9]", "", typed)))
        shown = ", ".join("a space" if sign == " " else f"“{sign}”" for sign in strange[:5])
        raise InputError(
            f"Only the digits 0 to 9 are in the alphabet, not {shown}. Type a number such as {example}.",
            "probe_words",
        )

    def _read_words(self, text: str) -> int:
        language, example = self.language, self.language.text(min(_PROBES[0], self.largest))
        cleaned = LETTERS.clean(text)
        words = language.writing.units(language.writing.clean(cleaned))
        digits = self._in_digits(cleaned)
        if digits is not None:
            offer = language.text(digits)
            raise InputError(f"This run reads numbers in words. Try {offer}.", "probe_words", offer)
        if not words:
            raise InputError(f"There is no number to ask; type one, such as {example}.", "probe_words")
        unknown = [word for word in words if word not in language.words]
        if unknown:
            raise InputError(
                f"“{unknown[0][:40]}” is not a word of {language.name} numbers up to {self.largest}. "
                f"Type one such as {example}.",
                "probe_words",
            )
        number = language.number(words)
        if number is None:
            raise InputError(
                f"“{language.writing.joined(words)[:60]}” is not a number in {language.name}. Type one "
                f"such as {example}.",
                "probe_words",
            )
        return number

    def _in_digits(self, text: str) -> int | None:
        """A number in digits, with or without signs between its thousands."""
        plain = re.sub("[^0-9]", "", text) if _GROUPED.fullmatch(text) else text
        if not re.fullmatch("[0-9]+", plain):
            return None
        plain = plain.lstrip("0") or "0"
        if len(plain) > self.digits:
            self._refuse(plain if len(plain) < 20 else f"A number of {len(plain)} digits")
        return int(plain)

    def _refuse(self, number: str) -> NoReturn:
        raise InputError(
            f"{number} is too large; this run learns numbers up to {self.largest}. Type a smaller one.",
            "probe_words",
        )

    def find(self, source: str) -> Pair | None:
        """A number of any length that the language can say, with its answer."""
        if self.to_words:
            number = int(source) if re.fullmatch("0|[1-9][0-9]{0,5}", source) else None
        else:
            number = self.language.number(self.src.units(source))
        pair = None if number is None else self._pair(number)
        return pair if pair and pair.source == source else None

    def _pair(self, number: int) -> Pair:
        """A number with each digit linked to the words that tell it, or each word to the digits it tells."""
        digits, said = str(number), self.language.said(number)
        text = self.language.writing.joined([word for word, _ in said])
        held_out = is_held_out(number)
        if self.to_words:
            of_words = tuple(tuple(sorted(len(digits) - 1 - place for place in places)) for _, places in said)
            return Pair(digits, text, of_words, held_out=held_out)
        of_digits = tuple(
            tuple(i for i, (_, places) in enumerate(said) if place in places)
            for place in reversed(range(len(digits)))
        )
        return Pair(text, digits, of_digits, held_out=held_out)
