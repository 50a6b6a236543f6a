"""What is learned, as text: a corpus has examples to train on, examples kept from training, and answers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from transformer.tasks.pair import Pair
from transformer.tasks.writing import Writing

N_HELD_OUT = 1000
"""Examples that every run of a task is asked; fewer where there are no more."""
HELD_OUT_SEED = 20_171_206
"""Any fixed number: what is held out is the same for every run."""


class Corpus(Protocol):
    """Examples of one task, as text. Pure: the same arguments give the same examples."""

    name: str
    src: Writing
    tgt: Writing
    same_length: bool
    """Whether every answer has as many units as its question."""
    translates: bool
    """Whether answers are sentences, to be measured by BLEU and chrF too."""

    @property
    def size(self) -> int | None:
        """Number of training examples; None where the supply is endless."""

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Examples to train on, none of them held out; of a finite corpus all, in a fixed order."""

    def held_out(self) -> Sequence[Pair]:
        """`N_HELD_OUT` fixed and different examples that training never sees, in a fixed random order."""

    def probes(self) -> Sequence[str]:
        """About five questions to begin with, the most telling first."""

    def everyday(self) -> Sequence[Pair]:
        """What a person would ask first, where that is not what training draws; often nothing."""

    def read(self, text: str) -> str:
        """Check and clean what a person typed. Raises InputError, with an offer where there is one."""

    def find(self, source: str) -> Pair | None:
        """A cleaned question with its answer and links; None where the answer is not known."""

    def references(self, source: str) -> Sequence[str]:
        """Every answer to a question of this corpus that counts as right."""


def chosen_by_hash(*names: str, one_in: int = 10) -> bool:
    """Whether a thing of these names is kept from training: one in ten, the same in every run."""
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % one_in == 0


@lru_cache(maxsize=2**16)
def held_out_by_hash(*names: str) -> bool:
    """The same, remembered: for things that come again and again."""
    return chosen_by_hash(*names)


Array = np.ndarray[Any, np.dtype[Any]]
