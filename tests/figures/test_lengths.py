"""Lengths: share of right letters by word length, with a line at the longest trained; a histogram."""

from __future__ import annotations

import numpy as np
import pytest

from tests.figures.conftest import drawn
from transformer.figures import colors
from transformer.figures.lengths import length_heatmap, length_histogram

SHARE = np.where(np.tri(4, 6, 2, dtype=bool), np.random.default_rng(0).random((4, 6)), np.nan)
ASKED = np.array([10, 20, 1500, 40])
EXACT = np.array([1.0, 0.5, 0.25, 0.0])
"""Words of three to six letters."""


def lengths(share=SHARE, asked=ASKED, exact=EXACT, longest_trained=4, title="how long", step=7):
    return length_heatmap(
        share, asked, exact, longest_trained=longest_trained, shortest=3, title=title, step=step
    )


def test_each_share_is_at_its_length_and_its_position_counted_from_one():
    figure = drawn(lengths())
    heat, _ = figure.data
    assert list(heat.x) == [1, 2, 3, 4, 5, 6]
    assert list(heat.y) == [3, 4, 5, 6]
    np.testing.assert_array_equal(np.array(heat.z, dtype=float), SHARE)
    for n, row in zip(heat.y, heat.z, strict=True):
        assert [share is not None for share in row] == [position <= n for position in heat.x]
    assert not heat.hoverongaps  # no share is shown where a word has no letter
    x, y = figure.layout.xaxis, figure.layout.yaxis
    assert list(y.tickvals) == [3, 4, 5, 6]
    assert list(y.ticktext) == ["3 (10)", "4 (20)", "5 (1,500)", "6 (40)"]  # and the number of words asked
    assert tuple(y.range) == (6.5, 2.5)  # downwards
    assert (tuple(x.range), tuple(x.domain)) == ((0.5, 6.5), (0, 0.82))


@pytest.mark.parametrize("share", [SHARE, np.zeros((4, 6)), np.full((4, 6), 0.3)])
def test_a_share_always_has_the_same_colour_on_another_scale_than_weights(share):
    heat, exact = drawn(lengths(share)).data
    assert (heat.zmin, heat.zmax, exact.zmin, exact.zmax) == (0, 1, 0, 1)
    assert heat.colorscale == exact.colorscale
    assert heat.colorscale[0][1] == "#00224e"  # the first colour of Cividis
    assert colors.SHARES != colors.WEIGHTS
    assert heat.colorbar.title.text.startswith("share right")
    assert not exact.showscale


@pytest.mark.parametrize("trained", [3, 4, 5])
def test_a_line_with_a_label_separates_trained_from_untrained_lengths(trained):
    layout = drawn(lengths(longest_trained=trained)).layout
    (line,) = layout.shapes
    assert line.y0 == line.y1 == trained + 0.5
    assert (line.xref, line.x0, line.x1) == ("paper", 0, 1)
    (label,) = layout.annotations
    assert "trained" in label.text
    assert label.y == trained + 0.5  # its arrow points at the line
    assert 2.5 < label.ay < label.y


@pytest.mark.parametrize("trained", [2, 6, 9])
def test_where_all_or_none_of_the_lengths_were_trained_there_is_no_line(trained):
    layout = drawn(lengths(longest_trained=trained)).layout
    assert not layout.shapes
    assert not layout.annotations


def test_whole_words_have_a_column_of_their_own_with_the_number_in_it():
    figure = drawn(lengths())
    heat, exact = figure.data
    assert list(heat.y) == list(exact.y)
    assert [cell for (cell,) in exact.z] == EXACT.tolist()
    assert exact.texttemplate == "%{z:.0%}"
    assert exact.xaxis == "x2"
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert figure.layout.xaxis2.ticktext


def test_the_spec_stays_the_same_while_training_moves_the_shares():
    first = lengths()
    later = lengths(1 - SHARE, ASKED + 1, title="later", step=9)
    assert later.spec == first.spec
    assert (later.step, drawn(later).layout.title.text) == (9, "later")


@pytest.mark.parametrize("name", ["asked", "exact"])
def test_numbers_that_do_not_fit_the_lengths_are_refused(name):
    with pytest.raises(ValueError, match=f"^{name} has shape \\(6,\\), but share has 4 lengths"):
        lengths(**{name: np.ones(6)})


# The histogram of the lengths of questions and answers.


def test_every_length_up_to_the_longest_has_a_bar():
    figure = length_histogram([2, 2, 5], [1, 3, 3], unit=("words", "characters"), title="t").figure()
    questions, answers = figure["data"]
    assert questions["x"] == answers["x"] == [1, 2, 3, 4, 5]
    assert questions["y"] == [0, 2, 0, 0, 1]
    assert answers["y"] == [1, 0, 2, 0, 0]
    assert figure["layout"]["xaxis"]["title"]["text"] == "length: questions in words, answers in characters"
    assert figure["layout"]["xaxis"]["dtick"] == 1
    assert questions["yaxis"] == "y"
    assert answers["yaxis"] == "y2"


def test_a_long_axis_of_lengths_has_at_most_twelve_ticks():
    figure = length_histogram([3, 40], [1], unit=("words", "words"), title="t").figure()
    assert figure["layout"]["xaxis"]["dtick"] == 4


def test_a_unit_that_both_sides_share_is_named_once():
    figure = length_histogram([1], [1], unit=("words", "words"), title="t").figure()
    assert figure["layout"]["xaxis"]["title"]["text"] == "length in words"
