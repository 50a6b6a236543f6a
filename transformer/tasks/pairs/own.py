"""The user's own pairs as a corpus with training and held-out pairs, and as text to save."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np

from transformer.errors import InputError
from transformer.tasks.corpus import ONE_IN, Corpus, Pair
from transformer.tasks.pairs.caps import Capped, Caps
from transformer.tasks.pairs.reading import Sides
from transformer.tasks.pairs.text import FIELD, plain, shortened
from transformer.tasks.pairs.units import FRENCH_SPACED_SIGNS, in_words, is_held_out, unknown_share
from transformer.tasks.writing import CHARACTERS, NON_SPACES, WORDS, Writing

FORMAT = 1
"""Version of the text that `to_tsv` writes."""
LEAST_HELD_OUT = 5
N_TRACKED_WORDS = 5
TIMES_LONGEST = 2
"""Maximum length of a question in units, as a multiple of the longest source."""


class OwnPairs(Corpus):
    """The kept pairs of a user, as the corpus of the task "pairs".

    Raises:
        InputError: fewer than `LEAST_HELD_OUT` sources are held out, or all of them.
    """

    name = "pairs"
    translates = True

    def __init__(self, capped: Capped) -> None:
        self.capped = capped
        self.src, self.tgt = capped.src, capped.tgt
        self.digest = digest_of(capped)
        """Hexadecimal digest that identifies the pairs, the caps and the spelling."""
        self._targets: dict[str, list[str]] = {}
        for source, target in capped.pairs:
            self._targets.setdefault(source, []).append(target)
        self._unseen = [source for source in self._targets if is_held_out(source)]
        n_held_out, n_sources = len(self._unseen), len(self._targets)
        if n_held_out < LEAST_HELD_OUT or n_held_out == n_sources:
            raise InputError(
                f"Of {len(capped.pairs):,} pairs with {n_sources:,} different sources, {n_held_out:,} "
                f"sources are held out (one in {ONE_IN}); at least {LEAST_HELD_OUT} are needed, so about "
                f"{2 * LEAST_HELD_OUT * ONE_IN} different sources. Loosen the caps or upload more pairs.",
                FIELD,
            )
        unseen = set(self._unseen)
        self._training = [Pair(s, t) for s, t in capped.pairs if s not in unseen]
        self.size = len(self._training)
        self.longest_source = max(len(self.src.units(source)) for source in self._targets)
        """Units of the longest source, held out or not."""
        self.longest_target = max(len(self.tgt.units(target)) for _, target in capped.pairs)
        """Units of the longest target, held out or not."""

    @property
    def nbytes(self) -> int:
        """Approximate memory of these pairs, in bytes."""
        return sum(200 + len(source) + len(target) for source, target in self.capped.pairs)

    @property
    def in_characters(self) -> bool:
        """Whether both sides are read in characters."""
        return self.src.unit == self.tgt.unit == CHARACTERS

    @cached_property
    def unknown_words(self) -> tuple[float, float]:
        """Share of held-out words that do not occur in training, for sources and for targets."""
        held_out = [is_held_out(source) for source, _ in self.capped.pairs]
        sides = zip((self.src, self.tgt), zip(*self.capped.pairs, strict=True), strict=True)
        read, written = (unknown_share(in_words(writing), texts, held_out) for writing, texts in sides)
        return read, written

    def _pair(self, source: str, held_out: bool) -> Pair:
        return Pair(source, self._targets[source][0], held_out=held_out)

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """All training pairs, in a fixed order: every target of a source is an example of its own."""
        return list(self._training)

    def held_out_draws(self) -> Iterator[Pair]:
        """Each held-out source with its first target, in the fixed random order of the pairs."""
        return (self._pair(source, True) for source in self._unseen)

    def tracked_words(self) -> Sequence[str]:
        """Up to five held-out sources: those with the fewest unknown units, then those of usual length."""
        trained_units = {unit for pair in self._training for unit in self.src.units(pair.source)}
        units = {pair.source: self.src.units(pair.source) for pair in self.held_out()}
        usual = statistics.median(map(len, units.values()))

        def oddity(source: str) -> tuple[int, float]:
            return sum(unit not in trained_units for unit in units[source]), abs(len(units[source]) - usual)

        return sorted(units, key=oddity)[:N_TRACKED_WORDS]

    def read(self, text: str) -> str:
        """Clean what a user typed.

        Raises:
            InputError: it is empty, or has more than twice as many units as the longest source.
        """
        source = self.src.clean(plain(text))
        if not source:
            example = shortened(self.tracked_words()[0])
            raise InputError(f"The sentence is empty; type one, such as “{example}”.", None, example)
        length, limit = len(self.src.units(source)), TIMES_LONGEST * self.longest_source
        if length > limit:
            raise InputError(
                f"The sentence has {length:,} {self.src.unit_name}; the longest source of these pairs has "
                f"{self.longest_source:,}. Use at most {limit:,}."
            )
        return source

    def find(self, source: str) -> Pair | None:
        """The source with its first target; None if no pair has this source."""
        return self._pair(source, is_held_out(source)) if source in self._targets else None

    def references(self, source: str) -> Sequence[str]:
        """Every target of a source; empty if no pair has this source."""
        return tuple(self._targets.get(source, ()))


def written(writing: Writing) -> str:
    """The part of a side's writing that is not in the caps: its unit, or for words its spaced signs."""
    return writing.spaced_signs if writing.unit == WORDS else writing.unit


