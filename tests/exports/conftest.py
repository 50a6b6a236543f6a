"""A run whose axes all differ in length; midway a head is switched off and a word is added."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.transforms import Bbox

from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.exports.script import script
from transformer.insight.moments import Moment
from transformer.recording.frame import Frame
from transformer.recording.recording import Recording
from transformer.recording.view import RunView
from transformer.runs.run import Run
from transformer.shared.interventions import Block, Interventions
from transformer.training.state import TrainState

CONFIG = RunConfig(
    model=ModelConfig(n_encoder_layers=1, n_decoder_layers=2, n_heads=3, d_model=12, d_ff=10),
    train=TrainConfig(max_letters=6, batch_size=6, steps=8, warmup_steps=3, evaluate_every=4),
    seed=5,
    device="cpu",
)
TAKEN = Interventions(
    ablated=(("decoder.1.cross", 2),),
    blocked=(
        Block(site="decoder.0.self", head=1, row=4, column=2),
        Block(site="decoder.0.cross", head=0, row=1, column=3),
    ),
)
"""Interventions made at step 4; the word ox is added then too."""


class FakeRecording(Recording):
    """The given frames, instead of frames made from records."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        super().__init__()
        self.given = {frame.step: frame for frame in frames}
        self.steps = tuple(self.given)

    def _made(self, step: int) -> Frame:
        return self.given[step]

    def steps_of(self, text: str) -> tuple[int, ...]:
        return tuple(step for step in self.steps if any(p.text == text for p in self.given[step].words))


def sharpened(frame: Frame) -> Frame:
    """Return the frame with maps as sharp as those of a trained model: random rows that add up to 1."""
    rng = np.random.default_rng(frame.step)

    def sharp(weights: np.ndarray) -> np.ndarray:
        may = ~np.isnan(weights)
        scores = np.exp(4 * rng.normal(size=may.shape)) * may
        return np.where(may, scores / scores.sum(axis=-1, keepdims=True), np.nan).astype(np.float32)

    maps = tuple({site: sharp(weights) for site, weights in of.items()} for of in frame.maps)
    return replace(frame, maps=maps)


def with_word(frame: Frame, **changes: object) -> Frame:
    """Return the frame with changes to its first tracked word."""
    first, *others = frame.words
    return replace(frame, words=(replace(first, **changes), *others))


@pytest.fixture(scope="session")
def recorded(changed_midway: Callable[..., RunView]) -> RunView:
    return changed_midway(Run(CONFIG, words=("banana", "cat")), 4, TAKEN, "ox")


@pytest.fixture
def view(recorded: RunView) -> RunView:
    """Frames of steps 0 to 8, two of them moments; "ox" is in all of them and was added at step 4."""
    return replace(
        recorded,
        frames=FakeRecording(sharpened(frame) for frame in recorded.frames),
        moments=(
            Moment(2, "drop", "the loss <fell>"),
            Moment(4, "intervention", "switched off cross-attention layer 2, head 3"),
        ),
    )


@pytest.fixture
def thinned(view: RunView) -> RunView:
    """The same view without steps 6 and 7, and without "ox" before step 4."""
    frames = [frame for frame in view.frames if frame.step not in (6, 7)]
    return replace(
        view,
        frames=FakeRecording(
            replace(frame, words=frame.words[:2], maps=frame.maps[:2]) if frame.step < 4 else frame
            for frame in frames
        ),
    )


@pytest.fixture
def drawn_texts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Bbox]]:
    """Every text that is drawn, with its box in pixels."""
    texts, write = [], RendererAgg.draw_text

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):  # type: ignore[no-untyped-def]
        width, height, _ = self.get_text_width_height_descent(s, prop, ismath)
        turned = Bbox.from_bounds(x - height, self.height - y, height, width)
        texts.append((s, turned if angle else Bbox.from_bounds(x, self.height - y, width, height)))
        write(self, gc, x, y, s, prop, angle, ismath, mtext)

    monkeypatch.setattr(RendererAgg, "draw_text", draw_text)
    return texts


BASE = RunConfig(
    model=ModelConfig(n_encoder_layers=1, n_decoder_layers=2, n_heads=3, d_model=12, d_ff=10),
    train=TrainConfig(max_letters=5, batch_size=6, steps=9, warmup_steps=3, evaluate_every=1000),
    device="cpu",
)


TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]


def label(changes):
    return ",".join(f"{name}={value}" for name, value in changes.items())[:60] or "default"


def run_of(**changes):
    """Return the namespace of an executed script, and the app's training state of the same configuration."""
    config = BASE.with_changes(**changes)
    return names_in(script(config)), TrainState.begin(config)


def names_in(text):
    names = {"__name__": "experiment"}
    exec(compile(text, "experiment.py", "exec"), names)
    return names


def twin(names, state):
    """Return the script's model with the weights of the app's model."""
    model = names["Transformer"]()
    model.load_state_dict(state.model.state_dict())  # every name is there, and no other
    return model
