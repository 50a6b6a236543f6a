"""The search for moments, on synthetic runs whose moments are known."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.insight.moments import MAX_DROPS, Moment, Moments

FIRST, SECOND = "decoder.0.cross", "decoder.1.cross"


def fed(losses, *, at_once=1):
    """Return the moments of these losses, passed as a run does: all so far, `at_once` more in each call."""
    moments, losses = Moments(), np.asarray(losses, dtype=float)
    steps = np.arange(1, len(losses) + 1)
    told = ()
    for end in [*range(at_once, len(losses), at_once), len(losses)]:
        told += moments.losses(steps[:end], losses[:end])
    assert moments.found == told
    return moments.found


def test_a_head_turns_when_it_reaches_the_threshold_from_below():
    moments = Moments()
    assert moments.heads(0, {FIRST: np.array([0.1, 0.2]), SECOND: np.array([0.1, 0.2, 0.3])}) == ()
    assert moments.heads(30, {FIRST: np.array([0.4, 0.2]), SECOND: np.array([0.1, 0.5, 0.3])}) == (
        Moment(30, "turned", "cross-attention layer 2, head 2 began to read backwards", SECOND, 1),
    )
    assert moments.heads(40, {FIRST: np.array([0.8, 0.6]), SECOND: np.array([0.1, 0.7, 0.3])}) == (
        Moment(40, "turned", "cross-attention layer 1, head 1 began to read backwards", FIRST, 0),
        Moment(40, "turned", "cross-attention layer 1, head 2 began to read backwards", FIRST, 1),
    )


def test_a_head_turns_only_once_even_if_it_falls_below_the_threshold_and_returns():
    moments = Moments()
    found = [moments.heads(step, {FIRST: np.array([s])}) for step, s in enumerate([0.1, 0.6, 0.2, 0.7, 0.9])]
    assert [len(new) for new in found] == [0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("target_score", "said"),
    [
        ("mirror", "began to read backwards"),
        ("gold", "began to look up what it writes"),
        ("focus", "began to look at single tokens"),
    ],
)
def test_the_text_of_a_turned_head_depends_on_the_target_score(target_score, said):
    moments = Moments()
    assert moments.heads(0, {FIRST: np.array([0.4])}, target_score) == ()
    assert moments.heads(10, {FIRST: np.array([0.5])}, target_score) == (
        Moment(10, "turned", f"cross-attention layer 1, head 1 {said}", FIRST, 0),
    )
    assert moments.heads(20, {FIRST: np.array([0.6])}, target_score) == ()


@pytest.mark.parametrize(
    ("kind", "before", "now"),
    [
        ("accuracy", "50 % of the held-out words right", "50% of the test words right"),
        ("turned", "head 1 turned anti-diagonal", "head 1 began to read backwards"),
        ("turned", "head 1 found the alignment", "head 1 began to look up what it writes"),
        ("turned", "head 1 came into focus", "head 1 began to look at single tokens"),
        ("intervention", "column “held-out” blocked", "column “held-out” blocked"),
        (
            "intervention",
            "switched off decoder layer 2 (cross), head 1, decoder layer 1 (self), head 3",
            "switched off cross-attention layer 2, head 1, decoder layer 1, head 3",
        ),
    ],
)
def test_a_moment_of_an_old_run_is_told_in_the_words_of_today(kind, before, now):
    assert Moment(10, kind, before).text == now


def test_a_cross_attention_that_an_old_run_named_by_its_decoder_layer_has_the_name_of_today():
    before = "decoder layer 2, head 2 began to read backwards"
    assert Moment(9, "turned", before, SECOND, 1).text == f"cross-attention{before.removeprefix('decoder')}"
    assert Moment(9, "turned", before, "decoder.1.self", 1).text == before


def test_a_head_first_measured_above_the_threshold_turns_only_after_falling_below_it():
    moments = Moments()
    found = [moments.heads(step, {FIRST: np.array([s])}) for step, s in enumerate([0.8, 0.9, 0.2, 0.7])]
    assert [len(new) for new in found] == [0, 0, 0, 1]


def test_a_reached_accuracy_is_a_moment_at_its_own_step_and_is_found_once():
    moments = Moments()
    assert moments.accuracy({}) == ()
    assert moments.accuracy({"0.5": 50}) == (Moment(50, "accuracy", "50% of the test words right"),)
    assert moments.accuracy({"0.5": 50, "0.9": 75, "0.99": 75}) == (
        Moment(75, "accuracy", "90% of the test words right"),
        Moment(75, "accuracy", "99% of the test words right"),
    )
    assert moments.accuracy({"0.5": 50, "0.9": 75, "0.99": 75}) == ()
    assert len(moments.found) == 3


def test_an_intervention_is_a_moment_with_its_own_text():
    moments = Moments()
    said = Moment(12, "intervention", "switched off cross-attention layer 2, head 1")
    assert moments.intervention(12, said.text) == (said,)
    assert len(moments.intervention(13, said.text)) == 1  # done again
    assert [moment.step for moment in moments.found] == [12, 13]


def test_of_changes_at_one_step_the_newest_comes_last():
    moments = Moments()
    for text in ("mask off", "mask on", "mask off"):
        moments.intervention(3, text)
    assert [moment.text for moment in moments.found] == ["mask on", "mask off"]


def test_moments_are_in_order_of_step_and_a_tuple_read_earlier_does_not_change():
    moments = Moments()
    moments.heads(0, {FIRST: np.array([0.1])})
    moments.heads(60, {FIRST: np.array([0.9])})
    held = moments.found
    moments.intervention(70, "learning rate 0.001")
    moments.accuracy({"0.5": 50})
    assert [(moment.step, moment.kind) for moment in moments.found] == [
        (50, "accuracy"),
        (60, "turned"),
        (70, "intervention"),
    ]
    assert isinstance(held, tuple)
    assert [moment.step for moment in held] == [60]


@pytest.mark.parametrize("at_once", [1, 200])
def test_a_fall_of_the_loss_is_found_as_soon_as_most_of_the_newest_losses_are_low(at_once):
    """The loss is 1.5 from step 101 on: at step 106, six of the last ten losses are low."""
    assert fed([3.0] * 100 + [1.5] * 100, at_once=at_once) == (
        Moment(106, "drop", "the loss dropped from 3.00 to 1.50"),
    )


def test_the_steps_of_a_run_need_not_begin_at_one():
    moments = Moments()
    (drop,) = moments.losses(np.arange(501, 701), np.array([3.0] * 100 + [1.5] * 100))
    assert drop.step == 606
    assert moments.losses(np.arange(501, 701), np.array([3.0] * 100 + [1.5] * 100)) == ()


def test_a_long_fall_is_one_drop():
    """The loss falls by 2.5 % at every step, which is half in 30 steps, from 4.0 to 0.02."""
    (drop,) = fed([4.0] * 50 + [4.0 * 0.975**i for i in range(200)])
    assert 60 < drop.step < 90


def test_a_fall_that_slows_down_and_goes_on_is_one_drop():
    """At 1 % a step the loss falls by a quarter in 30 steps: too little for a drop, too much to end one."""
    shares = [1.0] * 50 + [0.975] * 40 + [0.99] * 60 + [0.975] * 40
    assert len(fed(10 * np.cumprod(shares))) == 1


def test_a_fall_that_ends_and_begins_again_is_two_drops():
    shares = [1.0] * 50 + [0.975] * 40 + [1.0] * 60 + [0.975] * 40
    assert len(fed(10 * np.cumprod(shares))) == 2


@pytest.mark.parametrize(
    "losses",
    [
        [3.4] * 39 + [0.1],  # one good batch
        [3.4 * 0.99**i for i in range(400)],  # slowly: a quarter in 30 steps
        [0.5] * 60 + [0.02, 0.01] * 50,  # by less than 0.5, to nearly 0
        [0.02] * 60 + [0.01] * 60,
        [1.0] * 60 + [50.0] + [1.0] * 100,  # one bad batch, then as before
        [0.1] * 100 + [3.0] * 100,  # it rises
    ],
)
def test_a_small_or_slow_fall_or_a_single_batch_is_no_drop(losses):
    assert fed(losses) == ()


def test_noise_is_no_drop():
    rng = np.random.default_rng(0)
    for level in (3.4, 1.0, 0.02):
        assert fed(level * rng.uniform(0.7, 1.3, 2000)) == ()


def test_recovery_after_a_setback_is_another_drop():
    """The loss rises at step 201, falls at 301. The median of five high and five low losses is their mean."""
    drops = fed([3.0] * 100 + [0.2] * 100 + [2.0] * 100 + [0.2] * 100)
    assert [(drop.step, drop.text) for drop in drops] == [
        (105, "the loss dropped from 3.00 to 1.60"),
        (305, "the loss dropped from 2.00 to 1.10"),
    ]


@pytest.mark.parametrize(("high", "second"), [(17, 81), (18, 81), (19, 82)])
def test_a_second_drop_is_found_25_steps_after_the_first_at_the_earliest(high, second):
    """Six low losses of ten make a drop: at step 56, and `high` steps and six after the seventh low loss."""
    drops = fed([3.0] * 50 + [1.0] * 7 + [3.0] * high + [1.0] * 25)
    assert [drop.step for drop in drops] == [56, second]


@pytest.mark.parametrize("at_once", [1, 1000])
def test_drops_have_a_minimum_distance_and_a_maximum_number(at_once):
    drops = fed(([3.0] * 10 + [1.0] * 10) * 50, at_once=at_once)
    assert len(drops) == MAX_DROPS == 5
    assert np.diff([drop.step for drop in drops]).min() >= 25


def test_a_head_of_an_own_model_has_one_moment_for_its_first_role_or_its_focus():
    def scores(previous, focus):
        some = {"previous": np.array(previous), "first_token": np.zeros(3), "focus": np.array(focus)}
        return {"net.a.0": some | {"entropy": np.ones(3)}, "net.b.0": some | {"entropy": np.ones(3)}}

    moments = Moments()
    assert moments.roles(0, scores([0.1, 0.9, 0.2], [0.3, 0.9, 0.3])) == ()
    found = moments.roles(7, scores([0.6, 0.9, 0.2], [0.6, 0.9, 0.7]))
    assert [(one.step, one.head, one.text) for one in found if one.site == "net.a.0"] == [
        (7, 0, "a.0, head 1: looks one token back"),
        (7, 2, "a.0, head 3 began to look at single tokens"),
    ]
    moments.roles(8, scores([0.1, 0.1, 0.1], [0.1, 0.1, 0.1]))
    assert [role.head for role in moments.roles(9, scores([0.9] * 3, [0.9] * 3))] == [1, 1]
