"""How the weights of an attention are arranged: which axes are examples, heads, queries and keys."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor

EXAMPLES, WINDOWS, HEADS, UNKNOWN = "examples", "windows", "heads", "unknown"
_KINDS = EXAMPLES, WINDOWS, HEADS, UNKNOWN
Split = tuple[tuple[str, int], ...]
"""What the axes before those of queries and keys are, in order, with sizes; some axes are two in one."""


@dataclass(frozen=True)
class Layout:
    """The arrangement of the weights of one attention, which may have any number of axes."""

    shape: tuple[int, ...]
    """Shape of the weights as the model arranges them, and 1."""
    order: tuple[int, ...]
    """All axes of this shape, those of queries and of keys last."""
    split: Split
    columns: tuple[int, ...] | None = None
    """The columns that are multiplied with values; None where that is all of them."""
    relative: bool = False
    """Whether a column is a position relative to the query."""
    others: tuple[Split, ...] = ()
    """Other splits of the same sizes: looks at the examples in reverse order tell them apart."""

    def with_columns_of(self, other: Layout) -> Layout:
        """The layout of the columns of both."""
        columns = sorted({*(self.columns or ()), *(other.columns or ())})
        whole = None in (self.columns, other.columns) or len(columns) == self.shape[self.order[-1]]
        return replace(self, columns=None if whole else tuple(columns))

    @property
    def splits(self) -> tuple[Split, ...]:
        """All splits that the sizes allow, the most likely first."""
        return self.split, *self.others

    def apart(self, weights: Tensor) -> Tensor:
        """The weights with an axis for each part of the split, then queries and keys."""
        ends = [self.shape[axis] for axis in self.order[-2:]]
        return weights.unsqueeze(-1).permute(self.order).reshape(*(n for _, n in self.split), *ends)

    def arranged(self, weights: Tensor) -> Tensor:
        """The weights as (B, windows, H, Q, K)."""
        ends = [self.shape[axis] for axis in self.order[-2:]]
        apart = self.apart(weights)
        arranged_maps = apart.permute(*self._places, -2, -1).reshape(*self.sizes, *ends)
        return arranged_maps if self.columns is None else arranged_maps[..., list(self.columns)]

    def back(self, arranged: Tensor) -> Tensor:
        """Weights (B, windows, H, Q, K) as the model arranges them; columns outside of `columns` are 0."""
        ends = [self.shape[axis] for axis in self.order[-2:]]
        whole = arranged
        if self.columns is not None:
            whole = arranged.new_zeros(*arranged.shape[:-1], ends[1])
            whole[..., list(self.columns)] = arranged
        apart = whole.reshape(*(self.split[place][1] for place in self._places), *ends)
        again = apart.permute(*(self._places.index(i) for i in range(len(self._places))), -2, -1)
        lead = again.reshape(*(self.shape[axis] for axis in self.order))
        return lead.permute(*(self.order.index(axis) for axis in range(len(self.order)))).squeeze(-1)

    def head_numbers(self) -> Tensor:
        """The number of each weight's head; it can be broadcast to the weights as the model arranges them."""
        sizes = [n if kind == HEADS else 1 for kind, n in self.split]
        apart = torch.arange(math.prod(sizes)).reshape(sizes).expand([n for _, n in self.split])
        lead = apart.reshape([self.shape[axis] for axis in self.order[:-2]])[..., None, None]
        return lead.permute([self.order.index(axis) for axis in range(len(self.order))]).squeeze(-1)

    @property
    def whole(self) -> tuple[int, int]:
        """Number of queries and of keys."""
        return self.shape[self.order[-2]], len(self.columns or range(self.shape[self.order[-1]]))

    @property
    def _places(self) -> list[int]:
        """Indices of the parts of the split: examples first, then windows, heads and unknown ones."""
        return [i for kind in _KINDS for i, (one, _) in enumerate(self.split) if one == kind]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of examples, of windows of an example, and of heads; unknown parts count as heads."""
        n, windows, heads, unknown = (math.prod(n for one, n in self.split if one == kind) for kind in _KINDS)
        return n, windows, heads * unknown


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model's inputs."""

    batches: tuple[int, ...]
    """Sizes of the first axes of all tensors, then of the second axes, then of lists; examples are one of
    these axes, or a list."""
    first: frozenset[int]
    """Sizes of first axes."""
    tokens: frozenset[int]
    """Sizes of all axes."""
    grids: frozenset[tuple[int, ...]] = frozenset()
    """Sizes of all axes but the first, of tensors with four axes or more: images, or frames of patches."""

    @classmethod
    def of(cls, inputs: Any) -> Self:
        parts = parts_of(inputs)
        tensors = [one for one in parts if isinstance(one, Tensor) and one.dim()]
        lists = [len(one) for one in parts if isinstance(one, list)]
        first = [tensor.shape[0] for tensor in tensors]
        second = [tensor.shape[1] for tensor in tensors if tensor.dim() > 1]
        every = frozenset(n for tensor in tensors for n in tensor.shape)
        grids = frozenset(tuple(tensor.shape[1:]) for tensor in tensors if tensor.dim() > 3)
        return cls(tuple(dict.fromkeys(first + second + lists)), frozenset(first), every, grids)


