"""Before its first command a draft shows the untrained model of its settings, which all such drafts share."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.runs.conftest import TWO_HEADS_OFF, losses_of
from transformer.config.recipes import RECIPES
from transformer.config.tasks import with_task
from transformer.runs.run import Run
from transformer.training.state import TrainState


@pytest.fixture
def built(monkeypatch):
    """The seeds of the models that were built, in order."""
    begin, seeds = TrainState.begin, []

    def noted(config, *rest):
        seeds.append(config.seed)
        return begin(config, *rest)

    monkeypatch.setattr(TrainState, "begin", staticmethod(noted))
    return seeds


def threads():
    return [one.name for one in threading.enumerate() if one.name.startswith("run-")]


def test_thirty_drafts_of_equal_settings_need_one_model_and_no_thread(server, tiny, built):
    registry, config, before = server(kept=40), tiny(seed=101), threads()
    drafts = [registry.draft(config, ("cab", "adda")) for _ in range(30)]
    assert all(draft.ready.wait(20.0) for draft in drafts)
    assert (built, threads()) == ([101], before)
    assert len({draft.id for draft in drafts}) == 30
    assert all(draft.view.frames.steps == (0,) for draft in drafts)
    other = registry.draft(config, ("cab",))
    assert other.ready.wait(20.0)
    assert (built, other.view.frames.words) == ([101, 101], ("cab",))


def test_the_untrained_model_is_what_a_run_records_at_step_0(server, tiny):
    config = tiny(seed=102)
    draft, run = server().draft(config, ("cab", "adda")), Run(config, words=("cab", "adda"))
    assert draft.ready.wait(20.0)
    assert run.ready.wait(20.0)
    for one, other in zip(draft.view.frame.maps, run.view.frame.maps, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[site], other[site], equal_nan=True) for site in one)
    weights = [view.snapshot_at(0).weights for view in (draft.view, run.view)]
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[1])
    assert draft.view.frame.measurement.head_scores.keys() == run.view.frame.measurement.head_scores.keys()
    assert (draft.view.parameters, draft.view.threads) == (run.view.parameters, run.view.threads)
    run.close()


def test_a_draft_that_starts_learns_and_records_as_a_run_alone(server, tiny, losses):
    config, registry = tiny(seed=103), server()
    draft, alone = registry.draft(config, ("cab", "adda")), Run(config, words=("cab", "adda"))
    assert draft.ready.wait(20.0)
    registry.start(draft)
    alone.start()
    assert draft.wait(30.0)
    assert alone.wait(30.0)
    assert losses_of(draft) == losses_of(alone) == losses(config)
    assert draft.view.frames.steps == alone.view.frames.steps == tuple(range(config.train.steps + 1))
    assert draft.view.moments == alone.view.moments
    assert {snapshot.step for snapshot in draft.view.snapshots} == {*draft.view.frames.steps}
    assert draft.view.frames.of_step(0).loss is None
    assert draft.view.frames.of_step(1).loss == losses_of(draft)[0]
    alone.close()


def test_a_command_to_one_draft_changes_no_other(server, tiny, built):
    registry, config = server(), tiny(seed=104)
    one, other = (registry.draft(config, ("cab",)) for _ in range(2))
    assert one.ready.wait(20.0)
    frame = other.view.frame
    one.intervene(TWO_HEADS_OFF).result(20.0)
    one.add_word("adda")
    one.pause().result(20.0)
    assert (one.words, one.view.interventions) == (("cab", "adda"), TWO_HEADS_OFF)
    assert (other.words, other.view.frame, built) == (("cab",), frame, [104, 104])


def test_a_failure_to_build_is_shown_and_not_remembered(server, tiny, monkeypatch):
    registry, config, begin = server(), tiny(seed=105), TrainState.begin

    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(TrainState, "begin", staticmethod(fails))
    failed = registry.draft(config)
    assert failed.ready.wait(20.0)
    assert (failed.view.state, failed.view.frame) == ("failed", None)
    monkeypatch.setattr(TrainState, "begin", staticmethod(begin))
    again = registry.draft(config)
    assert again.ready.wait(20.0)
    assert again.view.frame.step == 0


@pytest.fixture
def slow(built, monkeypatch):
    """An event for which the building of every model waits; returns it with `called`, set once one waits."""
    begin, may_go_on, called = TrainState.begin, threading.Event(), threading.Event()

    def waits(*of):
        called.set()
        assert may_go_on.wait(20.0)
        return begin(*of)

    monkeypatch.setattr(TrainState, "begin", staticmethod(waits))
    return may_go_on, called


def test_a_run_that_starts_while_its_untrained_model_is_built_trains_that_model(
    server, tiny, slow, losses, at
):
    (may_go_on, called), config, registry = slow, tiny(seed=106), server()
    run = registry.draft(config)
    assert called.wait(20.0)
    registry.start(run)
    assert run.view.state == "queued"
    may_go_on.set()
    at(run, "finished")
    assert losses_of(run) == losses(config)
    shown = registry.draft(config)
    assert shown.ready.wait(20.0)
    assert shown.view.frame.evaluation is run.view.frames.of_step(0).evaluation  # measured once
    assert run.view.frames.steps == tuple(range(config.train.steps + 1))


def test_a_run_that_starts_before_its_untrained_model_is_begun_builds_its_own(server, tiny, slow, built, at):
    (may_go_on, called), registry = slow, server()
    registry.draft(tiny(seed=109))  # the one worker builds this model
    assert called.wait(20.0)
    run = registry.draft(tiny(seed=110))
    registry.start(run)
    may_go_on.set()
    at(run, "finished")
    assert sorted(built) == [109, 110]


def test_a_run_discarded_while_its_untrained_model_is_built_ends_without_a_thread(server, tiny, slow):
    (may_go_on, called), registry, before = slow, server(), threads()
    run = registry.draft(tiny(seed=111))
    assert called.wait(20.0)
    registry.discard(run.id)
    may_go_on.set()
    assert run.join(20.0)
    assert threads() == before


def test_a_run_joins_a_race_while_its_untrained_model_is_built(server, tiny, slow, built, at):
    (may_go_on, called), registry = slow, server()
    runs = [registry.draft(tiny(seed=112)) for _ in range(2)]
    assert called.wait(20.0)
    registry.start(runs[0])
    registry.race(runs)
    registry.start(runs[1])
    may_go_on.set()
    for run in runs:
        at(run, "finished")
        assert run.view.frames.steps == tuple(range(9))
    assert len({run.thread for run in runs}) == 1


def test_a_sentence_without_a_known_answer_is_read_over_what_the_untrained_model_wrote(server):
    small = {"n_encoder_layers": 1, "n_decoder_layers": 1, "n_heads": 2, "d_model": 16}
    config = with_task(RECIPES["default"].small, "en-it").with_changes(
        **small, steps=3, evaluate_every=3, goal=None, seed=107
    )
    words, registry = ("them books the finds girl",), server()
    draft, alone = registry.draft(config, words), Run(config, words=words)
    assert draft.ready.wait(20.0)
    registry.start(draft)
    alone.start()
    for run in (draft, alone):
        assert run.wait(30.0)
    assert draft.view.frames.of_step(1).words == alone.view.frames.of_step(1).words
    assert draft.view.frames.of_step(1).words[0].written_at == 0
    alone.close()
