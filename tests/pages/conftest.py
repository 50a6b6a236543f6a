"""Visitors of the app without a browser: real pages, real runs in real threads, tiny models."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Set
from itertools import islice
from typing import Any

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner

from pages.controls import mask_switches
from pages.questions import interventions
from pages.settings import beginnings
from tests.pages.visitor import Visitor
from transformer.config import RunConfig
from transformer.recording import map_recorder
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.training.loop import train
from transformer.training.state import TrainState

TINY = {
    "layers_encoder": 1,
    "layers_decoder": 1,
    "heads": 2,
    "width": 8,
    "letters": 6,
    "batch_size": 4,
    "steps": 3,
    "goal": "none",
    "device": "cpu",
}
"""Link parameters of a run of three steps."""
LONG = TINY | {"steps": 100_000}
SLOW = LONG | {"pace": "1 steps/s"}
"""Link parameters of a run at one step per second, which leaves the processor to the test."""


@pytest.fixture(autouse=True, scope="session")
def own_components_alone() -> Iterator[None]:
    """Skip the search for components in all installed packages, which AppTest repeats for each visitor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


class SharedRuns:
    """Finished runs by their settings, each trained once per file, for tests that do not change the run."""

    def __init__(self) -> None:
        self.runs: dict[str, tuple[Run, str]] = {}

    def link(self, **settings: Any) -> dict[str, str]:
        """Return the owner's link to the finished run with these settings."""
        name = json.dumps(settings, sort_keys=True)
        if name not in self.runs:
            visitor = Visitor(TINY | settings, {}).press("run_start").until("finished", 120)
            self.runs[name] = visitor.run, visitor.at.session_state["tokens"][visitor.run.id]
        run, token = self.runs[name]
        REGISTRY._runs[run.id] = run
        return {"run": run.id, "owner": token}

    def threads(self) -> set[str]:
        return {run.thread.name for run, _ in self.runs.values()}


def end_all_runs(but: SharedRuns | None = None, elsewhere: Set[str] = frozenset()) -> None:
    """Empty the registry, close its runs and drafts except those of `but`, and wait for their threads.

    Args:
        elsewhere: names of threads that the pages under test did not start.
    """
    spared = elsewhere | (but.threads() if but else set())
    for run in (*REGISTRY.listed(), *REGISTRY._drafts.values()):
        if isinstance(run, Run) and run.thread.name not in spared:
            run.close()
    REGISTRY._runs.clear()
    REGISTRY._drafts.clear()
    for thread in threading.enumerate():
        if thread.name.startswith("run-") and thread.name not in spared:
            thread.join(30)
            assert not thread.is_alive(), f"{thread.name} goes on"


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedRuns]:
    made = SharedRuns()
    yield made
    for run, _ in made.runs.values():
        run.close()
        run.join()


@pytest.fixture(autouse=True)
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record every step, although recording a tiny model takes longer than its step."""
    monkeypatch.setattr(map_recorder, "KNOWN_SECONDS", 1e9)


@pytest.fixture(autouse=True)
def patient_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page wait up to 60 s for a change in its run's model, since the machine may be busy."""
    for part in (interventions, mask_switches):
        monkeypatch.setattr(part, "INTERVENTION_SECONDS", 60.0)


@pytest.fixture(autouse=True)
def delivered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let settings be changed at once, since a visitor's requests always contain the values as last drawn."""
    monkeypatch.setattr(beginnings, "DELIVERED_SECONDS", 0.0)


@pytest.fixture
def visit(shared: SharedRuns) -> Iterator[Callable[..., Visitor]]:
    """Open the app from a link with these settings, by default those of a tiny run."""

    def open_link(
        link: dict[str, Any] | None = None,
        session: dict[str, Any] | None = None,
        page: str = "watch",
        **more: Any,
    ) -> Visitor:
        return Visitor((TINY if link is None else link) | more, session or {}, page)

    before = {thread.name for thread in threading.enumerate()}
    yield open_link
    end_all_runs(but=shared, elsewhere=before)


@pytest.fixture
def revisit(visit: Callable[..., Visitor], shared: SharedRuns) -> Callable[..., Visitor]:
    """Open the finished run with these settings from its owner's link; not for tests that change the run."""
    return lambda **settings: visit(shared.link(**settings))


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The newest arguments of each download button, by the button's key."""
    buttons: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(st, "download_button", lambda label, **given: buttons.update({given["key"]: given}))
    return buttons


@pytest.fixture
def long() -> dict[str, Any]:
    """Link parameters of a run that does not end by itself."""
    return dict(LONG)


@pytest.fixture
def slow() -> dict[str, Any]:
    """Link parameters of a run at one step per second."""
    return dict(SLOW)


@pytest.fixture
def trained_alone() -> Callable[[RunConfig, int], list[float]]:
    """Return the first losses of a configuration from the training generator, without a run or a page."""

    def losses(config: RunConfig, n: int) -> list[float]:
        return [loss for report in islice(train(TrainState.begin(config)), n) for loss in report.losses]

    return losses
