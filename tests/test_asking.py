"""Asking any word at any step: what the recorder saw, without the training ever noticing."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from transformer.anatomy.trace import trace
from transformer.asking import HELD_OUT_WORDS, KEPT_TREES, Asked, asked
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.decoding import Decoding, spell
from transformer.errors import InputError
from transformer.interventions import NOTHING, Block, Interventions
from transformer.recording.recorder import Recorder
from transformer.recording.tape import record
from transformer.recording.weights import Snapshot
from transformer.training.loop import train
from transformer.training.state import TrainState

WORDS = ("frog", "q", "ox", "kayak")  # kayak is longer than what the half-trained model has learned


def snapshot_of(state, step=None, interventions=NOTHING):
    weights = {name: w.numpy().copy() for name, w in state.model.state_dict().items()}
    return Snapshot(step=state.step if step is None else step, source=weights, interventions=interventions)


def one_pass(state, src, tgt):
    """Probabilities (T, V) and maps of a pass over one word, [SOS] and letters as text."""
    with record(state.model) as tape:
        logits = state.model(torch.tensor([ids_of(state, src)]), torch.tensor([ids_of(state, tgt)]))[0]
    return logits.softmax(-1).numpy(), {site: weights[0] for site, weights in tape.weights.items()}


def ids_of(state, tokens):
    return [state.task.src_tokenizer.id_of(token) for token in tokens]


@pytest.fixture(scope="module")
def half_asked(half_trained):
    return Asked(half_trained.config, snapshot_of(half_trained), NOTHING)


@pytest.fixture
def ask_without(half_trained):
    def make(*blocked, ablated=()):
        taken = Interventions(ablated=ablated, blocked=blocked)
        return Asked(half_trained.config, snapshot_of(half_trained), taken)

    return make


@pytest.fixture
def finished(tiny, make_run, until):
    """A run of 60 steps with frames and weights of each; the model wrote by itself at every twentieth."""
    run = make_run(tiny(steps=60, evaluate_every=20), words=("frog", "ox", "robin"))
    run.start()
    until(lambda: run.view.state == "finished")
    return run.view


@pytest.mark.parametrize("step", [0, 3, 20, 40, 60])
def test_the_maps_of_an_old_step_come_again_from_its_snapshot(finished, step):
    frame, snapshot = finished.frame_at(step), finished.snapshot_at(step)
    assert frame.step == snapshot.step == step
    model = asked(finished.config, snapshot)
    for row, probe in enumerate(frame.probes):
        answer = model.answer(probe.text)
        assert answer.step == step
        assert answer.forced.src_tokens == probe.src_tokens == ("[SOS]", *probe.text, "[EOS]")
        assert answer.forced.tgt_tokens == probe.tgt_tokens == ("[SOS]", *probe.text[::-1])
        assert answer.expected == probe.expected == (*probe.text[::-1], "[EOS]")
        assert answer.forced.predicted == probe.predicted
        assert probe.output_step == step // 20 * 20
        then = asked(finished.config, finished.snapshot_at(probe.output_step)).answer(probe.text)
        assert (then.output, then.stopped, then.right) == (probe.output, probe.stopped, probe.right)
        assert list(answer.forced.maps) == list(frame.axes)
        for site, weights in answer.forced.maps.items():
            recorded = frame.map(row, site)
            assert weights.shape == recorded.shape
            np.testing.assert_allclose(weights, recorded, atol=1e-3, equal_nan=True)
    assert len(frame.probes) == 3


def test_scores_and_right_words_are_those_of_the_frame_of_that_step(finished):
    for step in (0, 20, 40):
        frame, model = finished.frame_at(step), asked(finished.config, finished.snapshot_at(step))
        assert frame.evaluation.step == frame.measurement.step == step
        assert model.exact == (frame.evaluation.right, frame.evaluation.total)
        assert model.exact[1] == HELD_OUT_WORDS
        assert model.head_scores.keys() == frame.head_scores.keys()
        for site, scores in frame.head_scores.items():
            assert model.head_scores[site].keys() == scores.keys()
            for name, values in scores.items():
                assert model.head_scores[site][name].shape == (3,)
                np.testing.assert_allclose(model.head_scores[site][name], values, atol=1e-6)


@pytest.mark.parametrize("word", [*WORDS, "cab", "dizz", "banana"])
def test_a_word_is_read_with_the_right_letters_and_with_those_that_it_writes(half_trained, half_asked, word):
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


def test_there_are_right_and_wrong_answers_among_those_words(half_asked):
    assert {half_asked.answer(word).right for word in WORDS} == {True, False}


def by_hand(state, word):
    """What the model writes for a word, by whole passes: its tokens up to [EOS], which is the last."""
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
        words = half_trained.task.words_of_length(n, report.asked[i])
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


def test_a_word_that_does_not_stop_is_not_right_though_every_letter_is(half_trained):
    snapshot = snapshot_of(half_trained)
    snapshot.weights["to_logits.bias"][half_trained.task.tgt_tokenizer.eos_id] = -1e9
    report = Asked(half_trained.config, snapshot, NOTHING).by_length
    assert report.share[0, 0] > 0.5
    assert report.exact.tolist() == [0.0] * 6


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_losses_are_bit_equal_with_and_without_questions_in_between(tiny, losses, dropout):
    config, found = tiny(dropout=dropout, steps=4, evaluate_every=2), []
    state = TrainState.begin(config)
    torch.rand(1)  # so that a seed set by someone cannot happen to be the state of before
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    taken = Interventions(ablated=(("decoder.0.cross", 1),))
    for report in train(state):
        found += report.losses
        snapshot = snapshot_of(state)
        for interventions in (NOTHING, taken):
            model = Asked(state.config, snapshot, interventions)
            model.answer("frog")
            assert all([model.exact, model.head_scores, model.by_length])
        assert state.model.interventions == NOTHING
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    assert found == losses(config)


def test_a_snapshot_is_not_moved_by_what_is_asked_of_it_nor_by_training_on(tiny):
    state = TrainState.begin(tiny())
    snapshot = snapshot_of(state)
    kept = {name: w.copy() for name, w in snapshot.weights.items()}
    model = Asked(state.config, snapshot, NOTHING)
    first = model.answer("frog")
    list(train(state))
    again = model.answer("frog")
    assert np.array_equal(first.forced.probabilities, again.forced.probabilities)
    assert all(np.array_equal(w, kept[name]) for name, w in snapshot.weights.items())


def test_threads_that_ask_one_model_at_once_get_the_same_answers(half_trained):
    model = Asked(half_trained.config, snapshot_of(half_trained), NOTHING)
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


def test_one_model_is_built_for_as_long_as_it_is_asked_for(half_trained):
    snapshot = snapshot_of(half_trained)
    taken = Interventions(ablated=(("encoder.0", 1),))
    one = asked(half_trained.config, snapshot)
    assert asked(half_trained.config, snapshot) is one
    other = asked(half_trained.config, snapshot, taken)
    assert other is not one
    assert asked(half_trained.config, snapshot, Interventions(ablated=(("encoder.0", 1),))) is other


# Interventions.


def test_blocked_cells_have_no_number_and_what_is_left_is_shared_out_anew(ask_without, half_asked):
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
    first = plain["encoder.0"].copy()  # nothing stands before it
    first[1, 2, 3] = 0.0
    first[1, 2] /= first[1, 2].sum()
    np.testing.assert_allclose(np.nan_to_num(maps["encoder.0"]), first, atol=1e-5)
    assert answer.interventions == model.interventions
    assert half_asked.answer("oxford").interventions == NOTHING


def test_taking_a_head_away_is_felt_in_every_answer(half_trained, half_asked):
    weights = {name: w.numpy().copy() for name, w in half_trained.model.state_dict().items()}
    weights["decoder.0.cross_attention.to_output.weight"][:, :16] = 0.0  # head 1 of 2, width 32
    by_weights = Asked(half_trained.config, Snapshot(step=130, source=weights), NOTHING)
    taken = Interventions(ablated=(("decoder.0.cross", 0),))
    without = Asked(half_trained.config, snapshot_of(half_trained), taken)
    for word in ("frog", "cab"):
        ours, theirs = without.answer(word), by_weights.answer(word)
        np.testing.assert_allclose(ours.forced.probabilities, theirs.forced.probabilities, atol=1e-5)
        assert ours.output == theirs.output
    assert without.exact == by_weights.exact != half_asked.exact
    np.testing.assert_array_equal(without.by_length.share, by_weights.by_length.share)
    for site, scores in by_weights.head_scores.items():
        for name, values in scores.items():
            np.testing.assert_allclose(without.head_scores[site][name], values, atol=1e-5)


def test_what_was_taken_away_in_the_run_is_given_back_unless_asked_for(half_trained, half_asked):
    taken = Interventions(ablated=(("decoder.0.cross", 0), ("decoder.0.cross", 1)))
    snapshot = snapshot_of(half_trained, interventions=taken)
    whole, less = asked(half_trained.config, snapshot), asked(half_trained.config, snapshot, taken)
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
def test_what_cannot_be_taken_away_from_a_word_is_refused(half_trained, taken, named):
    with pytest.raises(InputError, match=named):
        Asked(half_trained.config, snapshot_of(half_trained), taken).answer("frog")


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
            Asked(half_trained.config, snapshot, NOTHING)


# One stack alone, and masks that are off.

TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]


@pytest.fixture
def random_model(tiny, fill):
    """A model of a topology with random weights, and one to ask."""

    def make(taken=NOTHING, *, ends=None, **settings):
        state = TrainState.begin(tiny(**settings))
        fill(state.model, 0.9)
        with torch.no_grad():
            state.model.to_logits.bias.zero_()
            if ends is not None:
                state.model.to_logits.bias[2] = ends
        state.model.eval()
        return state, Asked(state.config, snapshot_of(state), taken)

    return make


def test_an_encoder_alone_is_read_once_and_writes_in_the_place_of_each_letter(random_model):
    state, model = random_model(topology="encoder-only")
    answer = model.answer("robin")
    tokens = ("[SOS]", *"robin", "[EOS]")
    assert answer.expected == (*"nibor", "[EOS]")
    for reading in (answer.forced, answer.free):
        assert reading.src_tokens == reading.tgt_tokens == reading.tokens("src") == tokens
        assert reading.writing == (1, 2, 3, 4, 5, 6)
        probabilities, maps = one_pass(state, tokens, tokens)
        np.testing.assert_allclose(reading.probabilities, probabilities, atol=1e-5)
        assert reading.maps.keys() == {"encoder.0"}
        np.testing.assert_allclose(reading.maps["encoder.0"], maps["encoder.0"], atol=1e-5)
        assert reading.to_write(answer.expected) == ("", *"nibor", "[EOS]")
        assert reading.written == reading.predicted[1:]
    text, stopped = state.task.tgt_tokenizer.text(ids_of(state, answer.free.written))
    assert (answer.output, answer.stopped) == (text, stopped)


def test_one_sequence_is_read_with_the_right_answer_or_with_the_model_s_own(random_model):
    state, model = random_model(topology="decoder-only", ends=-1e9)
    answer = model.answer("frog")
    right = ("[SOS]", *"frog", "[SEP]", *"gorf")
    assert answer.forced.src_tokens == answer.forced.tgt_tokens == answer.forced.tokens("seq") == right
    assert answer.forced.writing == (5, 6, 7, 8, 9)
    assert answer.forced.to_write(answer.expected) == (*5 * ("",), *"gorf", "[EOS]")
    own = answer.free
    assert own.tgt_tokens[:6] == right[:6]
    assert own.writing == tuple(range(5, len(own.tgt_tokens)))
    assert not answer.stopped
    assert own.written[: len(own.tgt_tokens) - 6] == own.tgt_tokens[6:]
    assert "".join(own.tgt_tokens[6:]) == answer.output
    for reading in (answer.forced, own):
        probabilities, maps = one_pass(state, reading.tgt_tokens, reading.tgt_tokens)
        np.testing.assert_allclose(reading.probabilities, probabilities, atol=1e-5)
        for site, expected in maps.items():
            future = np.triu(np.ones(expected.shape[1:], bool), 1)
            assert np.array_equal(np.isnan(reading.maps[site]), np.stack(3 * [future]))
            np.testing.assert_allclose(np.nan_to_num(reading.maps[site]), expected, atol=1e-5)


@pytest.mark.parametrize("topology", ["encoder-decoder", "decoder-only"])
@pytest.mark.parametrize("how", ["configured", "switched"])
@pytest.mark.parametrize("ends", [None, -1e9])
def test_without_the_causal_mask_each_row_is_as_it_was_when_it_wrote(random_model, topology, how, ends):
    """Written out token by token: at each, what there is so far is read anew, and its last row writes."""
    off = Interventions(masks=(("causal", False),))
    settings = {"topology": topology} | ({"causal_mask": False} if how == "configured" else {})
    state, model = random_model(off if how == "switched" else NOTHING, ends=ends, **settings)
    state.model.intervene(off, state.task.src_tokenizer.id_of)
    answer = model.answer("robin")
    free = answer.free
    assert free.axes["decoder.0.self"].causal is False
    prompt = ["[SOS]"] if topology == "encoder-decoder" else ["[SOS]", *"robin", "[SEP]"]
    tgt, first = list(prompt), len(prompt) - 1
    for row in range(first, len(free.tgt_tokens)):
        src = ["[SOS]", *"robin", "[EOS]"] if topology == "encoder-decoder" else tgt
        probabilities, maps = one_pass(state, src, tgt)
        assert free.tgt_tokens[: row + 1] == tuple(tgt)
        for site, expected in maps.items():
            if site == "encoder.0":
                np.testing.assert_allclose(free.maps[site], expected, atol=1e-5)
                continue
            # The rows of the question have been read first with the prompt; later they would read on.
            for i in range(row + 1) if row == first else [row]:
                shown = free.maps[site][:, i]
                np.testing.assert_allclose(shown[:, : expected.shape[2]], expected[:, i], atol=1e-5)
                assert np.isnan(shown[:, expected.shape[2] :]).all()
        np.testing.assert_allclose(free.probabilities[row], probabilities[row], atol=1e-5)
        newest = state.task.tgt_tokenizer.tokens([int(probabilities[row].argmax())])[0]
        assert free.predicted[row] == newest
        tgt.append(newest)
    assert "".join(tgt[first + 1 :]).startswith(answer.output)
    assert len(answer.output) > 3
    forced = one_pass(state, answer.forced.src_tokens, answer.forced.tgt_tokens)
    np.testing.assert_allclose(answer.forced.probabilities, forced[0], atol=1e-5)
    for site, expected in forced[1].items():
        np.testing.assert_allclose(answer.forced.maps[site], expected, atol=1e-5)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("causal", [True, False])
def test_the_longest_word_is_answered_by_a_model_that_never_stops(random_model, topology, causal):
    _, model = random_model(topology=topology, causal_mask=causal, ends=-1e9)
    answer = model.answer("abcdefghij")  # twice the five letters trained on
    assert not answer.stopped
    assert len(answer.free.written) >= 11
    assert "".join(answer.free.written[: len(answer.output)]) == answer.output
    assert model.by_length.exact.tolist() == [0.0] * len(model.by_length.lengths)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_reports_of_every_topology_are_those_of_words_asked_one_by_one(random_model, topology):
    state, model = random_model(topology=topology)
    words = state.task.words_of_length(2, 25)
    right = [model.answer(word) for word in words]
    i = model.by_length.lengths.index(2)
    assert model.by_length.exact[i] == np.mean([answer.right for answer in right])
    for place in range(2):
        hits = [answer.output[place : place + 1] == answer.question.answer[place] for answer in right]
        assert model.by_length.share[i, place] == pytest.approx(np.mean(hits))
    assert model.exact[1] == HELD_OUT_WORDS
    assert model.head_scores.keys() == right[0].forced.maps.keys()


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_snapshot_whose_masks_were_switched_is_asked_with_the_masks_of_its_configuration(
    random_model, topology
):
    """Unless what was taken away then is asked for too."""
    default = topology != "encoder-only"
    switched = Interventions(masks=(("causal", not default),))
    state, plain = random_model(topology=topology)
    snapshot = snapshot_of(state, interventions=switched)
    expected = plain.answer("frog").forced
    assert np.array_equal(
        asked(state.config, snapshot).answer("frog").forced.probabilities, expected.probabilities
    )
    other = asked(state.config, snapshot, switched).answer("frog")
    assert np.abs(other.forced.probabilities - expected.probabilities).max() > 0.01
    writing_to_itself = [axes for axes in other.forced.axes.values() if axes.writes and axes.kind != "cross"]
    assert writing_to_itself
    assert {axes.causal for axes in writing_to_itself} == {not default}


@pytest.fixture(scope="module")
def seeing_padding():
    """A model without a padding mask, trained until it writes words of every length: it knows one length."""
    config = RunConfig(seed=1).with_changes(
        padding_mask=False, max_letters=5, batch_size=48, steps=220, d_model=32, n_heads=4
    )
    state = TrainState.begin(config)
    for _ in train(state):
        pass
    weights = {name: tensor.numpy().copy() for name, tensor in state.model.state_dict().items()}
    return state, Snapshot(step=220, source=weights)


def test_a_model_that_sees_its_padding_is_asked_every_word_as_it_was_trained(seeing_padding):
    state, snapshot = seeing_padding
    report = asked(state.config, snapshot).by_length
    trained = [exact for n, exact in zip(report.lengths, report.exact, strict=True) if 3 <= n <= 5]
    assert min(trained) > 0.5  # asked without their padding none of the shorter ones would be right


def test_watch_ask_and_look_inside_show_the_same_map_of_a_word(seeing_padding):
    state, snapshot = seeing_padding
    recorder, words = Recorder(state.model, state.task), ("cat", "longestone", "ox")
    for word in words:  # the second is longer than anything trained on
        recorder.add(state.task.question(word))
    recorder.copy(220)
    written, recorded = recorder.write(220).by_word, recorder.develop()
    for word, chunk in zip(words, recorded, strict=True):
        answer = asked(state.config, snapshot).answer(word)
        passed = trace(state.config, snapshot, word)
        assert answer.expected == (*word[::-1], "[EOS]")
        assert (written[word].text, written[word].stopped) == (answer.output, answer.stopped)
        for site, watched in chunk.weights(0).items():
            np.testing.assert_allclose(watched, answer.forced.maps[site], atol=2e-3)
            n_rows, n_columns = watched.shape[1:]
            np.testing.assert_allclose(
                np.nan_to_num(watched), passed.attentions[site].weights[:, :n_rows, :n_columns], atol=2e-3
            )


# Beams.


@pytest.fixture(scope="module")
def asked_with_beams(half_trained):
    config = half_trained.config.with_changes(decoding="beam", beam_width=4, length_penalty=0.6)
    return Asked(config, snapshot_of(half_trained), NOTHING)


def test_beams_are_those_of_the_task_s_word_and_as_many_as_are_asked_for(half_asked):
    for word in WORDS:
        found = half_asked.beams(word.upper() + " ", 3, 0.25)
        assert (found.step, found.question.text) == (half_asked.step, word)
        assert (found.width, found.length_penalty) == (3, 0.25)
        assert max(node.rank for node in found.tree.nodes) == 3
        answer = half_asked.answer(word)
        assert (found.greedy.text, found.greedy.stopped) == (answer.output, answer.stopped)
        assert found.greedy.right == answer.right
        one = half_asked.beams(word, 1, 0.25)
        assert (one.outputs[0].text, one.outputs[0].stopped) == (answer.output, answer.stopped)
        assert not one.found_more


def test_the_same_beams_are_searched_for_once_and_not_kept_without_end(half_asked):
    first = half_asked.beams("robin", 2, 0.5)
    assert half_asked.beams("robin", 2, 0.5) is first
    others = [("robin", 3, 0.5), ("robin", 2, 0.25), ("heron", 2, 0.5)]
    assert all(half_asked.beams(*other) is not first for other in others)
    for i in range(KEPT_TREES):
        half_asked.beams("robin", 1, i / 100)
    again = half_asked.beams("robin", 2, 0.5)
    assert again is not first
    assert again == first


@pytest.mark.parametrize(
    ("word", "width", "penalty", "named"),
    [("frog", 17, 0.6, "beam_width=17"), ("frog", 4, -0.1, "length_penalty=-0.1"), ("猫", 4, 0.6, "“猫”")],
)
def test_beams_that_cannot_be_searched_for_are_refused(half_asked, word, width, penalty, named):
    with pytest.raises(InputError, match=named):
        half_asked.beams(word, width, penalty)


def test_what_is_taken_away_is_felt_in_the_search(half_asked, ask_without):
    heads = tuple((f"decoder.0.{kind}", head) for kind in ("cross", "self") for head in (0, 1))
    without = ask_without(ablated=heads)
    assert without.beams("frog", 4, 0.6).tree != half_asked.beams("frog", 4, 0.6).tree


def test_a_run_that_is_set_to_beams_answers_with_them_everywhere(half_trained, half_asked, asked_with_beams):
    words = half_trained.task.held_out()[:60]
    recorder = Recorder(half_trained.model, half_trained.task, Decoding(4, 0.6))
    differing = 0
    for word in words:
        found, answer = asked_with_beams.beams(word, 4, 0.6), asked_with_beams.answer(word)
        best = found.outputs[0]
        assert (answer.output, answer.stopped, answer.right) == (best.text, best.stopped, best.right)
        # The letters that it has read, and each in the place where it was written.
        end = ("[EOS]",) if answer.stopped else ()
        assert answer.free.written == (*answer.output, *end)
        assert answer.free.tgt_tokens == ("[SOS]", *answer.output)
        differing += answer.output != half_asked.answer(word).output
        recorder.add(half_trained.task.question(word))
    assert differing, "somewhere it must have gone through a letter that was not the likeliest"
    written = recorder.write(0).by_word
    same = sum(written[word].text == asked_with_beams.answer(word).output for word in words)
    assert same >= len(words) - 2  # the limit is that of the longest in the batch
    right, n = asked_with_beams.exact
    every = half_trained.task.held_out()[:n]
    assert right == sum(spell(half_trained.model, half_trained.task, every, decoding=Decoding(4, 0.6)).exact)
    report, greedy = asked_with_beams.by_length, half_asked.by_length
    assert report.exact.tolist() != greedy.exact.tolist()
