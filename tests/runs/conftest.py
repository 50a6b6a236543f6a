"""What the tests of runs share: files read by the package that their format comes from, not by our code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest


def plain(thing: Any) -> Any:
    """All of it as what can be compared: the kinds of arrays and the order of names too."""
    if is_dataclass(thing):
        return type(thing).__name__, [(one.name, plain(getattr(thing, one.name))) for one in fields(thing)]
    if isinstance(thing, Mapping):
        return [(name, plain(one)) for name, one in thing.items()]
    if isinstance(thing, tuple):
        return tuple(plain(one) for one in thing)
    if isinstance(thing, np.ndarray):
        return thing.dtype, thing.shape, thing.tobytes()
    assert isinstance(thing, str | int | float | None), thing
    return type(thing), thing


@pytest.fixture(name="plain", scope="session")
def plain_fixture() -> Callable[[Any], Any]:
    return plain
