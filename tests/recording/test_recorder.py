"""Frames: their labels are what was attended to, their outputs what the model writes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer.insight.scores import head_scores
from transformer.recording.recorder import Recorder
from transformer.recording.tape import record
from transformer.training.loop import train
from transformer.training.state import TrainState

WORDS = ["frog", "q", "ox", "kayak"]  # the longest is longer than the half-trained model's four letters


@pytest.fixture
def make_frame():
    def make(state, words=WORDS, **said):
        recorder = Recorder(state.model, state.task)
        for word in words:
            recorder.add(state.task.question(word))
        facts = {"step": state.step, "seconds": 0.0, "loss": 1.0, "exact": (0, 1), "exact_step": 0, **said}
        return recorder.frame(**facts)

    return make


@pytest.fixture
def frame(half_trained, make_frame):
    return make_frame(half_trained)


def alone(state, word):
    """Weights of a pass over one word without padding, site to (H, Q, K), and its predicted tokens."""
    src, tgt_in, _ = state.to_device(state.task.encode([word]))
    with record(state.model) as tape:
        predicted = state.model(src, tgt_in)[0].argmax(-1).tolist()
    return {site: weights[0] for site, weights in tape.weights.items()}, predicted


def test_the_labels_are_the_tokens_that_were_attended_to(half_trained, make_frame):
    """The ids that the model was given are taken at its door and compared with the frame's labels."""
    given = []
    hook = half_trained.model.register_forward_pre_hook(lambda _, ids: given.append(ids))
    frame = make_frame(half_trained)
    hook.remove()
    src, tgt_in = next(ids for ids in given if len(ids[0]) == len(WORDS))
    named = half_trained.task.src_tokenizer.tokens
    for i, (probe, word) in enumerate(zip(frame.probes, WORDS, strict=True)):
        assert probe.text == word
        assert probe.src_tokens == ("[SOS]", *word, "[EOS]") == named(src[i].tolist())[: len(word) + 2]
        assert probe.tgt_tokens == ("[SOS]", *reversed(word)) == named(tgt_in[i].tolist())[: len(word) + 1]
        assert probe.expected == (*reversed(word), "[EOS]")
        assert probe.answer == word[::-1]
        assert not src[i, len(word) + 2 :].any()
        assert not tgt_in[i, len(word) + 1 :].any()


def test_a_map_is_that_of_the_word_alone_whatever_stands_beside_it(half_trained, frame):
    for row, word in enumerate(WORDS):
        weights, predicted = alone(half_trained, word)
        assert list(frame.maps) == list(weights) == list(frame.axes)
        for site, expected in weights.items():
            shown = frame.map(row, site)
            assert shown.shape == expected.shape
            np.testing.assert_allclose(np.nan_to_num(shown), expected, atol=1e-3)
        assert frame.probes[row].predicted == half_trained.task.tgt_tokenizer.tokens(predicted)


def test_a_map_has_no_number_exactly_where_the_mask_blocks(frame):
    for row, word in enumerate(WORDS):
        n = len(word)
        for site, axes in frame.axes.items():
            shown = frame.map(row, site)
            n_rows, n_columns = (n + 1 if side == "tgt" else n + 2 for side in (axes.query, axes.key))
            assert shown.shape == (2, n_rows, n_columns)
            blocked = np.zeros((n_rows, n_columns), bool)
            if axes.kind == "decoder":
                blocked = np.array([[j > i for j in range(n_columns)] for i in range(n_rows)])
            for head in shown:
                assert np.array_equal(np.isnan(head), blocked)


def test_what_is_blocked_in_the_whole_batch_is_the_future_and_the_padding(frame):
    for site, axes in frame.axes.items():
        allowed = frame.allowed(site)
        longest_src, longest_tgt = 7, 6
        n_rows, n_columns = (longest_tgt if s == "tgt" else longest_src for s in (axes.query, axes.key))
        assert allowed.shape == (4, n_rows, n_columns)
        for b, word in enumerate(WORDS):
            real = len(word) + (1 if axes.key == "tgt" else 2)
            by_hand = [
                [j < real and (not axes.causal or j <= i) for j in range(n_columns)] for i in range(n_rows)
            ]
            assert allowed[b].tolist() == by_hand
        assert (frame.maps[site][~np.broadcast_to(allowed[:, None], frame.maps[site].shape)] == 0).all()
    assert [axes.kind for axes in frame.axes.values()] == ["encoder", "decoder", "cross"]


