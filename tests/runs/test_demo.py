"""The shipped recording: a real training with the default settings, complete, small, read without torch."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from transformer.asking.model import snapshot_model
from transformer.config.recipes import RECIPES
from transformer.runs import demo as module
from transformer.runs.demo import SHIPPED, demo_run, record
from transformer.tasks import resolved
from transformer.training.loop import train
from transformer.training.state import TrainState

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shipped(monkeypatch):
    """The recording that a server shows by default."""
    monkeypatch.delenv("HEADLIGHT_RECORDING")
    demo_run.cache_clear()
    yield demo_run()
    demo_run.cache_clear()


def test_the_shipped_recording_is_of_the_default_settings(shipped):
    assert shipped.config == resolved(RECIPES["default"].small)
    assert shipped.view.state == "recorded"
    assert shipped.view.step == 225
    assert SHIPPED.stat().st_size <= 8_500_000


def test_the_recorded_losses_are_those_of_a_training_with_the_default_settings(shipped):
    """Up to rounding: another processor adds in a different order."""
    config = RECIPES["default"].small
    losses = [loss for report in islice(train(TrainState.begin(config)), 8) for loss in report.losses]
    recorded_losses = shipped.view.metrics.column("loss")
    assert recorded_losses[: len(losses)].tolist() == pytest.approx(losses, rel=1e-3)
    assert len(recorded_losses) == shipped.view.step


def test_the_recording_shows_a_head_turning_anti_diagonal_and_accuracy_rising_to_99_percent(shipped):
    first, last = shipped.view.frames[0], shipped.view.frames[-1]
    assert (first.evaluation.right, first.evaluation.total) == (0, 200)
    assert last.evaluation.right >= 0.99 * last.evaluation.total == 990
    before, after = (frame.head_scores["decoder.1.cross"]["mirror"].max() for frame in (first, last))
    assert before < 0.2 < 0.7 < after
    for frame in shipped.view.frames:
        for row in range(len(frame.words)):
            np.testing.assert_allclose(frame.map(row, "decoder.1.cross").sum(-1), 1.0, atol=2e-4)
    assert shipped.view.frames.steps == tuple(range(226))
    kept = {snapshot.step for snapshot in shipped.view.snapshots}
    assert {0, 225, *(moment.step for moment in shipped.view.moments)} <= kept


def test_the_last_weights_reproduce_the_right_answer_and_the_recorded_map(shipped):
    view = shipped.view
    answer = snapshot_model(view.config, view.snapshot_at(225)).answer("playground")
    assert (answer.output, answer.stopped) == ("dnuorgyalp", True)
    frame = view.frame_at(225)
    kept = frame.map(frame.row_of("playground"), "decoder.1.cross")
    np.testing.assert_allclose(kept, answer.forced.maps["decoder.1.cross"], atol=2e-4)


def test_the_recording_is_read_without_importing_torch_or_pandas():
    code = (
        "import sys\n"
        "from transformer.runs.demo import demo_run\n"
        "assert demo_run().view.frames\n"
        "print([name for name in ('torch', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"


def test_another_recording_or_none_can_be_configured(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ASKED", 2)
    record(tiny(), tmp_path / "ours.headlight")
    for named, steps in (
        (str(tmp_path / "ours.headlight"), [*range(9)]),
        ("", None),
        (str(tmp_path / "none"), None),
    ):
        monkeypatch.setenv("HEADLIGHT_RECORDING", named)
        demo_run.cache_clear()
        found = demo_run()
        assert (found and [frame.step for frame in found.view.frames]) == steps
    demo_run.cache_clear()
