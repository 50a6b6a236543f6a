"""A model of the user's own: what stands in a run's folder in the place of a configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[^<>&\"'\x00-\x1f]{1,200}")
MOST_CURVES = 8
"""Numbers beside the loss that one run can have."""


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """A model that was watched while a training loop of the user's own trained it."""

    name: str
    """Name of its class."""
    curves: tuple[str, ...] = ()
    """Names of the numbers that are recorded at every step beside the loss."""
    problem: str = ""
    """The part that could not be recorded, in words."""

    def __post_init__(self) -> None:
        """Raises ValueError: a file can hold anything."""
        if len(self.curves) > MOST_CURVES or not all(map(is_name, (self.name, *self.curves))):
            raise ValueError("its names are none of a model")


def is_name(text: str) -> bool:
    """Whether this can be the name of a module, or of a number: it is shown on pages as it is."""
    return bool(_NAME.fullmatch(text))
