"""One example as text: what is read, what is to be written, and which of it comes from where."""

from __future__ import annotations

from dataclasses import dataclass

Links = tuple[tuple[int, ...], ...]
"""For each unit of the target, the units of the source that it comes from; empty where it comes from none."""


@dataclass(frozen=True)
class Pair:
    """A question and its right answer, each as its side's `Writing` spells it."""

    source: str
    target: str
    links: Links | None = None
    """The gold alignment, by units of both sides, counted from 0; None where it is not known."""
    pattern: str = ""
    """What kind of example it is, such as "negation"; empty where there are no kinds."""
    held_out: bool = False
    """Kept from training."""

    def __post_init__(self) -> None:
        if not self.source or not self.target:
            raise ValueError(f"An empty side cannot be learned: {self.source!r}, {self.target!r}.")
