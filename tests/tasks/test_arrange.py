"""The layout of questions and answers, token by token, against layouts written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.tasks import resolved
from transformer.tasks.arrange import arrange, sequence_limit
from transformer.tasks.tokenizer import characters

PAD, SOS, EOS, SEP = 0, 1, 2, 7
X, Y, Z = 4, 5, 6
SIDES = ("src", "tgt_in", "tgt_out", "answers", "prompt")
# Two questions of different lengths; each answer is as long as its question.
BY_HAND = {
    "encoder-decoder": {
        "src": [[SOS, X, Y, Z, EOS], [SOS, Z, EOS, PAD, PAD]],
        "tgt_in": [[SOS, Z, Y, X], [SOS, Y, PAD, PAD]],
        "tgt_out": [[Z, Y, X, EOS], [Y, EOS, PAD, PAD]],
        "answers": [[Z, Y, X, EOS], [Y, EOS, PAD, PAD]],
        "prompt": [[SOS], [SOS]],
    },
    "encoder-only": {
        "src": [[SOS, X, Y, Z, EOS], [SOS, Z, EOS, PAD, PAD]],
        "tgt_in": [[SOS, X, Y, Z, EOS], [SOS, Z, EOS, PAD, PAD]],
        "tgt_out": [[PAD, Z, Y, X, EOS], [PAD, Y, EOS, PAD, PAD]],
        "answers": [[Z, Y, X, EOS], [Y, EOS, PAD, PAD]],
        "prompt": [[], []],
    },
    "decoder-only": {
        "src": [[SOS, X, Y, Z, SEP, Z, Y, X], [SOS, Z, SEP, Y, PAD, PAD, PAD, PAD]],
        "tgt_in": [[SOS, X, Y, Z, SEP, Z, Y, X], [SOS, Z, SEP, Y, PAD, PAD, PAD, PAD]],
        "tgt_out": [[PAD, PAD, PAD, PAD, Z, Y, X, EOS], [PAD, PAD, Y, EOS, PAD, PAD, PAD, PAD]],
        "answers": [[Z, Y, X, EOS], [Y, EOS, PAD, PAD]],
        "prompt": [[SOS, X, Y, Z, SEP], [SOS, Z, SEP, PAD, PAD]],
    },
}


def laid_out(topology, questions, answers, **settings):
    """Arrange texts made of x, y and z as one batch."""
    tokens = characters("xyz", separator=topology == "decoder-only")
    read, written = tokens.encode(questions), tokens.encode(answers)
    return arrange(topology, read, written, sep_id=tokens.sep_id, words=questions, **settings)


@pytest.mark.parametrize("topology", BY_HAND)
def test_each_topology_lays_out_questions_and_answers_as_by_hand(topology):
    batch = laid_out(topology, ["xyz", "z"], ["zyx", "y"])
    for side, expected in BY_HAND[topology].items():
        found = getattr(batch, side)
        assert found.tolist() == expected, side
        assert found.dtype == np.int64
    assert batch.words == ("xyz", "z")


def test_answers_may_be_longer_or_shorter_than_their_questions():
    two = laid_out("encoder-decoder", ["x", "yz"], ["zzzz", ""])
    assert two.src.tolist() == [[SOS, X, EOS, 0], [SOS, Y, Z, EOS]]  # each side is padded to its longest text
    assert two.tgt_in.tolist() == [[SOS, Z, Z, Z, Z], [SOS, 0, 0, 0, 0]]
    assert two.tgt_out.tolist() == two.answers.tolist() == [[Z, Z, Z, Z, EOS], [EOS, 0, 0, 0, 0]]
    one = laid_out("decoder-only", ["x", "yz"], ["zzzz", ""])
    assert one.tgt_in.tolist() == [[SOS, X, SEP, Z, Z, Z, Z], [SOS, Y, Z, SEP, 0, 0, 0]]
    assert one.tgt_out.tolist() == [[0, 0, Z, Z, Z, Z, EOS], [0, 0, 0, EOS, 0, 0, 0]]
    assert one.prompt.tolist() == [[SOS, X, SEP, 0], [SOS, Y, Z, SEP]]


@pytest.mark.parametrize("topology", BY_HAND)
def test_padding_to_a_length_adds_only_padding_and_makes_all_shapes_equal(topology):
    """Question and answer get nine tokens each; one sequence needs 16, with [SEP] between and no [EOS]."""
    words = [["xyz", "z"], ["xyzxyzx", "y"]]
    batches = [laid_out(topology, w, [x[::-1] for x in w], pad_to=9) for w in words]
    widths = {"src": 9, "tgt_in": 8, "tgt_out": 8, "answers": 8}
    widths |= {"tgt_in": 9, "tgt_out": 9} if topology == "encoder-only" else {}
    widths |= dict.fromkeys(("src", "tgt_in", "tgt_out"), 16) if topology == "decoder-only" else {}
    for batch, w in zip(batches, words, strict=True):
        loose = laid_out(topology, w, [x[::-1] for x in w])
        for side in SIDES:
            wide, narrow = getattr(batch, side), getattr(loose, side)
            assert np.array_equal(wide[:, : narrow.shape[1]], narrow)
            assert not wide[:, narrow.shape[1] :].any()
            assert wide.shape[1] == widths.get(side, narrow.shape[1])


@pytest.mark.parametrize("letters", [3, 12])
@pytest.mark.parametrize("topology", BY_HAND)
def test_the_limit_fits_question_and_answer_and_three_more_tokens_in_one_sequence(topology, letters):
    batch = laid_out(topology, ["x" * letters], ["z" * letters])
    needed = batch.tgt_in.shape[1] + 3 if topology == "decoder-only" else batch.src.shape[1]
    assert sequence_limit(topology, letters, letters) == needed


@pytest.mark.parametrize("topology", BY_HAND)
def test_a_configuration_is_completed_with_the_vocabulary_and_positions_of_its_layout(tiny, topology):
    config = resolved(tiny(topology=topology, max_letters=4))
    tokens = 31 if topology == "decoder-only" else 30
    assert (config.model.src_vocab_size, config.model.tgt_vocab_size) == (tokens, tokens)
    assert config.model.max_len == (21 if topology == "decoder-only" else 10)
    assert config.train == tiny(max_letters=4).train
