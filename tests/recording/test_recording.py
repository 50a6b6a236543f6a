"""The frames of a run in order: built on request, bounded in memory, immutable."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from transformer.recording.chunk import BLOCKED, ONE, Chunk, as_bytes, coded, decoded, from_bytes, joined
from transformer.recording.frame import Frame, Measurement, Output, Outputs, Word
from transformer.recording.recording import Recording, nearest_step
from transformer.shared.attention_info import AttentionInfo
from transformer.shared.interventions import Interventions

CROSS = AttentionInfo(query="tgt", key="src", writes=True, causal=False, padding=True)
OWN = AttentionInfo(query="tgt", key="tgt", writes=True, causal=True, padding=True)
AXES = {"decoder.0.self": OWN, "decoder.0.cross": CROSS}
HEADS = 5


def word(text, **said):
    facts = {
        "answer": text[::-1],
        "src_tokens": ("[SOS]", *text, "[EOS]"),
        "tgt_tokens": ("[SOS]", *reversed(text)),
        "expected": (*reversed(text), "[EOS]"),
        "held_out": True,
        "too_long": False,
    }
    return Word(text=text, **facts | said)


def chunk(steps, text="ox", *, vocabulary=("o", "x"), taken=Interventions(), **said):  # noqa: B008
    """Return a chunk whose maps have the weight step / 1000 in their first column, the rest in the second."""
    one, steps = word(text, **said), tuple(steps)
    maps = {}
    for site, axes in AXES.items():
        n_rows, n_columns = len(one.tokens(axes.query)), len(one.tokens(axes.key))
        weights = np.zeros((len(steps), HEADS, n_rows, n_columns), np.float32)
        weights[..., 0] = np.array(steps)[:, None, None] / 1000
        weights[..., 1] = 1 - weights[..., 0]
        maps[site] = coded(weights, np.ones(weights.shape[1:], bool))
    predicted = np.array([[step % len(vocabulary)] * len(one.expected) for step in steps], np.uint16)
    return Chunk(
        word=one,
        axes=AXES,
        interventions=taken,
        steps=steps,
        drawn_at=17,
        looked_up_to=steps[-1],
        vocabulary=vocabulary,
        predicted=predicted,
        maps=maps,
    )


def measurement(step):
    scores = {"entropy": np.full(HEADS, 0.5), "mirror": np.arange(HEADS) / 10}
    return Measurement(step=step, head_scores=dict.fromkeys(AXES, scores), clearest=("decoder.0.cross", 4))


def outputs(step, **texts):
    return Outputs(
        step=step,
        by_word={
            name: Output(text=text, stopped=True, right=text == name[::-1], pieces=tuple(text), ids=())
            for name, text in texts.items()
        },
    )


@pytest.fixture
def first(evaluation):
    return [evaluation(0), measurement(0), outputs(0, ox="oo")]


def share(frame, row=0, site="decoder.0.cross"):
    return float(frame.map(row, site)[2, 1, 0])


def all_true(frames):
    """Whether every frame has the numbers of its step."""
    return all(share(frame) == pytest.approx(frame.step / 1000, abs=1e-5) for frame in frames)


def test_a_loss_that_is_read_later_is_in_frames_that_were_made_before(first):
    losses = {}
    frames = Recording([*first, chunk(range(2))], numbers=lambda step: (0.0, losses.get(step)))
    assert frames.of_step(1).loss is None
    losses[1] = 2.5
    assert frames.extended([chunk(range(2, 3))]).of_step(1).loss == 2.5


def test_the_pinned_head_is_large_if_it_is_of_the_kind_else_the_clearest_else_the_last_layers_first(first):
    (frame,) = Recording([*first, chunk(range(1))])
    cross, own = ["decoder.0.cross"], ["decoder.0.self"]
    assert frame.large_head(cross) == frame.clearest == ("decoder.0.cross", 4)
    assert frame.large_head(own) == ("decoder.0.self", 0)
    assert frame.large_head([*own, "decoder.1.self"]) == ("decoder.1.self", 0)
    assert frame.large_head(cross, ("decoder.0.cross", 2)) == ("decoder.0.cross", 2)
    assert frame.large_head(own, ("decoder.0.cross", 2)) == ("decoder.0.self", 0)
    for none in (("decoder.0.cross", HEADS), ("decoder.0.cross", -1), ("decoder.7.cross", 0)):
        assert frame.large_head(cross, none) == frame.clearest


# In order.


def test_frames_contain_every_step_in_order_with_its_own_numbers(first):
    frames = Recording(
        [*first, chunk(range(25)), chunk(range(25, 40))], numbers=lambda step: (step / 2, -step)
    )
    assert frames.steps == tuple(range(40)) == tuple(frame.step for frame in frames)
    assert all_true(frames)
    assert (frames[30].seconds, frames[30].loss) == (15.0, -30)
    assert [frames[i].words[0].predicted[0] for i in (2, 3)] == ["o", "x"]
    assert frames.of_step(7) is frames[7]
    assert [frame.step for frame in frames[-3:]] == [37, 38, 39]


def test_each_frame_has_the_newest_of_the_costly_records(first, evaluation):
    frames = Recording([*first, chunk(range(9)), measurement(5), outputs(6, ox="xo"), evaluation(4, right=3)])
    assert [frame.measurement.step for frame in frames] == 5 * [0] + 4 * [5]
    assert [frame.evaluation.step for frame in frames] == 4 * [0] + 5 * [4]
    assert [frame.words[0].output_step for frame in frames] == 6 * [0] + 3 * [6]
    assert [frame.words[0].right for frame in frames] == 6 * [False] + 3 * [True]


def test_the_step_at_which_a_word_was_drawn_is_given_from_that_step_on(first):
    words = [frame.words[0] for frame in Recording([*first, chunk(range(30))])]
    assert [tracked.drawn_at for tracked in words] == 17 * [None] + 13 * [17]
    assert [tracked.looked_up_to for tracked in words] == [*range(30)]


def test_a_word_added_later_comes_last_and_its_past_can_follow(first):
    frames = Recording([*first, chunk(range(20))]).extended(
        [outputs(19, ox="xo", cab="cab"), chunk([19], "cab")]
    )
    assert [len(frame.words) for frame in frames] == [*(19 * [1]), 2]
    assert frames.words == ("ox", "cab")
    assert frames.steps_of("cab") == (19,)
    whole = frames.extended([chunk(range(10, 19), "cab")]).extended([chunk(range(10), "cab")])
    assert whole.steps_of("cab") == whole.steps == tuple(range(20))
    assert all(share(frame, 1) == pytest.approx(frame.step / 1000, abs=1e-5) for frame in whole)
    assert [frame.words[1].output_step for frame in whole] == [*(19 * [None]), 19]
    assert whole[5].row_of("cab") == 1
    assert whole.without("cab").words == ("ox",)
    assert whole.without("cab").generation == whole.generation + 1


def test_a_step_recorded_again_replaces_the_earlier_record(first):
    off = Interventions(ablated=(("decoder.0.cross", 2),))
    frames = Recording([*first, chunk(range(10)), chunk([9], taken=off), chunk(range(10, 12), taken=off)])
    assert frames.steps == tuple(range(12))
    assert [frame.interventions == off for frame in frames] == 9 * [False] + 3 * [True]
    again = frames
    for _ in range(5):
        again = again.extended([chunk([9], taken=off), measurement(9)])
    assert len(again.records) == len(frames.records) + 1  # the measurement of step 9
    assert again.n_added == frames.n_added + 10


def test_the_maps_of_a_word_follow_each_other_even_if_some_between_them_come_later(first):
    frames = Recording([chunk([5, 6, 9]), measurement(5)]).extended([chunk([3, 7, 8, 12]), chunk([6])])
    assert [one.steps for one in frames.chunks_of("ox")] == [(3,), (5,), (6,), (7, 8), (9,), (12,)]
    for step in (3, 5, 6, 7, 8, 9, 12):
        one, at = frames.place_of("ox", step)
        assert one.weights(at)["decoder.0.cross"][0, 0, 0] == pytest.approx(step / 1000, abs=1e-4)
    assert frames.place_of("ox", 4) is frames.place_of("ox", 2) is None


def test_extending_frames_does_not_change_those_that_readers_hold(first):
    taken = Recording([*first, chunk(range(5))])
    built = taken[4]
    longer = taken.extended([chunk([5]), measurement(4)])
    assert (taken.steps, longer.steps) == (tuple(range(5)), tuple(range(6)))
    assert taken[4] is built
    assert (longer[4].measurement.step, taken[4].measurement.step) == (4, 0)
    assert longer.generation == taken.generation


@pytest.mark.parametrize(("step", "expected"), [(0, 10), (12, 10), (15, 10), (16, 20), (99, 40)])
def test_nearest_step_returns_the_nearest_step_or_the_earlier_of_two(step, expected):
    assert nearest_step((10, 20, 40), step) == expected
    assert nearest_step((), step) is None


# Bounded.


def many(first, n=400):
    parts = [chunk(range(at, at + 25)) for at in range(0, n, 25)]
    return Recording([*first, *parts, *(measurement(at) for at in range(25, n, 25))])


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_thinning_leaves_even_steps_and_the_first_last_newest_and_protected_ones(first, parts):
    frames = many(first)
    limit = frames.nbytes // parts
    thin = frames.thinned({0, 101, 399}, limit)
    assert frames.nbytes / 8 < thin.nbytes <= limit
    assert thin.generation == frames.generation + 1
    dense = int(0.7 * 400 / parts / 4)
    assert {0, 101, 399, *range(400 - dense, 400)} <= {*thin.steps}
    every = thin.steps[1]
    assert {*range(0, 400, every)} <= {*thin.steps}
    gaps = {b - a for a, b in zip(thin.steps, thin.steps[1:], strict=False) if b <= 400 - dense}
    assert max(gaps) == every
    assert all_true(thin)
    assert frames.steps == tuple(range(400))


def test_frames_that_fit_are_not_thinned(first):
    frames = many(first)
    assert frames.thinned(set(), frames.nbytes) is frames


# Codes, and chunks as records.


def test_decoding_returns_weights_within_a_hundred_thousandth_and_blocked_cells_as_nan():
    weights = np.random.default_rng(0).dirichlet(np.ones(7), size=(3, 2, 5)).astype(np.float32)
    may = np.random.default_rng(1).random((2, 5, 7)) > 0.3
    codes = coded(weights.copy(), may)
    assert codes.dtype == np.uint16
    assert np.array_equal(codes == BLOCKED, np.broadcast_to(~may, codes.shape))
    again = decoded(codes)
    assert np.array_equal(np.isnan(again), ~np.broadcast_to(may, again.shape))
    assert np.nanmax(np.abs(again - weights)) <= 0.5 / ONE + 1e-7
    assert coded(np.ones((1, 1, 1, 1), np.float32), np.ones((1, 1, 1), bool)).item() == ONE


def same(one, other):
    names = ("word", "axes", "interventions", "steps", "drawn_at", "looked_up_to", "vocabulary")
    assert all(getattr(one, name) == getattr(other, name) for name in names)
    assert np.array_equal(one.predicted, other.predicted)
    assert all(np.array_equal(one.maps[site], other.maps[site]) for site in AXES)


def test_a_chunk_is_read_back_from_its_bytes():
    taken = Interventions(ablated=(("decoder.0.self", 1),), masks=(("padding", False),))
    unknown = {"answer": None, "written_at": 3, "links": ((1,), ()), "wanted": ("x",), "n_read": 2}
    made = chunk(range(3, 9), "naïve", taken=taken, **unknown)
    same(from_bytes(as_bytes(made)), made)


MISFITS = {
    "steps in disorder": lambda made: replace(made, steps=(4, 3)),
    "no steps": lambda made: replace(made, steps=()),
    "a step before the first": lambda made: replace(made, steps=(-1, 3)),
    "a step too many": lambda made: replace(made, steps=(3, 4, 5)),
    "a token that it does not name": lambda made: replace(made, vocabulary=("o",)),
    "another word": lambda made: replace(made, word=word("frog")),
    "a site too many": lambda made: replace(made, axes={**AXES, "decoder.1.self": OWN}, maps=made.maps),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_chunk_whose_parts_do_not_fit_is_refused(misfit):
    made = MISFITS[misfit](chunk([3, 4]))
    full = {**dict.fromkeys(made.axes, made.maps["decoder.0.self"][:0]), **made.maps}
    data = as_bytes(replace(made, maps=full))
    with pytest.raises(ValueError, match=r"none of a run|not those of its maps|does not name"):
        from_bytes(data)


def test_chunks_that_continue_each_other_are_joined():
    a, b = chunk([3, 4]), chunk([6], vocabulary=("x", "y"))
    assert b.continues(a)
    one = joined([a, b])
    assert one.steps == (3, 4, 6)
    assert [one.predictions(i)[0] for i in range(3)] == ["x", "o", "x"]
    same(one.only(lambda step: step < 6), replace(a, vocabulary=one.vocabulary, looked_up_to=6))
    assert not chunk([6], taken=Interventions(ablated=(("decoder.0.self", 1),))).continues(a)
    assert not chunk([6], "cab").continues(a)


def test_weight_on_padding_is_the_mean_share_over_the_tokens_that_are_not_padding():
    cat = word("cat", src_tokens=("c", "a", "[PAD]", "[PAD]"), tgt_tokens=("t", "a", "[PAD]"))
    rows = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.4, 0.1, 0.0], [0.0, 0.0, 0.0, 1.0]]
    weights = np.array([rows, [[1.0, 0, 0, 0], [np.nan, 0.5, 0.5, 0], [0, 0, 1.0, 0]]])
    shown = SimpleNamespace(axes=AXES, words=[cat, cat], map=lambda row, site: weights)
    np.testing.assert_allclose(Frame.on_padding(shown, 1, "decoder.0.cross"), [(0.7 + 0.1) / 2, 0.25])
