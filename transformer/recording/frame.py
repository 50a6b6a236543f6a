"""A frame: everything recorded at one step. Immutable, free of torch, and sure of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from transformer.insight.scores import ROLES, Links, badge, clearest_head
from transformer.interventions import NOTHING, PAD, Interventions, open_cells
from transformer.recording.shelf import Shelf, bytes_in_memory

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What the two axes of one attention are."""

    query: str
    """Whose positions are the rows: src, tgt or seq."""
    key: str
    """Whose positions are the columns: src, tgt or seq."""
    writes: bool
    """Whether each row is to write a token."""
    causal: bool
    """Whether rows were kept from looking at later columns."""
    padding: bool
    """Whether [PAD] was hidden from them."""

    @property
    def kind(self) -> str:
        """cross, encoder, decoder or sequence."""
        if self.query != self.key:
            return "cross"
        return {"src": "encoder", "tgt": "decoder", "seq": "sequence"}[self.query]


def reading_sites(axes: Mapping[str, Axes]) -> list[str]:
    """Where the answer reads the question: cross-attention, or all attention where there is no other."""
    cross = [site for site, one in axes.items() if one.kind == "cross"]
    return cross or list(axes)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What was recorded of one word."""

    text: str
    answer: str | None
    """None where the right answer is not known: then the maps run over the model's own output."""
    output: str
    """Written by the model alone (free-running)."""
    stopped: bool
    """Whether the output ended by itself."""
    src_tokens: tuple[str, ...]
    """What the encoder reads; its [PAD]s too where these are not hidden."""
    tgt_tokens: tuple[str, ...]
    """What the decoder reads; teacher-forced. Without two stacks both are the same."""
    expected: tuple[str, ...]
    """What each position that writes is to write; empty where that is nothing."""
    predicted: tuple[str, ...]
    """What each of those positions would write at this step."""
    held_out: bool
    too_long: bool
    """Longer than anything trained on."""
    too_short: bool = False
    """Shorter than anything trained on."""
    drawn_at: int | None
    """The first step whose batch had this word; None if there is none."""
    looked_up_to: int
    """The last step whose batch was looked up for this."""
    right: bool
    """Whether the free-running output is right to the last token and stops."""
    pieces: tuple[str, ...] = ()
    """The output as its tokens write it; joined they are the output."""
    wanted: tuple[str, ...] = ()
    """The right answer in the same way; nothing where it is not known."""
    n_read: int = 0
    """Tokens of the question, special ones left out."""
    links: Links | None = None
    """The gold alignment: for each token of the answer, the columns that it needs; None where not known."""

    @property
    def forced(self) -> bool:
        """Whether the maps are teacher-forced, and not of the model's own output."""
        return self.answer is not None

    @property
    def n_written(self) -> int:
        """Tokens of what the maps' rows write, special ones left out."""
        return len(self.wanted) if self.forced else len(self.pieces)

    @property
    def marked(self) -> tuple[tuple[str, bool], ...]:
        """What was written, each token with whether it is right; then what is missing or goes on.

        Where the right answer is not known, or another one counts as right, nothing is marked wrong.
        """
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

    def tokens(self, side: str) -> tuple[str, ...]:
        """The tokens of one axis: src, tgt or seq."""
        return self.src_tokens if side == "src" else self.tgt_tokens


