"""Visitors of the app without a browser: real pages, real runs in real threads, tiny models."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from pages.ask import taken_away
from pages.controls import mask_switches
from pages.stream.channel import Channel, find
from transformer.config import RunConfig
from transformer.player.sentences import STEP
from transformer.recording import frame_scheduler
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.training.loop import train
from transformer.training.state import TrainState

APP = Path(__file__).parents[2] / "pages" / "main.py"
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
"""As in a link: a run of three steps."""
KEYS = [
    *("task", "layers_encoder", "layers_decoder", "heads", "width", "steps", "seed", "letters", "batch_size"),
    *("tokenizer_kind", "decoding", "learning_rate", "label_smoothing", "dropout", "goal", "device"),
    *("recipe", "topology", "as_published", "precision", "cuda_graphs", "threads"),
]
"""Widgets of the settings of a task on words."""
LONG = TINY | {"steps": 100_000}
SLOW = LONG | {"pace": "1 steps/s"}
"""A run that is training, and leaves the processor to the test."""


@pytest.fixture(autouse=True, scope="session")
def own_components_alone() -> Iterator[None]:
    """Before every pass of a page AppTest reads the metadata of all installed packages for components."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


@dataclass
class Drawn:
    """What a live figure was given to draw."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    """What stays the same, from the picture's JSON."""
    changing: dict[str, Any]
    arrays: dict[str, np.ndarray]
    """Unpacked as the browser does it."""
    step: int


def unpacked(packed: dict[str, Any]) -> np.ndarray:
    """What the browser makes of packed numbers."""
    values = np.frombuffer(base64.b64decode(packed["b"]), dtype="<f4").astype(float)
    return values.reshape(packed["shape"]) if "shape" in packed else values


