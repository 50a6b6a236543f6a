"""One score of every head over training: all heads are drawn, the highest named, the loss drawn below."""

from __future__ import annotations

import numpy as np
import pytest

from tests.figures.conftest import drawn
from transformer.figures import colors
from transformer.figures.score_curves import score_curves

STEPS = np.array([0, 50, 100])
LOSS_STEPS = np.arange(1, 121)
LOSS = np.linspace(3.0, 0.5, 120)
ENDS = {"decoder 1 · head 1": 0.2, "decoder 1 · head 2": 0.9, "decoder 2 · head 1": 0.1}
ENDS |= {"decoder 2 · head 2": 0.7, "decoder 3 · head 1": 0.4}
SCORES = {name: np.array([0.05, end / 2, end]) for name, end in ENDS.items()}
NAN = np.nan


def picture(scores=SCORES, steps=STEPS, loss_steps=LOSS_STEPS, loss=LOSS, **more):
    return score_curves(
        steps,
        scores,
        loss_steps,
        loss,
        score_name="mirror score",
        planned=300,
        highest_loss=3.9,
        run_id="this run",
        **more,
    )


def named(made):
    """Return name, colour and height of the heads that are named, highest first."""
    notes = [note for note in drawn(made).layout.annotations if note.text and note.font.color in colors.NAMED]
    return [(note.text.replace("<br>", " · "), note.font.color, note.y) for note in notes]


def test_every_head_has_a_pale_line_with_its_name_at_the_pointer():
    figure = drawn(picture())
    for trace, (name, values) in zip(figure.data[:5], SCORES.items(), strict=True):
        assert trace.name == name
        assert name in trace.hovertemplate
        assert list(trace.x) == [0, 50, 100]
        assert list(trace.y) == values.tolist()
        assert trace.line.color == colors.GHOST
        assert trace.yaxis in (None, "y")


def test_numbers_that_are_no_shares_have_an_axis_of_their_own_and_both_ends_are_named():
    changes = {
        "a": np.array([0.0, 0.1, 0.4]),
        "b": np.array([0.1, NAN, -0.9]),
        "c": np.array([0.0, 0.0, 0.1]),
    }
    changes |= {"d": np.array([0.0, 0.0, 0.01]), "e": np.array([NAN, NAN, NAN])}
    made = picture(changes, shares=False)
    figure = drawn(made)
    assert [name for name, *_ in named(made)] == ["a", "c", "d", "b"]  # farthest from 0, highest first
    low, high = figure.layout.yaxis.range
    assert -1 < low < -0.9
    assert 0.4 < high < 0.5
    assert not any("clear" in note.text for note in figure.layout.annotations)
    heights = [height for *_, height in named(made)]
    assert heights == sorted(heights, reverse=True)
    assert low < min(heights) < max(heights) < high


def test_the_heads_that_end_highest_stand_out_and_are_named_in_their_colour():
    made = picture()
    figure = drawn(made)
    best = ["decoder 1 · head 2", "decoder 2 · head 2", "decoder 3 · head 1", "decoder 1 · head 1"]
    assert [name for name, *_ in named(made)] == best
    for name, color, trace in zip(best, colors.NAMED, figure.data[5:9], strict=True):
        assert list(trace.y) == SCORES[name].tolist()
        assert trace.line.color == color
        assert trace.line.width > 2 * figure.data[0].line.width
        assert trace.hoverinfo == "skip"  # its pale line reacts to the pointer
    assert [color for _, color, _ in named(made)] == list(colors.NAMED)


def test_heads_are_ranked_by_their_last_known_score_and_not_by_their_highest():
    scores = {"a": np.array([0.0, 0.9, 0.1]), "b": np.array([0.0, 0.1, 0.5]), "c": np.array([0.0, 0.3, NAN])}
    assert [name for name, *_ in named(picture(scores))] == ["b", "c", "a"]


def test_names_are_at_the_ends_of_their_lines_and_never_overlap():
    single = {"a": np.full(3, 0.8), "b": np.full(3, 0.3)}
    assert [y for *_, y in named(picture(single))] == pytest.approx([0.8, 0.3])
    close = {
        "decoder 1 · head 1": np.full(3, 0.6),
        "decoder 1 · head 2": np.full(3, 0.5),
    }  # of two lines each
    assert [y for *_, y in named(picture(close))] == pytest.approx([0.55 + 0.13, 0.55 - 0.13])
    for ends in ([0.99, 0.98, 0.97, 0.96], [0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.02]):
        scores = {f"decoder 1 · head {i}": np.full(3, end) for i, end in enumerate(ends)}
        heights = [y for *_, y in named(picture(scores))]
        assert max(heights) <= 1.04
        assert min(heights) >= -0.04
        assert (-np.diff(heights) >= 0.2599).all()


def test_the_loss_is_below_on_the_same_step_axis_and_is_thinned_if_long():
    figure = drawn(picture())
    loss = figure.data[-1]
    assert loss.yaxis == "y2"
    assert list(loss.x) == LOSS_STEPS.tolist()
    assert list(loss.y) == LOSS.tolist()
    layout = figure.layout
    assert layout.yaxis2.domain[1] < layout.yaxis.domain[0]
    assert tuple(layout.xaxis.range) == (0, 300)
    assert tuple(layout.yaxis2.range) == (0, 3.9)
    low, high = layout.yaxis.range
    assert low < 0 < 1 < high
    assert {trace.xaxis for trace in figure.data} == {None}  # one step axis for both
    assert {"mirror score", "training loss"} < {note.text for note in layout.annotations}
    long = picture(loss_steps=np.arange(1, 2001), loss=np.ones(2000))
    assert (len(drawn(long).data[-1].x), long.step) == (500, 2000)


def test_the_threshold_is_a_dashed_line_with_its_number():
    layout = drawn(picture()).layout
    (line,) = [shape for shape in layout.shapes if shape.line.dash == "dash"]
    assert line.y0 == line.y1 == 0.5
    (label,) = [note for note in layout.annotations if note.text == "clear from 50%"]
    assert label.y == 0.5


def test_a_marker_is_at_its_step_and_moves_without_a_new_spec():
    made = picture(marker=40)
    assert made.spec == picture().spec
    line = drawn(made).layout.shapes[0]
    assert (line.visible, line.x0, line.x1) == (True, 40, 40)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_up_to_two_heads_are_all_named_without_empty_traces(n):
    scores = dict(list(SCORES.items())[:n])
    made = picture(scores)
    assert len(drawn(made).data) == 2 * n + 1
    assert [note.text for note in drawn(made).layout.annotations[n:]][0] == "training loss"
    found = [note.text.replace("<br>", " · ") for note in drawn(made).layout.annotations[:n]]
    assert sorted(found) == sorted(scores)


def test_before_the_first_score_there_are_axes_and_no_head_is_named():
    nothing = np.zeros(0)
    made = picture(dict.fromkeys(SCORES, nothing), nothing, nothing, nothing)
    assert made.step == 0
    assert named(made) == []
    for trace in drawn(made).data:
        assert list(trace.x) == list(trace.y) == [None]
    unknown = picture({name: np.full(3, NAN) for name in SCORES})
    assert named(unknown) == []


def test_the_spec_stays_the_same_while_training_goes_on():
    later = {name: 1 - values for name, values in SCORES.items()}
    assert picture(later).spec == picture().spec
    assert set(picture(later).arrays) == set(picture().arrays)
    assert set(picture(later).layout) == set(picture().layout)
