"""The expected training time is shown beside Start before it is pressed."""

import pytest

from pages.settings import expected as expected_module
from pages.settings.expected import expected
from pages.settings.presets import PRESETS
from transformer.runs import speed
from transformer.runs.speed import OVERHEAD, work_of

DEFAULT = PRESETS["Reverse words"].config


def machine(monkeypatch, step_seconds, gpu=False):
    """Simulate a machine with this time per step of the default preset."""
    monkeypatch.setattr(speed, "slowness", lambda: step_seconds / work_of(DEFAULT).seconds)
    monkeypatch.setattr(expected_module, "has_gpu", lambda: gpu)


@pytest.mark.parametrize(
    ("changes", "step_seconds", "said"),
    [
        ({}, 0.025, "about 8 s on this machine"),  # 225 steps, times BESIDE
        ({"seed": 3}, 0.05, "about 15 s on this machine"),
        ({"goal": None}, 0.025, "about 10 s for 300 steps on this machine"),
        ({"goal": None, "steps": 600}, 0.025, "about 20 s for 600 steps on this machine"),
        ({"steps": 600}, 0.1, "about 80 s for 600 steps on this machine"),
        ({}, 0.0001, "about 1 s on this machine"),
    ],
)
def test_the_expected_time_is_that_of_the_steps_on_this_machine(monkeypatch, changes, step_seconds, said):
    machine(monkeypatch, step_seconds)
    config = DEFAULT.with_changes(**changes)
    assert expected(config) == (said, False)
    steps = config.train.steps if " for " in said else 225
    number = float(said.split()[1])
    assert number == pytest.approx(OVERHEAD * steps * step_seconds, abs=2.5) or number == 1


@pytest.mark.parametrize(
    ("pace", "said"),
    [
        (20, "about 15 s at this pace"),  # 225 steps
        (1, "about 4 min at this pace"),  # no warning: the pace can be raised during training
        (100, "about 8 s on this machine"),
    ],
)
def test_a_pace_slower_than_the_machine_determines_the_expected_time(monkeypatch, pace, said):
    machine(monkeypatch, 0.025)
    assert expected(DEFAULT, pace) == (said, False)


def test_no_time_is_shown_for_a_gpu(monkeypatch):
    machine(monkeypatch, 0.05, gpu=True)
    assert expected(DEFAULT) == expected(None) == ("", False)
    assert expected(DEFAULT.with_changes(device="cuda")) == ("", False)
    assert expected(DEFAULT.with_changes(device="cpu"))[0]
    machine(monkeypatch, 0.05)
    assert expected(DEFAULT)[0]


def test_the_time_is_shown_beside_start_and_is_a_warning_if_it_is_too_long_for_a_talk(
    visit, monkeypatch, slow
):
    machine(monkeypatch, 0.05)
    visitor = visit({"steps": 20_000})
    (warning,) = [one.value for one in visitor.at.warning]
    assert warning.startswith("Too long for a talk: about 22 min for 20,000 steps on this machine.")
    assert visitor.enabled("run_start")  # a warning, not a refusal
    visitor.set("steps", 300)
    assert list(visitor.at.warning) == []
    assert visitor.says("About 15 s on this machine.")
    assert visitor.set("pace", "5 steps/s").says("About 45 s at this pace.")
    training = visit(slow).press("run_start").until("training")
    assert not training.says("on this machine")  # the status counts down instead


def test_the_number_of_threads_is_shown_and_can_be_chosen(visit, monkeypatch):
    machine(monkeypatch, 0.05)
    visitor = visit(steps=1)
    box = visitor.at.number_input(key="threads")
    assert box.value is None
    assert box.proto.placeholder == "1"
    visitor.set("threads", 2)
    visitor.press("run_start").wait_until(lambda: visitor.run.view.threads == 2)
