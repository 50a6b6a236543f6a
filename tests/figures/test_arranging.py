"""Labels of a table: those that there is room for, without touching each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from transformer.figures.arranging import HEIGHT, STRIP, arranged, column_ticks, row_ticks
from transformer.figures.cells import LINE
from transformer.insight.tables import Panel

COLUMNS = ("[SOS]", "a", "b", "a", "[PAD]", "[PAD]")


def test_equal_padding_has_one_label_and_long_labels_stand_lower_where_they_would_touch():
    assert column_ticks(COLUMNS, 60) == ([0, 1, 2, 3, 4.5], ["[SOS]", "a", "b", "a", "[PAD] ×2"], 1)
    places, texts, lines = column_ticks(COLUMNS, 20)
    assert (places[0], texts[0], lines) == (0, "<br>[SOS]", 2)
    assert texts[1:4] == ["a", "b", "a"]
    specials = ("[PAD]", "[SOS]", "[EOS]", "[UNK]", "a")
    assert column_ticks(specials, 30)[1] == ["[PAD]", "<br>[SOS]", "[EOS]", "<br>[UNK]", "a"]
    assert column_ticks(COLUMNS, 5) == ([], [], 1)


def test_a_label_that_would_reach_below_the_next_table_is_left_out():
    assert column_ticks(COLUMNS, 10)[1] == ["a", "b", "a"]


@pytest.mark.parametrize(("n_columns", "lines"), [(4, 1), (36, 2)])
def test_below_every_table_and_strip_there_is_room_for_its_labels_and_its_title(n_columns, lines):
    columns = ("[SOS]", "[EOS]") * (n_columns // 2)
    made = Panel(
        name="a",
        values=np.zeros((3, n_columns)),
        rows=("x", "y", "z"),
        columns=columns,
        role="plain",
        row_title="",
        column_title="",
    )
    strip = replace(made, values=made.values[:1], rows=("x",))
    table, below = arranged([made], [strip], top=10)
    assert below.top - table.bottom >= (lines + 1) * LINE
    assert below.bottom == pytest.approx(HEIGHT - (lines + 1) * LINE)
    assert below.cell([strip])[1] == pytest.approx(STRIP)


def test_features_are_labelled_as_often_as_there_is_room():
    features = tuple(map(str, range(64)))
    assert len(column_ticks(features, 30)[0]) == 64
    places = column_ticks(features, 5)[0]
    assert {b - a for a, b in pairwise(places)} == {4}
    assert column_ticks((*features, "bias"), 10)[1][-1] == "bias"


def test_rows_that_are_too_low_are_labelled_in_turn():
    letters = tuple("abcdefgh")
    assert row_ticks(letters, 20)[1] == list("abcdefgh")
    assert row_ticks(letters, 6)[1] == list("aceg")
    assert row_ticks(("a", "[PAD]", "[PAD]", "[PAD]"), 20) == ([0, 2], ["a", "[PAD] ×3"])
