"""A trace contains the question and the model's numbers; test_boxes.py compares these one by one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.anatomy.conftest import BASES
from transformer.anatomy.trace import trace
from transformer.asking.model import snapshot_model
from transformer.errors import InputError
from transformer.shared.interventions import Block, Interventions

BESIDE = ("playground", "ox")


@pytest.mark.parametrize("name", BASES)
def test_a_trace_equals_the_teacher_forced_reading_of_the_asked_model(name, made):
    config, snapshot = made(name)
    passed = trace(config, snapshot, "banana")
    answer = snapshot_model(config, snapshot).answer("banana")
    reading = answer.forced
    assert (passed.src_tokens, passed.tgt_tokens) == (reading.src_tokens, reading.tgt_tokens)
    assert passed.expected == reading.to_write(answer.expected)
    assert passed.predicted == reading.predicted
    np.testing.assert_allclose(passed.probabilities, reading.probabilities, atol=1e-6)
    for site, weights in reading.maps.items():
        found = passed.attentions[site]
        np.testing.assert_allclose(
            np.where(found.mask, found.weights, np.nan), weights, atol=1e-6, equal_nan=True
        )


def test_a_word_is_cleaned_and_checked_like_any_question(made):
    config, snapshot = made("default")
    assert trace(config, snapshot, " Banana ").src_tokens == ("[SOS]", *"banana", "[EOS]")
    with pytest.raises(InputError, match="Only the letters a to z"):
        trace(config, snapshot, "b4nana")
    with pytest.raises(InputError, match="The word has"):
        trace(config, snapshot, "ox", ("x" * 25,))


def test_longer_words_beside_a_word_pad_it_and_change_nothing_where_padding_is_masked(made):
    config, snapshot = made("default")
    alone, beside = trace(config, snapshot, "frog"), trace(config, snapshot, "frog", BESIDE)
    assert beside.src_tokens == (*alone.src_tokens, *["[PAD]"] * 6)
    assert beside.tgt_tokens == (*alone.tgt_tokens, *["[PAD]"] * 6)
    assert beside.expected == (*alone.expected, *[""] * 6)
    assert beside.src_ids[-1] == 0
    np.testing.assert_allclose(beside.logits[: len(alone.logits)], alone.logits, atol=1e-4)


def test_unmasked_padding_changes_the_numbers_and_is_as_long_as_in_training(made):
    config, snapshot = made("lin")
    longest = config.train.max_letters
    alone = trace(config, snapshot, "frog")
    assert alone.src_tokens == ("[SOS]", *"frog", "[EOS]", *(longest - 4) * ["[PAD]"])
    as_long = trace(config, snapshot, "frog", ("a" * longest,))
    np.testing.assert_allclose(as_long.logits, alone.logits, atol=1e-5)
    longer = trace(config, snapshot, "frog", ("a" * (longest + 3),))
    assert np.abs(longer.logits[: len(alone.logits)] - alone.logits).max() > 0.01


def test_a_trace_applies_the_interventions_of_its_snapshot(made, truth, near):
    taken = Interventions(
        ablated=(("decoder.0.cross", 1),),
        blocked=(Block(site="encoder.0", head=2, row=3, column=1),),
        masks=(("causal", False),),
    )
    config, snapshot = made("default", taken)
    passed = trace(config, snapshot, "frog", BESIDE)
    k = config.model.d_head
    assert not passed.attentions["decoder.0.cross"].joined[:, k : 2 * k].any()
    assert passed.attentions["decoder.0.cross"].mixed[1].any()
    open_to = passed.attentions["encoder.0"].mask
    assert not open_to[2, 3, 1]
    assert open_to[1, 3, 1]
    assert not passed.axes["decoder.0.self"].causal
    assert passed.attentions["decoder.0.self"].mask[0, 0, 3]
    untouched = truth(passed, snapshot, causal=False)
    near(passed.attentions["decoder.0.self"].query, untouched.sites["decoder.0.self"]["query"])


def test_a_block_that_would_close_a_whole_row_is_refused(made):
    taken = Interventions(blocked=(Block(site="decoder.0.self", row=0, column=0),))
    config, snapshot = made("default", taken)
    with pytest.raises(InputError, match="Leave it at least one"):
        trace(config, snapshot, "frog")


def test_the_same_question_is_computed_once_for_each_snapshot(made):
    config, snapshot = made("default")
    assert trace(config, snapshot, "frog") is trace(config, snapshot, "frog")
    other = dataclasses.replace(snapshot, step=8)
    assert trace(config, other, "frog") is not trace(config, snapshot, "frog")


def test_a_pass_with_numbers_beyond_float32_is_refused_as_a_diverged_training(made):
    config, snapshot = made("default")
    weights = {name: array * np.float32(1e30) for name, array in snapshot.weights.items()}
    assert all(np.isfinite(array).all() for array in weights.values())
    with pytest.raises(InputError, match="^The numbers of the model of step 12 are not finite"):
        trace(config, dataclasses.replace(snapshot, step=12, source=weights), "frog")
