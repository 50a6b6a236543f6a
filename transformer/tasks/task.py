"""What every task offers: examples to train on, held-out examples, and words with their right answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from transformer.tasks.tokenizer import CharacterTokenizer

Ids = np.ndarray[tuple[int, int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Batch:
    """Token ids of B examples, padded with [PAD] to common lengths."""

    src: Ids
    """(B, S), what the encoder reads; without an encoder, the same as `tgt_in`."""
    tgt_in: Ids
    """(B, T), what the decoder reads; without a decoder, the same as `src`."""
    tgt_out: Ids
    """(B, T), the label of each position that writes; [PAD] where no loss is taken."""
    answers: Ids
    """(B, A), the answer's tokens and [EOS] alone."""
    prompt: Ids
    """(B, P), what the decoder has read before it writes its first token; without a decoder P is 0."""
    words: tuple[str, ...] = ()
    """The B questions as text."""


@dataclass(frozen=True)
class Question:
    """A word that a person asked, with what is true about it."""

    text: str
    answer: str
    held_out: bool
    """Kept from training by its hash."""
    too_long: bool
    """Longer than anything trained on."""
    too_short: bool = False
    """Shorter than anything trained on."""


class Task(Protocol):
    """What is learned. Pure: the same arguments give the same examples, and nothing is drawn globally."""

    name: str
    same_length: bool
    """Whether every answer has as many tokens as its question."""
    topology: str
    """For which its batches are laid out."""
    src_tokenizer: CharacterTokenizer
    tgt_tokenizer: CharacterTokenizer
    max_tokens: int
    """Longest sequence that may be asked, special tokens included."""

    def batch(self, seed: int, k: int) -> Batch:
        """Training batch k of this seed."""

    def words(self, seed: int, k: int) -> list[str]:
        """The words of that batch, as text."""

    def held_out(self) -> list[str]:
        """Fixed words that training never sees, in a fixed random order."""

    def everyday(self) -> list[str]:
        """Real words within the trained length."""

    def report_lengths(self) -> tuple[int, ...]:
        """Lengths on which accuracy is reported, ascending, some of them beyond those trained on."""

    def words_of_length(self, length: int, count: int) -> list[str]:
        """Fixed words of one length; of trained lengths such as training never sees, where there are any."""

    def answer(self, text: str) -> str:
        """The right answer to a word."""

    def question(self, text: str) -> Question:
        """Check and clean what a person typed. Raises InputError."""

    def encode(self, words: Sequence[str], *, filled: bool = False) -> Batch:
        """Words with their right answers, as token ids; `filled` up with [PAD] as in training."""
