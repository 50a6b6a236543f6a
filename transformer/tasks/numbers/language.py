"""What a language tells of its numbers: its words, how they are put together, and how they are recognised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from transformer.tasks.writing import Writing

Said = list[tuple[str, tuple[int, ...]]]
"""A number as it is said: each word with the places of the digits that it tells, 0 the ones, 1 the tens.

Of 342, "three" and "hundred" tell place 2, "forty" place 1, "two" place 0, and "and" none. "Ten" tells both
of its digits, "twenty" only the first: the zero is what is left unsaid.
"""


@dataclass(frozen=True)
class Language:
    """The numbers of one language, from zero to 999,999."""

    name: str
    """In English."""
    writing: Writing
    """Its units are the words that numbers are put together from."""
    below_thousand: Callable[[int, bool, bool], Said]
    """A number up to 999, if it is not 0; whether thousands stand before it; whether it tells how many."""
    zero: str
    one: str
    hundred: str
    thousand: str
    silent: str
    """The word for "and"; leaving it out, or saying it too often, does not hinder understanding."""
    alike: Mapping[str, str]
    """Forms and misspellings of a word to the word as which they are understood."""

    def said(self, number: int) -> Said:
        """The one way in which a number is said here."""
        if number == 0:
            return [(self.zero, (0,))]
        many, rest = divmod(number, 1000)
        words: Said = []
        if many:
            how_many = self.below_thousand(many, False, True)
            words = [(word, tuple(place + 3 for place in places)) for word, places in how_many]
            # The word for thousand goes with the last digit that was said.
            words.append((self.thousand, (min((p for _, places in words for p in places), default=3),)))
        return words + self.below_thousand(rest, many > 0, False)

    def text(self, number: int) -> str:
        """A number in words."""
        return self.writing.joined([word for word, _ in self.said(number)])

    def number(self, words: Sequence[str]) -> int | None:
        """The number that these words say, even if a person would rather say it in others; else None."""
        known = [self.alike.get(word, word) for word in words if word != self.silent]
        if self.thousand not in known:
            return self._known.get(self._plain(known))
        at = known.index(self.thousand)
        before, after = known[:at] or [self.one], known[at + 1 :]
        high = self._known.get(self._plain(before))
        low = self._known.get(self._plain(after)) if after else 0
        if not high or low is None or (after and not low):  # nobody says zero thousand, or thousand zero
            return None
        return 1000 * high + low

    @cached_property
    def words(self) -> frozenset[str]:
        """All words that numbers can have."""
        every = {word for number in range(2001) for word, _ in self.said(number)}
        return frozenset(every | set(self.alike) | {self.silent})

    @cached_property
    def _known(self) -> dict[tuple[str, ...], int]:
        plain = {}
        for number in range(1000):
            words = [self.alike.get(word, word) for word, _ in self.said(number) if word != self.silent]
            plain[self._plain(words)] = number
        return plain

    def _plain(self, words: Sequence[str]) -> tuple[str, ...]:
        """Words without the one of one hundred, which some say and some do not."""
        return tuple(words[1:] if list(words[:2]) == [self.one, self.hundred] else words)
