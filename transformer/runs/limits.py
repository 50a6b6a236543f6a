"""Limits of a server for its visitors, so that a class can share it; read from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from transformer.config import LETTER_TASKS, RunConfig
from transformer.config.size import parameter_count, training_bytes
from transformer.errors import InputError
from transformer.runs.machine import processors


def _limit(default: int, least: int, most: int) -> Any:
    """A field for a whole number from `least` to `most`; with `least`, the default settings still train."""
    return field(default=default, metadata={"range": (least, most)})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one server. A run without `Limits`, as on the command line, is not limited."""

    training: int = _limit(2, 1, 64)
    """Runs that train at once, the runs of a race counted as one; the others wait in line."""
    per_visitor: int = _limit(12, 1, 1_000)
    """Runs of one visitor that have not ended."""
    kept: int = _limit(40, 1, 10_000)
    """Runs in memory. Beyond it, runs leave memory: those trained elsewhere, then ended ones (first those
    complete on disk), then paused and unseen ones; in each group, the one viewed longest ago first. Others
    stay. As many drafts may be held in addition."""
    minutes: int = _limit(60, 1, 100_000)
    """Minutes that a run may train at a stretch; then it is stopped, and can be continued."""
    unseen_minutes: int = _limit(10, 1, 100_000)
    """Minutes after which a training run is paused if no page has shown it."""
    archive_minutes: int = _limit(60, 1, 100_000)
    """Minutes without a viewer after which a run that stands still may leave memory; its file keeps it."""
    steps: int = _limit(100_000, 300, 1_000_000)
    """Planned steps of a run, including those of continuing it."""
    parameters: int = _limit(50_000_000, 100_000, 1_000_000_000)
    """Parameters of a model; the published recipes have up to 44 million."""
    tokens: int = _limit(512, 32, 1_024)
    """Longest sequence that a model has positions for: about twice the length that it is trained on, so
    that it can be asked longer examples."""
    memory_mb: int = _limit(2_000, 50, 1_000_000)
    """Megabytes of memory that training a model takes, as calculated by `training_bytes`."""
    upload_mb: int = _limit(64, 1, 4_000)
    """Megabytes of an uploaded run."""
    sockets: int = _limit(300, 1, 100_000)
    """Pages that receive updates at the same time; each counts as one of the process's open files."""
    disk_mb: int = _limit(8_000, 100, 100_000_000)
    """Megabytes of disk that all runs take together. Beyond it, removed runs are deleted, then saved weights
    are thinned, first those of runs that are not training, and of these first the run viewed longest ago."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value, (least, most) = getattr(self, limit.name), limit.metadata["range"]
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InputError(
                    f"{variable(limit.name)}={value} cannot be used; choose a whole number from {least} "
                    f"to {most}, or leave it out for the default, {limit.default}.",
                    limit.name,
                )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The limits that the environment sets; the others keep their defaults.

        Raises:
            InputError: a value is invalid; the message says what is allowed and what to do.
        """
        names = {limit.name: variable(limit.name) for limit in fields(cls)}
        return cls(**{n: _read(environment[name]) for n, name in names.items() if name in environment})

    def check(self, config: RunConfig) -> None:
        """Refuse a configuration that exceeds the limits.

        Args:
            config: with what its task determines.

        Raises:
            InputError: a limit is exceeded; the message says what to choose.
        """
        self.check_steps(config.train.steps)
        if (config.threads or 0) > processors():
            raise InputError(
                f"{config.threads} threads are too many for this server; it has {processors()} "
                "processors. Choose at most as many, or leave the setting empty.",
                "threads",
            )
        model, needed = config.model, training_bytes(config) / 1e6
        if (parameters := parameter_count(model)) > self.parameters:
            raise InputError(
                f"This model has {parameters:,} parameters; this server allows {self.parameters:,}. "
                "Choose a smaller width or fewer layers.",
                "d_model",
            )
        if model.max_len > self.tokens:
            letters = config.train.task in LETTER_TASKS
            raise InputError(
                f"This model reads and writes up to {model.max_len:,} tokens; this server allows "
                f"{self.tokens:,}. Choose {'shorter words' if letters else 'shorter examples'}.",
                "max_letters" if letters else "task",
            )
        if needed > self.memory_mb:
            raise InputError(
                f"This model needs about {needed:,.0f} MB to train; this server allows {self.memory_mb:,} "
                "MB. Choose a smaller batch, a smaller width or fewer layers.",
                "batch_size",
            )

    def check_steps(self, steps: int) -> None:
        """Refuse a plan that is too long. Raises InputError."""
        if steps > self.steps:
            raise InputError(
                f"{steps:,} steps are too many for this server; choose at most {self.steps:,} in total.",
                "steps",
            )

    def check_upload(self, size: int) -> None:
        """Refuse a file that has too many bytes, before it is read. Raises InputError."""
        if size > 1_000_000 * self.upload_mb:
            raise InputError(
                f"This file has {size / 1e6:,.1f} MB; this server allows {self.upload_mb:,} MB "
                f"({variable('upload_mb')}).",
                "run_open",
            )


def variable(name: str) -> str:
    """The environment variable that sets a limit."""
    return f"HEADLIGHT_{name.upper()}"


def _read(text: str) -> Any:
    """The text as a whole number; any other text unchanged, so that the error message can quote it."""
    try:
        return int(text)
    except ValueError:
        return text
