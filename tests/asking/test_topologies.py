"""Questions to every topology, with masks on and off: what is displayed is what was computed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.asking.conftest import ids_of, one_pass, snapshot_of
from tests.conftest import LIVE
from transformer.anatomy.trace import trace
from transformer.asking.model import SnapshotModel, snapshot_model
from transformer.config import RunConfig
from transformer.recording.map_recorder import MapRecorder
from transformer.recording.weights import Snapshot
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions
from transformer.training.loop import train
from transformer.training.state import TrainState

TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]


@pytest.fixture
def random_model(tiny, fill):
    """Return a training state with random weights, and its model to ask."""

    def make(taken=NO_INTERVENTIONS, *, ends=None, **settings):
        state = TrainState.begin(tiny(**settings))
        fill(state.model, 0.9)
        with torch.no_grad():
            state.model.to_logits.bias.zero_()
            if ends is not None:
                state.model.to_logits.bias[2] = ends
        state.model.eval()
        return state, SnapshotModel(state.config, snapshot_of(state), taken)

    return make


def test_an_encoder_alone_needs_one_pass_and_writes_at_the_place_of_each_letter(random_model):
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
def test_without_the_causal_mask_each_row_is_shown_as_it_was_when_it_wrote(random_model, topology, how, ends):
    """Reference: each token comes from the last row of a new pass over the tokens so far."""
    off = Interventions(masks=(("causal", False),))
    settings = {"topology": topology} | ({"causal_mask": False} if how == "configured" else {})
    state, model = random_model(off if how == "switched" else NO_INTERVENTIONS, ends=ends, **settings)
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
            # Rows of the question are those of the first pass; in later passes they would attend to more.
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
def test_a_model_that_never_stops_answers_the_longest_word(random_model, topology, causal):
    _, model = random_model(topology=topology, causal_mask=causal, ends=-1e9)
    answer = model.answer("abcdefghij")  # twice the five letters trained on
    assert not answer.stopped
    assert len(answer.free.written) >= 11
    assert "".join(answer.free.written[: len(answer.output)]) == answer.output
    assert model.by_length.exact.tolist() == [0.0] * len(model.by_length.lengths)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_reports_of_every_topology_equal_those_of_words_asked_one_by_one(random_model, topology):
    state, model = random_model(topology=topology)
    words = state.task.corpus.words_of_length(2, 25)
    right = [model.answer(word) for word in words]
    i = model.by_length.lengths.index(2)
    assert model.by_length.exact[i] == np.mean([answer.right for answer in right])
    for place in range(2):
        hits = [answer.output[place : place + 1] == answer.question.answer[place] for answer in right]
        assert model.by_length.share[i, place] == pytest.approx(np.mean(hits))
    assert model.exact[1] == LIVE
    assert model.head_scores.keys() == right[0].forced.maps.keys()


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_snapshot_with_switched_masks_is_asked_with_the_masks_of_its_configuration(random_model, topology):
    """The switched masks apply only on request."""
    default = topology != "encoder-only"
    switched = Interventions(masks=(("causal", not default),))
    state, plain = random_model(topology=topology)
    snapshot = snapshot_of(state, interventions=switched)
    expected = plain.answer("frog").forced
    assert np.array_equal(
        snapshot_model(state.config, snapshot).answer("frog").forced.probabilities, expected.probabilities
    )
    other = snapshot_model(state.config, snapshot, switched).answer("frog")
    assert np.abs(other.forced.probabilities - expected.probabilities).max() > 0.01
    writing_to_itself = [axes for axes in other.forced.axes.values() if axes.writes and axes.kind != "cross"]
    assert writing_to_itself
    assert {axes.causal for axes in writing_to_itself} == {not default}


@pytest.fixture(scope="module")
def seeing_padding():
    """A model without a padding mask, trained on words that are padded to one length."""
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 32, "n_heads": 4, "batch_size": 48}
    config = RunConfig(seed=1, device="cpu").with_changes(
        padding_mask=False, max_letters=5, steps=180, evaluate_every=1000, **sizes
    )
    state = TrainState.begin(config)
    for _ in train(state):
        pass
    weights = {name: tensor.numpy().copy() for name, tensor in state.model.state_dict().items()}
    return state, Snapshot(step=180, source=weights)


def test_a_model_without_a_padding_mask_is_asked_with_the_padding_of_its_training(seeing_padding):
    state, snapshot = seeing_padding
    report = snapshot_model(state.config, snapshot).by_length
    trained = [exact for n, exact in zip(report.lengths, report.exact, strict=True) if 3 <= n <= 5]
    assert min(trained) > 0.5  # without padding, no shorter word would be answered right


def test_watch_ask_and_look_inside_show_the_same_map_of_a_word(seeing_padding):
    state, snapshot = seeing_padding
    recorder, words = MapRecorder(state.model, state.task), ("cat", "longestone", "ox")
    for word in words:  # the second is longer than any training word
        recorder.add(state.task.question(word))
    recorder.buffer.copy(180)
    written, recorded = recorder.write(180).by_word, recorder.compute()
    for word, chunk in zip(words, recorded, strict=True):
        answer = snapshot_model(state.config, snapshot).answer(word)
        passed = trace(state.config, snapshot, word)
        assert answer.expected == (*word[::-1], "[EOS]")
        assert (written[word].text, written[word].stopped) == (answer.output, answer.stopped)
        for site, watched in chunk.weights(0).items():
            np.testing.assert_allclose(watched, answer.forced.maps[site], atol=2e-3)
            n_rows, n_columns = watched.shape[1:]
            np.testing.assert_allclose(
                np.nan_to_num(watched), passed.attentions[site].weights[:, :n_rows, :n_columns], atol=2e-3
            )
