"""The answer of a model: tokens, maps and probabilities, teacher-forced and free-running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from transformer.insight.scores import Links
from transformer.recording.frame import Array
from transformer.shared.attention_info import AttentionInfo
from transformer.shared.interventions import Interventions
from transformer.tasks import Question


@dataclass(frozen=True, kw_only=True, eq=False)
class ForwardPass:
    """One forward pass of the model of one step: a word and the decoder's input."""

    src_tokens: tuple[str, ...]
    """Tokens of the encoder."""
    tgt_tokens: tuple[str, ...]
    """Tokens of the decoder; the same as `src_tokens` in a model with one stack."""
    axes: Mapping[str, AttentionInfo]
    """Every site of the model, in the order of the forward pass."""
    probabilities: Array
    """(T, V) float32: for each row, the probability of each next token."""
    predicted: tuple[str, ...]
    """The most probable token of each row."""

    def tokens(self, side: str) -> tuple[str, ...]:
        """The tokens of one side: src, tgt or seq."""
        return self.src_tokens if side == "src" else self.tgt_tokens


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading(ForwardPass):
    """A forward pass with its maps. After a beam search, `predicted` of `Answer.free` holds what it wrote."""

    writing: tuple[int, ...]
    """Positions that write: the first token of the answer, the second, and so on."""
    maps: dict[str, Array]
    """The weights of each site, (H, Q, K) float32; NaN where a mask or an intervention blocks."""

    def to_write(self, answer: tuple[str, ...]) -> tuple[str, ...]:
        """The token that each position has to write, given an answer; empty if none."""
        at = dict(zip(self.writing, answer, strict=False))  # the model may write more, or less
        return tuple(at.get(i, "") for i in range(len(self.predicted)))

    @property
    def written(self) -> tuple[str, ...]:
        """The token in `predicted` of each position that writes."""
        return tuple(self.predicted[i] for i in self.writing)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of the model of one step to one word."""

    step: int
    """The step of the snapshot that answers."""
    question: Question
    expected: tuple[str, ...]
    """Tokens of the right answer, with [EOS]; if it is not known, those of the model's own output."""
    forced: Reading
    """With the right tokens as input; where these are not known, the same as `free`."""
    free: Reading
    """With the model's own output as input, each row from the pass that wrote it."""
    output: str
    stopped: bool
    """Whether the output ended by itself."""
    accepted: bool
    """Whether the text of the output counts as right; False if no right answer is known."""
    pieces: tuple[str, ...]
    """The output, split by tokens."""
    n_read: int
    """Number of tokens of the question, without special tokens."""
    links: Links | None
    """The gold alignment: for each token of the answer, the columns that it needs; None where not known."""
    interventions: Interventions

    @property
    def n_written(self) -> int:
        """Number of tokens that the rows of `forced` write, without [EOS]."""
        return len(self.expected) - (self.expected[-1:] == ("[EOS]",))

    @property
    def right(self) -> bool:
        """Whether the output is right to the last letter and stops."""
        return self.stopped and self.accepted


@dataclass(frozen=True, kw_only=True)
class LengthReport:
    """Accuracy by the length of the word and by the place in the answer."""

    lengths: tuple[int, ...]
    share: Array
    """(lengths, places) share of words whose token here is right, free-running; NaN beyond every answer."""
    exact: Array
    """(lengths,) share of words that are right to the last letter and stop; NaN if no word was asked."""
    asked: tuple[int, ...]
    """Number of words asked of each length."""


def as_written(reading: Reading, tokens: tuple[str, ...]) -> Reading:
    """The reading with the written token of each position in place of its most probable one."""
    predicted = list(reading.predicted)
    for place, token in zip(reading.writing, tokens, strict=False):  # tokens beyond max_len were not read
        predicted[place] = token
    return replace(reading, predicted=tuple(predicted))


def merged_readings(readings: list[Reading]) -> Reading:
    """One reading whose row i comes from the pass that wrote its token; later tokens are NaN in its maps.

    Args:
        readings: each is one token longer than the one before; the first ends with the prompt.
    """
    last = readings[-1]
    prompt = len(readings[0].tgt_tokens)
    maps = {}
    for site, whole in last.maps.items():
        maps[site] = whole.copy()
        if last.axes[site].query == "src":
            continue  # the encoder runs only once
        for reading in readings[:-1]:
            row = len(reading.tgt_tokens) - 1
            rows = range(row + 1) if row == prompt - 1 else range(row, row + 1)
            maps[site][:, rows, :] = np.nan
            maps[site][:, rows, : reading.maps[site].shape[2]] = reading.maps[site][:, rows]
    probabilities, predicted = last.probabilities.copy(), list(last.predicted)
    for reading in readings[:-1]:
        row = len(reading.tgt_tokens) - 1
        probabilities[row], predicted[row] = reading.probabilities[row], reading.predicted[row]
    return replace(last, maps=maps, probabilities=probabilities, predicted=tuple(predicted))
