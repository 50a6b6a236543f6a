"""Bars of the next token: the likeliest on top, the right one always shown, with a colour and a mark."""

from __future__ import annotations

import numpy as np
import pytest

from tests.figures.conftest import drawn
from transformer.figures import colors
from transformer.figures.bars import BELOW, next_token_bars

TOKENS = ("[PAD]", "[SOS]", "[EOS]", "a", "b", "c")
FORCED = np.array([0.01, 0.02, 0.07, 0.5, 0.3, 0.1])
FREE = np.array([0.02, 0.01, 0.6, 0.04, 0.03, 0.3])


def bars(forced=FORCED, free=FREE, tokens=TOKENS, expected=3, most=4, title="a word", step=2):
    return next_token_bars(forced, free, tokens, expected=expected, most=most, title=title, step=step)


def panel(picture, number):
    """Return [label, probability, colour] of each bar of a panel, from the top."""
    figure = drawn(picture)
    suffix = "2" if number else ""
    axis = figure.layout[f"yaxis{suffix}"]
    labels = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    found = []
    for trace in figure.data:
        assert trace.orientation == "h"
        if trace.yaxis == f"y{suffix}":
            assert trace.xaxis == f"x{suffix}"
            found += [
                (place, labels[place], x, trace.marker.color)
                for place, x in zip(trace.y, trace.x, strict=True)
                if x is not None
            ]
    bottom, top = axis.range
    assert top < min(axis.tickvals) < max(axis.tickvals) < bottom  # place 0 stands at the top
    return [rest for _, *rest in sorted(found)]


def test_the_likeliest_tokens_are_in_order_and_unmarked_where_the_answer_is_unknown():
    assert panel(bars(expected=None), 0) == [
        ["a", 0.5, colors.GHOST],
        ["b", 0.3, colors.GHOST],
        ["c", 0.1, colors.GHOST],
        ["[EOS]", 0.07, colors.GHOST],
    ]
    assert [label for label, *_ in panel(bars(expected=None), 1)] == ["[EOS]", "c", "a", "b"]


def test_the_right_token_and_a_wrong_likeliest_token_have_a_colour_and_a_mark():
    right, wrong = panel(bars(expected=5), 0), panel(bars(expected=5), 1)
    assert right[:3] == [["✗ a", 0.5, colors.WRONG], ["b", 0.3, colors.GHOST], ["✓ c", 0.1, colors.RIGHT]]
    assert wrong[:2] == [["✗ [EOS]", 0.6, colors.WRONG], ["✓ c", 0.3, colors.RIGHT]]
    assert [label for label, *_ in panel(bars(expected=3), 0)] == ["✓ a", "b", "c", "[EOS]"]


def test_a_right_token_that_is_not_among_the_likeliest_is_shown_below_them():
    found = panel(bars(expected=1, most=2), 0)
    assert found == [["✗ a", 0.5, colors.WRONG], ["b", 0.3, colors.GHOST], ["✓ [SOS]", 0.02, colors.RIGHT]]
    assert list(drawn(bars(most=2)).layout.yaxis.tickvals) == [0, 1, 2 + BELOW]
    assert len(panel(bars(most=50), 0)) == 6  # a small vocabulary is shown whole


def test_each_bar_has_its_share_beside_its_end_and_places_without_a_bar_have_none():
    notes = drawn(bars(free=None, expected=5, most=2)).layout.annotations
    beside = {(note.xref, note.y): (note.x, note.text) for note in notes if note.yref in ("y", "y2")}
    assert beside == {
        ("x", 0): (0.5, "50%"),
        ("x", 1): (0.3, "30%"),
        ("x", 2 + BELOW): (0.1, "10%"),
        **{("x2", place): (0, "") for place in (0, 1, 2 + BELOW)},
    }
    (small,) = [note.text for note in drawn(bars(np.full(6, 0.1234))).layout.annotations if note.y == 3][:1]
    assert small == "12.3%"


def test_an_output_that_has_ended_has_a_note_instead_of_bars():
    ended, going_on = bars(free=None), bars()
    assert panel(ended, 1) == []
    assert panel(ended, 0) == panel(going_on, 0)
    assert set(drawn(ended).layout.yaxis2.ticktext) == {""}
    for picture, panels in ((ended, ["x2"]), (going_on, [])):
        notes = drawn(picture).layout.annotations
        assert [note.xref for note in notes if "has ended" in note.text and note.visible] == panels


def test_both_panels_name_what_the_model_reads_and_run_from_0_to_100_percent():
    layout = drawn(bars()).layout
    headings = [note.text for note in layout.annotations][:2]
    assert "teacher-forced" in headings[0]
    assert "free-running" in headings[1]
    for axis in (layout.xaxis, layout.xaxis2):
        assert list(axis.tickvals) == [0, 0.5, 1]
        assert axis.tickformat == ".0%"
        assert axis.range[0] == 0
        assert axis.range[1] > 1.3  # room for a number after a full bar
    assert layout.xaxis.domain[1] < 0.5 < layout.xaxis2.domain[0]


def test_labels_of_long_tokens_have_more_room_and_tags_in_them_are_escaped():
    long = bars(np.array([0.1, 0.9]), None, ["<b>", "appartement"], expected=0)
    assert drawn(bars()).layout.xaxis.domain[0] < drawn(long).layout.xaxis.domain[0] < 0.3
    assert [label for label, *_ in panel(long, 0)] == ["✗ appartement", "✓ &lt;b&gt;"]


def test_the_spec_stays_the_same_while_training_moves_the_bars():
    first = bars()
    for other in (bars(free=None), bars(expected=None), bars(FREE, FORCED, title="later", step=9)):
        assert other.spec == first.spec
        assert set(other.arrays) == set(first.arrays)
        assert set(other.layout) == set(first.layout)
    assert (other.step, drawn(other).layout.title.text) == (9, "later")


@pytest.mark.parametrize("name", ["forced", "free"])
def test_probabilities_that_do_not_fit_the_tokens_are_refused(name):
    with pytest.raises(ValueError, match=f"^{name} has shape \\(5,\\), but there are 6 tokens"):
        bars(**{name: np.ones(5) / 5})
