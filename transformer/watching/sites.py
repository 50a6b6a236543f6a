"""The attentions of any model as they are shown: grouped by the names of their modules, with tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from transformer.errors import InputError
from transformer.insight.names import layer_number
from transformer.recording.frame import Array, Word
from transformer.recording.patched import Patched, Pictures
from transformer.shared.attention_info import AttentionInfo
from transformer.watching.attention import PART, Seen
from transformer.watching.patches import Patches

REST, ELSEWHERE = "no token", "elsewhere"
"""Labels of a last column: attention to no position, as with a sink, or to positions outside of a part."""
FOLD = 6
"""Maximum number of attentions of a group; more of them are divided into groups of this size."""
_ODD = re.compile(r"[<>&\"'\x00-\x1f]")

Tokens = Sequence[str] | tuple[Sequence[str], Sequence[str]]
"""The tokens of both axes of an attention, or a pair: those of its queries and those of its keys."""
GivenTokens = Tokens | Mapping[str, Tokens]
"""The tokens of one example: for all its attentions, or a mapping from name pattern to tokens."""
Labels = Mapping[str, tuple["_Axis", "_Axis"]]
"""The labels of the queries and of the keys of each site."""


def plain_name(name: str) -> str:
    """A name as pages show it: at most 160 characters, _ for control characters and those special in HTML."""
    return _ODD.sub("_", name)[:160] or "_"


def labels_of(text: str, maps: Mapping[str, Array], tokens: GivenTokens, kinds: Mapping[str, Seen]) -> Labels:
    """The tokens at both axes of every attention of an example.

    Args:
        text: name of the example.
        maps: (H, Q, K) for each site.
        tokens: tokens of the example; an axis without tokens of its length shows positions, from 1. Columns
            relative to the query show offsets, such as +1.
        kinds: for each site, the number of its positions and what its columns are.

    Raises:
        InputError: a pattern matches no attention, or its number of tokens differs from the axis length; or,
            without patterns, no axis has as many positions as tokens were given.
    """
    patterns = tokens if isinstance(tokens, Mapping) else {"*": tokens}
    # A module that is called again keeps its tokens, and so does a part.
    names = {site: site.partition("#")[0].removesuffix(PART) for site in maps}
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names.values()):
            names_of_maps = ", ".join(maps)
            raise InputError(
                f"tokens: no attention is called {pattern!r}; there are {names_of_maps}.", "tokens"
            )
    labels, matched, lengths = {}, set[int](), set[int]()
    for site, name in names.items():
        given = next((one for pattern, one in patterns.items() if fnmatchcase(name, pattern)), ())
        kind, pair = kinds[site], given if _is_pair(given) else (given, given)
        shape = maps[site].shape[1], maps[site].shape[2] - kind.rest
        axes = []
        for place, (these, n) in enumerate(zip(pair, kind.size if any(kind.size) else shape, strict=True)):
            lengths.add(n)
            if len(these) == n:
                matched.add(n)
            if len(these) != n and these and isinstance(tokens, Mapping):
                raise InputError(
                    f"tokens: {site} has {n} positions, but {len(these)} tokens were given for {text!r}.",
                    "tokens",
                )
            shown = tuple(map(str, these)) if len(these) == n else tuple(str(i + 1) for i in range(n))
            if kind.relative and place == 1:
                shown = tuple(f"{i - (n - 1) // 2:+d}" for i in range(n))
            covered = len(these) == n and kind.ranges is None
            picture = these.picture if covered and isinstance(these, Patches) else None
            if kind.ranges is not None:
                shown = shown[kind.ranges[place].start : kind.ranges[place].stop]
            axes.append(_Axis.of(shown, len(these) == n, kind.pooled[place])._replace(picture=picture))
        end = ELSEWHERE if kind.ranges else REST
        columns = axes[1]._replace(labels=axes[1].labels + (end,)) if kind.rest else axes[1]
        labels[site] = axes[0], columns
    plain = () if isinstance(tokens, Mapping) else tokens if _is_pair(tokens) else (tokens,)
    for these in plain:
        if these and len(these) not in matched:
            raise InputError(
                f"tokens: {len(these)} were given for {text!r}, and no attention has so many positions: "
                f"there are {', '.join(map(str, sorted(lengths)))}.",
                "tokens",
            )
    return labels


class _Axis(NamedTuple):
    """The labels of one axis of a map."""

    labels: tuple[str, ...]
    spans: tuple[str, ...] = ()
    """The tokens of each cell, where a cell has several; empty where they are not known."""
    pooled: int = 1
    """Tokens in a cell."""
    picture: Patched | None = None
    """The picture that the tokens are patches of."""

    @classmethod
    def of(cls, tokens: tuple[str, ...], known: bool, pooled: int) -> _Axis:
        """An axis of these tokens, which are positions if they are not known."""
        if pooled == 1:
            return cls(tokens)
        starts = range(0, len(tokens), pooled)
        labels = tuple(f"{i + 1:,}–{min(i + pooled, len(tokens)):,}" for i in starts)
        return cls(labels, tuple(" ".join(tokens[i : i + pooled]) for i in starts) if known else (), pooled)


def grouped(
    maps: Mapping[str, Mapping[str, Array]], labels: Mapping[str, Labels]
) -> dict[str, AttentionInfo]:
    """The axes of every attention, in the order in which they were called.

    Attentions whose names differ only in numbers, and whose maps have the same size and tokens, form one
    group; more than FOLD of them are divided into groups of FOLD. An attention is causal if `is_causal` holds
    for its maps of all words.

    Args:
        maps: (H, Q, K) by word and site.
        labels: the labels of each word.
    """
    first = next(iter(maps.values()))
    groups: dict[tuple[str, Any], list[str]] = {}
    for site in first:
        alike = tuple((of[site].shape[1:], labels[word][site]) for word, of in maps.items())
        groups.setdefault((re.sub(r"\d+", "*", site), alike), []).append(site)
    taken: set[str] = set()
    axes = {}
    for (pattern, alike), sites in groups.items():
        name = _free(pattern if len(sites) > 1 else sites[0], f"{alike[0][0][0]}×{alike[0][0][1]}", taken)
        for i, site in enumerate(sites):
            folded = sites[i // FOLD * FOLD :][:FOLD]
            fold = f" {layer_number(folded[0])}–{layer_number(folded[-1])}" if len(sites) > FOLD else ""
            group = name + fold
            axes[site] = AttentionInfo(
                query=f"{group} queries",
                key=f"{group} keys",
                writes=False,
                causal=all(is_causal(of[site]) for of in maps.values()),
                padding=False,
                group=group,
            )
    return {site: axes[site] for site in first}


def _free(name: str, size: str, taken: set[str]) -> str:
    """The name, made longer if another group has it; it is added to `taken`."""
    candidates = (name, f"{name} {size}", *(f"{name} {size} ({i})" for i in range(2, 1000)))
    free = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(free)
    return free


def is_causal(maps: Array) -> bool:
    """Whether (H, Q, K) are square, larger than one cell, and zero or NaN above the diagonal."""
    n_rows, n_columns = maps.shape[1:]
    return n_rows == n_columns > 1 and not np.nan_to_num(maps[:, later_cells(n_rows, n_columns)]).any()


def later_cells(n_rows: int, n_columns: int) -> Array:
    """(Q, K) bool: cells above the diagonal."""
    return np.arange(n_columns) > np.arange(n_rows)[:, None]


def pictures_of(axes: Mapping[str, AttentionInfo], labels: Mapping[str, Labels]) -> Pictures:
    """The pictures that maps can be drawn over, by word and side of an axis."""
    pictures: Pictures = {}
    for word, of_site in labels.items():
        for site, one in axes.items():
            for side, axis in zip((one.query, one.key), of_site[site], strict=True):
                if axis.picture is not None:
                    pictures.setdefault(word, {})[side] = axis.picture
    return pictures


def word_of(text: str, axes: Mapping[str, AttentionInfo], labels: Labels) -> Word:
    """An example as a `Word`, the form that pages use."""
    of_side: dict[str, _Axis] = {}
    for site, of in axes.items():
        of_side[of.query], of_side[of.key] = labels[site]
    sides = {side: axis.labels for side, axis in of_side.items()}
    first = next(iter(axes.values()))
    return Word(
        text=text,
        answer=None,
        src_tokens=sides[first.key],
        tgt_tokens=sides[first.query],
        expected=(),
        held_out=False,
        too_long=False,
        sides=sides,
        spans={side: axis.spans for side, axis in of_side.items() if axis.spans},
        pooled={side: axis.pooled for side, axis in of_side.items() if axis.pooled > 1},
    )


def _is_pair(given: Tokens) -> bool:
    """Whether queries and keys have tokens of their own."""
    return isinstance(given, tuple) and len(given) == 2 and not all(isinstance(one, str) for one in given)
