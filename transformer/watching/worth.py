"""What each head of a model is worth: a number of the user's with the head switched off."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from transformer.errors import InputError
from transformer.recording.frame import Ablations
from transformer.watching.ablation import Head, Measure
from transformer.watching.attention import Observer
from transformer.watching.sites import plain_name

PORTION = 0.5
"""The portion of watching's share of the time that measuring may take."""
CREDIT_SECONDS = 0.05
"""Seconds that measuring may take beyond its share, so that the first steps are measured too."""
_NAMELESS = ("", "<lambda>")


class HeadWorth:
    """Measures what each head is worth, and tells whether a share of the time allows it.

    Args:
        observer: of the model.
        measure: the user's function.
        share: the share of the time for all of watching.
    """

    def __init__(self, observer: Observer, measure: Measure, share: float) -> None:
        self._observer, self._measure = observer, measure
        self._whole, self.share = share, PORTION * share
        """The share of the time that measuring may take."""
        self.seconds = 0.0
        """Seconds spent on measuring so far."""
        self.newest = -1
        """The newest step that was measured; -1 before there is one."""
        self._cost: float | None = None  # seconds of one step

    def is_due(
        self, step: int, sites: Mapping[str, tuple[Head, ...]], elapsed: float, *, at_end: bool
    ) -> bool:
        """Whether measuring now stays within its share of the time. The first call runs the user's function.

        Args:
            step: the newest recorded step.
            sites: the heads of each attention.
            elapsed: seconds since watching began.
            at_end: whether training has ended. Then `step` is due if it has not been measured, and if either
                no step has been, or measuring takes no longer than watching's whole share of the time.

        Raises:
            InputError: the user's function fails or gives no finite number.
        """
        if at_end:
            return self.newest < step and (self.newest < 0 or self._seconds(sites) <= self._whole * elapsed)
        return self.seconds + self._seconds(sites) <= self.share * elapsed + CREDIT_SECONDS

    def measured(self, step: int, sites: Mapping[str, tuple[Head, ...]]) -> Ablations:
        """The number with all heads and without each; NaN for a head without which it is not known.

        Raises:
            InputError: the user's function fails, gives no finite number with all heads, or gives another
                number at every call; or no head can be switched off.
        """
        began = time.monotonic()
        heads = list(dict.fromkeys(head for of in sites.values() for head in of))
        if not heads:
            raise InputError("measure: the heads of a given function cannot be switched off.", "measure")
        try:
            whole, *numbers = self._observer.ablations(self._measure, heads)
            if self.newest < 0 and not self._observer.is_steady(self._measure, whole):
                raise InputError(
                    "measure gives another number at every call; it may use no random stream of its own.",
                    "measure",
                )
        finally:
            self._cost = time.monotonic() - began
            self.seconds += self._cost
        number_of_head = dict(zip(heads, numbers, strict=True))
        self.newest = step
        return Ablations(
            step=step,
            name=self._name,
            whole=whole,
            without={site: np.array([number_of_head[head] for head in of]) for site, of in sites.items()},
        )

    @property
    def _name(self) -> str:
        """The name of the user's function, or "measure" if it has none."""
        name = getattr(self._measure, "__name__", "")
        return "measure" if name in _NAMELESS else plain_name(name.replace("_", " "))

    def _seconds(self, sites: Mapping[str, tuple[Head, ...]]) -> float:
        """Seconds that measuring took last time; before that, an estimate from one call with all heads."""
        if self._cost is None:
            began = time.monotonic()
            n_heads = len({head for of in sites.values() for head in of})
            try:
                list(self._observer.ablations(self._measure, ()))
            finally:
                once = time.monotonic() - began
                self.seconds += once
                self._cost = once * (1 + n_heads)
        return self._cost
