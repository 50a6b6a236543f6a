"""A run that was killed goes on from its folder: every number is the one that it would have been."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd
import pytest

from transformer.errors import InputError
from transformer.fitting import with_task
from transformer.interventions import Block, Interventions
from transformer.recording.metrics import COLUMNS
from transformer.runs.run import Run
from transformer.runs.run_recording import RunRecording
from transformer.storage import archive as module
from transformer.storage.archive import Archive
from transformer.storage.arrays import as_bytes, read_arrays, read_facts
from transformer.storage.claim import WRITER
from transformer.storage.saved import read_run
from transformer.tasks.pairs import store as store_of_pairs
from transformer.tasks.pairs.caps import Caps, capped
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.store import keep

ROOT = Path(__file__).parents[2]
MEASURED = [name for name in COLUMNS if name not in ("seconds", "tokens_per_second")]
"""All that is no matter of the clock."""


def facts_of(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != WRITER)
    return {path: path.read_bytes() for path in files}


def numbers(view):
    """The table of a run, bit by bit."""
    return {name: view.metrics.column(name).tobytes() for name in MEASURED}


def same_frame(ours, theirs):
    """Of the same step, of the same numbers; a batch of other steps may round a map in another way."""
    for name in ("step", "loss", "probes", "axes", "evaluation", "interventions", "clearest"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.measurement.step == theirs.measurement.step
    for row, site in product(range(len(ours.probes)), ours.axes):
        np.testing.assert_allclose(ours.map(row, site), theirs.map(row, site), atol=4e-5, equal_nan=True)


@pytest.fixture
def kept(make_run, tmp_path):
    """A run with a folder."""

    def make(config, **settings):
        return make_run(config, archive=Archive(tmp_path / "run"), **settings)

    return make


@pytest.fixture
def go_on(make_run):
    """A saved run that goes on in its folder, from a pause."""

    def make(folder, **settings):
        saved = read_run(folder)
        archive = Archive(folder, resumed=True)
        return make_run(saved.view.config, archive=archive, saved=saved, **settings)

    return make


@pytest.fixture
def killed(until, tmp_path):
    """What a process that is killed now would leave behind: another folder with the same files."""

    def leave(run):
        until(lambda: run.kept)
        return shutil.copytree(tmp_path / "run", tmp_path / "killed")

    return leave


def to(run, step):
    """Take steps up to this one, and stand still."""
    if step > run.view.step:
        assert run.advance(step - run.view.step).wait(30)
    assert run.wait(60)
    assert run.view.step == step, run.view.reason


def take(run, changes, last):
    """Take steps up to the last one, and make the changes that are due meanwhile."""
    for step in sorted({*changes, last}):
        if run.view.step < step <= last:
            to(run, step)
            if step in changes:
                assert changes[step](run).wait(30)


def log_of(run, folder):
    """What a person changed, as the folder of a run that is closed now says it."""
    run.close()
    run.join()
    return json.loads(read_facts(folder / "training.safetensors"))["progress"]["interventions"]


def finish(run):
    assert run.resume().wait(60)
    assert run.wait(120)
    assert run.view.state == "finished", run.view.reason
    return run.view


def intervene(taken):
    return lambda run: run.intervene(taken)


def switch(mask, on):
    return lambda run: run.switch_mask(mask, on)


def rate(value):
    return lambda run: run.set_learning_rate(value)


ABLATED = Interventions(
    ablated=(("decoder.1.cross", 2), ("encoder.0", 0)),
    blocked=(Block(site="decoder.0.self", head=1, token="[EOS]"),),
)
CASES = {
    "as configured": ({}, {}),
    "dropout": ({"dropout": 0.3}, {}),
    "encoder-only": ({"topology": "encoder-only", "dropout": 0.1}, {}),
    "decoder-only": ({"topology": "decoder-only", "dropout": 0.1}, {}),
    "a head ablated before": ({"dropout": 0.2}, {3: intervene(ABLATED)}),
    "a head ablated and given back": ({}, {2: intervene(ABLATED), 4: intervene(Interventions())}),
    "a head ablated after": ({"dropout": 0.2}, {7: intervene(ABLATED)}),
    "a head ablated at that step": ({"dropout": 0.2}, {5: intervene(ABLATED)}),
    "a mask switched before": ({"mask_fill": "-1e9"}, {3: switch("causal", False)}),
    "a mask switched after": (
        {"mask_fill": "-1e9"},
        {4: switch("padding", False), 6: switch("padding", True)},
    ),
    "another learning rate": ({}, {4: rate(0.01)}),
    "another learning rate after": ({}, {4: rate(0.01), 6: rate(0.001)}),
    "Adam without decay, learned positions, shared tables": (
        {
            "optimizer": "adam",
            "positions": "learned",
            "src_vocab_size": 30,
            "tgt_vocab_size": 30,
            "embedding_tables": "one",
            "schedule": "constant",
        },
        {},
    ),
    "smoothed labels, cosine": ({"label_smoothing": 0.1, "schedule": "cosine", "evaluate_every": 3}, {}),
    "half precision": ({"precision": "bfloat16", "dropout": 0.1}, {}),
    "few examples": ({"examples": 11, "seed": 5}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_goes_on_as_if_it_had_never_stopped(tiny, kept, go_on, killed, tmp_path, case):
    settings, changes = CASES[case]
    run = kept(tiny(steps=100, **settings))
    take(run, changes, 5)
    folder = killed(run)
    take(run, changes, 10)
    again = go_on(folder)
    assert again.ready.wait(30)
    assert (again.view.state, again.view.step) == ("paused", 5)
    assert again.view.reason == "Its process ended; the last step that was kept is 5."
    take(again, changes, 10)
    view, whole = again.view, run.view
    assert len(view.metrics) == 10
    assert numbers(view) == numbers(whole)
    assert view.id == whole.id
    assert (view.moments, view.interventions) == (whole.moments, whole.interventions)
    assert (view.learning_rate, view.planned, view.threads) == (whole.learning_rate, 100, whole.threads)
    assert view.frames.steps == tuple(range(11))
    for ours, theirs in zip(view.frames, whole.frames, strict=True):
        same_frame(ours, theirs)
    for ours, theirs in zip(view.snapshots, whole.snapshots, strict=True):
        assert (ours.step, ours.interventions) == (theirs.step, theirs.interventions)
        weights, others = (list(one.weights.items()) for one in (ours, theirs))
        assert [(name, array.tobytes()) for name, array in weights] == [
            (name, array.tobytes()) for name, array in others
        ]
    assert log_of(again, folder) == log_of(run, tmp_path / "run")


def test_a_continuation_that_was_killed_goes_on_with_its_own_plan(tiny, kept, go_on, killed):
    run = kept(tiny(dropout=0.1, goal=0.9))
    to(run, 8)
    assert run.view.state == "finished"
    run.set_pace(1.0)
    assert run.continue_for(6, 0.02).wait(30)
    assert run.pause().wait(30)
    run.set_pace(None)
    to(run, 11)
    folder = killed(run)
    whole = finish(run)
    view = finish(go_on(folder))
    assert numbers(view) == numbers(whole)
    assert view.planned == 14
    rates = view.metrics.column("learning_rate").tolist()
    assert rates[8:] == pytest.approx(
        [0.02, 0.02 * 5 / 6, 0.02 * 4 / 6, 0.02 * 3 / 6, 0.02 * 2 / 6, 0.02 / 6]
    )


def test_own_pairs_with_word_tokenizers_come_back_with_the_folder_alone(
    tiny, kept, go_on, killed, monkeypatch
):
    pairs = tuple((f"look at the {i} cats", f"regarde les {i} chats") for i in range(120))
    own = keep(OwnPairs(capped(Reading(pairs, "TSV, 2 columns", len(pairs)), Caps())))
    config = with_task(tiny(n_heads=4), "pairs").with_changes(
        pairs=own.digest, tokenizer="words", d_model=12, n_heads=3, steps=10, evaluate_every=5, dropout=0.1
    )
    run = kept(config)
    to(run, 5)
    folder = killed(run)
    whole = finish(run)
    monkeypatch.setattr(store_of_pairs, "_KEPT", WeakValueDictionary())  # as in another process
    with pytest.raises(InputError, match="no longer here"):
        store_of_pairs.kept(own.digest)
    view = finish(go_on(folder))
    assert numbers(view) == numbers(whole)
    same_frame(view.frames[-1], whole.frames[-1])


def test_words_of_a_person_s_own_the_name_and_the_pace_are_there_again(tiny, kept, go_on, killed):
    run = kept(tiny(steps=100_000))
    to(run, 2)
    run.add_word("sheep")
    run.set_pace(20.0)
    run.rename("my <b>flock</b>")
    run.drop_word("cat")
    to(run, 4)
    again = go_on(killed(run))
    assert again.ready.wait(30)
    assert again.view.name == "my <b>flock</b>"
    assert again.view.pace == 20.0
    assert [question.text for question in again.questions] == ["kayak", "sheep"]
    to(again, 5)
    again.add_word("ox")
    again.stop().wait(30)
    assert [probe.text for probe in again.view.frame.probes] == ["kayak", "sheep", "ox"]


EVENTFUL = {"n_encoder_layers": 1, "n_decoder_layers": 1, "n_heads": 2, "d_model": 32, "d_ff": 40} | {
    "max_letters": 4,
    "batch_size": 32,
    "steps": 130,
    "warmup_steps": 20,
    "evaluate_every": 10,
    "seed": 3,
}


@pytest.fixture(scope="module")
def eventful(tiny_run, tmp_path_factory):
    """The view of a run in which much happens, and where its folder is as it was at some steps."""
    folder = tmp_path_factory.mktemp("eventful")
    run = Run(tiny_run.with_changes(**EVENTFUL), archive=Archive(folder / "run"))
    for step in (35, 45, 105):
        to(run, step)
        end = time.monotonic() + 20
        while facts_of(folder / "run")["step"] < step or not run.kept:
            assert time.monotonic() < end
            time.sleep(0.01)
        shutil.copytree(folder / "run", folder / str(step))
    view = finish(run)
    run.close()
    run.join()
    assert [(moment.step, moment.kind) for moment in view.moments] == [
        (39, "turned"),
        (40, "drop"),
        (90, "accuracy"),
    ]
    return view, folder


@pytest.mark.parametrize("step", [35, 45, 105])
@pytest.mark.slow
def test_the_moments_that_are_found_are_those_of_a_run_that_never_stopped(eventful, go_on, tmp_path, step):
    """Before the first, while the loss still falls, and after the last: nothing is lost or found twice."""
    whole, folders = eventful
    view = finish(go_on(shutil.copytree(folders / str(step), tmp_path / "killed")))
    assert view.moments == whole.moments
    assert (view.first_step_at, view.turned_at) == (whole.first_step_at, whole.turned_at)
    assert view.frames.steps == whole.frames.steps == tuple(range(131))
    assert numbers(view) == numbers(whole)


@pytest.mark.parametrize("left", ["half a record", "more than the training"])
def test_what_a_killed_process_left_in_the_file_of_frames_is_no_part_of_the_run_that_goes_on(
    tiny, kept, go_on, killed, tmp_path, left
):
    run = kept(tiny(steps=40, evaluate_every=40))
    to(run, 8)
    folder = killed(run)
    to(run, 12)
    run.close()
    run.join()
    whole = (tmp_path / "run" / "frames.bin").read_bytes()
    (folder / "frames.bin").write_bytes(whole if left.startswith("more") else whole[: len(whole) // 2])
    again = go_on(folder)
    to(again, 10)
    again.close()
    again.join()
    frames = read_run(folder).view.frames
    assert frames.steps == again.view.frames.steps
    assert {0, 9, 10} <= {*frames.steps} <= {*range(11)}
    assert [frame.step for frame in frames] == [*frames.steps]


def test_the_past_of_a_word_that_was_owed_when_the_process_ended_is_developed_later(
    tiny, kept, go_on, killed, until, monkeypatch
):
    run = kept(tiny(steps=40, evaluate_every=40))
    to(run, 6)
    with monkeypatch.context() as patched:
        patched.setattr(RunRecording, "owes_a_past", False)
        run.add_word("sheep")
        until(lambda: run.view.frames.steps_of("sheep"))
        folder = killed(run)
    assert read_run(folder).view.frames.steps_of("sheep") == (6,)
    again = go_on(folder)
    until(lambda: again.view.frames.steps_of("sheep") == tuple(range(7)))


# At every moment.


class Witness:
    """Copies a folder before whatever happens to one of its files: all that a kill could leave behind."""

    def __init__(self, folder, into):
        self.folder, self._into = folder, into
        self.copies = []

    def look(self):
        copy = self._into / f"{len(self.copies):04d}"
        shutil.copytree(self.folder, copy)
        self.copies.append(copy)

    def before(self, act):
        def seen(path, *arguments, **named):
            if self.folder in path.parents:
                self.look()
            return act(path, *arguments, **named)

        return seen


@pytest.fixture
def witness(tmp_path, monkeypatch):
    one = Witness(tmp_path / "run", tmp_path / "copies")
    monkeypatch.setattr(Path, "replace", one.before(Path.replace))
    monkeypatch.setattr(Path, "unlink", one.before(Path.unlink))
    return one


@pytest.mark.slow
def test_whenever_it_is_killed_the_folder_is_a_whole_run(tiny, kept, go_on, witness, until, monkeypatch):
    monkeypatch.setattr("transformer.runs.run_recording.MEMORY_LIMIT", 60_000)  # some are thinned out
    monkeypatch.setattr("transformer.recording.frames.DENSE", 2)
    run = kept(tiny(steps=9, evaluate_every=1))
    for step in range(9):
        to(run, step)
        until(lambda: run.kept, 60)  # however slow the disk is: each step is in the folder once
    finish(run)
    run.close()
    run.join()
    whole, steps = run.view, []
    frames = {*whole.frames.steps}
    assert len(frames) < 10
    began = next(i for i, copy in enumerate(witness.copies) if (copy / "run.json").exists())
    assert len(witness.copies) > began + 20
    for copy in witness.copies[:began]:
        with pytest.raises(InputError, match="is no saved run: run.json cannot be read"):
            read_run(copy)
    for copy in witness.copies[began:]:
        saved = read_run(copy)
        step = saved.view.step
        assert (saved.can_go_on, saved.damage) == (True, "")
        assert len(saved.view.metrics) == step
        if step:
            assert saved.view.metrics.column("loss").tolist() == whole.metrics.column("loss").tolist()[:step]
        assert saved.view.frames[0].step == saved.view.snapshots[0].step == 0
        assert saved.view.frames[-1].step <= step  # the very step may have been thinned out since
        assert {f for f in frames if f <= step} <= {*saved.view.frames.steps}
        steps.append(step)
    assert steps == sorted(steps)
    assert set(steps) == set(range(10))
    middle = steps.index(5)
    for copy in witness.copies[began + middle : began + middle + 3]:
        assert numbers(finish(go_on(copy))) == numbers(whole)


def test_what_was_half_written_when_it_was_killed_is_cleared_away(tiny, kept, go_on, killed):
    run = kept(tiny(steps=10))
    to(run, 5)
    folder = killed(run)
    for name in ("frames.bin", "weights.bin", "training.safetensors", "run.json"):
        (folder / f"{name}.partial").write_bytes(b"half")
    again = go_on(folder)
    finish(again)
    again.close()
    again.join()
    assert [path for path in folder.rglob("*") if "partial" in path.name] == []


# Another process.


def program(*arguments):
    return [sys.executable, "-m", "transformer", "train", *map(str, arguments)]


@pytest.fixture
def process():
    """Processes that hear Ctrl-C, also where these tests run in the background, and end after the test.

    What a shell starts in the background ignores it, and hands that on to what it starts itself.
    """
    begun, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def begin(*arguments):
        begun.append(subprocess.Popen(program(*arguments), cwd=ROOT, **pipes))
        return begun[-1]

    yield begin
    signal.signal(signal.SIGINT, before)
    for one in begun:
        one.kill()
        one.communicate()


@pytest.fixture
def config_file(tiny, tmp_path):
    def written(**changes):
        path = tmp_path / "config.json"
        path.write_text(tiny(**changes).to_json(), encoding="utf-8")
        return path

    return written


def stands_at(folder):
    return facts_of(folder)["step"] if (folder / "run.json").exists() else -1


ENDLESS = {"steps": 1_000_000, "dropout": 0.1, "evaluate_every": 100_000, "schedule": "constant"}


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_a_process_that_is_killed_at_random_moments_learns_the_same_and_loses_a_second_at_most(
    process, config_file, until, losses, tiny, tmp_path, kills
):
    chance, folder = random.Random(os.urandom(4).hex()), tmp_path / "run"
    one = process("--config", config_file(**ENDLESS), "--out", folder)
    until(lambda: stands_at(folder) > 0, seconds=60)
    stood, behind = [], []
    for _ in range(kills):
        time.sleep(chance.uniform(0.0, 3.0))
        one.kill()
        behind.append(time.time() - (folder / "run.json").stat().st_mtime)
        assert one.wait(10) == -signal.SIGKILL
        assert facts_of(folder)["state"] == "training"
        stood.append(read_run(folder).view.step)
        one = process("--resume", folder, "--json")
        until(lambda: stands_at(folder) > stood[-1], seconds=60)
    assert stood == sorted(stood)
    assert max(behind) < 3.0  # a second, the time that keeping takes, and that of a busy machine
    one.send_signal(signal.SIGINT)
    out, error = one.communicate(timeout=60)
    assert one.returncode == 1, error
    steps = json.loads(out)["steps"]
    assert (facts_of(folder)["state"], facts_of(folder)["step"]) == ("stopped", steps)
    table = pd.read_parquet(folder / "metrics.parquet")
    assert table["step"].tolist() == list(range(1, steps + 1))
    assert table["loss"].tolist() == losses(tiny(**{**ENDLESS, "steps": steps}))
    recorded = read_run(folder).view
    for found in (recorded.frames.steps, tuple(one.step for one in recorded.snapshots)):
        assert found == tuple(sorted({*found}))
        assert (found[0], found[-1]) == (0, steps)


def test_who_goes_on_with_a_run_that_another_trains_is_refused_until_it_lets_go(tiny, kept, until, tmp_path):
    run = kept(tiny(steps=100_000, evaluate_every=100_000))
    run.start()
    folder = tmp_path / "run"
    until(lambda: stands_at(folder) > 0)
    done = subprocess.run(
        program("--resume", folder), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"headlight: Another process trains the run in {folder}; watch it, or stop it.\n"
    with pytest.raises(InputError, match="^Another process trains the run in "):
        Archive(folder, resumed=True)
    with pytest.raises(InputError, match="is not empty; choose a new one"):
        Archive(folder)
    assert run.view.state == "training"
    run.close()
    run.join()
    Archive(folder, resumed=True).close()


def test_a_folder_can_be_read_at_any_time_while_it_is_written(tiny, kept, until, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.02)
    monkeypatch.setattr(module, "KEEPING_SHARE", 1e9)
    run = kept(tiny(steps=100_000, evaluate_every=3))
    run.start()
    until(lambda: stands_at(tmp_path / "run") > 0)
    steps = []
    began = time.monotonic()
    while time.monotonic() < began + 2.0 or (len(set(steps)) <= 3 and time.monotonic() < began + 60.0):
        saved = read_run(tmp_path / "run")
        steps.append(saved.view.step)
        assert len(saved.view.metrics) == steps[-1]
        assert (saved.can_go_on, saved.damage) == (True, "")
        assert saved.view.frames[-1].step <= steps[-1]
    assert steps == sorted(steps)
    assert len(set(steps)) > 3


# A training that cannot go on.


def changed(change):
    """Damage to the training's arrays and facts, in a file that is whole."""

    def damage(folder):
        path = folder / "training.safetensors"
        arrays, facts = read_arrays(path), json.loads(read_facts(path))
        change(arrays, facts)
        path.write_bytes(as_bytes(arrays, json.dumps(facts)))

    return damage