def unescaped(markdown: str) -> str:
    """What a person reads where Markdown has a sign escaped."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)


class Visitor:
    """One browser session: opens the app by a link, presses, types, and reads the page."""

    def __init__(self, link: dict[str, Any], session: dict[str, Any], page: str = "train") -> None:
        self.at = AppTest.from_file(str(APP), default_timeout=60)
        if page != "train":  # that one has no name in the address
            self.at.switch_page(f"{page}.py")
        for name, value in link.items():
            self.at.query_params[name] = str(value)
        for name, value in session.items():
            self.at.session_state[name] = value
        self.look()
        if self.run is not None:
            assert self.run.ready.wait(60)
            self.look()

    def look(self) -> Visitor:
        """One pass of the page; none may end in an exception."""
        self.at.run()
        assert [exception.message for exception in self.at.exception] == []
        return self

    def press(self, key: str) -> Visitor:
        button = self.at.button(key=key)
        assert not button.disabled, f"{key} is disabled"
        button.click()
        return self.look()

    def set(self, key: str, value: Any) -> Visitor:
        """Type into a box or choose from a list."""
        boxes = (*self.at.number_input, *self.at.selectbox, *self.at.text_input, *self.at.toggle)
        boxes += (*self.at.multiselect, *self.at.get("button_group"))
        next(box for box in boxes if box.key == key).set_value(value)
        return self.look()

    def step(self) -> Visitor:
        """Press Step and wait until all its steps are taken."""
        last = self.run.view.step + self.value("step_size")
        self.press("run_step")
        return self.once(lambda: self.run.view.step == last and self.run.view.state == "paused")

    def forge(self, key: str, text: str) -> Visitor:
        """Send a choice that the list does not offer, as any client can."""
        box = self.at.selectbox(key=key)
        state = WidgetState(id=box.id, string_value=text)
        box.__class__ = type("Forged", (type(box),), {"_widget_state": state})
        return self.look()

    def send(self, key: str, event: str, value: Any) -> Visitor:
        """An event of a component's half in the browser, such as a click on a picture."""
        message = json.dumps([{"event": event, "value": value}])
        name = f"$$STREAMLIT_INTERNAL_KEY_{self._component(key).id}__events"
        return self._answer(WidgetState(id=name, json_trigger_value=message))

    def tell(self, chosen: Any) -> Visitor:
        """What the player's half in the browser says is chosen: anything at all, as any client can."""
        state = json.dumps({"chosen": chosen})
        return self._answer(WidgetState(id=self._component("player").id, json_value=state))

    def choose(self, **change: Any) -> Visitor:
        """Choose a word, kind, pinned head, step (None: LIVE), outline or follow in the player."""
        given = self.player
        return self.tell(given["first"] | change | {"number": given["heard"] + 1})

    def stand(self, step: int | None) -> Visitor:
        """Move the handle of the step control; None presses LIVE."""
        return self.choose(step=step, follow=False)

    def _answer(self, state: WidgetState) -> Visitor:
        states = self.at._tree.get_widget_states()
        states.widgets.append(state)
        self.at._run(states)
        return self.look()

    def _component(self, key: str) -> Any:
        (element,) = [found for found in self.at.get("bidi_component") if found.key == key]
        return element.proto

    def click(self, key: str, trace: int, point: object = None) -> Visitor:
        """Click on a trace of a picture."""
        return self.send(key, "clicked", {"trace": trace, "point": point})

    def tab(self, name: str) -> Visitor:
        """Open the tab of the Ask page whose label has this name."""
        label = next(tab.label for tab in self.at.tabs if f" {name}:" in tab.label)
        self.at.session_state["explore_tab"] = label
        return self.look()

    def go(self, page: str) -> Visitor:
        self.at.switch_page(f"{page}.py")
        return self.look()

    def until(self, state: str, seconds: float = 30.0) -> Visitor:
        """Wait for the run's state, then look at the page."""
        return self.once(lambda: self.run is not None and self.run.view.state == state, seconds, state)

    def once(self, happened: Callable[[], bool], seconds: float = 30.0, what: str = "it") -> Visitor:
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, (
                f"not within {seconds} s: {what}; the run: {self.run and self.run.view.state}"
            )
            time.sleep(0.005)
        return self.look()

    @property
    def run(self) -> Run | None:
        """The run or draft that this visitor looks at."""
        state = self.at.session_state
        return REGISTRY.get(
            next((state[name] for name in ("run", "draft") if name in state and state[name]), None)
        )

    @property
    def player(self) -> dict[str, Any]:
        """What the player, or the step control of another page, is given."""
        return json.loads(self._component("player").json)

    @property
    def news(self) -> dict[str, Any]:
        """What those are told who look at the run that the player shows."""
        channel = Channel(find(self.player["run"]))
        channel.look(1)
        return json.loads(channel.now.said)

    @property
    def link(self) -> dict[str, str]:
        """The page's address, to be opened by someone else."""
        return {
            name: value if isinstance(value, str) else value[0]
            for name, value in self.at.query_params.items()
        }

    @property
    def keys(self) -> set[str]:
        """Of everything that can be pressed, typed into or chosen from."""
        kinds = ("button", "selectbox", "number_input", "text_input", "button_group", "toggle")
        return {element.key for kind in kinds for element in self.at.get(kind)}

    @property
    def texts(self) -> list[str]:
        """What stands on the page, as a person reads it."""
        kinds = ("markdown", "caption", "html", "info", "warning", "error")
        return [
            element.value if kind == "html" else unescaped(element.value)
            for kind in kinds
            for element in getattr(self.at, kind, self.at.get(kind))
        ]

    @property
    def status(self) -> str:
        """The line above the pictures, without markup."""
        news = self.news
        return re.sub("<[^>]*>", "", news["status"]).replace(STEP, f"{news['step']:,}")

    @property
    def headline(self) -> str:
        """The sentence of the newest step, without markup."""
        news = self.news
        said = self.player.get("over") or news["waits"] or news["headline"][0]
        return re.sub("<[^>]*>", "", said)

    @property
    def errors(self) -> list[str]:
        return [unescaped(error.value) for error in self.at.error]

    def says(self, part: str) -> bool:
        return any(part in text for text in self.texts)

    def enabled(self, key: str) -> bool:
        return not self.at.button(key=key).disabled

    def value(self, key: str) -> Any:
        return self.at.session_state[key]

    def drawn(self, key: str) -> Drawn:
        """What the live figure of this key shows."""
        message = json.loads(self._component(key).json)
        arrays = {name: unpacked(packed) for name, packed in message["arrays"].items()}
        spec = json.loads(message["spec"])
        return Drawn(**spec, changing=message["layout"], arrays=arrays, step=message["step"])

    def table(self, key: str, i: int = 0) -> np.ndarray:
        """The numbers of the i-th table of a picture of stages; blocked cells are NaN."""
        drawn = self.drawn(key)
        owners = drawn.layout["meta"]["panels"]
        rows = next(t["z"] for t, owner in zip(drawn.data, owners, strict=True) if owner == i)
        return np.array([[np.nan if z is None else z for z in row] for row in rows], dtype=float)


