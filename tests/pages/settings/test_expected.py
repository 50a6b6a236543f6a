"""How long it will take stands beside Start before anybody presses it."""

import pytest

from pages.settings.presets import PRESETS
from transformer.runs import calibration
from transformer.runs.calibration import BESIDE, Speed, work_of

DEFAULT = PRESETS["Reverse words"].config


def machine(monkeypatch, step_seconds, devices=("auto", "cpu")):
    """One on which a step of the default takes so long, and products cost nothing."""
    speed = Speed(threads=1, slowness=step_seconds / work_of(DEFAULT).small, product=0.0, devices=devices)
    monkeypatch.setattr(calibration, "_speed", speed)


@pytest.mark.parametrize(
    ("link", "step_seconds", "said"),
    [
        ({}, 0.025, "about 7 s to 99 % on this machine"),  # 225 steps, and BESIDE
        ({"seed": 3}, 0.05, "about 15 s to 99 % on this machine"),
        ({"goal": "none"}, 0.025, "about 10 s for 300 steps on this machine"),
        ({"steps": 600}, 0.1, "about 80 s for 600 steps on this machine"),
        ({}, 0.0001, "about 1 s to 99 % on this machine"),
    ],
)
def test_the_time_is_that_of_the_steps_on_this_machine(visit, monkeypatch, link, step_seconds, said):
    machine(monkeypatch, step_seconds)
    visitor = visit(link)
    assert said in visitor.texts
    steps = 225 if "99 %" in said else link.get("steps", 300)
    number = float(said.split()[1])
    assert number == pytest.approx(BESIDE * steps * step_seconds, abs=max(2.5, 0.5)) or number == 1
    assert not any("Too long for a talk" in text for text in visitor.texts)


def test_twice_the_steps_take_twice_as_long(visit, monkeypatch):
    machine(monkeypatch, 0.05)
    visitor = visit({"goal": "none", "steps": 400})
    assert visitor.says("about 25 s for 400 steps")
    visitor.set("steps", 800)
    assert visitor.says("about 50 s for 800 steps")


def test_what_no_talk_waits_for_is_warned_of_with_what_helps(visit, monkeypatch):
    machine(monkeypatch, 0.05)
    visitor = visit({"steps": 20_000})
    warning = (
        "Too long for a talk: about 22 min for 20,000 steps on this machine. "
        "Choose fewer steps or a narrower model."
    )
    assert [one.value for one in visitor.at.warning] == [warning]
    assert visitor.enabled("run_start")  # a warning, and no refusal
    visitor.set("steps", 300)
    assert list(visitor.at.warning) == []


def test_while_it_trains_the_status_counts_down_instead(visit, monkeypatch, slow):
    machine(monkeypatch, 0.05)
    visitor = visit(slow)
    assert visitor.says("on this machine")
    visitor.press("run_start").until("training")
    assert not visitor.says("on this machine")


@pytest.mark.parametrize("measured", ["nothing", "another device"])
def test_nothing_is_said_of_what_has_not_been_measured(visit, monkeypatch, measured):
    visitor = visit()  # by now this process has been measured
    if measured == "nothing":
        monkeypatch.setattr(calibration, "_speed", None)
    else:
        machine(monkeypatch, 0.05, devices=("cpu",))
        visitor.set("device", "auto")
    assert not visitor.look().says("on this machine")


def test_the_number_of_threads_is_shown_and_can_be_chosen(visit, monkeypatch):
    machine(monkeypatch, 0.05)
    visitor = visit()
    box = visitor.at.number_input(key="threads")
    assert box.value is None
    assert box.proto.placeholder == "1, measured"
    visitor.set("threads", 2)
    visitor.press("run_start").until("finished")
    assert visitor.run.view.threads == 2
    visitor.set("threads", 300)
    assert "Threads: 300 is outside 1 to 256; choose a value in between." in visitor.errors
