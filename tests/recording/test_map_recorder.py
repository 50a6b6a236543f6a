"""Recorded frames: labels are the tokens attended to, outputs are free-running."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from transformer.config import RunConfig
from transformer.decoding.spelling import spell, write
from transformer.insight.scores import head_scores
from transformer.model.transformer import Transformer
from transformer.recording.activations import record
from transformer.recording.map_recorder import MapRecorder
from transformer.shared.attention_info import reading_sites
from transformer.training.loop import train
from transformer.training.state import TrainState

WORDS = ["frog", "q", "ox", "kayak"]  # the last is longer than the half-trained model's 4 letters


@pytest.fixture
def make_frame(frame_of):
    return lambda state, words=WORDS: frame_of(state, words)


@pytest.fixture
def frame(half_trained, make_frame):
    return make_frame(half_trained)


def weights_alone(state, word):
    """Return the weights of a pass over one word without padding, site to (H, Q, K)."""
    src, tgt_in, _ = state.to_device(state.task.encode([word]))
    with record(state.model) as cache:
        state.model(src, tgt_in)
    return {site: weights[0] for site, weights in cache.weights.items()}


def test_the_labels_are_the_tokens_that_were_attended_to(half_trained, make_frame):
    """A hook captures the ids that the model is given, to compare them with the frame's labels."""
    given = []
    hook = register_module_forward_pre_hook(
        lambda module, ids: given.append(ids) if isinstance(module, Transformer) else None
    )
    frame = make_frame(half_trained)
    hook.remove()
    src, tgt_in = next(ids for ids in given if len(ids[0]) == len(WORDS))
    named = half_trained.task.src_tokenizer.tokens
    for i, (tracked, word) in enumerate(zip(frame.words, WORDS, strict=True)):
        assert tracked.text == word
        assert tracked.src_tokens == ("[SOS]", *word, "[EOS]") == named(src[i].tolist())[: len(word) + 2]
        assert tracked.tgt_tokens == ("[SOS]", *reversed(word)) == named(tgt_in[i].tolist())[: len(word) + 1]
        assert tracked.expected == (*reversed(word), "[EOS]")
        assert tracked.answer == word[::-1]
        assert not src[i, len(word) + 2 :].any()
        assert not tgt_in[i, len(word) + 1 :].any()


def test_a_map_is_nan_exactly_where_the_mask_blocks(frame):
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


def test_outputs_are_free_running(half_trained, make_frame):
    """The model reads each token that it wrote before it writes another; it never reads the right answer."""
    words = ["frog", "q", "kayak", "banana", "pizza", "elephant", "robin", "mango"]
    frame = make_frame(half_trained, words)
    tokenizer = half_trained.task.tgt_tokenizer
    half_trained.model.eval()
    for tracked, word in zip(frame.words, words, strict=True):
        src = torch.tensor(half_trained.task.src_tokenizer.encode([word]))
        tgt = torch.tensor([[1]])
        for _ in range(min(len(word) + 4, 10)):  # up to three letters too many, as far as they fit
            tgt = torch.cat([tgt, half_trained.model(src, tgt)[:, -1].argmax(-1, keepdim=True)], dim=1)
        assert (tracked.output, tracked.stopped) == tokenizer.text(tgt[0, 1:].tolist())
        assert tracked.right == (tracked.output == word[::-1] and tracked.stopped)
        assert tracked.too_long == (len(word) > 4)
    assert {tracked.right for tracked in frame.words} == {True, False}
    beside = {tracked.text: "".join(tracked.predicted).split("[EOS]")[0] for tracked in frame.words}
    assert any(tracked.output != beside[tracked.text] for tracked in frame.words), (
        "they must differ to be told apart"
    )


def test_a_word_whose_predictions_are_all_right_is_not_decoded_and_has_the_same_output(
    half_trained, recorder_of, monkeypatch
):
    words, asked = half_trained.task.held_out()[:24], []

    def counted(model, batch, *args, **options):
        asked.append(len(batch.src))
        return write(model, batch, *args, **options)

    monkeypatch.setattr("transformer.recording.words.write", counted)
    recorder, blind = recorder_of(half_trained, words), recorder_of(half_trained, words)
    recorder.buffer.copy(130)
    recorder.compute()
    assert recorder.write(130) == blind.write(130)
    n_right = sum(output.right for output in blind.write(130).by_word.values())
    assert asked == [24 - n_right, 24, 24]
    assert 5 < n_right < 20
    recorder.write(131)  # no predictions are known for another step
    assert asked[3:] == [24]