def changed(inputs: Any, change: Callable[[Any], Any]) -> Any:
    """The inputs of a model with each of their tensors, and each list of tensors or texts, changed.

    They may be in mappings, tuples and lists, and attributes of an object, such as a dataclass.
    """
    if isinstance(inputs, Mapping):
        return {name: changed(one, change) for name, one in inputs.items()}
    if isinstance(inputs, tuple) and hasattr(inputs, "_make"):  # a named one
        return inputs._make(changed(one, change) for one in inputs)
    if type(inputs) in (tuple, list):
        parts = type(inputs)(changed(one, change) for one in inputs)
        return change(parts) if _is_list(inputs) else parts
    if isinstance(inputs, Tensor):
        return change(inputs)
    parts = {
        name: changed(one, change)
        for name, one in getattr(inputs, "__dict__", {}).items()
        if isinstance(one, Tensor) or _is_list(one)
    }
    if not parts or isinstance(inputs, type):
        return inputs
    made = copy.copy(inputs)
    vars(made).update(parts)
    return made


def parts_of(inputs: Any) -> list[Any]:
    """The tensors, and the lists of tensors or texts, that `changed` changes."""
    parts: list[Any] = []

    def collect(one: Any) -> Any:
        parts.append(one)
        return one

    changed(inputs, collect)
    return parts


def _is_list(one: Any) -> bool:
    """Whether this is a list of tensors or texts, which may be the examples of a batch."""
    return type(one) is list and bool(one) and all(isinstance(part, Tensor | str) for part in one)


def plain_layout(shape: Sequence[int], inputs: Sizes, packed: bool = False) -> Layout:
    """The layout of a fused attention, whose weights are (N, H, Q, K).

    Args:
        packed: whether the axis of queries holds the heads that share keys, each with one query.
    """
    if packed:
        split = (EXAMPLES, shape[0]), (HEADS, shape[1]), (HEADS, shape[2])
        return Layout((*shape, 1), (0, 1, 2, 4, 3), split)
    first, *others = _splits(shape[:2], shape[2], inputs, None)
    return _with_virtual(Layout((*shape, 1), (4, 0, 1, 2, 3), first, others=tuple(others)))