@dataclass(frozen=True, kw_only=True, eq=False)  # each is itself: pictures are kept by their frame
class Frame:
    """Everything recorded at one step."""

    step: int
    seconds: float
    """Training time up to here, evaluations included and pauses left out."""
    loss: float | None
    """Training loss of this step; None at step 0, and where it is still on the device."""
    exact: tuple[int, int] | None
    """(right, asked) held-out words, of the newest evaluation."""
    exact_step: int
    """The step of that evaluation."""
    probes: tuple[Probe, ...]
    axes: Mapping[str, Axes]
    """Every site of the model, in the order of the forward pass."""
    maps: Mapping[str, Array]
    """Site to (P, H, Q, K) float16: the whole batch of probes, padded as the model saw it."""
    head_scores: Mapping[str, Mapping[str, Array]]
    """Site to the name of a score ("mirror", "diagonal", ...) to (H,), on 64 fixed held-out words."""
    clearest: tuple[str, int]
    """Site and head with the clearest pattern, with hysteresis."""
    aim: str = "mirror"
    """Which score tells what a head is to find in this task: mirror, gold or focus."""
    by_length: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Length of the question to (right, asked) held-out ones, of the same evaluation as `exact`."""
    held_out_loss: float | None = None
    """Of the same evaluation, the model reading the right answer (teacher-forced)."""
    free_loss: float | None = None
    """Of the same evaluation, the model reading what it has written itself."""
    token_accuracy: float | None = None
    """Of the same evaluation: share of right tokens, teacher-forced."""
    bleu: float | None = None
    """Of the same evaluation, 0 to 100, where answers are sentences."""
    chrf: float | None = None
    """Of the same evaluation, 0 to 100, where answers are sentences."""
    samples: tuple[tuple[str, str], ...] = ()
    """Of the same evaluation: the first few questions and what was written, where answers are sentences."""
    interventions: Interventions = NOTHING
    """What was taken away from the model when this was recorded."""

    @cached_property
    def scores(self) -> dict[str, Array]:
        """Site to (H,) scores of the task's aim, where the answer reads the question."""
        return {site: self.head_scores[site][self.aim] for site in reading_sites(self.axes)}

    def row_of(self, text: str) -> int:
        """Which probe a word is; the first where it is not one (yet)."""
        return next((i for i, probe in enumerate(self.probes) if probe.text == text), 0)

    def map(self, row: int, site: str) -> Array:
        """(H, Q, K) float32 of one probe; NaN where a mask or a hand blocks. Hidden padding is left out."""
        axes, probe = self.axes[site], self.probes[row]
        n_rows, n_columns = len(probe.tokens(axes.query)), len(probe.tokens(axes.key))
        weights = self.maps[site][row, :, :n_rows, :n_columns].astype(np.float32)
        may = open_cells(
            self.interventions.blocks_at(site),
            probe.tokens(axes.query),
            probe.tokens(axes.key),
            causal=axes.causal,
            padding=axes.padding,
            n_heads=len(weights),
        )
        return np.where(may, weights, np.float32("nan"))

    def on_padding(self, row: int, site: str) -> Array:
        """(H,) share of the attention of one probe's tokens that [PAD] gets; 0 where it is hidden."""
        axes, probe = self.axes[site], self.probes[row]
        rows = np.array([token != PAD for token in probe.tokens(axes.query)])
        columns = np.array([token == PAD for token in probe.tokens(axes.key)])
        share: Array = np.nan_to_num(self.map(row, site))[:, rows][:, :, columns].sum(axis=-1).mean(axis=-1)
        return share

    @cached_property
    def best(self) -> tuple[tuple[str, int], float]:
        """(site, head) with the highest score of the task's aim, and that score."""
        return clearest_head(self.scores)

    def role(self, site: str, head: int) -> str:
        """What a head may be called, with its score; "no clear pattern" below the stated threshold."""
        if (site, head) in self.interventions.ablated:
            return "switched off"
        scores = {name: float(values[head]) for name, values in self.head_scores[site].items()}
        name = badge(scores)
        return f"{ROLES[name]} {scores[name]:.2f}" if name else "no clear pattern"

    @property
    def clearest_score(self) -> float:
        """Score of the clearest head."""
        site, head = self.clearest
        return float(self.scores[site][head])

    @property
    def nbytes(self) -> int:
        """Memory of the maps; nothing while they are on disk."""
        return bytes_in_memory(self.maps)

    def shelved(self, shelf: Shelf) -> Frame:
        """The same with its maps on disk."""
        return replace(self, maps=shelf.put(self.maps))
