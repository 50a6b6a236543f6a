"""The tree of a beam search: every hypothesis that was in the beam, its parent and its fate."""

from __future__ import annotations

import math

import pytest
import torch

from tests.decoding.conftest import probabilities_from, without_output_bias
from transformer.decoding.beam import Decoding
from transformer.decoding.greedy import greedy
from transformer.decoding.tree import beam_tree, beams_of
from transformer.training.state import TrainState

EOS, A, B, C, D = 2, 3, 4, 5, 6


def grown(model, width, penalty=0.6, most=6):
    return beam_tree(model, model.asked(1), EOS, most, Decoding(width, penalty))


def sequence(tree, node):
    return tuple(tree.nodes[i].token for i in tree.path(node))


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_the_tree_holds_the_beam_after_each_token(scripted, seed, width):
    model = scripted.Model(scripted.at_random(5, seed))
    tree = grown(model, width)
    answer, levels = scripted.by_hand(model, 0, 5, 6, width, 0.6)
    assert sequence(tree, tree.winner) == answer
    for n, level in enumerate(levels, start=1):
        nodes = [i for i, node in enumerate(tree.nodes) if node.step == n]
        assert [sequence(tree, i) for i in nodes] == level
        assert [tree.nodes[i].rank for i in nodes] == list(range(1, len(level) + 1))
    assert len(tree.nodes) == sum(map(len, levels)) <= 6 * width
    for i, node in enumerate(tree.nodes):
        ids = sequence(tree, i)
        assert node.total == pytest.approx(model.log_probability(0, ids), abs=1e-5)
        before = model.log_probability(0, ids[:-1])
        assert node.log_probability == pytest.approx(node.total - before, abs=1e-5)
        assert node.score == pytest.approx(node.total / ((5 + len(ids)) / 6) ** 0.6)
        assert node.ended == (ids[-1] == EOS)
        assert (node.parent is None) == (node.step == 1)


def test_each_hypothesis_has_its_fate(scripted):
    """After a and b, the beam holds bc, ac and a[EOS]; ad would be the fourth."""
    table = {
        (): {A: 0.6, B: 0.4},
        (A,): {C: 0.5, D: 0.2, EOS: 0.3},
        (B,): {C: 0.9, A: 0.1},
        (A, C): {EOS: 0.5, A: 0.5},
        (B, C): {EOS: 1.0},
    }

    tree = grown(scripted.Model(probabilities_from(table)), 3, penalty=0.0)
    fates = {sequence(tree, i): node.fate for i, node in enumerate(tree.nodes) if node.total > -1e8}
    assert fates == {
        (A,): "kept",
        (B,): "chosen",
        (B, C): "chosen",  # 0.36
        (A, C): "kept",  # 0.30
        (A, EOS): "finished",  # 0.18; ad has 0.12
        (B, C, EOS): "chosen",
        (A, C, EOS): "finished",  # 0.15
        (A, C, A): "kept",  # open until the end, but cannot win any more
    }
    assert [sequence(tree, i) for i in tree.finished] == [(B, C, EOS), (A, EOS), (A, C, EOS)]
    assert tree.winner == tree.finished[0]
    narrow = grown(scripted.Model(probabilities_from(table)), 2, penalty=0.0)
    fates = {sequence(narrow, i): node.fate for i, node in enumerate(narrow.nodes)}
    assert fates[(A,)] == "kept"


def test_a_hypothesis_without_surviving_descendants_is_pruned_with_all_of_them(scripted):
    table = {
        (): {A: 0.5, B: 0.5},
        (A,): {A: 0.5, B: 0.5},
        (B,): {C: 1.0},
        (B, C): {C: 0.5, D: 0.5},
    }

    tree = grown(scripted.Model(probabilities_from(table)), 2)
    fates = {sequence(tree, i): node.fate for i, node in enumerate(tree.nodes)}
    assert fates == {
        (A,): "pruned",
        (A, A): "pruned",  # 0.25, like bcc and bcd; ties go to the better prefix
        (B,): "chosen",
        (B, C): "chosen",
        (B, C, C): "chosen",
        (B, C, D): "kept",
        (B, C, C, EOS): "chosen",
        (B, C, D, EOS): "finished",
    }


