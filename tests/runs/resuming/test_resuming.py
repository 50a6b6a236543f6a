"""A killed run is resumed from its file: every number equals that of an uninterrupted run."""

from __future__ import annotations

import threading
import time
from itertools import product
from weakref import WeakValueDictionary

import numpy as np
import pytest

from tests.conftest import facts_of
from tests.runs.resuming.conftest import advance_to, copied, finish, numbers
from transformer.config.tasks import with_task
from transformer.errors import InputError
from transformer.runs.run import Run
from transformer.shared.interventions import Block, Interventions
from transformer.storage.archive import Archive
from transformer.storage.saved import read_training
from transformer.tasks import Task
from transformer.tasks.pairs import store as store_of_pairs
from transformer.tasks.pairs.caps import Caps, select_pairs
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.store import intern_pairs


def same_frame(ours, theirs):
    """Assert that two frames are equal; maps may differ by rounding, since their batches differ."""
    for name in ("step", "loss", "words", "axes", "evaluation", "interventions", "clearest"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.measurement.step == theirs.measurement.step
    for row, site in product(range(len(ours.words)), ours.axes):
        np.testing.assert_allclose(ours.map(row, site), theirs.map(row, site), atol=4e-5, equal_nan=True)


def take(run, changes, last):
    """Advance a run to the last step, and make each change at its step."""
    for step in sorted({*changes, last}):
        if run.view.step < step <= last:
            advance_to(run, step)
            if step in changes:
                changes[step](run).result(30)


def log_of(run, path):
    """Close a run and return the log of interventions in its file."""
    run.close()
    run.join()
    return read_training(path, dict)[1]["progress"]["interventions"]


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
    "another learning rate, before and after": ({}, {4: rate(0.01), 6: rate(0.001)}),
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
def test_a_resumed_run_equals_an_uninterrupted_one(tiny, kept, go_on, killed, tmp_path, case):
    settings, changes = CASES[case]
    run = kept(tiny(steps=100, **settings))
    take(run, changes, 5)
    folder = killed(run)
    take(run, changes, 10)
    again = go_on(folder)
    assert again.ready.wait(30)
    assert (again.view.state, again.view.step) == ("paused", 5)
    assert again.view.reason == ""
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
    assert log_of(again, folder) == log_of(run, tmp_path / "run.headlight")


def test_a_run_is_shown_and_others_are_built_before_its_earlier_batches_are_drawn_again(
    tiny, kept, go_on, killed, make_run, monkeypatch
):
    run = kept(tiny(steps=100, seed=7))
    advance_to(run, 5)
    folder, pairs, may_draw = killed(run), Task.pairs, threading.Event()

    def slow(task, seed, k):
        assert seed != 7 or may_draw.wait(30)
        return pairs(task, seed, k)

    monkeypatch.setattr(Task, "pairs", slow)
    again = go_on(folder)
    assert again.ready.wait(30)
    other = make_run(tiny())
    assert other.ready.wait(30)
    assert not may_draw.is_set()
    assert other.view.frames
    may_draw.set()
    advance_to(again, 6)
    assert again.view.frames[-1].words[0].looked_up_to == 6


def test_a_killed_continuation_is_resumed_with_its_own_plan(tiny, kept, go_on, killed):
    run = kept(tiny(dropout=0.1, goal=0.9))
    advance_to(run, 8)
    assert run.view.state == "finished"
    run.set_pace(1.0)
    run.continue_for(6, 0.02).result(30)
    run.pause().result(30)
    run.set_pace(None)
    advance_to(run, 11)
    folder = killed(run)
    whole = finish(run)
    view = finish(go_on(folder))
    assert numbers(view) == numbers(whole)
    assert view.planned == 14
    rates = view.metrics.column("learning_rate").tolist()
    assert rates[8:] == pytest.approx(
        [0.02, 0.02 * 5 / 6, 0.02 * 4 / 6, 0.02 * 3 / 6, 0.02 * 2 / 6, 0.02 / 6]
    )


def test_own_pairs_with_word_tokenizers_are_restored_from_the_file_alone(
    tiny, kept, go_on, killed, monkeypatch
):
    pairs = tuple((f"look at the {i} cats", f"regarde les {i} chats") for i in range(120))
    own = intern_pairs(OwnPairs(select_pairs(Reading(pairs, "TSV, 2 columns"), Caps())))
    config = with_task(tiny(n_heads=4), "pairs").with_changes(
        pairs=own.digest, tokenizer="words", d_model=12, n_heads=3, steps=10, evaluate_every=5, dropout=0.1
    )
    run = kept(config)
    advance_to(run, 5)
    folder = killed(run)
    whole = finish(run)
    monkeypatch.setattr(store_of_pairs, "_PAIRS", WeakValueDictionary())  # as in another process
    with pytest.raises(InputError, match="no longer on this server"):
        store_of_pairs.pairs_of(own.digest)
    view = finish(go_on(folder))
    assert numbers(view) == numbers(whole)
    same_frame(view.frames[-1], whole.frames[-1])


def test_added_words_the_name_and_the_pace_are_restored(tiny, kept, go_on, killed):
    run = kept(tiny(steps=100_000))
    advance_to(run, 2)
    run.add_word("sheep")
    run.set_pace(20.0)
    run.rename("my <b>flock</b>")
    run.drop_word("cat")
    advance_to(run, 4)
    again = go_on(killed(run))
    assert again.ready.wait(30)
    assert again.view.name == "my <b>flock</b>"
    assert again.view.pace == 20.0
    assert [question.text for question in again.questions] == ["kayak", "sheep"]
    advance_to(again, 5)
    again.add_word("ox")
    again.stop().result(30)
    assert [tracked.text for tracked in again.view.frame.words] == ["kayak", "sheep", "ox"]


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
    """The view of a run with several moments, and a folder with copies of the run at some steps."""
    folder = tmp_path_factory.mktemp("eventful")
    run = Run(tiny_run.with_changes(**EVENTFUL), archive=Archive(folder / "run"))
    for step in (35, 45, 105):
        advance_to(run, step)
        end = time.monotonic() + 20
        while facts_of(folder / "run.headlight").get("step", -1) < step or not run.kept:
            assert time.monotonic() < end
            time.sleep(0.01)
        copied(folder / "run.headlight", folder / str(step))
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
def test_a_resumed_run_finds_the_moments_of_an_uninterrupted_one(eventful, go_on, tmp_path, step):
    """Resumed before, between and after the moments: none is lost or found twice."""
    whole, folders = eventful
    view = finish(go_on(copied(folders / str(step), tmp_path / "killed.headlight")))
    assert view.moments == whole.moments
    assert (view.first_step_at, view.turned_at) == (whole.first_step_at, whole.turned_at)
    assert view.frames.steps == whole.frames.steps == tuple(range(131))
    assert numbers(view) == numbers(whole)
