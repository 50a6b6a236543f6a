"""What is kept of a run beside its arrays, as `run.json` says it and as a page sees it again."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.insight.moments import Moment
from transformer.interventions import Interventions
from transformer.runs.metrics import Metrics
from transformer.runs.view import PACES, RunView

FILE = "run.json"
FORMAT = 2
"""Version of a run's folder."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A run at one moment; names are those of `RunView`."""

    format: int
    kept: int
    """How many times the folder had been brought up to date: the higher, the newer."""
    id: str
    state: str
    reason: str
    step: int
    planned: int
    seconds: float
    pace: float | None
    learning_rate: float
    device: str
    threads: int
    parameters: int
    first_step_at: dict[str, int]
    goal_reached: bool
    everyday: tuple[int, int] | None
    turned_at: tuple[int, str, int] | None
    after: str | None
    right_by_length: dict[int, tuple[int, int]]
    moments: tuple[Moment, ...]
    interventions: Interventions
    """What is taken away from the model now."""
    words: tuple[str, ...]
    """The probes, in order."""
    config: dict[str, Any]

    def __post_init__(self) -> None:
        """Whether a run can be so; a file may be anybody's. Raises ValueError."""
        positive = 0 < self.learning_rate < math.inf and 0 <= self.seconds < math.inf
        if not positive or self.pace not in PACES or not 0 <= self.step <= self.planned or self.threads < 0:
            raise ValueError("its numbers are none of a run")

    def view(self) -> RunView:
        """The run as it was, without its frames, snapshots and numbers.

        Raises:
            InputError: its configuration cannot be used.
        """
        ours = {one.name: getattr(self, one.name) for one in fields(self) if one.name in _SHARED}
        config = RunConfig.from_json(json.dumps(self.config))
        return RunView(
            **{**ours, "config": config},
            steps_per_second=0.0,
            frames=(),
            snapshots=(),
            metrics=Metrics(),
        )


_SHARED = {one.name for one in fields(Facts)} & {one.name for one in fields(RunView)}


def facts_of(view: RunView, words: tuple[str, ...], kept: int) -> Facts:
    """What is to be kept of a view."""
    shared = {name: getattr(view, name) for name in _SHARED}
    return Facts(
        **{**shared, "config": json.loads(view.config.to_json())},
        format=FORMAT,
        kept=kept,
        right_by_length=dict(view.frame.by_length) if view.frame else {},
        words=words,
    )


def as_json(facts: Facts) -> bytes:
    """Readable by people and by `read_facts`."""
    return msgspec.json.format(msgspec.json.encode(facts), indent=2)


def read_facts(folder: Path) -> Facts:
    """What `run.json` says.

    Raises:
        InputError: not a folder of a run, a damaged one, or one of another version.
    """
    try:
        text = (folder / FILE).read_bytes()
    except OSError as error:
        raise InputError(f"{folder} is no saved run: {FILE} cannot be read ({error.strerror}).") from error
    try:
        version = bytes(msgspec.json.decode(text, type=dict[str, msgspec.Raw])["format"])
        facts = msgspec.json.decode(text, type=Facts) if version == str(FORMAT).encode() else None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{folder} is no saved run: {FILE} is damaged ({error}).") from error
    if facts is None:
        said = version.decode(errors="replace")[:40]
        raise InputError(f"{folder} has format {said}; this version reads format {FORMAT}.")
    return facts
