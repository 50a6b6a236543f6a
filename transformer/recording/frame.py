"""A frame: everything recorded at one step, with its labels. Immutable and independent of torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from transformer.insight.names import shortened
from transformer.insight.scores import FOCUS, ROLES, THRESHOLD, Links, clearest_head, role_of
from transformer.shared.attention_info import AttentionInfo, is_own, reading_sites
from transformer.shared.evaluation import Evaluation
from transformer.shared.interventions import NO_INTERVENTIONS, PAD, Interventions

Array = np.ndarray[Any, np.dtype[Any]]

LEAST_CHANGE = 1e-4
"""Changes of a number that are smaller in size are not told apart."""
MAX_HEADING_LETTERS = 28
"""Maximum number of characters of a word in a heading."""
MOST_NEEDED = 3
"""Maximum number of heads that are marked as those that matter most."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """The free-running output of a model for one word."""

    text: str
    stopped: bool
    """Whether the model ended it with [EOS]."""
    right: bool
    """Whether it is right to the last token and stops; False if the right answer is unknown."""
    pieces: tuple[str, ...]
    """The text of each token; joined, they are `text`."""
    ids: tuple[int, ...]
    """Ids of its tokens, without [EOS] and [PAD], cut to the length that the model can read."""


@dataclass(frozen=True, kw_only=True)
class Word:
    """One tracked word as a model reads it, or a mean map: all that stays the same from step to step.

    If the right answer is unknown, the tokens change with each new output.
    """

    text: str
    answer: str | None
    """The right answer. None where it is unknown (the maps then run over the model's own output), for a mean
    map, and for an own model."""
    written_at: int | None = None
    """The step of the output over which the maps run; None where they do not run over an output."""
    src_tokens: tuple[str, ...]
    """Tokens of the encoder, including [PAD] if padding is not masked; without an encoder, `tgt_tokens`."""
    tgt_tokens: tuple[str, ...]
    """Tokens of the decoder, likewise; without a decoder, `src_tokens`."""
    expected: tuple[str, ...]
    """For each position of `tgt_tokens`, the token that it is to write, or an empty string: of the right
    answer, or of the model's own output if that is unknown. Empty for an own model."""
    held_out: bool
    too_long: bool
    """Longer than anything trained on."""
    too_short: bool = False
    """Shorter than anything trained on."""
    wanted: tuple[str, ...] = ()
    """The text of each token of the right answer; empty where `answer` is None."""
    n_read: int = 0
    """Number of tokens of the question, special ones left out; 0 for an own model."""
    n_words: int = 0
    """For a mean map, whose tokens are places: the number of words over which it is the mean; else 0."""
    links: Links | None = None
    """The gold alignment: for each token of the answer, the columns that it needs; None if unknown."""
    sides: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """For an own model: the tokens (or positions) of each axis, by its name; of a pooled axis, the range of
    positions of each cell."""
    spans: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """For an own model: the tokens of each cell of a pooled axis, if they are known."""
    pooled: Mapping[str, int] = field(default_factory=dict, hash=False)
    """For an own model: the number of tokens in a cell of a pooled axis."""

    @property
    def heading(self) -> str:
        """What the maps are of, for a heading: the word in quotes, shortened, or the name of the mean."""
        return self.text if self.n_words else f"“{shortened(self.text, MAX_HEADING_LETTERS)}”"

    def tokens(self, side: str) -> tuple[str, ...]:
        """The tokens of one axis."""
        if side in self.sides:
            return self.sides[side]
        return self.src_tokens if side == "src" else self.tgt_tokens


def fed_with(axes: Mapping[str, AttentionInfo], word: Word) -> str:
    """What the maps of a word run over: "teacher-forced" or "free-running"; "its inputs" for an own model;
    empty where every query is a token of the question."""
    if is_own(axes):
        return "its inputs"
    if all(one.query == "src" for one in axes.values()):
        return ""
    return "free-running" if word.answer is None and not word.n_words else "teacher-forced"


@dataclass(frozen=True, kw_only=True)
class RecordedWord(Word):
    """The recording of one word at one step."""

    predicted: tuple[str, ...]
    """For each entry of `expected`, the most probable token; empty strings for a mean map."""
    output: str
    """The free-running output, written at `output_step`; empty if there is none yet."""
    output_step: int | None
    """The step of that output; None if the model has not written one yet."""
    stopped: bool
    """Whether the model ended the output with [EOS]; True if there is no output."""
    right: bool
    """Whether the output is right to the last token and stops."""
    pieces: tuple[str, ...] = ()
    """The text of each token of the output; joined, they are `output`."""
    drawn_at: int | None
    """The first step whose batch contained this word; None if no batch up to `looked_up_to` did."""
    looked_up_to: int
    """The last step, up to this one, whose batch was searched for this word."""

    @property
    def forced(self) -> bool:
        """Whether the right answer is known, over which the maps then run (teacher-forced).

        False for a mean map, although its maps are teacher-forced too: see `fed_with`.
        """
        return self.answer is not None

    @property
    def n_written(self) -> int:
        """Number of tokens that the rows of the maps write, without [EOS]."""
        return len(self.wanted) if self.forced else max(0, sum(bool(token) for token in self.expected) - 1)

    @property
    def marked(self) -> tuple[tuple[str, bool], ...]:
        """(text, whether right) of each token of the output, then marks for missing tokens or a missing end.

        If the right answer is unknown, or another answer counts as right, no token of the output is marked
        wrong. Empty if there is no output yet.
        """
        if self.output_step is None:
            return ()
        if self.right or not self.forced:
            marked = [(piece, True) for piece in self.pieces]
        else:
            wanted = [*self.wanted, *("",) * len(self.pieces)]
            marked = [(p, p.strip() == wanted[i].strip()) for i, p in enumerate(self.pieces)]
        if self.forced and self.stopped and not self.right and len(self.pieces) < len(self.wanted):
            marked.append(("·" * (len(self.wanted) - len(self.pieces)), False))
        if not self.stopped:
            marked.append(("…", False))
        return tuple(marked)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Scores of every head over many words at one step. They cost more than maps and are made less often."""

    step: int
    head_scores: Mapping[str, Mapping[str, Array]]
    """(H,) scores by site and name of the score ("mirror", "diagonal", ...): on up to 64 fixed held-out
    words, place and token on up to 64 of one length; for an own model, on its inputs."""
    clearest: tuple[str, int]
    """Site and head with the highest target score, with hysteresis (see `clearest_head`)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ablations:
    """What each head of an own model is worth at one step: a number that the user measures, without it."""

    step: int
    name: str
    """What the number is called, such as "loss"."""
    whole: float
    """The number with all heads."""
    without: Mapping[str, Array]
    """For each site, (H,): the number with each head switched off; NaN where that did not run."""

    @cached_property
    def changes(self) -> dict[str, Array]:
        """For each site, (H,): how much higher the number is without each head; NaN where not measured."""
        return {site: values - self.whole for site, values in self.without.items()}

    @cached_property
    def needed(self) -> tuple[tuple[str, int], ...]:
        """The heads that matter most, up to `MOST_NEEDED`, first the one that matters most.

        Their change, up or down, is at least half of the largest one and at least `LEAST_CHANGE`.
        """
        sizes: dict[tuple[str, int], float] = {}
        seen: list[Array] = []
        for site, values in self.changes.items():
            if any(np.array_equal(values, other, equal_nan=True) for other in seen):
                continue  # the same heads: another window of an attention, or a part of its map
            seen.append(values)
            measured = np.flatnonzero(~np.isnan(values)).tolist()
            sizes |= {(site, head): abs(float(values[head])) for head in measured}
        ranked = sorted(sizes, key=lambda one: -sizes[one])[:MOST_NEEDED]
        return tuple(one for one in ranked if sizes[one] >= max(LEAST_CHANGE, sizes[ranked[0]] / 2))


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The free-running outputs at one step; written when scores are measured, and when a word is added."""

    step: int
    by_word: Mapping[str, Output]
    """The output for each tracked word except mean maps, by its text."""


@dataclass(frozen=True, kw_only=True, eq=False)  # arrays cannot be compared with ==
class Frame:
    """Everything recorded at one step."""

    step: int
    seconds: float
    """Training time up to here, evaluations included and pauses left out."""
    loss: float | None
    """Training loss of this step; None at step 0, and where it is still on the device; NaN where the loop of
    an own model gave none."""
    evaluation: Evaluation
    """The newest evaluation up to this step, or the first one if all are later; `NOT_EVALUATED` for an own
    model."""
    measurement: Measurement
    """The newest measurement up to this step, or the first one if all are later."""
    ablations: Ablations | None = None
    """The newest ablations up to this step; None before the first."""
    words: tuple[RecordedWord, ...]
    """The tracked words that are recorded at this step."""
    axes: Mapping[str, AttentionInfo]
    """Every site of the model, in the order of the forward pass."""
    maps: tuple[Mapping[str, Array], ...]
    """The (H, Q, K) float32 weights of each site, for each word; no masked padding; NaN where blocked."""
    target_score: str = "mirror"
    """The score of this task: mirror, prefix, gold or focus."""
    interventions: Interventions = field(default=NO_INTERVENTIONS)
    """The interventions when this was recorded."""

    @property
    def head_scores(self) -> Mapping[str, Mapping[str, Array]]:
        """The head scores of `measurement`: (H,) by site and name of the score."""
        return self.measurement.head_scores

    @property
    def clearest(self) -> tuple[str, int]:
        """The clearest head of `measurement`, as (site, head)."""
        return self.measurement.clearest

    @cached_property
    def scores(self) -> dict[str, Array]:
        """(H,) target scores of each site where the answer reads the question."""
        return {site: self.head_scores[site][self.target_score] for site in reading_sites(self.axes)}

    @property
    def asked(self) -> tuple[RecordedWord, ...]:
        """The tracked words without mean maps, for which nothing is written."""
        return tuple(tracked for tracked in self.words if not tracked.n_words)

    def row_of(self, text: str) -> int:
        """The index of a word among the tracked words; 0 if it is not among them (yet)."""
        return next((i for i, tracked in enumerate(self.words) if tracked.text == text), 0)

    def map(self, row: int, site: str) -> Array:
        """(H, Q, K) float32 weights of one tracked word; NaN where blocked. Masked padding is left out."""
        return self.maps[row][site]

    def n_heads(self, site: str) -> int:
        return len(self.maps[0][site])

    def on_padding(self, row: int, site: str) -> Array:
        """(H,) mean share of attention that the tokens of one word, [PAD] left out, give to [PAD].

        0 if padding is masked.
        """
        axes, tracked = self.axes[site], self.words[row]
        rows = np.array([token != PAD for token in tracked.tokens(axes.query)])
        columns = np.array([token == PAD for token in tracked.tokens(axes.key)])
        share: Array = np.nan_to_num(self.map(row, site))[:, rows][:, :, columns].sum(axis=-1).mean(axis=-1)
        return share

    @cached_property
    def best(self) -> tuple[tuple[str, int], float]:
        """(site, head) with the highest target score, and that score."""
        return clearest_head(self.scores)

    def large_head(self, sites: Sequence[str], pinned: tuple[str, int] | None = None) -> tuple[str, int]:
        """(site, head) that is shown large for one kind of attention.

        Args:
            sites: the sites of this kind, first layer first.
            pinned: the head that the visitor has chosen; it counts if it is one of this kind.

        Returns:
            The pinned head; else the clearest head of the model, if it is of this kind; else the first head
            of the last layer.
        """
        if pinned and pinned[0] in sites and 0 <= pinned[1] < self.n_heads(pinned[0]):
            return pinned
        return self.clearest if self.clearest[0] in sites else (sites[-1], 0)

    def role(self, site: str, head: int) -> str:
        """The role of a head with its score at `measurement`, in words.

        "looks at one token" with the focus, if a head without a role reaches the threshold with it and it is
        the target score; "no clear pattern" below the threshold; "switched off" for a head that is.
        """
        if (site, head) in self.interventions.ablated:
            return "switched off"
        scores = {name: float(values[head]) for name, values in self.head_scores[site].items()}
        name = role_of(scores)
        if name is None and self.target_score == FOCUS and scores.get(FOCUS, 0) >= THRESHOLD:
            return f"looks at one token {scores[FOCUS]:.0%}"
        return f"{ROLES[name]} {scores[name]:.0%}" if name else "no clear pattern"

    @property
    def clearest_score(self) -> float:
        site, head = self.clearest
        return float(self.scores[site][head])
