"""A run in its thread: commands take effect between two steps, and recording never changes the losses."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.conftest import HELD_OUT, LIVE
from tests.runs.conftest import losses_of
from transformer.errors import InputError
from transformer.runs import training_session
from transformer.storage.archive import Archive
from transformer.storage.saved import read_run
from transformer.training import loop as training_loop
from transformer.training.state import TrainState


def steps(run):
    return [frame.step for frame in run.view.frames]


def test_a_run_is_idle_with_one_frame_of_the_untrained_model_until_it_is_started(tiny, make_run, until):
    run = make_run(tiny())
    assert run.ready.wait(20.0)
    view = run.view
    assert (view.state, view.step, view.planned, view.reason) == ("idle", 0, 8, "")
    assert (view.frame.step, view.frame.loss) == (0, None)
    assert (view.frame.evaluation.right, view.frame.evaluation.total) == (0, LIVE)
    assert [tracked.text for tracked in view.frame.words] == [
        "kayak",
        "cat",
    ]  # the others are too long here
    assert view.device == "cpu"
    assert view.parameters == sum(p.numel() for p in TrainState.begin(tiny()).model.parameters())
    assert view.config.model.src_vocab_size == 30
    assert not view.active


def test_a_run_finishes_with_the_losses_of_the_bare_training_loop(tiny, make_run, losses, at):
    run = make_run(tiny())
    run.start()
    at(run, "finished")
    assert losses_of(run) == losses(tiny())
    assert run.view.metrics.table()["step"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert np.isfinite(run.view.metrics.column("exact")).tolist() == [k in (4, 8) for k in range(1, 9)]
    assert run.view.reason.startswith(f"All 8 steps are done: 0 of {HELD_OUT} test words ")
    assert steps(run)[0] == 0
    assert steps(run)[-1] == 8
    assert run.view.frame.loss == losses_of(run)[-1]
    assert run.view.everyday == (0, len(run.task.corpus.everyday()))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_losses_are_bit_equal_despite_pauses_new_words_and_pace_changes(tiny, make_run, losses, at, dropout):
    run = make_run(tiny(dropout=dropout))
    run.advance(2)
    at(run, "paused", 2)
    run.add_word("dog")
    run.set_pace(20.0)
    run.resume()
    at(run, "training", 4)
    run.pause()
    at(run, "paused")
    run.set_pace(None)
    run.advance(1)
    run.add_word("sheep")
    run.pause()
    run.resume()
    at(run, "finished")
    assert losses_of(run) == losses(tiny(dropout=dropout))


@pytest.mark.parametrize(
    ("clock", "hours"), [("perf_counter", 1), ("monotonic", 1), ("time", 1), ("time", -1)]
)
def test_a_step_during_which_a_clock_jumps_changes_no_loss_and_counts_no_hour(
    tiny, make_run, losses, until, monkeypatch, tmp_path, clock, hours
):
    real, jumped = getattr(time, clock), [0]

    def train(state):
        for report in training_loop.train(state):
            jumped[0] = 3600 * hours * (report.step >= 4)
            yield report

    monkeypatch.setattr(training_session, "train", train)
    monkeypatch.setattr(time, clock, lambda: real() + jumped[0])
    run = make_run(tiny(), archive=Archive(tmp_path / "run"))
    run.start()
    assert run.wait()
    assert run.view.state == "finished"
    until(lambda: run.kept)
    assert losses_of(run) == losses(tiny())
    assert 0 < run.view.seconds < 3600
    saved = read_run(tmp_path / "run.headlight").view
    assert saved.metrics.column("loss").tolist() == losses(tiny())
    assert saved.seconds == run.view.seconds


def test_two_runs_at_once_have_the_losses_that_each_has_alone(tiny, make_run, losses, at):
    configs = [tiny(dropout=0.2, seed=seed, steps=12) for seed in (1, 2)]
    runs = [make_run(config) for config in configs]
    for run in runs:
        run.start()
    for run, config in zip(runs, configs, strict=True):
        at(run, "finished")
        assert losses_of(run) == losses(config)


def test_a_run_that_does_not_record_every_step_is_recorded_at_evaluations_and_learns_the_same(
    tiny, make_run, losses, at
):
    run = make_run(tiny(), every_step=False)
    run.start()
    at(run, "finished")
    assert steps(run) == [0, 4, 8]
    assert losses_of(run) == losses(tiny())


def test_at_one_step_per_second_every_step_is_measured_and_waiting_is_not_counted(tiny, make_run, at, until):
    run = make_run(tiny(steps=3))
    until(lambda: run.view.frame)
    run.set_pace(1.0)
    began = time.perf_counter()
    run.start()
    at(run, "finished")
    elapsed = time.perf_counter() - began
    assert steps(run) == list(range(4))
    assert [frame.measurement.step for frame in run.view.frames] == list(range(4))
    assert [frame.words[0].output_step for frame in run.view.frames] == list(range(4))
    assert elapsed > 1.8
    assert 0.0 < run.view.steps_per_second <= 1.0
    assert run.view.seconds < elapsed - 0.7  # a third of the waiting: a margin for busy machines


def test_pause_halts_resume_continues_and_stop_ends_a_run(tiny, make_run, at, until):
    run = make_run(tiny(steps=100_000, evaluate_every=100_000), every_step=False)
    run.start()
    until(lambda: run.view.step > 3)
    run.pause().result(20.0)  # the result arrives once the command has taken effect
    assert run.view.state == "paused"
    step = run.view.step
    time.sleep(0.05)
    assert run.view.step == step
    run.resume()
    until(lambda: run.view.step > step)
    run.stop()
    at(run, "stopped")
    assert run.view.reason == f"Stopped at step {run.view.step:,}."
    assert steps(run) == [0, run.view.step]
    assert len(run.view.metrics) == run.view.step


@pytest.mark.parametrize("state", ["idle", "training", "paused", "finished", "stopped"])
def test_a_word_added_in_any_state_is_in_a_frame_at_once(tiny, make_run, at, until, state):
    run = make_run(
        tiny(steps=8 if state == "finished" else 100_000, evaluate_every=100_000), every_step=False
    )
    until(lambda: run.view.frame)
    if state != "idle":
        run.start()
        until(lambda: run.view.step > 4)
    if state == "paused":
        run.pause()
    if state == "stopped":
        run.stop()
    at(run, state)
    assert run.add_word("  DOG ") == "dog"
    until(lambda: "dog" in [tracked.text for tracked in run.view.frame.words])
    frame = run.view.frame
    tracked = frame.words[frame.row_of("dog")]
    assert (tracked.text, tracked.src_tokens) == ("dog", ("[SOS]", *"dog", "[EOS]"))
    assert run.view.state == state
    assert frame.step == run.view.step or (state == "training" and 4 < frame.step < run.view.step)
    assert steps(run) == sorted(set(steps(run)))
    assert frame.loss == (None if state == "idle" else losses_of(run)[frame.step - 1])


def test_the_oldest_added_word_is_dropped_when_there_are_too_many(tiny, make_run, until):
    run = make_run(tiny())
    for letter in "abcdefghijkl":
        run.add_word(3 * letter)
    until(lambda: run.view.frame and "lll" in [tracked.text for tracked in run.view.frame.words])
    kept = [tracked.text for tracked in run.view.frame.words]
    assert kept == ["kayak", "cat", *(3 * letter for letter in "cdefghijkl")]
    run.add_word("eee")  # already tracked
    run.add_word("mmm")
    until(lambda: "mmm" in [tracked.text for tracked in run.view.frame.words])
    assert [tracked.text for tracked in run.view.frame.words] == [
        "kayak",
        "cat",
        *(3 * c for c in "defghijklm"),
    ]


def test_a_removed_word_is_in_no_frame_and_the_last_word_cannot_be_removed(tiny, make_run, at, until):
    run = make_run(tiny(steps=30))
    run.add_word("dog")
    run.advance(3)
    at(run, "paused", 3)
    until(lambda: run.view.frames.steps_of("dog") == (0, 1, 2, 3))
    before = run.view.frame
    for word in ("cat", "no such word", "kayak"):
        run.drop_word(word).result(30)
    assert [question.text for question in run.questions] == ["dog"]
    frame = run.view.frame
    assert [tracked.text for tracked in frame.words] == ["dog"]
    for site, weights in frame.maps[0].items():
        np.testing.assert_array_equal(weights, before.maps[before.row_of("dog")][site])
    with pytest.raises(InputError, match="“dog” is the only word; add another one before you remove it."):
        run.drop_word("dog")
    run.advance(2)
    at(run, "paused", 5)
    assert run.view.frames.steps_of("kayak") == ()
    run.add_word("kayak")  # a removed word can be added again
    until(lambda: run.view.frames.steps_of("kayak") == (0, 1, 2, 3, 4, 5))


def test_a_run_can_be_renamed(tiny, make_run):
    run = make_run(tiny())
    assert run.view.name == ""
    run.rename("  eight   heads ").result(30)
    assert run.view.name == "eight heads"
    with pytest.raises(InputError, match="The name has 41 letters; use at most 40."):
        run.rename(41 * "a")
    run.rename("").result(30)
    assert run.view.name == ""


def test_a_new_learning_rate_applies_from_the_next_step_on(tiny, make_run, at, losses):
    run = make_run(tiny(schedule="constant"))
    run.advance(5)
    at(run, "paused", 5)
    run.set_learning_rate(0.5)
    run.resume()
    at(run, "finished")
    rates = run.view.metrics.column("learning_rate").tolist()
    assert rates == pytest.approx([0.005 / 3, 0.01 / 3, 0.005, 0.005, 0.005, 0.5, 0.5, 0.5])
    assert run.view.learning_rate == 0.5
    plain = losses(tiny(schedule="constant"))
    assert losses_of(run)[:6] == plain[:6]
    assert losses_of(run)[6:] != plain[6:]


def test_a_stopped_run_can_be_continued_with_a_new_plan(tiny, make_run, at):
    run = make_run(tiny(steps=100))
    run.advance(4)
    at(run, "paused", 4)
    run.stop()
    at(run, "stopped")
    run.continue_for(5, 0.02)
    at(run, "finished", 9)
    assert run.view.planned == 9
    assert run.view.metrics.column("step").tolist() == list(range(1, 10))
    rates = run.view.metrics.column("learning_rate").tolist()
    assert rates[4:] == pytest.approx([0.02, 0.016, 0.012, 0.008, 0.004])
    assert run.view.reason.startswith("All 9 steps are done: ")


def test_a_run_can_be_continued_after_its_goal(tiny, make_run, at, every_right):
    every_right()
    run = make_run(tiny(steps=50, goal=0.9))
    run.start()
    at(run, "finished")
    assert run.view.goal_reached
    assert run.view.reason.startswith(f"Goal reached at step 4: {HELD_OUT} of {HELD_OUT} test words ")
    assert run.view.first_step_at == {"0.5": 4, "0.9": 4, "0.99": 4}
    run.continue_for(6, 0.01)
    at(run, "finished", 10)
    assert run.view.reason.startswith("All 10 steps are done: ")