class Shared:
    """Runs of these settings, each trained once for all tests of a file that change nothing in it."""

    def __init__(self) -> None:
        self.runs: dict[str, tuple[Run, str]] = {}

    def link(self, **settings: Any) -> dict[str, str]:
        """The link by which its owner opens the finished run of these settings."""
        name = json.dumps(settings, sort_keys=True)
        if name not in self.runs:
            visitor = Visitor(TINY | settings, {}).press("run_start").until("finished", 120)
            self.runs[name] = visitor.run, visitor.at.session_state["tokens"][visitor.run.id]
        run, token = self.runs[name]
        REGISTRY._runs[run.id] = run
        return {"run": run.id, "owner": token}

    def threads(self) -> set[str]:
        return {run._runner.name for run, _ in self.runs.values()}


def end_all_runs(but: Shared | None = None, elsewhere: Set[str] = frozenset()) -> None:
    """Forget every run and draft of the process, and wait for their threads.

    Args:
        elsewhere: threads that are not of the pages under test.
    """
    spared = elsewhere | (but.threads() if but else set())
    for run in (*REGISTRY.listed(), *REGISTRY._drafts.values()):
        if isinstance(run, Run) and run._runner.name not in spared:
            run.close()
    REGISTRY._runs.clear()
    REGISTRY._drafts.clear()
    for thread in threading.enumerate():
        if thread.name.startswith("run-") and thread.name not in spared:
            thread.join(30)
            assert not thread.is_alive(), f"{thread.name} goes on"


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    made = Shared()
    yield made
    for run, _ in made.runs.values():
        run.close()
        run.join()


@pytest.fixture(autouse=True)
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording a tiny model takes longer than its step: here that is no reason to record less often."""
    monkeypatch.setattr(frame_scheduler, "KNOWN_SECONDS", 1e9)


@pytest.fixture(autouse=True)
def patient_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for a change in its run's model for as long as a busy machine takes over one."""
    for part in (taken_away, mask_switches):
        monkeypatch.setattr(part, "OBEYED_SECONDS", 60.0)


@pytest.fixture
def visit(shared: Shared) -> Iterator[Callable[..., Visitor]]:
    """Open the app by a link with these settings, by default those of a tiny run."""

    def open_link(
        link: dict[str, Any] | None = None,
        session: dict[str, Any] | None = None,
        page: str = "train",
        **more: Any,
    ) -> Visitor:
        return Visitor((TINY if link is None else link) | more, session or {}, page)

    before = {thread.name for thread in threading.enumerate()}
    yield open_link
    end_all_runs(but=shared, elsewhere=before)


@pytest.fixture
def revisit(visit: Callable[..., Visitor], shared: Shared) -> Callable[..., Visitor]:
    """Open the finished run of these settings by its owner's link; not for tests that change the run."""
    return lambda **settings: visit(shared.link(**settings))


@pytest.fixture
def long() -> dict[str, Any]:
    """The link of a run that does not end by itself."""
    return dict(LONG)


@pytest.fixture
def slow() -> dict[str, Any]:
    """The link of a run of one step a second."""
    return dict(SLOW)


@pytest.fixture
def trained_alone() -> Callable[[RunConfig, int], list[float]]:
    """The first losses of a configuration by the bare generator, without a run or a page."""

    def losses(config: RunConfig, n: int) -> list[float]:
        return [loss for report in islice(train(TrainState.begin(config)), n) for loss in report.losses]

    return losses
