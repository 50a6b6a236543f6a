"""Letters right by the length of the word: every cell its place, and a line where training ended."""

from __future__ import annotations

import numpy as np
import pytest
from plotly.graph_objects import Figure

from transformer.figures import colors
from transformer.figures.lengths import length_heatmap

SHARE = np.where(np.tri(4, 6, 2, dtype=bool), np.random.default_rng(0).random((4, 6)), np.nan)
ASKED = np.array([10, 20, 1500, 40])
EXACT = np.array([1.0, 0.5, 0.25, 0.0])
"""Words of three to six letters."""


def lengths(share=SHARE, asked=ASKED, longest_trained=4, shortest=3, title="how long", step=7, **more):
    return length_heatmap(
        share, asked, longest_trained=longest_trained, shortest=shortest, title=title, step=step, **more
    )


def drawn(picture):
    """The figure as Plotly understands it, which refuses what does not exist."""
    return Figure(picture.figure())


def test_each_share_stands_at_its_length_and_its_position_counted_from_one():
    (heat,) = drawn(lengths()).data
    assert list(heat.x) == [1, 2, 3, 4, 5, 6]
    assert list(heat.y) == [3, 4, 5, 6]
    cells = np.array(heat.z, dtype=float)
    np.testing.assert_array_equal(cells, SHARE)
    for n, row in zip(heat.y, heat.z, strict=True):
        assert [share is not None for share in row] == [position <= n for position in heat.x]


def test_words_grow_downwards_and_each_row_says_how_many_were_asked():
    layout = drawn(lengths()).layout
    assert list(layout.yaxis.tickvals) == [3, 4, 5, 6]
    assert list(layout.yaxis.ticktext) == ["3 (10)", "4 (20)", "5 (1,500)", "6 (40)"]
    assert tuple(layout.yaxis.range) == (6.5, 2.5)
    assert tuple(layout.xaxis.range) == (0.5, 6.5)


def test_a_share_has_the_same_colour_always_and_not_that_of_a_weight():
    for share in (SHARE, np.zeros((4, 6)), np.full((4, 6), 0.3)):
        heat, exact = drawn(lengths(share, exact=EXACT)).data
        assert (heat.zmin, heat.zmax, exact.zmin, exact.zmax) == (0, 1, 0, 1)
        assert heat.colorscale == exact.colorscale
        assert heat.colorscale[0][1] == "#00224e"  # the first colour of Cividis
        assert heat.colorbar.title.text.startswith("share right")
        assert not exact.showscale
    assert colors.SHARES != colors.WEIGHTS


@pytest.mark.parametrize("trained", [3, 4, 5])
def test_a_line_with_a_label_parts_trained_from_untrained_lengths(trained):
    layout = drawn(lengths(longest_trained=trained)).layout
    (line,) = layout.shapes
    assert line.y0 == line.y1 == trained + 0.5
    assert (line.xref, line.x0, line.x1) == ("paper", 0, 1)
    (label,) = layout.annotations
    assert label.text.replace("<br>", " ") == "trained up to here"
    assert label.y == trained + 0.5  # its arrow points at the line
    assert 2.5 < label.ay < label.y


@pytest.mark.parametrize("trained", [2, 6, 9])
def test_where_all_or_none_of_the_lengths_were_trained_there_is_no_line(trained):
    layout = drawn(lengths(longest_trained=trained)).layout
    assert not layout.shapes
    assert not layout.annotations


def test_whole_words_have_a_column_of_their_own_with_the_number_in_it():
    figure = drawn(lengths(exact=EXACT))
    heat, exact = figure.data
    assert list(heat.y) == list(exact.y)
    assert [cell for (cell,) in exact.z] == EXACT.tolist()
    assert exact.texttemplate == "%{z:.0%}"
    assert exact.xaxis == "x2"
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert figure.layout.xaxis2.ticktext[0].replace("<br>", " ") == "all right"
    assert tuple(drawn(lengths()).layout.xaxis.domain) == (0, 1)


def test_what_stays_is_the_same_text_while_training_moves_the_shares():
    first = lengths()
    later = lengths(1 - SHARE, ASKED + 1, title="later", step=9)
    assert later.spec == first.spec
    assert (later.step, drawn(later).layout.title.text) == (9, "later")
    for other in (lengths(longest_trained=5), lengths(exact=EXACT), lengths(shortest=2)):
        assert other.spec != first.spec


@pytest.mark.parametrize("name", ["asked", "exact"])
def test_numbers_that_do_not_fit_the_lengths_are_refused(name):
    with pytest.raises(ValueError, match=f"^{name} has shape \\(6,\\), but share has 4 lengths\\.$"):
        lengths(**{name: np.ones(6)})