def test_outputs_are_written_by_the_model_alone(half_trained, make_frame):
    """One token after the other, each read back; not guessed beside the right answer."""
    words = ["frog", "q", "kayak", "banana", "pizza", "elephant", "robin", "mango"]
    frame = make_frame(half_trained, words)
    tokenizer = half_trained.task.tgt_tokenizer
    half_trained.model.eval()
    for probe, word in zip(frame.probes, words, strict=True):
        src = torch.tensor(half_trained.task.src_tokenizer.encode([word]))
        tgt = torch.tensor([[1]])
        for _ in range(min(len(word) + 4, 10)):  # up to three letters too many, and no more than fit
            tgt = torch.cat([tgt, half_trained.model(src, tgt)[:, -1].argmax(-1, keepdim=True)], dim=1)
        assert (probe.output, probe.stopped) == tokenizer.text(tgt[0, 1:].tolist())
        assert probe.right == (probe.output == word[::-1] and probe.stopped)
        assert probe.too_long == (len(word) > 4)
    assert {probe.right for probe in frame.probes} == {True, False}
    beside = {probe.text: "".join(probe.predicted).split("[EOS]")[0] for probe in frame.probes}
    assert any(probe.output != beside[probe.text] for probe in frame.probes), (
        "they must differ to be told apart"
    )


def test_head_scores_are_measured_on_64_fixed_held_out_words(half_trained, frame):
    words = [word for word in half_trained.task.held_out() if len(word) >= 3][:64]
    per_word = [
        head_scores(alone(half_trained, word)[0]["decoder.0.cross"][None], "cross", [len(word)])["mirror"]
        for word in words
    ]
    expected = np.average(per_word, axis=0, weights=[len(word) for word in words])
    assert list(frame.scores) == ["decoder.0.cross"]
    assert frame.scores["decoder.0.cross"] == pytest.approx(expected, abs=1e-5)
    head = int(expected.argmax())
    assert frame.clearest == ("decoder.0.cross", head)
    assert frame.best == (("decoder.0.cross", head), pytest.approx(expected.max(), abs=1e-5))
    assert frame.clearest_score == pytest.approx(expected.max(), abs=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_looking_draws_nothing_in_whatever_mode_the_model_is(tiny, make_frame, training):
    state = TrainState.begin(tiny(dropout=0.5))
    state.model.train(training)
    before = torch.get_rng_state(), state.dropout.get_state(), np.random.get_state()[1].copy()
    first, again = make_frame(state), make_frame(state)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(state.dropout.get_state(), before[1])
    assert np.array_equal(np.random.get_state()[1], before[2])
    for site, weights in first.maps.items():
        assert np.array_equal(weights, again.maps[site])


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_losses_are_bit_equal_with_and_without_frames(tiny, losses, make_frame, dropout):
    state, found = TrainState.begin(tiny(dropout=dropout)), []
    make_frame(state)
    for report in train(state):
        found += report.losses
        make_frame(state)
    assert found == losses(tiny(dropout=dropout))


def test_a_frame_does_not_change_when_training_goes_on(tiny, make_frame):
    state = TrainState.begin(tiny())
    frame = make_frame(state)
    before = {site: weights.copy() for site, weights in frame.maps.items()}
    list(train(state))
    for site, weights in frame.maps.items():
        assert weights.dtype == np.float16
        assert np.array_equal(weights, before[site])
    assert not np.array_equal(make_frame(state).maps["encoder.0"], before["encoder.0"])


def test_drawn_at_is_the_first_step_whose_batch_had_the_word(tiny):
    """Against a search of all batches, for words known from the start and words typed late."""
    state = TrainState.begin(tiny(min_letters=1, max_letters=3, batch_size=40))
    task, seed, last = state.task, state.config.seed, 30
    drawn = [set(task.words(seed, k)) for k in range(last)]
    known = ["a", "no", "ox", next(w for w in sorted(drawn[20]) if len(w) == 3), task.held_out()[0], "toolon"]
    late = ["b", "it", "up", next(w for w in sorted(drawn[4]) if len(w) == 3)]
    recorder = Recorder(state.model, task)
    for word in known:
        recorder.add(task.question(word))
    told = {}
    for step in range(last + 1):
        if step:
            recorder.drawn.note(step, task.batch(seed, step - 1).words)
        if step == 17:
            for word in late:
                recorder.add(task.question(word))
        if step % 5 and step not in (17, last):
            continue
        frame = recorder.frame(step=step, seconds=0.0, loss=None, exact=None, exact_step=0)
        told[step] = {probe.text: probe.drawn_at for probe in frame.probes}
    for step, answers in told.items():
        assert list(answers) == (known if step < 17 else known + late)
        for word, drawn_at in answers.items():
            expected = next((k + 1 for k in range(step) if word in drawn[k]), None)
            assert drawn_at == expected, (step, word)
    assert len(set(told[last].values())) > 4


def test_a_word_is_found_by_its_text_and_asked_once(half_trained, make_frame):
    frame = make_frame(half_trained, ["ox", "frog", "ox"])
    assert [probe.text for probe in frame.probes] == ["ox", "frog"]
    assert (frame.row_of("frog"), frame.row_of("ox"), frame.row_of("nobody")) == (1, 0, 0)