def layout_of(
    index: Tensor, shape: Sequence[int], axis: int, inputs: Sizes, heads: int | None
) -> Layout | None:
    """The layout of weights that are the left factor of a product.

    Args:
        index: (N, rows, columns); for each value of the factor its place in the flattened weights, or -1.
        shape: of the weights.
        axis: the axis of the weights along which they add up to 1.
        inputs: sizes of the model's inputs.
        heads: the number of heads of the module, if it is known.

    Returns:
        The layout; None where the product is not over the axis along which the weights add up to 1.
    """
    is_known = index >= 0
    places = [
        torch.where(is_known, (index // math.prod(shape[i + 1 :])) % n, -1) for i, n in enumerate(shape)
    ]
    along = [_varies(place, -1) for place in places]
    if any(varies for i, varies in enumerate(along) if i != axis) or not (
        along[axis] or index.shape[-1] == 1
    ):
        return None
    down = [_varies(place, -2) for place in places]
    queries = [i for i, varies in enumerate(down) if varies and i != axis]
    relative = down[axis]
    rest = [i for i in range(len(shape)) if i != axis]
    virtual = len(shape)  # stands for the axis of queries where there is one query
    if queries:
        alike = [i for i in queries if shape[i] == shape[axis]]
        query = alike[0] if len(alike) == 1 else queries[-1]
    elif len(rest) > 1:
        query = rest[-2] if len(rest) > 3 and shape[rest[-1]] == 1 else rest[-1]
        relative |= index.shape[1] == 1 < shape[query]  # each query has values of its own
    else:
        query = virtual
    lead = [i for i in range(len(shape)) if i not in (axis, query)]
    first, *others = _splits([shape[i] for i in lead], 1 if query == virtual else shape[query], inputs, heads)
    used = torch.unique(places[axis][is_known])
    columns = None if len(used) == shape[axis] else tuple(used.tolist())
    if query == virtual:
        return Layout((*shape, 1), (*lead, query, axis), first, columns, relative, tuple(others))
    return _with_virtual(
        Layout((*shape, 1), (virtual, *lead, query, axis), first, columns, relative, tuple(others))
    )


def _kinds(sizes: Sequence[int], rows: int, inputs: Sizes) -> list[str]:
    """What several axes between examples and queries are: heads, windows, or unknown.

    Windows are told by the inputs: frames stand beside the patches that look at each other, windows of an
    image cover it. Groups of heads see all tokens; windows of a sequence cover them.
    """
    beside = [any(_holds(grid, (n, rows)) for grid in inputs.grids) for n in sizes]
    areas = {a * b for grid in inputs.grids for a, b in pairwise(grid)}
    tiles = [n * rows in areas for n in sizes]
    covers = [any(-(-m // rows) == n for m in inputs.tokens if m > rows) for n in sizes]
    if not any(beside) and not any(tiles) and rows in inputs.tokens:
        return [HEADS] * len(sizes)
    windows = next((signs for signs in (beside, tiles, covers) if any(signs)), [])
    return [WINDOWS if one else HEADS for one in windows] if sum(windows) == 1 else [UNKNOWN] * len(sizes)


def _holds(grid: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether these are sizes of different axes of the grid."""
    return not Counter(sizes) - Counter(grid)


def _with_virtual(layout: Layout) -> Layout:
    """The layout with the last axis, of size 1, counted as one of examples."""
    one = (EXAMPLES, 1)
    return replace(layout, split=(one, *layout.split), others=tuple((one, *split) for split in layout.others))


def _varies(place: Tensor, axis: int) -> bool:
    """Whether neighbours along an axis have different places; padding has none."""
    if place.shape[axis] == 1:
        return False
    one, other = place.narrow(axis, 0, place.shape[axis] - 1), place.narrow(axis, 1, place.shape[axis] - 1)
    return bool(((one != other) & (one >= 0) & (other >= 0)).any())


def _splits(sizes: Sequence[int], rows: int, inputs: Sizes, heads: int | None) -> list[Split]:
    """What axes of these sizes may be, the most likely first: examples, windows of examples, and heads."""
    if not sizes:
        return [()]
    first, *more = sizes
    batches = inputs.batches
    if not more:
        if heads:
            return [((EXAMPLES, first // heads), (HEADS, heads))]
        splits: list[Split] = [((EXAMPLES, n),) for n in batches if n == first]
        others = [first // n for n in batches if first % n == 0 and n < first]
        if rows == 1 and any(n % m == 0 for n in others for m in inputs.tokens if m > 1):
            return splits or [((UNKNOWN, first),)]  # positions may be folded like heads
        for n in batches:
            if first % n == 0 and 1 < n < first:
                splits += [((EXAMPLES, n), (HEADS, first // n)), ((HEADS, first // n), (EXAMPLES, n))]
        if 1 in batches or rows in inputs.first or not splits:  # one example, which may have no axis
            splits.append(((HEADS, first),))
        return list(dict.fromkeys(splits))
    second = more[0]
    if len(more) > 1:
        kinds = _kinds(more, rows, inputs)
        inner: list[Split] = [((EXAMPLES, first), *zip(kinds, more, strict=True))]
        if second in batches and second > 1:
            inner.append(((EXAMPLES, first), (EXAMPLES, second), *((HEADS, n) for n in more[1:])))
        return inner
    splits = [((EXAMPLES, n), (HEADS, second)) for n in batches if n == first]
    splits += [
        ((HEADS, first), (EXAMPLES, n)) for n in batches if n == second and (n > 1 or rows in inputs.tokens)
    ]
    for n in batches:
        if first % n == 0 and n < first:
            splits.append(((EXAMPLES, n), (WINDOWS, first // n), (HEADS, second)))
            if n > 1:
                splits.append(((WINDOWS, first // n), (EXAMPLES, n), (HEADS, second)))
    return list(dict.fromkeys(splits)) or [((EXAMPLES, first), (HEADS, second))]