@pytest.mark.parametrize("training", [True, False])
def test_recording_draws_no_random_numbers_in_train_and_eval_mode(tiny, make_frame, training):
    state = TrainState.begin(tiny(dropout=0.5))
    state.model.train(training)
    before = torch.get_rng_state(), state.dropout.get_state(), np.random.get_state()[1].copy()
    first, again = make_frame(state), make_frame(state)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(state.dropout.get_state(), before[1])
    assert np.array_equal(np.random.get_state()[1], before[2])
    for row in range(len(WORDS)):
        for site in first.axes:
            assert np.array_equal(first.map(row, site), again.map(row, site), equal_nan=True)


def test_batches_drawn_again_in_parts_while_training_goes_on_are_remembered_like_those_of_one_training(tiny):
    state = TrainState.begin(tiny(min_letters=1, max_letters=3, batch_size=40))
    whole, resumed = (MapRecorder(state.model, state.task) for _ in range(2))
    batches = [state.task.batch(0, k).words for k in range(20)]
    for k, words in enumerate(batches):
        whole.drawn.note(k + 1, words)
        if k >= 12:  # resumed after step 12
            resumed.drawn.note(k + 1, words)
            resumed.draw_again(0, k + 1, 4)
    assert resumed.drawn.steps == whole.drawn.steps == 20
    assert not resumed.drawn.full
    words = {word for batch in batches for word in batch}
    assert {word: resumed.drawn.first_step(word) for word in words} == {
        word: whole.drawn.first_step(word) for word in words
    }


def test_drawn_at_is_the_first_step_whose_batch_had_the_word(tiny, frame_of):
    """Compare with a search of all batches, for words tracked from the start and words added later."""
    state = TrainState.begin(tiny(min_letters=1, max_letters=3, batch_size=40))
    task, seed, last = state.task, state.config.seed, 30
    drawn = [set(task.words(seed, k)) for k in range(last)]
    known = ["a", "no", "ox", next(w for w in sorted(drawn[20]) if len(w) == 3), task.held_out()[0], "toolon"]
    late = ["b", "it", "up", next(w for w in sorted(drawn[4]) if len(w) == 3)]
    recorder = MapRecorder(state.model, task)
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
        state.step = step
        told[step] = {
            tracked.text: tracked.drawn_at for tracked in frame_of(state, (), recorder=recorder).words
        }
    for step, answers in told.items():
        assert list(answers) == (known if step < 17 else known + late)
        for word, drawn_at in answers.items():
            expected = next((k + 1 for k in range(step) if word in drawn[k]), None)
            assert drawn_at == expected, (step, word)
    assert len(set(told[last].values())) > 4


def test_a_word_is_found_by_its_text_and_tracked_once(half_trained, make_frame):
    frame = make_frame(half_trained, ["ox", "frog", "ox"])
    assert [tracked.text for tracked in frame.words] == ["ox", "frog"]
    assert (frame.row_of("frog"), frame.row_of("ox"), frame.row_of("nobody")) == (1, 0, 0)


# Models of one stack.

BOTH_ALONE = ["encoder-only", "decoder-only"]


@pytest.fixture
def made(tiny, fill, make_frame):
    """Return the state of a tiny model with random weights, and its frame of three words."""

    def make(**settings):
        state = TrainState.begin(tiny(max_letters=4, **settings))
        fill(state.model, 0.7)
        with torch.no_grad():
            state.model.to_logits.bias.zero_()
        return state, make_frame(state, ["frog", "q", "ox"])

    return make


def test_an_encoder_only_model_shows_what_it_reads_and_writes_at_each_position(made):
    state, frame = made(topology="encoder-only")
    guesses = state.model.eval()(torch.from_numpy(state.task.encode(["q"]).src))[0].argmax(-1).tolist()
    tracked = frame.words[1]
    assert tracked.src_tokens == tracked.tgt_tokens == ("[SOS]", "q", "[EOS]")
    assert tracked.expected == ("", "q", "[EOS]")
    assert frame.words[0].expected == ("", "g", "o", "r", "f", "[EOS]")
    assert tracked.predicted == state.task.tgt_tokenizer.tokens(guesses)
    assert (tracked.output, tracked.stopped) == state.task.tgt_tokenizer.text(guesses[1:])
    assert [(site, axes.kind, axes.writes, axes.causal) for site, axes in frame.axes.items()] == [
        ("encoder.0", "encoder", True, False)
    ]
    assert reading_sites(frame.axes) == ["encoder.0"] == list(frame.scores)
    assert [frame.map(row, "encoder.0").shape for row in range(3)] == [(3, 6, 6), (3, 3, 3), (3, 4, 4)]


