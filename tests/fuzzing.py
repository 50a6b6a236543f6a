"""Helpers of the fuzz tests: the number of examples, and odd values for JSON documents."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

FUZZ = os.environ.get("HEADLIGHT_FUZZ")
"""Number of random examples per test. If unset, each test runs fewer examples, always the same ones."""


def profile(examples: int) -> settings:
    return settings(
        max_examples=int(FUZZ or examples),
        derandomize=not FUZZ,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


LONG = 2**63
ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2, 3, 4, 7, 1000, 2**31, LONG, -LONG, 10**40, 0.5, 1e308, -0.0]),
    st.sampled_from(
        ["", "x", "encoder.0", "training", "finished", "failed", "../..", "a\0b", "\ud800", "é" * 50]
    ),
    st.sampled_from([[], {}, [[]], [1, 2], ["a"], {"a": 1}, [None], [[1, 2], [3]]]),
)


def names_in(document: Any) -> list[Any]:
    """Return the keys of a dictionary or the indices of a list."""
    return list(document) if isinstance(document, dict) else list(range(len(document)))


def with_odd_value(document: Any, draw: Callable[[Any], Any]) -> Any:
    """Replace one value of a document by an odd one, or remove or rename its key, at any depth."""
    whole = {"it": document}
    inside, name = whole, "it"
    while isinstance(inside[name], dict | list) and inside[name] and draw(st.integers(0, 3)):
        inside = inside[name]
        name = draw(st.sampled_from(names_in(inside)))
    how = draw(st.sampled_from(["odd", "odd", "odd", "gone", "renamed"]))
    if how == "odd" or inside is whole:
        inside[name] = deepcopy(draw(ODD_VALUES))  # a shared list would grow from one example to the next
    else:
        value = inside.pop(name)
        if how == "renamed" and isinstance(inside, dict):
            inside[f"{name}s"] = value
    return whole["it"]
