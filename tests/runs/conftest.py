"""Fixtures for the tests of runs: waiting for a state, servers with limits, and runs without viewers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from transformer.config import RunConfig
from transformer.recording.view import Publisher, untrained
from transformer.runs.limits import Limits
from transformer.runs.registry import Registry
from transformer.runs.run import Run
from transformer.runs.training_session import TrainingSession
from transformer.shared.interventions import Interventions
from transformer.storage.library import Library
from transformer.tasks import task_of


@pytest.fixture
def at(until: Callable[..., None]) -> Callable[..., None]:
    """Wait until a run is in this state and, if a step is given, at this step."""

    def wait(run: Run, state: str, step: int | None = None) -> None:
        until(lambda: run.view.state == state and step in (None, run.view.step))

    return wait


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[..., Registry]]:
    """Make registries with these limits, closed after the test; those with a library share a folder."""
    made: list[Registry] = []

    def make(*, library: bool = False, **limits: int) -> Registry:
        made.append(Registry(Limits(**limits), Library(tmp_path / "runs" if library else None)))
        return made[-1]

    yield make
    for registry in made:
        registry.close()


@pytest.fixture
def slow(tiny: Callable[..., RunConfig]) -> RunConfig:
    """The configuration of a run that does not end by itself."""
    return tiny(steps=100_000, evaluate_every=100_000)


@pytest.fixture
def begin(slow: RunConfig, until: Callable[..., None]) -> Callable[..., Run]:
    """Start a slow run, at one step per second, and wait until it trains or is queued."""

    def start(registry: Registry, **settings: str) -> Run:
        run = registry.draft(slow, **settings)
        run.set_pace(1.0)
        registry.start(run)
        until(lambda: run.view.state == "training" or run.place)
        return run

    return start


def unseen_for(run: Run, minutes: float) -> None:
    """Set the last view of a run this many minutes back."""
    run.lease.seen_at -= 60 * minutes


TWO_HEADS_OFF = Interventions(ablated=(("decoder.0.cross", 1), ("decoder.1.self", 0)))


def kept_at(kept, step):
    return [one for one in kept if one.step == step]


def moments_of(view, kind):
    return [(moment.step, moment.text) for moment in view.moments if moment.kind == kind]


def losses_of(run):
    """Return the loss of every step of a run."""
    return run.view.metrics.column("loss").tolist()


@pytest.fixture
def training():
    """Make a training in this thread, built but not started; return also the object that it publishes to."""

    def make(config, words=("ox", "cab"), **facts):
        published, task = Publisher(replace(untrained(config, "x"), **facts)), task_of(config)
        return TrainingSession(published, [task.question(word) for word in words]), published

    return make


def take(training, n, *, watched=False):
    """Take n steps, or all planned steps if n is None."""
    taken = 0
    while taken != n and training.state.step < training.state.phase.last:
        training.step(alone=False, watched=watched)
        taken += 1