def test_a_decoder_only_model_shows_question_and_answer_on_both_axes(made):
    state, frame = made(topology="decoder-only")
    tracked = frame.words[2]
    assert tracked.src_tokens == tracked.tgt_tokens == ("[SOS]", "o", "x", "[SEP]", "x", "o")
    assert tracked.expected == ("", "", "", "x", "o", "[EOS]")
    assert len(tracked.predicted) == 6
    assert [(site, axes.kind, axes.writes, axes.causal) for site, axes in frame.axes.items()] == [
        ("decoder.0.self", "sequence", True, True),
        ("decoder.1.self", "sequence", True, True),
    ]
    assert reading_sites(frame.axes) == ["decoder.0.self", "decoder.1.self"] == list(frame.scores)
    ids = torch.tensor([[1, *map(state.task.src_tokenizer.id_of, "ox"), 30]])
    written = []
    state.model.eval()
    for _ in range(6):  # up to three letters too many
        written.append(int(state.model(ids, ids)[0, -1].argmax()))
        ids = torch.cat([ids, torch.tensor([[written[-1]]])], dim=1)
    assert (tracked.output, tracked.stopped) == state.task.tgt_tokenizer.text(written)


@pytest.mark.parametrize("topology", ["encoder-decoder", *BOTH_ALONE])
@pytest.mark.parametrize("causal", [True, False])
def test_head_scores_equal_those_of_64_fixed_held_out_words_scored_one_by_one(made, topology, causal):
    state, frame = made(topology=topology, causal_mask=causal)
    words = [word for word in state.task.held_out() if len(word) >= 3][:64]
    alone = [weights_alone(state, word) for word in words]
    lengths = [len(word) for word in words]
    assert list(frame.scores) == reading_sites(frame.axes)
    for site, scores in frame.scores.items():
        one_by_one = [
            head_scores(weights[site][None], frame.axes[site].kind, [n])["mirror"]
            for weights, n in zip(alone, lengths, strict=True)
        ]
        assert scores == pytest.approx(np.average(one_by_one, axis=0, weights=lengths), abs=1e-5)
    (site, head), highest = frame.best
    assert highest == max(scores.max() for scores in frame.scores.values()) == frame.scores[site][head]
    assert (frame.clearest, frame.clearest_score) == ((site, head), pytest.approx(highest))


# Masks that are off.


@pytest.mark.parametrize("topology", ["encoder-decoder", *BOTH_ALONE])
def test_padding_that_no_mask_blocks_is_on_the_maps_with_its_weights(made, topology):
    _, frame = made(topology=topology, padding_mask=False)
    longest = {"src": 6, "tgt": 5, "seq": 10}
    for row, word in enumerate(["frog", "q", "ox"]):
        tracked = frame.words[row]
        assert tracked.tokens("src").count("[PAD]") > 0 or word == "frog"
        assert len(tracked.expected) == len(tracked.predicted) == len(tracked.tgt_tokens)
        for site, axes in frame.axes.items():
            rows, columns = tracked.tokens(axes.query), tracked.tokens(axes.key)
            assert (len(rows), len(columns)) == (longest[axes.query], longest[axes.key])
            shown = frame.map(row, site)
            assert shown.shape == (3, len(rows), len(columns))
            np.testing.assert_allclose(np.nansum(shown, axis=-1), 1.0, atol=2e-4)
            future = np.triu(np.ones(shown.shape[1:], bool), 1)
            assert np.array_equal(np.isnan(shown).any(0), future & axes.causal)
            for column in [j for j, token in enumerate(columns) if token == "[PAD]"]:
                assert np.nanmax(shown[:, :, column]) > 0
            assert not axes.padding
    assert frame.words[1].expected[-1] == ""


def test_a_model_without_a_padding_mask_gets_as_much_padding_as_in_training(frame_of):
    """Its answers depend on the amount of padding; frames and evaluations agree on which are right."""
    config = RunConfig(seed=2).with_changes(padding_mask=False, max_letters=6, batch_size=32, steps=120)
    state = TrainState.begin(config)
    for _ in train(state):
        pass
    words = state.task.held_out()[:12]
    frame = frame_of(state, words[:4])
    evaluated = spell(state.model, state.task, [*words, "abcdef"]).exact
    assert 0 < sum(evaluated) < len(evaluated)
    assert [tracked.right for tracked in frame.words] == evaluated[:4]
    assert {len(tracked.src_tokens) for tracked in frame.words} == {6 + 2}
    np.testing.assert_allclose(frame.map(0, "decoder.1.cross").sum(axis=-1), 1.0, atol=2e-4)
