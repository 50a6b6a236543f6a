"""Beam search compared with all possible sequences, arithmetic by hand, and greedy decoding."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from tests.decoding.conftest import probabilities_from, unpadded, without_output_bias
from transformer.config import TrainConfig
from transformer.decoding.beam import GREEDY, Decoding, beam
from transformer.decoding.greedy import greedy
from transformer.decoding.spelling import spell, write
from transformer.training.state import TrainState

EOS, A, B, C, D = 2, 3, 4, 5, 6
TOPOLOGIES = ["encoder-decoder", "decoder-only", "encoder-only"]
WORDS = ["cab", "d", "zebra", "ox", "abcdefghij"]


def found(model, batch, width, penalty=0.6, most=6):
    return unpadded(beam(model, batch, EOS, most, Decoding(width, penalty)))


@pytest.fixture
def unsure(tiny, fill):
    """Return a model with flat token probabilities, and its task."""

    def make(deviation=0.9, **settings):
        state = TrainState.begin(tiny(**settings))
        model = without_output_bias(fill(state.model, deviation=deviation))
        with torch.no_grad():
            model.to_logits.weight.mul_(0.4)
        return model, state.task

    return make


# Against all possible sequences.


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_beam_as_wide_as_all_sequences_finds_the_best_of_them(scripted, seed, penalty):
    model = scripted.Model(scripted.at_random(4, seed))
    best = [list(scripted.best_of_all(model, question, 4, 4, penalty)) for question in range(3)]
    assert found(model, model.asked(3), 4**4, penalty, most=4) == best


@torch.no_grad()
@pytest.mark.parametrize("topology", ["encoder-decoder", "decoder-only"])
def test_the_best_of_all_sequences_of_a_real_model_is_found(unsure, topology):
    """Reference: scores every sequence of at most three tokens with full passes over one word."""
    model, task = unsure(0.6, topology=topology)
    batch, size = task.encode(["cab"]), task.tgt_tokenizer.size
    src, prompt = torch.from_numpy(batch.src), torch.from_numpy(batch.prompt)
    others = [token for token in range(3, size) if token != EOS]  # neither [PAD] nor [SOS] is written here
    model.to_logits.bias[:2] = -1e9
    best, best_score = None, -math.inf
    for n in range(3):
        begun = torch.tensor(list(itertools.product(others, repeat=n)), dtype=torch.long)
        tgt = torch.cat([prompt.expand(len(begun), -1), begun], dim=1)
        read = tgt if topology == "decoder-only" else src.expand(len(begun), -1)
        logs = model(read, tgt).double().log_softmax(-1)[:, prompt.size(1) - 1 :]
        ids = torch.cat([begun, torch.full((len(begun), 1), EOS)], dim=1)
        scores = logs.gather(2, ids[..., None])[..., 0].sum(1) / ((6 + n) / 6) ** 0.6
        if float(scores.max()) > best_score:
            best, best_score = ids[int(scores.argmax())].tolist(), float(scores.max())
    assert len(best) > 1
    assert found(model, batch, size**3, most=3) == [best]


@pytest.mark.parametrize("penalty", [0.0, 0.6])
@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_narrow_beams_equal_the_reference_search(scripted, seed, width, penalty):
    model = scripted.Model(scripted.at_random(5, seed))
    by_hand = [list(scripted.by_hand(model, question, 5, 6, width, penalty)[0]) for question in range(5)]
    assert found(model, model.asked(5), width, penalty) == by_hand
    assert len({len(ids) for ids in by_hand}) > 1


# By hand.


GARDEN_PATH = {
    (): {A: 0.6, B: 0.4},
    (A,): {C: 0.5, D: 0.5},  # 0.6 * 0.5 = 0.30
    (B,): {C: 0.9, D: 0.1},  # 0.4 * 0.9 = 0.36
}


def test_two_beams_recover_from_a_misleading_first_token(scripted):
    model = scripted.Model(probabilities_from(GARDEN_PATH))
    assert unpadded(greedy(model, model.asked(1), EOS, 5)) == [[A, C, EOS]]
    assert found(model, model.asked(1), 1) == [[A, C, EOS]]
    assert found(model, model.asked(1), 2) == [[B, C, EOS]]


def test_the_length_penalty_lets_a_longer_sequence_win(scripted):
    """One token with 0.5, three with 0.4: log 0.5 / 1 = -0.693, log 0.4 / (8 / 6) = -0.687."""
    model = scripted.Model(probabilities_from({(): {EOS: 0.5, A: 0.4, B: 0.1}, (A,): {B: 1.0}}))
    assert found(model, model.asked(1), 2, 0.0) == [[EOS]]
    assert found(model, model.asked(1), 2, 0.9) == [[EOS]]  # -0.707
    assert found(model, model.asked(1), 2, 1.0) == [[A, B, EOS]]
    assert Decoding(2, 1.0).score(torch.tensor(math.log(0.4)), 3) == pytest.approx(-0.687, abs=5e-4)


def test_ties_go_to_the_better_prefix_the_lower_token_and_the_shorter_sequence(scripted):
    even = scripted.Model(lambda _question, _tokens: [0.25] * 4)
    assert found(even, even.asked(1), 4, 0.0, most=3) == [[EOS]]
    open_ended = scripted.Model(lambda _question, _tokens: [0.25, 0.25, 0.0, 0.25, 0.25])
    assert found(open_ended, open_ended.asked(2), 3, most=3) == [[0, 0, 0]] * 2
    tied = scripted.Model(probabilities_from({(): {EOS: 0.5, A: 0.5}, (A,): {B: 1.0}}))
    assert found(tied, tied.asked(1), 2, 0.0) == [[EOS]]
    assert tied.passes == 1  # an open beam that can only tie is not followed
    assert found(tied, tied.asked(1), 2, 0.1) == [[A, B, EOS]]


# When the search stops.


def test_the_search_stops_when_no_open_beam_can_win_any_more(scripted):
    sure = scripted.Model(probabilities_from({(): {A: 0.9, B: 0.1}, (B,): {C: 1.0}, (B, C): {D: 1.0}}))
    assert found(sure, sure.asked(1), 2, most=40) == [[A, EOS]]
    assert sure.passes == 2


def test_a_beam_that_may_still_win_is_followed(scripted):
    model = scripted.Model(probabilities_from({(): {EOS: 0.4, A: 0.6}, (A,): {B: 1.0}, (A, B): {C: 1.0}}))
    assert found(model, model.asked(1), 2, 0.0) == [[A, B, C, EOS]]
    assert model.passes == 4


def test_a_finished_question_is_not_searched_further(scripted):
    seen = []

    def says(question, tokens):
        seen.append((question, len(tokens)))
        return [0, 0, 1.0, 0] if question == 1 or len(tokens) == 3 else [0, 0, 0, 1.0]

    model = scripted.Model(says)
    assert found(model, model.asked(3), 2) == [[A, A, A, EOS], [EOS], [A, A, A, EOS]]
    assert max(n for question, n in seen if question == 1) == 0


def test_the_likeliest_beam_is_the_answer_where_none_has_ended(scripted):
    table = {(): {A: 0.6, B: 0.4}, (A,): {A: 0.5, B: 0.5}, (B,): {D: 1.0}, (B, D): {D: 1.0}}
    model = scripted.Model(probabilities_from(table))
    assert found(model, model.asked(2), 3, most=2) == [[B, D]] * 2


def test_a_finished_beam_wins_over_a_likelier_one_that_was_cut_off(scripted):
    model = scripted.Model(probabilities_from({(): {EOS: 0.1, A: 0.9}, (A,): {A: 1.0}, (A, A): {A: 1.0}}))
    assert found(model, model.asked(1), 2, most=3) == [[EOS]]
    assert found(model, model.asked(1), 1, most=3) == [[A, A, A]]


def test_writing_ends_at_the_last_position_and_the_last_token_needs_no_position(scripted):
    model = scripted.Model(lambda _question, _tokens: [0, 0, 0, 1.0], most=4)
    assert found(model, model.asked(1), 2, most=50) == [[A] * 4]


def test_nan_probabilities_give_an_answer_and_one_beam_gives_the_greedy_answer(scripted):
    model = scripted.Model(lambda _question, _tokens: [math.nan] * 4)
    assert found(model, model.asked(2), 1, most=3) == unpadded(greedy(model, model.asked(2), EOS, 3))
    assert found(model, model.asked(2), 3, most=3) == [[EOS]] * 2  # [EOS] is the third of the equal tokens


# Against greedy decoding, and word by word.


@torch.no_grad()
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(3))
def test_one_beam_equals_greedy_decoding(unsure, topology, causal, seed):
    """An encoder alone has nothing to search: it has one beam, whatever number is requested."""
    model, task = unsure(0.5 + 0.2 * seed, topology=topology, causal_mask=causal)
    batch = task.encode(WORDS)
    expected = unpadded(greedy(model, batch, EOS, 9))
    assert found(model, batch, 8 if topology == "encoder-only" else 1, 1.0, most=9) == expected
    assert len(set(map(tuple, expected))) > 2


@torch.no_grad()
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("topology", ["encoder-decoder", "decoder-only"])
@pytest.mark.parametrize("seed", range(3))
def test_several_words_are_searched_like_each_word_alone(unsure, topology, causal, seed):
    model, task = unsure(0.5 + 0.1 * seed, topology=topology, causal_mask=causal)
    together = found(model, task.encode(WORDS), 4, most=7)
    assert together == [found(model, task.encode([word]), 4, most=7)[0] for word in WORDS]
    assert together != found(model, task.encode(WORDS), 1, most=7)


# The settings of a run.


def test_a_run_decodes_greedily_unless_beam_search_is_configured():
    assert Decoding.of(TrainConfig()) == GREEDY == Decoding(1, 0.0)
    assert Decoding.of(TrainConfig(beam_width=7)) == GREEDY
    config = TrainConfig(decoding="beam", beam_width=7, length_penalty=0.25)
    assert Decoding.of(config) == Decoding(7, 0.25)


@torch.no_grad()
def test_writing_is_greedy_with_one_beam_and_losses_are_greedy_with_any_number_of_beams(unsure):
    model, task = unsure()
    batch = task.encode(WORDS[:4])
    one, some = (write(model, batch, EOS, 6, decoding=Decoding(n, 0.6), compare=True) for n in (1, 4))
    assert unpadded(one) == unpadded(greedy(model, batch, EOS, 6))
    assert unpadded(some) == found(model, batch, 4) != unpadded(one)
    torch.testing.assert_close(one.losses, some.losses, atol=0, rtol=0)
    assert write(model, batch, EOS, 6, decoding=Decoding(4, 0.6)).losses is None


def test_words_are_spelled_with_the_given_decoding(half_trained):
    model, task = half_trained.model.eval(), half_trained.task
    words = task.held_out()[:40]
    spelled = spell(model, task, words, decoding=Decoding(3, 0.5))
    batch = task.encode(words)
    written = found(model, batch, 3, 0.5, most=batch.answers.shape[1])
    texts = [task.tgt_tokenizer.text(ids) for ids in written]
    assert spelled.outputs == [text for text, _ in texts]
    assert spelled.exact == [s and text == w[::-1] for w, (text, s) in zip(words, texts, strict=True)]
    assert spelled.outputs != spell(model, task, words).outputs
