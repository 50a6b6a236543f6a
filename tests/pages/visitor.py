"""A visitor of the app without a browser: opens pages, presses buttons, types, and reads the page."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from pages.stream.broadcaster import RunBroadcaster, find
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run

APP = Path(__file__).parents[2] / "pages" / "main.py"
KEYS = [
    *("task", "layers_encoder", "layers_decoder", "heads", "width", "steps", "seed", "letters", "batch_size"),
    *("tokenizer_kind", "decoding", "learning_rate", "label_smoothing", "dropout", "goal", "device"),
    *("recipe", "topology", "as_published", "precision", "cuda_graphs", "threads"),
]
"""Keys of the settings widgets of a task on words."""


@dataclass
class Drawn:
    """The data that a live figure was given to draw."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    """The part that does not change, from the figure's JSON."""
    changing: dict[str, Any]
    arrays: dict[str, np.ndarray]
    """Unpacked as in the browser."""
    step: int

    @property
    def columns(self) -> list[str]:
        """The tokens below the map, without markup."""
        return [re.sub("<[^>]*>|\u2002", "", text) for text in self.layout["xaxis"]["ticktext"]]


def unpacked(packed: dict[str, Any]) -> np.ndarray:
    """Unpack numbers as the browser does."""
    values = np.frombuffer(base64.b64decode(packed["b"]), dtype="<f4").astype(float)
    return values.reshape(packed["shape"]) if "shape" in packed else values


