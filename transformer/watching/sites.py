"""How the attentions of any model are shown: grouped by the names of their modules, with tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from transformer.errors import InputError
from transformer.insight.names import layer_number
from transformer.recording.frame import Array, Axes, Word

FOLD = 6
"""Layers that are shown side by side; more of one kind are folded into groups."""
_ODD = re.compile(r"[<>&\"'\x00-\x1f]")

Tokens = Sequence[str] | tuple[Sequence[str], Sequence[str]]
"""Of both axes of an attention, or of its queries and of its keys."""
GivenTokens = Tokens | Mapping[str, Tokens]
"""Of one input: for all its attentions, or pattern of their names to tokens."""


def plain_name(name: str) -> str:
    """The name of a module as pages show it, without what HTML reads."""
    return _ODD.sub("_", name)[:160] or "_"


def grouped(maps: Mapping[str, Mapping[str, Array]]) -> dict[str, Axes]:
    """The axes of every attention, in the order in which they were called.

    Attentions whose names differ in their numbers alone, with maps of the same size, are one group; more than
    FOLD of them are folded by layer. An attention is causal where every weight above its diagonal is zero.

    Args:
        maps: word to site to (H, Q, K).
    """
    first = next(iter(maps.values()))
    groups: dict[tuple[str, tuple[Any, ...]], list[str]] = {}
    for site in first:
        shapes = tuple(of[site].shape for of in maps.values())
        groups.setdefault((re.sub(r"\d+", "*", site), shapes), []).append(site)
    names = [pattern for pattern, _ in groups]
    found = {}
    for (pattern, shapes), sites in groups.items():
        name = pattern if len(sites) > 1 else sites[0]
        if names.count(pattern) > 1 and len(sites) > 1:
            name += f" {shapes[0][1]}×{shapes[0][2]}"
        for i, site in enumerate(sites):
            folded = sites[i // FOLD * FOLD :][:FOLD]
            fold = f" {layer_number(folded[0])}–{layer_number(folded[-1])}" if len(sites) > FOLD else ""
            group = name + fold
            found[site] = Axes(
                query=f"{group} queries",
                key=f"{group} keys",
                writes=False,
                causal=all(is_causal(of[site]) for of in maps.values()),
                padding=False,
                group=group,
            )
    return {site: found[site] for site in first}


def is_causal(maps: Array) -> bool:
    """Whether no row of (H, Q, K) looks at later columns."""
    n_rows, n_columns = maps.shape[1:]
    later = np.arange(n_columns) > np.arange(n_rows)[:, None]
    return n_rows == n_columns > 1 and not maps[:, later].any()


def word_of(text: str, maps: Mapping[str, Array], axes: Mapping[str, Axes], tokens: GivenTokens) -> Word:
    """An input as pages know it.

    Args:
        text: its name.
        maps: site to (H, Q, K).
        tokens: an axis that has none of its length shows positions, from 1.

    Raises:
        InputError: a pattern that no attention has, or tokens of another number than its axis has positions.
    """
    sides: dict[str, tuple[str, ...]] = {}
    patterns = tokens if isinstance(tokens, Mapping) else {"*": tokens}
    for pattern in patterns:
        if not any(fnmatchcase(site, pattern) for site in maps):
            known = ", ".join(maps)
            raise InputError(f"tokens: no attention is called {pattern!r}; there are {known}.", "tokens")
    for site, of in axes.items():
        given = next((one for pattern, one in patterns.items() if fnmatchcase(site, pattern)), ())
        rows, columns = given if _is_pair(given) else (given, given)
        for side, these, n in ((of.query, rows, maps[site].shape[1]), (of.key, columns, maps[site].shape[2])):
            if len(these) != n and these and isinstance(tokens, Mapping):
                raise InputError(
                    f"tokens: {site} has {n} positions, but {len(these)} tokens were given for {text!r}.",
                    "tokens",
                )
            named = [str(one) for one in these] if len(these) == n else [f"{i + 1}" for i in range(n)]
            sides.setdefault(side, tuple(named))
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
    )


def _is_pair(given: Tokens) -> bool:
    """Whether queries and keys have tokens of their own."""
    return isinstance(given, tuple) and len(given) == 2 and not all(isinstance(one, str) for one in given)