def test_where_no_hypothesis_ended_the_answer_is_the_likeliest_open_one(scripted):
    tree = grown(scripted.Model(lambda _question, _tokens: [0.1, 0.1, 0.0, 0.2, 0.6]), 2, most=3)
    assert tree.finished == ()
    assert sequence(tree, tree.winner) == (4, 4, 4)
    assert {node.fate for node in tree.nodes if node.step == 3} == {"chosen", "kept"}


@torch.no_grad()
def test_an_encoder_alone_has_one_beam_with_the_probabilities_of_its_single_pass(tiny, fill):
    state = TrainState.begin(tiny(topology="encoder-only"))
    model = without_output_bias(fill(state.model, deviation=0.7))
    batch = state.task.encode(["zebra"], filled=True)
    tree = beam_tree(model, batch, EOS, 3, Decoding(5, 0.6))
    assert [node.rank for node in tree.nodes] == [1] * len(tree.nodes)
    ids = greedy(model, batch, EOS, 3).tokens[0, : len(tree.nodes)].tolist()
    assert [node.token for node in tree.nodes] == ids
    logs = model(torch.from_numpy(batch.src))[0, 1:].double().log_softmax(-1)
    expected = [float(logs[t, token]) for t, token in enumerate(ids)]
    assert [node.log_probability for node in tree.nodes] == pytest.approx(expected)
    assert tree.nodes[-1].total == pytest.approx(sum(expected))


def test_a_tree_of_several_questions_is_refused(scripted):
    model = scripted.Model(scripted.at_random(5, 0))
    with pytest.raises(ValueError, match=r"^A tree is of 1 question, not of 3\.$"):
        beam_tree(model, model.asked(3), EOS, 4, Decoding(2, 0.6))


def test_an_output_that_does_not_stop_is_wrong_even_if_every_letter_is_right(half_trained):
    model, task = half_trained.model.eval(), half_trained.task

    def asked(word, room):
        question, batch = task.question(word), task.encode([word])
        return beams_of(model, task, question, batch, room, Decoding(2, 0.6), step=0).greedy

    word = next(word for word in task.held_out() if asked(word, len(word) + 1).right)
    cut_off = asked(word, len(word))
    assert (cut_off.text, cut_off.stopped, cut_off.right) == (word[::-1], False, False)


def test_the_outputs_are_the_finished_hypotheses_best_first_and_the_greedy_output(half_trained):
    model, task = half_trained.model.eval(), half_trained.task
    question = task.question("frog")
    batch = task.encode(["frog"])
    found = beams_of(model, task, question, batch, 8, Decoding(4, 0.6), step=130)
    tree = beam_tree(model, batch, EOS, 8, Decoding(4, 0.6))
    assert found.tree == tree
    assert found.tokens == task.tgt_tokenizer.tokens([node.token for node in tree.nodes])
    assert len(found.outputs) == len(tree.finished) > 1
    scores = [output.score for output in found.outputs]
    assert scores == sorted(scores, reverse=True)
    for output, end in zip(found.outputs, tree.finished, strict=True):
        assert output.text == "".join(found.tokens[i] for i in tree.path(end)[:-1])
        assert output.stopped
        assert output.right == (output.text == "gorf")
        assert output.probability == pytest.approx(math.exp(tree.nodes[end].total))
    written = greedy(model, batch, EOS, 8)
    text, stopped = task.tgt_tokenizer.text(written.tokens[0, : int(written.lengths[0])].tolist())
    assert (found.greedy.text, found.greedy.stopped) == (text, stopped)
    assert found.differs_from_greedy == (found.outputs[0].text != text)
