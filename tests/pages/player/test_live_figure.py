"""One figure of a page: the data that the browser receives, and the handling of the clicks that it sends."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from streamlit.util import AttributeDictionary

from benchmarks.tools.server import ROOT
from pages.player import figure as module
from pages.player.figure import live_figure, packed, point_of
from tests.pages.visitor import unpacked
from transformer.figures.picture import Picture

PICTURE = Picture(
    spec=json.dumps({"data": [{"type": "heatmap"}, {"type": "scatter", "x": [3, 4, 5]}], "layout": {}}),
    arrays={"0.z": np.zeros((2, 4))},
    layout={"title.text": "step 3"},
    step=3,
)
"""Two rows of four cells, and three points."""


@pytest.fixture
def shown(monkeypatch):
    """Show the figure and return the arguments of its element."""
    asked, calls = {}, []
    monkeypatch.setattr(module, "_component", lambda **arguments: asked.update(arguments))

    def show(*, clickable=True):
        on_click = (lambda *click: calls.append(click)) if clickable else None
        live_figure(PICTURE, key="figure", height="9rem", file_name="x", on_click=on_click)
        return asked

    def send(value):
        monkeypatch.setattr(module.st, "session_state", {"figure": AttributeDictionary(clicked=value)})
        show()["on_clicked_change"]()
        return calls

    show.send = send
    return show


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "values",
    [[[0.0, 1.0, 0.5], [1e-7, np.nan, 1 - 1e-7]], [1.0, 1234.5, -0.125, np.nan], [[2.0]], []],
)
def test_numbers_and_gaps_are_unpacked_as_they_were_packed(kind, values):
    values = np.array(values, dtype=kind)
    message = packed(values)
    assert len(base64.b64decode(message["b"])) == 4 * values.size
    assert message.get("shape") == (values.shape if values.ndim == 2 else None)
    np.testing.assert_allclose(unpacked(message), values.astype(float), rtol=1e-7)


def test_the_browser_receives_the_whole_figure(shown):
    data = shown(clickable=False)["data"]
    assert data["spec"] == PICTURE.spec
    assert unpacked(data["arrays"]["0.z"]).tolist() == np.zeros((2, 4)).tolist()
    assert (data["layout"], data["step"], data["height"]) == ({"title.text": "step 3"}, 3, "9rem")
    assert not data["clickable"]
    assert shown()["data"]["clickable"]
    json.dumps(data)  # it can be sent as JSON


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"trace": 0, "point": [1, 3]}, (0, (1, 3))),
        ({"trace": 1, "point": 2}, (1, 2)),
        ({"trace": 1, "point": 0}, (1, 0)),
        ({"trace": 1, "point": None}, (1, None)),
        ({"trace": 0}, (0, None)),
    ],
)
def test_a_click_gives_a_trace_and_the_point_in_it(shown, sent, meant):
    assert point_of(PICTURE, sent) == meant
    assert shown.send(sent) == [meant]


TRACES = [None, True, "1", 1.0, 2, -1, [0]]
POINTS = [3, -1, False, "1", [1], [0, 1], {"x": 1}]
CELLS = [1, [2, 0], [0, 4], [-1, 0], [0, None], [0, 1, 0], [], [True, 0], "00"]


@pytest.mark.parametrize(
    "sent",
    [
        *(None, 3, "0", [0, 1], {}, {"point": 1}),
        *({"trace": trace, "point": 1} for trace in TRACES),
        *({"trace": 1, "point": point} for point in POINTS),
        *({"trace": 0, "point": cell} for cell in CELLS),
    ],
)
def test_a_click_on_a_missing_trace_or_point_is_ignored(shown, sent):
    assert shown.send(sent) == []


def test_importing_the_pages_writes_nothing_into_the_source_folder(tmp_path):
    """Import the module of every component in a copy of the source files."""
    for name in ("pages", "transformer"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(tmp_path.rglob("*"))
    code = "import pages.runs.keyring, pages.player.figure, pages.player.following"
    options = ["-W", "ignore", "-B", "-c", code]
    subprocess.run([sys.executable, *options], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(tmp_path.rglob("*")) == before
