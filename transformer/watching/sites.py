"""The attentions of any model as they are shown: grouped by the names of their modules, with tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from transformer.axes import Axes
from transformer.errors import InputError
from transformer.insight.names import layer_number
from transformer.recording.frame import Array, Word

FOLD = 6
"""Layers that are shown side by side; more of one kind are folded into groups."""
_ODD = re.compile(r"[<>&\"'\x00-\x1f]")

Tokens = Sequence[str] | tuple[Sequence[str], Sequence[str]]
"""The tokens of both axes of an attention, or a pair: those of its queries and those of its keys."""
GivenTokens = Tokens | Mapping[str, Tokens]
"""The tokens of one example: for all its attentions, or a mapping from name pattern to tokens."""
Labels = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Site to the tokens of its queries and of its keys."""


def plain_name(name: str) -> str:
    """The name of a module as pages show it, without characters that are special in HTML."""
    return _ODD.sub("_", name)[:160] or "_"


def labels_of(text: str, maps: Mapping[str, Array], tokens: GivenTokens) -> Labels:
    """The tokens at both axes of every attention of an example.

    Args:
        text: name of the example.
        maps: site to (H, Q, K).
        tokens: tokens of the example; an axis without tokens of its length shows positions, from 1.

    Raises:
        InputError: a pattern matches no attention, or its number of tokens differs from the axis length.
    """
    patterns = tokens if isinstance(tokens, Mapping) else {"*": tokens}
    names = {site: site.partition("#")[0] for site in maps}  # a module that is called again keeps its tokens
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names.values()):
            known = ", ".join(maps)
            raise InputError(f"tokens: no attention is called {pattern!r}; there are {known}.", "tokens")
    found = {}
    for site, name in names.items():
        given = next((one for pattern, one in patterns.items() if fnmatchcase(name, pattern)), ())
        axes = []
        for these, n in zip(given if _is_pair(given) else (given, given), maps[site].shape[1:], strict=True):
            if len(these) != n and these and isinstance(tokens, Mapping):
                raise InputError(
                    f"tokens: {site} has {n} positions, but {len(these)} tokens were given for {text!r}.",
                    "tokens",
                )
            axes.append(tuple(map(str, these)) if len(these) == n else tuple(str(i + 1) for i in range(n)))
        found[site] = axes[0], axes[1]
    return found


def grouped(maps: Mapping[str, Mapping[str, Array]], labels: Mapping[str, Labels]) -> dict[str, Axes]:
    """The axes of every attention, in the order in which they were called.

    Attentions whose names differ only in numbers, and whose maps have the same size and tokens, form one
    group; more than FOLD of them are folded by layer. An attention is causal where every weight above its
    diagonal is zero.

    Args:
        maps: word to site to (H, Q, K).
        labels: word to its labels.
    """
    first = next(iter(maps.values()))
    groups: dict[tuple[str, Any], list[str]] = {}
    for site in first:
        alike = tuple((of[site].shape, labels[word][site]) for word, of in maps.items())
        groups.setdefault((re.sub(r"\d+", "*", site), alike), []).append(site)
    taken: set[str] = set()
    found = {}
    for (pattern, alike), sites in groups.items():
        name = _free(pattern if len(sites) > 1 else sites[0], f"{alike[0][0][1]}×{alike[0][0][2]}", taken)
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


def _free(name: str, size: str, taken: set[str]) -> str:
    """A name that no other group has."""
    candidates = (name, f"{name} {size}", *(f"{name} {size} ({i})" for i in range(2, 1000)))
    free = next(one for one in candidates if one not in taken)
    taken.add(free)
    return free


def is_causal(maps: Array) -> bool:
    """Whether no row of (H, Q, K) looks at later columns."""
    n_rows, n_columns = maps.shape[1:]
    later = np.arange(n_columns) > np.arange(n_rows)[:, None]
    return n_rows == n_columns > 1 and not maps[:, later].any()


def word_of(text: str, axes: Mapping[str, Axes], labels: Labels) -> Word:
    """An example as a `Word`, the form that pages use."""
    sides: dict[str, tuple[str, ...]] = {}
    for site, of in axes.items():
        sides[of.query], sides[of.key] = labels[site]
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
