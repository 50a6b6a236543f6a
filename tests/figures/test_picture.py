"""A `Picture` builds a complete Plotly figure and is immutable."""

from __future__ import annotations

import json

import numpy as np
import pytest

from transformer.figures.picture import Picture

SPEC = {
    "data": [{"type": "heatmap", "zmin": 0}, {"type": "scatter"}],
    "layout": {"annotations": [{"text": "one"}, {"text": "two"}], "title": {"x": 0.5}},
}


def test_each_array_goes_into_the_trace_and_attribute_that_its_name_gives():
    picture = Picture(
        spec=json.dumps(SPEC),
        arrays={"0.z": np.array([[0.25, 0.5], [0.75, 1.0]]), "1.x": np.array([3, 4]), "1.y": np.array([5.0])},
    )
    heatmap, line = picture.figure()["data"]
    assert heatmap == {"type": "heatmap", "zmin": 0, "z": [[0.25, 0.5], [0.75, 1.0]]}
    assert line == {"type": "scatter", "x": [3, 4], "y": [5.0]}


def test_nan_becomes_a_gap_and_zero_stays_zero():
    picture = Picture(spec=json.dumps(SPEC), arrays={"0.z": np.array([[0.0, np.nan], [np.nan, 1.0]])})
    assert picture.figure()["data"][0]["z"] == [[0.0, None], [None, 1.0]]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("annotations[1].text", lambda layout: layout["annotations"][1]["text"]),
        ("title.text", lambda layout: layout["title"]["text"]),
        ("shape", lambda layout: layout["shape"]),
        ("yaxis.title.font.size", lambda layout: layout["yaxis"]["title"]["font"]["size"]),
    ],
)
def test_a_changing_part_of_the_layout_is_set_only_at_its_path(path, found):
    layout = Picture(spec=json.dumps(SPEC), layout={path: "new"}).figure()["layout"]
    assert found(layout) == "new"
    assert layout["annotations"][0] == {"text": "one"}
    assert layout["title"]["x"] == 0.5


def test_changing_a_figure_does_not_change_its_picture():
    picture = Picture(spec=json.dumps(SPEC), arrays={"0.z": np.zeros((1, 1))}, layout={"title.text": "now"})
    first = picture.figure()
    first["data"].clear()
    first["layout"]["title"]["text"] = "spoilt"
    assert picture.figure()["layout"]["title"]["text"] == "now"
    assert len(picture.figure()["data"]) == 2
    assert json.loads(picture.spec) == SPEC
