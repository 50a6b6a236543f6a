"""Asking any word at any step gives what was recorded and does not affect the training."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tests.asking.conftest import WORDS, one_pass, snapshot_of
from tests.conftest import LIVE
from transformer.asking.model import SnapshotModel, snapshot_model
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.recording.weights import Snapshot
from transformer.runs.run import Run
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions
from transformer.training.loop import train
from transformer.training.state import TrainState


@pytest.fixture(scope="module")
def finished(tiny_run):
    """A finished run of 60 steps with a frame and a snapshot per step, and outputs every 20 steps."""
    run = Run(tiny_run.with_changes(steps=60, evaluate_every=20), words=("frog", "ox", "robin"))
    run.start()
    assert run.wait(60)
    run.close()
    run.join()
    return run.view


@pytest.mark.parametrize("step", [0, 3, 20, 40, 60])
def test_the_maps_of_an_old_step_are_reproduced_from_its_snapshot(finished, step):
    frame, snapshot = finished.frame_at(step), finished.snapshot_at(step)
    assert frame.step == snapshot.step == step
    model = snapshot_model(finished.config, snapshot)
    for row, tracked in enumerate(frame.words):
        answer = model.answer(tracked.text)
        assert answer.step == step
        assert answer.forced.src_tokens == tracked.src_tokens == ("[SOS]", *tracked.text, "[EOS]")
        assert answer.forced.tgt_tokens == tracked.tgt_tokens == ("[SOS]", *tracked.text[::-1])
        assert answer.expected == tracked.expected == (*tracked.text[::-1], "[EOS]")
        assert answer.forced.predicted == tracked.predicted
        assert tracked.output_step == step // 20 * 20
        then = snapshot_model(finished.config, finished.snapshot_at(tracked.output_step)).answer(tracked.text)
        assert (then.output, then.stopped, then.right) == (
            tracked.output,
            tracked.stopped,
            tracked.right,
        )
        assert list(answer.forced.maps) == list(frame.axes)
        for site, weights in answer.forced.maps.items():
            recorded = frame.map(row, site)
            assert weights.shape == recorded.shape
            np.testing.assert_allclose(weights, recorded, atol=1e-3, equal_nan=True)
    assert len(frame.words) == 3


def test_scores_and_right_words_are_those_of_the_frame_of_that_step(finished):
    for step in (0, 20, 40):
        frame, model = finished.frame_at(step), snapshot_model(finished.config, finished.snapshot_at(step))
        assert frame.evaluation.step == frame.measurement.step == step
        assert model.exact == (frame.evaluation.right, frame.evaluation.total)
        assert model.exact[1] == LIVE
        assert model.head_scores.keys() == frame.head_scores.keys()
        for site, scores in frame.head_scores.items():
            assert model.head_scores[site].keys() == scores.keys()
            for name, values in scores.items():
                assert model.head_scores[site][name].shape == (3,)
                np.testing.assert_allclose(model.head_scores[site][name], values, atol=1e-6)


@pytest.mark.parametrize("word", [*WORDS, "cab", "dizz", "banana"])
def test_a_word_is_read_teacher_forced_and_free_running(half_trained, half_asked, word):
    answer, tokenizer = half_asked.answer(f" {word.upper()}"), half_trained.task.tgt_tokenizer
    assert answer.question == half_trained.task.question(word)
    written = by_hand(half_trained, word)
    assert (*answer.output, *(["[EOS]"] if answer.stopped else [])) == tuple(written)
    assert answer.right == (written == [*word[::-1], "[EOS]"])
    assert answer.forced.tgt_tokens == ("[SOS]", *word[::-1])
    assert answer.free.tgt_tokens == ("[SOS]", *answer.output)
    for reading in (answer.forced, answer.free):
        expected, _ = one_pass(half_trained, ["[SOS]", *word, "[EOS]"], reading.tgt_tokens)
        assert reading.probabilities.dtype == np.float32
        np.testing.assert_allclose(reading.probabilities, expected, atol=1e-5)
        assert reading.predicted == tokenizer.tokens(reading.probabilities.argmax(axis=1).tolist())
    assert answer.free.predicted[: len(written)] == tuple(written)


def test_the_test_words_get_right_and_wrong_answers(half_asked):
    assert {half_asked.answer(word).right for word in WORDS} == {True, False}


def by_hand(state, word):
    """Return the tokens that the model writes for a word, up to and including [EOS], without a cache."""
    src, tgt = torch.tensor(state.task.src_tokenizer.encode([word])), torch.tensor([[1]])
    written = []
    for _ in range(len(word) + 4):
        tgt = torch.cat([tgt, state.model(src, tgt)[:, -1].argmax(-1, keepdim=True)], dim=1)
        written += state.task.tgt_tokenizer.tokens(tgt[0, -1:].tolist())
        if written[-1] == "[EOS]":
            break
    return written


def test_the_report_by_length_equals_a_slow_count_of_letters(half_trained, half_asked):
    report = half_asked.by_length
    assert report.lengths == (1, 2, 3, 4, 5, 6)  # up to two more than the four letters trained on
    assert report.share.shape == (6, 6)
    half_trained.model.eval()
    for i, n in enumerate(report.lengths):
        words = half_trained.task.corpus.words_of_length(n, report.asked[i])
        letters, exact = Counter(), 0
        for word in words:
            assert len(word) == n
            written = by_hand(half_trained, word)
            exact += written == [*word[::-1], "[EOS]"]
            for place, letter in enumerate(word[::-1]):
                letters[place] += place < len(written) and written[place] == letter
        assert report.exact[i] == exact / len(words)
        for place in range(6):
            if place < n:
                assert report.share[i, place] == pytest.approx(letters[place] / len(words))
            else:
                assert np.isnan(report.share[i, place])
    assert 0.0 < np.nanmean(report.share) < 1.0
    assert report.exact[0] > report.exact[-1]


def test_an_answer_that_does_not_stop_is_wrong_even_if_every_letter_is_right(half_trained):
    snapshot = snapshot_of(half_trained)
    snapshot.weights["to_logits.bias"][half_trained.task.tgt_tokenizer.eos_id] = -1e9
    report = SnapshotModel(half_trained.config, snapshot, NO_INTERVENTIONS).by_length
    assert report.share[0, 0] > 0.5
    assert report.exact.tolist() == [0.0] * 6


def test_losses_are_bit_identical_with_and_without_questions_in_between(tiny, losses):
    config, found = tiny(dropout=0.3, steps=4, evaluate_every=2), []
    state = TrainState.begin(config)
    torch.rand(1)  # so that setting a seed cannot restore the same state
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    taken = Interventions(ablated=(("decoder.0.cross", 1),))
    for report in train(state):
        found += report.losses
        snapshot = snapshot_of(state)
        for interventions in (NO_INTERVENTIONS, taken):
            model = SnapshotModel(state.config, snapshot, interventions)
            model.answer("frog")
            assert all([model.exact, model.head_scores, model.by_length])
        assert state.model.interventions == NO_INTERVENTIONS
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    assert found == losses(config)


def test_a_snapshot_is_changed_neither_by_questions_nor_by_further_training(tiny):
    state = TrainState.begin(tiny())
    snapshot = snapshot_of(state)
    kept = {name: w.copy() for name, w in snapshot.weights.items()}
    model = SnapshotModel(state.config, snapshot, NO_INTERVENTIONS)
    first = model.answer("frog")
    list(train(state))
    again = model.answer("frog")
    assert np.array_equal(first.forced.probabilities, again.forced.probabilities)
    assert all(np.array_equal(w, kept[name]) for name, w in snapshot.weights.items())


def test_concurrent_questions_to_one_model_get_the_same_answers(half_trained):
    model = SnapshotModel(half_trained.config, snapshot_of(half_trained), NO_INTERVENTIONS)
    words = ["frog", "kayak", "ox", "banana", "q", "cab"]
    alone = {word: model.answer(word) for word in words}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(model.answer, 16 * words))
    finally:
        sys.setswitchinterval(interval)
    for word, answer in zip(16 * words, answers, strict=True):
        assert answer.output == alone[word].output
        for site, maps in alone[word].forced.maps.items():
            np.testing.assert_array_equal(answer.forced.maps[site], maps)


def test_one_model_is_built_for_each_snapshot_and_its_interventions(half_trained):
    snapshot = snapshot_of(half_trained)
    taken = Interventions(ablated=(("encoder.0", 1),))
    one = snapshot_model(half_trained.config, snapshot)
    assert snapshot_model(half_trained.config, snapshot) is one
    other = snapshot_model(half_trained.config, snapshot, taken)
    assert other is not one
    assert snapshot_model(half_trained.config, snapshot, Interventions(ablated=(("encoder.0", 1),))) is other


def test_blocked_cells_are_nan_and_the_other_weights_of_a_row_sum_to_1(ask_without, half_asked):
    model = ask_without(
        Block(site="encoder.0", head=1, row=2, column=3),
        Block(site="decoder.0.self", token="o", row=4),
        Block(site="decoder.0.cross", token="o", head=0),
    )
    plain = half_asked.answer("oxford").forced.maps
    answer = model.answer("oxford")  # [SOS] o x f o r d [EOS]; [SOS] d r o f x o
    maps = answer.forced.maps
    closed = {site: np.zeros(weights.shape, bool) for site, weights in maps.items()}
    closed["encoder.0"][1, 2, 3] = True
    closed["decoder.0.self"] |= np.triu(np.ones((7, 7), bool), 1)
    closed["decoder.0.self"][:, 4, 3] = True
    closed["decoder.0.cross"][0][:, [1, 4]] = True
    for site, weights in maps.items():
        assert np.array_equal(np.isnan(weights), closed[site])
        np.testing.assert_allclose(np.nansum(weights, axis=-1), 1.0, atol=1e-5)
    first = plain["encoder.0"].copy()  # no earlier layer changes its input
    first[1, 2, 3] = 0.0
    first[1, 2] /= first[1, 2].sum()
    np.testing.assert_allclose(np.nan_to_num(maps["encoder.0"]), first, atol=1e-5)
    assert answer.interventions == model.interventions
    assert half_asked.answer("oxford").interventions == NO_INTERVENTIONS


def test_switching_a_head_off_affects_every_result(half_trained, half_asked):
    weights = {name: w.numpy().copy() for name, w in half_trained.model.state_dict().items()}
    weights["decoder.0.cross_attention.to_output.weight"][:, :16] = 0.0  # head 1 of 2, width 32
    by_weights = SnapshotModel(half_trained.config, Snapshot(step=130, source=weights), NO_INTERVENTIONS)
    taken = Interventions(ablated=(("decoder.0.cross", 0),))
    without = SnapshotModel(half_trained.config, snapshot_of(half_trained), taken)
    for word in ("frog", "cab"):
        ours, theirs = without.answer(word), by_weights.answer(word)
        np.testing.assert_allclose(ours.forced.probabilities, theirs.forced.probabilities, atol=1e-5)
        assert ours.output == theirs.output
    assert without.exact == by_weights.exact != half_asked.exact
    np.testing.assert_array_equal(without.by_length.share, by_weights.by_length.share)
    for site, scores in by_weights.head_scores.items():
        for name, values in scores.items():
            np.testing.assert_allclose(without.head_scores[site][name], values, atol=1e-5)


def test_the_interventions_of_a_run_are_applied_only_on_request(half_trained, half_asked):
    taken = Interventions(ablated=(("decoder.0.cross", 0), ("decoder.0.cross", 1)))
    snapshot = snapshot_of(half_trained, interventions=taken)
    whole, less = (
        snapshot_model(half_trained.config, snapshot),
        snapshot_model(half_trained.config, snapshot, taken),
    )
    expected = half_asked.answer("frog").forced.probabilities
    assert np.array_equal(whole.answer("frog").forced.probabilities, expected)
    assert np.abs(less.answer("frog").forced.probabilities - expected).max() > 0.05


@pytest.mark.parametrize(
    ("taken", "named"),
    [
        (Interventions(ablated=(("decoder.1.cross", 0),)), "no attention 'decoder.1.cross'"),
        (Interventions(ablated=(("encoder.0", 2),)), "heads 1 to 2, not 3"),
        (Interventions(blocked=(Block(site="decoder.0.self", token="[SOS]"),)), "1 of 5 columns"),
    ],
    ids=["site", "head", "row"],
)
def test_interventions_that_do_not_fit_the_model_or_the_word_are_refused(half_trained, taken, named):
    with pytest.raises(InputError, match=named):
        SnapshotModel(half_trained.config, snapshot_of(half_trained), taken).answer("frog")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(half_trained, number):
    weights = {name: array.copy() for name, array in snapshot_of(half_trained).weights.items()}
    next(iter(weights.values())).flat[3] = number
    with pytest.raises(InputError, match="^The numbers of the model of step 7 are not finite: the training"):
        SnapshotModel(half_trained.config, Snapshot(step=7, source=weights), NO_INTERVENTIONS)


def test_weights_of_another_model_are_refused(half_trained):
    other = TrainState.begin(
        RunConfig(
            model=ModelConfig(n_encoder_layers=1, n_decoder_layers=1, n_heads=2, d_model=16, d_ff=40),
            train=TrainConfig(max_letters=4),
            device="cpu",
        )
    )
    whole = snapshot_of(half_trained)
    some = Snapshot(step=7, source=dict(list(whole.weights.items())[:-1]))
    for snapshot in (snapshot_of(other, step=7), some):
        with pytest.raises(InputError, match="^The weights of step 7 do not fit this model"):
            SnapshotModel(half_trained.config, snapshot, NO_INTERVENTIONS)
