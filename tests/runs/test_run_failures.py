"""Failures of a run: explained in words, raised to the caller, and without effect on other runs."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import CancelledError

import pytest

from tests.conftest import facts_of
from tests.runs.conftest import TWO_HEADS_OFF
from transformer.errors import LEFT_ALONE, InputError, explained
from transformer.model.transformer import Transformer
from transformer.recording.map_recorder import MapRecorder
from transformer.runs.limits import Limits
from transformer.runs.registry import Registry
from transformer.runs.run import Run
from transformer.runs.training_session import TrainingSession
from transformer.shared.interventions import NO_INTERVENTIONS
from transformer.storage.archive import Archive
from transformer.storage.file import Store, is_held
from transformer.storage.library import Library
from transformer.storage.saved import read_run
from transformer.tasks import Task
from transformer.training import device


def failed(run, until):
    until(lambda: run.view.state == "failed")
    run.join()
    return run.view.reason


def test_a_loss_that_is_not_finite_ends_one_run_while_another_goes_on(tiny, make_run, until, losses):
    other = make_run(tiny(seed=5, steps=40))
    bad = make_run(tiny(learning_rate=1e30))
    for run in (other, bad):
        run.start()
    reason = failed(bad, until)
    assert reason.startswith("At step ")
    assert reason.endswith("Start again with a lower learning rate.")
    assert 0 < bad.view.step < 8
    assert len(bad.view.metrics) == bad.view.step
    until(lambda: other.view.state == "finished")
    assert other.view.metrics.column("loss").tolist() == losses(tiny(seed=5, steps=40))


def test_a_failed_run_is_opened_from_its_file_without_a_model(tiny, make_run, until, monkeypatch, tmp_path):
    bad = make_run(tiny(learning_rate=1e30), archive=Archive(tmp_path / "run"))
    bad.start()
    reason = failed(bad, until)

    def built(*arguments, **named):
        raise RuntimeError("a model was built")

    monkeypatch.setattr(TrainingSession, "__init__", built)
    saved = read_run(tmp_path / "run.headlight")
    again = make_run(saved.view.config, archive=Archive(tmp_path / "run", resumed=True), saved=saved)
    assert again.ready.wait(30)
    assert (again.view.state, again.view.reason) == ("failed", reason)


@pytest.mark.parametrize("step", [None, 2], ids=["while it is built", "in a step"])
def test_a_failed_run_holds_no_model_and_shows_what_it_had_recorded(tiny, make_run, until, monkeypatch, step):
    models = []
    made, batch = Transformer.__init__, Task.batch

    def noted(self, *arguments, **named):
        made(self, *arguments, **named)
        models.append(weakref.ref(self))

    def broken(task, seed, k):
        if (seed, k) == (13, step):
            raise RuntimeError("the letters have run out")
        return batch(task, seed, k)

    monkeypatch.setattr(Transformer, "__init__", noted)
    monkeypatch.setattr(Task, "batch", broken)
    if step is None:
        monkeypatch.setattr(MapRecorder, "measure", lambda recorder, step: 1 / 0)
    run = make_run(tiny(seed=13))
    run.start()
    failed(run, until)
    gc.collect()
    assert len(models) == 2  # one trains; the other computes its frames
    assert {model() for model in models} == {None}
    assert [frame.step for frame in run.view.frames] == ([] if step is None else [0, 1, 2])
    assert [snapshot.step for snapshot in run.view.snapshots] == ([] if step is None else [0, 1, 2])


TORCH = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."
TOO_LITTLE = "There is not enough memory for this model; choose a smaller width or batch."


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), TOO_LITTLE),
        (RuntimeError(TORCH), f"{TOO_LITTLE} ({TORCH})"),
        (InputError("Choose another."), "Choose another."),
        (KeyError("zebra"), "KeyError: 'zebra'"),
        (RuntimeError("[gloo] Connection closed by peer"), LEFT_ALONE),
    ],
    ids=["Python's memory", "PyTorch's memory", "a refusal", "any other", "of several processes"],
)
def test_a_failure_is_explained(error, reason):
    assert explained(error) == reason


def test_a_missing_device_is_refused_before_a_thread_is_started(tiny, monkeypatch):
    monkeypatch.setattr(device, "available_devices", lambda: ("cpu",))
    before = threading.active_count()
    with pytest.raises(InputError, match="no cuda device; it has cpu"):
        Run(tiny(device="cuda"))
    assert threading.active_count() == before


def test_an_invalid_command_is_refused_to_its_caller_and_the_run_goes_on(tiny, make_run, until):
    run = make_run(tiny())
    for command, message in [
        (lambda run: run.advance(0), "0 steps are not possible; choose from 1 to 100,000."),
        (lambda run: run.advance(True), "True steps are not possible; choose from 1 to 100,000."),
        (lambda run: run.set_pace(3.0), "A pace of 3.0 does not exist; choose from full, 20, 5, 1."),
        (lambda run: run.set_learning_rate(0.0), "learning_rate=0 cannot be used; choose more than 0."),
        (lambda run: run.continue_for(200_000, 0.1), "200000 steps are not possible; choose from 1 to "),
        (lambda run: run.continue_for(5, -1.0), "learning_rate=-1 cannot be used; choose more than 0."),
        (lambda run: run.add_word("é"), "Only the letters a to z are in the alphabet, not “é”. Try e."),
        (lambda run: run.add_word(11 * "a"), "The word has 11 letters; this run learns up to 5"),
    ]:
        with pytest.raises(InputError) as refused:
            command(run)
        assert message in str(refused.value)
    run.start()
    until(lambda: run.view.state == "finished")


def test_an_invalid_word_is_refused_before_a_run_is_made(tiny, make_run):
    with pytest.raises(InputError, match="^The word is empty; type one, such as banana.$"):
        make_run(tiny(), words=("cat", " "))


def test_more_words_than_a_run_tracks_are_refused_before_it_is_made(tiny, make_run):
    words = ["a" * n for n in range(1, 5)] + ["b" * n for n in range(1, 5)] + ["c" * n for n in range(1, 6)]
    with pytest.raises(InputError, match="13 words are too many; a run tracks at most 12"):
        make_run(tiny(), words=tuple(words))
    assert len(make_run(tiny(), words=tuple(words[:12])).words) == 12


def test_a_run_whose_model_cannot_be_built_leaves_no_file(tiny, monkeypatch, tmp_path):
    registry = Registry(Limits(), Library(tmp_path))
    run = registry.draft(tiny(), visitor="v", token="t")
    assert run.ready.wait(60)

    def broken(*arguments, **more):
        raise RuntimeError("no room on the device")

    monkeypatch.setattr("transformer.runs.training_session.TrainingSession.__init__", broken)
    registry.start(run)
    assert run.join(30)
    assert run.view.state == "failed"
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_cannot_be_continued_or_changed(tiny, make_run, until):
    run = make_run(tiny(learning_rate=1e30))
    run.start()
    failed(run, until)
    with pytest.raises(InputError, match="^A failed run cannot go on; start a new one.$"):
        run.continue_for(3, 0.1)
    for command in (lambda: run.add_word("dog"), lambda: run.drop_word("cat")):
        with pytest.raises(InputError, match="^A failed run cannot be asked; start a new one.$"):
            command()
    with pytest.raises(InputError, match="^A failed run cannot be named; start a new one.$"):
        run.rename("mine")
    with pytest.raises(InputError, match=r"\(failed\); start a new one"):
        run.intervene(TWO_HEADS_OFF)
    assert run.view.interventions == NO_INTERVENTIONS


def test_a_command_that_the_run_refuses_raises_and_the_run_goes_on(tiny, make_run, monkeypatch, until):
    def refused(training, rate):
        raise InputError(f"A rate of {rate} is for later.")

    monkeypatch.setattr(TrainingSession, "set_learning_rate", refused)
    run = make_run(tiny())
    with pytest.raises(InputError, match="^A rate of 0.5 is for later.$"):
        run.set_learning_rate(0.5).result(30)
    run.start()
    until(lambda: run.view.state == "finished")


def test_a_failing_command_raises_its_error_and_cancels_the_commands_behind_it(
    tiny, make_run, monkeypatch, until
):
    asked = threading.Event()

    def broken(training, rate):
        asked.wait(30)
        raise RuntimeError("the rate has run out")

    monkeypatch.setattr(TrainingSession, "set_learning_rate", broken)
    run = make_run(tiny())
    first, behind = run.set_learning_rate(0.5), run.pause()
    asked.set()
    with pytest.raises(RuntimeError, match="the rate has run out"):
        first.result(30)
    with pytest.raises(CancelledError):
        behind.result(30)
    assert failed(run, until) == "RuntimeError: the rate has run out"
    assert run.stop().cancelled()


def test_a_command_given_while_the_file_of_an_ended_run_closes_is_cancelled(
    tiny, make_run, monkeypatch, tmp_path
):
    closing, close, may_close = threading.Event(), Archive.close, threading.Event()
    monkeypatch.setattr(Archive, "close", lambda archive: (closing.set(), may_close.wait(30), close(archive)))
    run = make_run(tiny(), archive=Archive(tmp_path / "run"))
    run.close()
    assert closing.wait(30)
    late = run.pause()
    may_close.set()
    assert late.cancelled()


def test_a_file_is_released_even_if_the_end_of_its_run_cannot_be_saved(
    tiny, make_run, monkeypatch, tmp_path, until, caplog
):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"))
    until(lambda: facts_of(tmp_path / "run.headlight"))

    def broken(archive, view, version, pack):
        raise MemoryError("no room for a copy")

    monkeypatch.setattr(Archive, "hand", broken)
    run.rename("mine").result(30)
    run.close()
    assert run.join()
    assert "could not be saved" in run.view.unsaved
    assert not is_held(tmp_path / "run.headlight")
    Store(tmp_path / "run.headlight", new=False).close()  # another writer can claim it
    assert "The end of run" in caplog.text


def test_wait_returns_true_once_the_run_is_paused_and_false_at_the_timeout(tiny, make_run, until):
    run = make_run(tiny(steps=100_000, evaluate_every=100_000))
    run.start()
    assert not run.wait(0.1)
    run.pause()
    assert run.wait(10)
    assert run.view.state == "paused"
