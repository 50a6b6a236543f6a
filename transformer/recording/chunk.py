"""A chunk: the maps of one word over one or more recorded steps, in 16 bits both in memory and in a file.

Each computation makes new chunks; only chunks with equal word, axes and interventions are joined, so that the
facts of a chunk hold for all of its steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import inf, isfinite, prod
from typing import Any

import msgspec
import numpy as np

from transformer.recording.frame import Array, Word
from transformer.shared.attention_info import AttentionInfo, is_own
from transformer.shared.interventions import Interventions, open_cells

_NAME = re.compile(r"[^<>&\"'\x00-\x1f]{1,200}")
ONE, BLOCKED = 65534, 65535
"""Codes of the weight 1 and of a blocked cell; a weight w is stored as w * ONE, rounded."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChunkFacts:
    """The facts of a chunk; in a file they come before its numbers."""

    word: Word
    axes: Mapping[str, AttentionInfo]
    """Every site of the model, in the order of the forward pass."""
    interventions: Interventions
    steps: tuple[int, ...]
    """Ascending."""
    drawn_at: int | None
    """The first step whose batch contained this word; None if no batch up to `looked_up_to` did."""
    looked_up_to: int
    """The last step whose batch was searched for the word; of an own model, the step itself."""
    vocabulary: tuple[str, ...]
    """Distinct tokens, all predicted ones among them; `Chunk.predicted` holds indices into it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk(ChunkFacts):
    """The facts, predictions and maps of one word over successive recorded steps."""

    predicted: Array
    """(N, T) uint16: index in `vocabulary` of the most probable token, at each step and for each entry of
    `word.expected`."""
    maps: Mapping[str, Array]
    """(N, H, Q, K) uint16 for each site: a weight times ONE, or BLOCKED. Masked padding is left out."""

    @cached_property
    def nbytes(self) -> int:
        """Bytes of its arrays. Cached: summed over all chunks of a run whenever a frame is added."""
        return self.predicted.nbytes + sum(codes.nbytes for codes in self.maps.values())

    def weights(self, i: int) -> dict[str, Array]:
        """The (H, Q, K) float32 weights of each site at the i-th step; NaN where blocked."""
        return {site: decoded(codes[i]) for site, codes in self.maps.items()}

    def predictions(self, i: int) -> tuple[str, ...]:
        """The most probable token for each entry of `word.expected`, at the i-th step."""
        return tuple(self.vocabulary[code] for code in self.predicted[i].tolist())

    def only(self, stays: Callable[[int], bool]) -> Chunk | None:
        """The chunk with only the steps that `stays` accepts: itself if all stay, None if none does."""
        places = [i for i, step in enumerate(self.steps) if stays(step)]
        if len(places) == len(self.steps):
            return self
        return (
            replace(
                self,
                steps=tuple(self.steps[i] for i in places),
                predicted=self.predicted[places],
                maps={site: codes[places] for site, codes in self.maps.items()},
            )
            if places
            else None
        )

    def continues(self, other: Chunk) -> bool:
        """Whether its word, axes and interventions equal the other's, so that the two can be joined."""
        return (self.word, self.axes, self.interventions) == (other.word, other.axes, other.interventions)


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Join chunks that continue each other into one; they must be in order of step."""
    vocabulary = tuple(dict.fromkeys(token for chunk in chunks for token in chunk.vocabulary))
    places = {token: i for i, token in enumerate(vocabulary)}
    predicted = [
        np.array([places[token] for token in chunk.vocabulary], dtype=np.uint16)[chunk.predicted]
        for chunk in chunks
    ]
    return replace(
        chunks[0],
        steps=tuple(step for chunk in chunks for step in chunk.steps),
        drawn_at=chunks[-1].drawn_at,
        looked_up_to=chunks[-1].looked_up_to,
        vocabulary=vocabulary,
        predicted=np.concatenate(predicted),
        maps={site: np.concatenate([chunk.maps[site] for chunk in chunks]) for site in chunks[0].maps},
    )


def together(chunks: Iterable[Chunk], most: float = inf) -> Iterator[Chunk]:
    """Join successive chunks that continue each other, up to `most` steps per joined chunk."""
    waiting: list[Chunk] = []
    for chunk in chunks:
        n = sum(len(one.steps) for one in waiting) + len(chunk.steps)
        if waiting and (n > most or not chunk.continues(waiting[0])):
            yield joined(waiting)
            waiting = []
        waiting.append(chunk)
    if waiting:
        yield joined(waiting)


def coded(weights: Array, may: Array) -> Array:
    """Encode weights (N, H, Q, K) in 16 bits; BLOCKED where `may` (H, Q, K) is False.

    Raises:
        FloatingPointError: a weight is not finite.
    """
    if not isfinite(weights.sum()):
        raise FloatingPointError("the attention weights are no numbers any more")
    codes: Array = np.rint(weights * np.float32(ONE)).astype(np.uint16)  # a weight is at most 1 + 1e-7
    codes[:, ~may] = BLOCKED
    return codes


def decoded(codes: Array) -> Array:
    """Decode weights to float32; NaN where blocked."""
    weights: Array = codes.astype(np.float32) / np.float32(ONE)
    weights[codes == BLOCKED] = np.nan
    return weights


def allowed_cells(
    word: Word, axes: AttentionInfo, interventions: Interventions, site: str, n_heads: int
) -> Array:
    """(H, Q, K) bool: True for each cell of a word's map at one site that no mask or intervention blocks."""
    return open_cells(
        interventions.blocks_at(site),
        word.tokens(axes.query),
        word.tokens(axes.key),
        causal=axes.causal,
        padding=axes.padding,
        n_heads=n_heads,
    )