def digest_of(capped: Capped) -> str:
    """A short digest of the pairs, in their order, the caps and the spelling."""
    head = json.dumps([asdict(capped.caps), *map(written, (capped.src, capped.tgt))], sort_keys=True)
    digest = hashlib.blake2b(head.encode(), digest_size=8)
    for source, target in capped.pairs:
        digest.update(f"\n{source}\t{target}".encode())
    return digest.hexdigest()


def to_tsv(own: OwnPairs) -> str:
    """A line of JSON and the pairs, for `from_tsv` to restore. A cleaned side has no tab and no line end."""
    capped = own.capped
    head = {
        "headlight_pairs": FORMAT,
        "digest": own.digest,
        "caps": asdict(capped.caps),
        "spaced": [written(capped.src), written(capped.tgt)],
    }
    lines = [json.dumps(head), *(f"{source}\t{target}" for source, target in capped.pairs)]
    return "\n".join(lines) + "\n"


def from_tsv(text: str) -> OwnPairs:
    """The pairs that `to_tsv` wrote: same digest, same split.

    Raises:
        InputError: `to_tsv` did not write the text, or the text was changed since.
    """
    first, _, rest = text.partition("\n")
    try:
        head: Any = json.loads(first)
        if head["headlight_pairs"] != FORMAT:
            raise ValueError(f"format {head['headlight_pairs']!r}")
        caps = Caps(**head["caps"])
        src, tgt = (_writing(spaced, caps) for spaced in head["spaced"])
        pairs = tuple(_sides(line) for line in rest.removesuffix("\n").split("\n"))
        own = OwnPairs(Capped(pairs, caps, src, tgt))
        if own.digest != head["digest"]:
            raise ValueError("its digest differs")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"The saved pairs are damaged ({error!r:.100}); upload the pairs again.", FIELD
        ) from error
    return own


def _writing(spaced: object, caps: Caps) -> Writing:
    if spaced in (CHARACTERS, NON_SPACES):
        between = "" if spaced == CHARACTERS else " "
        return Writing(unit=str(spaced), separator=between, lower=caps.lower)
    if spaced not in ("", FRENCH_SPACED_SIGNS):
        raise ValueError(f"spaced={spaced!r}")
    return Writing(lower=caps.lower, spaced_signs=str(spaced))


def _sides(line: str) -> Sides:
    source, target = line.split("\t")
    return source, target