UNFIT = "The saved training does not fit its own configuration ("
UNREADABLE = "killed/training.safetensors cannot be read ("
DAMAGE = {
    "a weight is missing": (changed(lambda a, f: a.pop("model/to_logits.bias")), UNFIT),
    "a momentum is missing": (changed(lambda a, f: a.pop("optimizer/to_logits.bias/exp_avg")), UNFIT),
    "a momentum of another shape": (
        changed(lambda a, f: a.update({"optimizer/to_logits.bias/exp_avg": np.zeros(3, dtype=np.float32)})),
        UNFIT,
    ),
    "too few random numbers": (changed(lambda a, f: a.update(dropout=np.zeros(9, dtype=np.uint8))), UNFIT),
    "another step": (
        changed(lambda a, f: f["progress"].update(step=3)),
        "killed/training.safetensors is of two different steps or plans.",
    ),
    "no memory": (changed(lambda a, f: f.pop("memory")), UNREADABLE),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_training_that_is_damaged_inside_is_told_shows_its_past_and_stays_as_it_is(
    tiny, kept, go_on, killed, damage
):
    change, told = DAMAGE[damage]
    run = kept(tiny(steps=10))
    to(run, 5)
    folder = killed(run)
    change(folder)
    before = contents(folder)
    again = go_on(folder)
    again.resume()
    assert again.ready.wait(30)
    again.close()
    again.join()
    assert again.view.state == "failed"
    assert again.view.reason.startswith(told)
    assert again.view.frames.steps == tuple(range(6))
    assert again.view.metrics.column("loss").tolist() == run.view.metrics.column("loss").tolist()
    assert contents(folder) == before


@pytest.mark.slow
def test_a_run_without_its_frames_and_weights_goes_on_and_can_be_stopped(tiny, kept, go_on, killed, losses):
    """Who needs the room may take them away."""
    run = kept(tiny(steps=10, evaluate_every=100))
    to(run, 5)
    folder = killed(run)
    for name in ("frames.bin", "weights.bin"):
        (folder / name).unlink()
    again = go_on(folder)
    assert again.stop().wait(30)
    assert (again.view.state, again.view.reason) == ("stopped", "Stopped at step 5.")
    assert [frame.step for frame in again.view.frames] == [5]
    assert [snapshot.step for snapshot in again.view.snapshots] == [5]
    again.close()
    again.join()
    (folder / "run.json").write_text(json.dumps({**facts_of(folder), "state": "paused"}))
    view = finish(go_on(folder))
    assert view.metrics.column("loss").tolist() == losses(tiny(steps=10, evaluate_every=100))