def is_name(text: str) -> bool:
    """Whether a text may be the name of a module or of a number; pages show such names unescaped."""
    return bool(_NAME.fullmatch(text))


# Chunks in a file.


def facts_of(kind: Any, said: Any) -> dict[str, Any]:
    """Name to value of the fields of the dataclass `kind`, from an object of it or of a subclass."""
    return {field.name: getattr(said, field.name) for field in fields(kind)}


@dataclass(frozen=True, kw_only=True, eq=False)
class _InFile(ChunkFacts):
    heads: int | dict[str, int]
    """The number of heads: one for all sites, or by site."""


def as_bytes(chunk: Chunk) -> bytes:
    """Encode a chunk: its facts as a line of JSON, the codes of each site in turn, the predictions."""
    each = {site: codes.shape[1] for site, codes in chunk.maps.items()}
    heads = each if len(set(each.values())) > 1 else next(iter(each.values()))
    facts = msgspec.json.encode({**facts_of(ChunkFacts, chunk), "heads": heads})
    arrays = [*(chunk.maps[site] for site in chunk.axes), chunk.predicted]
    return b"".join((facts, b"\n", *(array.astype("<u2").tobytes() for array in arrays)))


def from_bytes(data: bytes) -> Chunk:
    """Read a chunk that `as_bytes` encoded.

    Raises:
        ValueError: it cannot be decoded, or its parts do not fit each other.
    """
    facts, _, body = data.partition(b"\n")
    stored = msgspec.json.decode(facts, type=_InFile)
    n, word = len(stored.steps), stored.word
    heads = stored.heads if isinstance(stored.heads, dict) else dict.fromkeys(stored.axes, stored.heads)
    if not n or list(stored.steps) != sorted(set(stored.steps)) or stored.steps[0] < 0:
        raise ValueError("its steps are none of a run")
    if heads.keys() != stored.axes.keys() or not all(0 < head <= 64 for head in heads.values()):
        raise ValueError("its heads are none of a run")
    shapes = {
        site: (n, heads[site], len(word.tokens(axes.query)), len(word.tokens(axes.key)))
        for site, axes in stored.axes.items()
    }
    sizes, n_rows = [prod(shape) for shape in shapes.values()], len(word.expected)
    numbers = np.frombuffer(body, dtype="<u2")
    names = [*shapes, *(axes.group for axes in stored.axes.values() if axes.group)]
    if not all(map(is_name, names)) or (not is_own(stored.axes) and word.sides):
        raise ValueError("its attentions have names that no module has")
    if not shapes or sum(sizes) + n * n_rows != len(numbers):
        raise ValueError(f"{len(numbers):,} numbers are not those of its maps")
    *codes, rest = np.split(numbers, np.cumsum(sizes))
    predicted = rest.reshape(n, n_rows)
    if predicted.size and predicted.max() >= len(stored.vocabulary):
        raise ValueError("it predicts a token that it does not name")
    maps = {site: of.reshape(shape) for (site, shape), of in zip(shapes.items(), codes, strict=True)}
    return Chunk(predicted=predicted, maps=maps, **facts_of(ChunkFacts, stored))