def unescaped(markdown: str) -> str:
    """Return Markdown without its escapes, as a visitor reads it."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)


class Visitor:
    """One browser session: opens the app from a link, presses buttons, types, and reads the page."""

    def __init__(self, link: dict[str, Any], session: dict[str, Any], page: str = "watch") -> None:
        self.at = AppTest.from_file(str(APP), default_timeout=60)
        if page != "watch":  # Watch has no name in the address
            self.at.switch_page(f"{page}.py")
        for name, value in link.items():
            self.at.query_params[name] = str(value)
        for name, value in session.items():
            self.at.session_state[name] = value
        known = REGISTRY.get(str(link.get("run")))
        self.look()
        if self.run is not None and self.run is not known:  # its untrained model may be built after the page
            assert self.run.ready.wait(60)
            self.look()

    def look(self) -> Visitor:
        """Run the page once; an exception on it fails the test."""
        return self._pass()

    def press(self, key: str) -> Visitor:
        button = self.at.button(key=key)
        assert not button.disabled, f"{key} is disabled"
        button.click()
        return self.look()

    def set(self, key: str, value: Any) -> Visitor:
        """Type into a box or choose from a list."""
        return self.fill({key: value})

    def fill(self, values: dict[str, Any]) -> Visitor:
        """Set several boxes of the page at once."""
        kinds = ("number_input", "selectbox", "text_input", "toggle", "multiselect", "button_group")
        boxes = {box.key: box for kind in kinds for box in self.at.get(kind)}
        for key, value in values.items():
            boxes[key].set_value(value)
        return self.look()

    def step(self) -> Visitor:
        """Press Step and wait until all its steps are taken."""
        last = self.run.view.step + self.value("step_size")
        self.press("run_step")
        return self.wait_until(lambda: self.run.view.step == last and self.run.view.state == "paused")

    def forge(self, key: str, text: str) -> Visitor:
        """Send a choice that the list does not offer, as any client can."""
        box = self.at.selectbox(key=key)
        state = WidgetState(id=box.id, string_value=text)
        box.__class__ = type("Forged", (type(box),), {"_widget_state": state})
        return self.look()

    def send(self, key: str, event: str, value: Any) -> Visitor:
        """Send an event from the browser part of a component, such as a click on a picture."""
        message = json.dumps([{"event": event, "value": value}])
        name = f"$$STREAMLIT_INTERNAL_KEY_{self._component(key).id}__events"
        return self._answer(WidgetState(id=name, json_trigger_value=message))

    def send_choice(self, chosen: Any) -> Visitor:
        """Send a choice from the browser part of the player: any value at all, as any client can."""
        state = json.dumps({"chosen": chosen})
        return self._answer(WidgetState(id=self._component("player").id, json_value=state))

    def choose(self, **change: Any) -> Visitor:
        """Choose a word, kind, pinned head, step (None: LIVE), outline or follow in the player."""
        given = self.player
        return self.send_choice(given["first"] | change | {"number": given["heard"] + 1})

    def go_to_step(self, step: int | None) -> Visitor:
        """Move the handle of the step control; None presses LIVE."""
        return self.choose(step=step, follow=False)

    def _answer(self, state: WidgetState) -> Visitor:
        states = self.at._tree.get_widget_states()
        states.widgets.append(state)
        return self._pass(states)

    def _pass(self, states: WidgetStates | None = None) -> Visitor:
        self.at.run() if states is None else self.at._run(states)
        assert [exception.message for exception in self.at.exception] == []
        return self

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
        """Wait until the run is in this state, then run the page once."""
        return self.wait_until(lambda: self.run is not None and self.run.view.state == state, seconds, state)

    def wait_until(self, happened: Callable[[], bool], seconds: float = 30.0, what: str = "it") -> Visitor:
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, (
                f"not within {seconds} s: {what}; the run: {self.run and self.run.view.state}"
            )
            time.sleep(0.005)
        return self.look()

    @property
    def run(self) -> Run | None:
        """The run or draft on this visitor's screen."""
        state = self.at.session_state
        return REGISTRY.get(
            next((state[name] for name in ("run", "draft") if name in state and state[name]), None)
        )

    @property
    def player(self) -> dict[str, Any]:
        """The data given to the player, or to the step control of another page."""
        return json.loads(self._component("player").json)

    @property
    def news(self) -> dict[str, Any]:
        """The news that viewers of the run in the player receive."""
        broadcaster = RunBroadcaster(find(self.player["run"]))
        broadcaster.look(1)
        return json.loads(broadcaster.now.said)

    @property
    def link(self) -> dict[str, str]:
        """The parameters of the page's address, for another visitor to open."""
        return {
            name: value if isinstance(value, str) else value[0]
            for name, value in self.at.query_params.items()
        }

    @property
    def keys(self) -> set[str]:
        """Keys of all widgets that can be pressed, typed into or chosen from."""
        kinds = ("button", "selectbox", "number_input", "text_input", "button_group", "toggle")
        return {element.key for kind in kinds for element in self.at.get(kind)}

    @property
    def texts(self) -> list[str]:
        """The texts on the page, as a visitor reads them."""
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
        return re.sub("<[^>]*>", "", news["status"])

    @property
    def progress(self) -> str:
        """The state of the run, its step and its planned steps."""
        news = self.news
        return f"{news['state']} at {news['step']} of {news['planned']}"

    @property
    def headline(self) -> str:
        """The sentence of the newest step, without markup."""
        news = self.news
        said = self.player.get("over") or news["waits"] or news["headline"]
        return re.sub("<[^>]*>", "", said)

    @property
    def errors(self) -> list[str]:
        return [unescaped(error.value) for error in self.at.error]

    def says(self, part: str) -> bool:
        return any(part in text for text in self.texts)

    def enabled(self, key: str) -> bool:
        """Whether a button is there and can be pressed."""
        return any(button.key == key and not button.disabled for button in self.at.button)

    def value(self, key: str) -> Any:
        return self.at.session_state[key]

    def drawn(self, key: str) -> Drawn:
        """Return the data of the live figure with this key."""
        message = json.loads(self._component(key).json)
        arrays = {name: unpacked(packed) for name, packed in message["arrays"].items()}
        spec = json.loads(message["spec"])
        return Drawn(**spec, changing=message["layout"], arrays=arrays, step=message["step"])


def formulas(visitor: Visitor) -> list[str]:
    """Return the formulas below the picture of the model: with symbols, and with the kept cell's numbers."""
    return [one.value.strip("$\n") for one in visitor.at.latex]
