"""A frame: everything recorded at one step. Immutable, free of torch, and sure of its labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from transformer.insight.scores import ROLES, badge, clearest_head
from transformer.interventions import NOTHING, Interventions, open_cells
from transformer.recording.shelf import Shelf, bytes_in_memory

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What the two axes of one attention are."""

    query: str
    """Whose positions are the rows: src or tgt."""
    key: str
    """Whose positions are the columns: src or tgt."""
    causal: bool
    """Whether rows are kept from looking at later columns."""

    @property
    def kind(self) -> str:
        """encoder, decoder or cross."""
        return "cross" if self.query != self.key else "encoder" if self.query == "src" else "decoder"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What was recorded of one word."""

    text: str
    answer: str
    output: str
    """Written by the model alone (free-running, greedy)."""
    stopped: bool
    """Whether the output ended by itself."""
    src_tokens: tuple[str, ...]
    """The columns of cross-attention: what is read."""
    tgt_tokens: tuple[str, ...]
    """The rows of cross-attention: what the decoder has read last. The maps are teacher-forced."""
    expected: tuple[str, ...]
    """What each of those rows is to write."""
    predicted: tuple[str, ...]
    """What each of those rows would write at this step."""
    held_out: bool
    too_long: bool
    """Longer than anything trained on."""
    drawn_at: int | None
    """The first step whose batch had this word; None if there is none."""
    looked_up_to: int
    """The last step whose batch was looked up for this."""

    @property
    def right(self) -> bool:
        """Whether the free-running output is right to the last letter and stops."""
        return self.stopped and self.output == self.answer

    @property
    def marked(self) -> tuple[tuple[str, bool], ...]:
        """What was written, each letter with whether it is right; then what is missing or goes on."""
        letters = re.findall(r"\[[A-Z]+\]|.", self.output)  # a special token counts as one
        marked = [(letter, self.answer[i : i + 1] == letter) for i, letter in enumerate(letters)]
        if self.stopped and len(letters) < len(self.answer):
            marked.append(("·" * (len(self.answer) - len(letters)), False))
        if not self.stopped:
            marked.append(("…", False))
        return tuple(marked)

    def tokens(self, side: str) -> tuple[str, ...]:
        """The tokens of one axis: src or tgt."""
        return self.src_tokens if side == "src" else self.tgt_tokens


@dataclass(frozen=True, kw_only=True)
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
    src_real: Array
    """(P, S) bool, False where the source is [PAD]."""
    tgt_real: Array
    """(P, T) bool, False where the target is [PAD]."""
    head_scores: Mapping[str, Mapping[str, Array]]
    """Site to the name of a score ("mirror", "diagonal", ...) to (H,), on 64 fixed held-out words."""
    clearest: tuple[str, int]
    """Site and head with the clearest pattern, with hysteresis."""
    by_length: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Word length to (right, asked) held-out words, of the same evaluation as `exact`."""
    interventions: Interventions = NOTHING
    """What was taken away from the model when this was recorded."""

    @cached_property
    def scores(self) -> dict[str, Array]:
        """Cross-attention site to (H,) mirror scores."""
        return {site: self.head_scores[site]["mirror"] for site, a in self.axes.items() if a.kind == "cross"}

    def row_of(self, text: str) -> int:
        """Which probe a word is; the first where it is not one (yet)."""
        return next((i for i, probe in enumerate(self.probes) if probe.text == text), 0)

    def real(self, side: str) -> Array:
        """(P, length) bool of one side, src or tgt: False where there is padding."""
        return self.src_real if side == "src" else self.tgt_real

    def allowed(self, site: str) -> Array:
        """(P, Q, K) bool: True where this site's masks, causal and padding, let a row look."""
        axes = self.axes[site]
        keys = self.real(axes.key)[:, None, :]  # (P, 1, K)
        n_rows = self.real(axes.query).shape[1]
        mask = np.broadcast_to(keys, (keys.shape[0], n_rows, keys.shape[2]))
        return mask & np.tri(n_rows, dtype=bool) if axes.causal else mask

    def map(self, row: int, site: str) -> Array:
        """(H, Q, K) float32 of one probe without its padding; NaN where the mask blocks."""
        axes, probe = self.axes[site], self.probes[row]
        n_rows, n_columns = len(probe.tokens(axes.query)), len(probe.tokens(axes.key))
        weights = self.maps[site][row, :, :n_rows, :n_columns].astype(np.float32)
        may = open_cells(
            self.interventions.blocks_at(site),
            probe.tokens(axes.query),
            probe.tokens(axes.key),
            causal=axes.causal,
            n_heads=len(weights),
        )
        return np.where(may, weights, np.float32("nan"))

    @cached_property
    def best(self) -> tuple[tuple[str, int], float]:
        """(site, head) with the highest mirror score, and that score."""
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
        """Mirror score of the clearest head."""
        site, head = self.clearest
        return float(self.scores[site][head])

    @property
    def nbytes(self) -> int:
        """Memory of the maps; nothing while they are on disk."""
        return bytes_in_memory(self.maps)

    def shelved(self, shelf: Shelf) -> Frame:
        """The same with its maps on disk."""
        return replace(self, maps=shelf.put(self.maps))
