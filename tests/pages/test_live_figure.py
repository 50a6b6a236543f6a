"""What is sent to the browser: small numbers that lose nothing that can be seen, and plotly.js itself."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import plotly
import pytest
from streamlit.util import AttributeDictionary

from benchmarks._server import ROOT
from pages.parts import live_figure as module
from pages.parts.live_figure import Kept, live_figure, packed, point_of
from pages.stream import files
from pages.stream.files import FILES, loading
from tests.pages.conftest import unpacked
from transformer.figures.picture import Picture

WEIGHTS = np.concatenate([np.random.default_rng(0).random(93), [0.0, 1.0, 0.5, 1e-7, 1 - 1e-7]]).reshape(
    7, 14
)
INSTALLED = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


PICTURE = Picture(
    spec=json.dumps({"data": [{"type": "heatmap"}, {"type": "scatter", "x": [3, 4, 5]}], "layout": {}}),
    arrays={"0.z": np.zeros((2, 4))},
)
"""Two rows of four cells, and three points."""


def size(message):
    return len(base64.b64decode(message["b"]))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_weights_travel_as_sixteen_bits_and_come_back_as_they_were(kind):
    weights = WEIGHTS.astype(kind)
    message = packed(weights)
    assert tuple(message["shape"]) == (7, 14)
    assert size(message) == 2 * 7 * 14
    np.testing.assert_allclose(unpacked(message), weights.astype(float), atol=0.5 / 65534 + 1e-9)


def test_zero_and_one_come_back_exactly():
    assert unpacked(packed(np.array([[0.0, 1.0]]))).tolist() == [[0.0, 1.0]]


def test_a_blocked_cell_has_a_code_that_no_weight_has():
    weights = np.where(np.tri(5, dtype=bool), 0.25, np.nan)
    weights[4, 0], weights[4, 1] = 0.0, 1.0
    codes = np.frombuffer(base64.b64decode(packed(weights)["b"]), dtype="<u2").reshape(5, 5)
    np.testing.assert_array_equal(codes == 65535, ~np.tri(5, dtype=bool))
    assert codes[4].tolist()[:2] == [0, 65534]
    np.testing.assert_array_equal(np.isnan(unpacked(packed(weights))), np.isnan(weights))


@pytest.mark.parametrize("beyond", [-1e-4, 1.0005, 7.0])
def test_a_weight_a_hair_outside_its_range_takes_the_nearest_end(beyond):
    assert unpacked(packed(np.array([[beyond]]))).tolist() == [[min(1.0, max(0.0, beyond))]]


def test_curves_travel_as_they_are_gaps_included():
    values = np.array([1.0, 123_456.75, -0.125, np.nan, 1e-30])
    message = packed(values)
    assert "shape" not in message
    assert size(message) == 4 * 5
    np.testing.assert_allclose(unpacked(message), values, rtol=1e-7)
    assert unpacked(packed(np.arange(5))).tolist() == [0, 1, 2, 3, 4]  # steps are whole numbers


def test_the_browser_reads_the_same_code_for_blocked_as_is_written():
    script = Path(module.__file__).with_name("live_figure.js").read_text(encoding="utf-8")
    assert "const BLOCKED = 65535;" in script
    assert "v === BLOCKED ? null : v / (BLOCKED - 1)" in script


def test_the_page_names_a_library_that_is_handed_out_and_is_that_of_the_installed_package(visit):
    (element,) = [one for one in visit().at.get("bidi_component") if one.key == "live_map_figure"]
    name = json.loads(element.proto.json)["library"]
    assert name == f"plotly-{version('plotly')}.min.js"
    assert FILES[name].samefile(INSTALLED)


def test_a_picture_with_other_axes_is_not_sent_as_an_earlier_frame(visit, slow):
    visitor = visit(slow)
    visitor.set("step_size", 2).step()
    shown = visitor.drawn("live_map_figure")
    assert [frame["step"] for frame in shown.frames] == [0, 1, 2]
    visitor.run.thin_weights(1)
    visitor.set("own_word", "ox").once(lambda: visitor.run.view.frames.steps_of("ox") == (0, 2))
    shown = visitor.drawn("live_map_figure")  # the frame between has no such word
    assert [frame["step"] for frame in shown.frames] == [0, 2]
    assert shown.arrays["0.z"].shape == (3, 4)


class Browser:
    """What the script in a browser makes of messages: numbers by the name of their trace and attribute."""

    def __init__(self):
        self.kept, self.asked = {}, 0

    def take(self, message):
        """The arrays of the newest frame; None where the message builds upon one that is missing."""
        if isinstance(message, bytes):
            line, _, behind = message.partition(b"\n")
            message, at = json.loads(line), 0
            if message["since"] not in self.kept:
                self.asked += 1
                return None
            for frame in message["frames"]:
                shown = dict(self.kept[message["since"]])
                for name, part in frame["arrays"].items():
                    if "as" in part:
                        continue
                    kind, n = ("<u2", np.prod(part["shape"])) if "shape" in part else ("<f4", part["n"])
                    new = np.frombuffer(behind, kind, n, at)
                    at += new.nbytes
                    if "shape" in part:
                        shown[name] = np.where(new == 65535, np.nan, new / 65534).reshape(part["shape"])
                    else:
                        shown[name] = np.concatenate([shown[name][: part["from"]], new])
                shown |= {name: shown[part["as"]] for name, part in frame["arrays"].items() if "as" in part}
            assert at == len(behind)
        else:
            shown = {name: unpacked(part) for name, part in message["frames"][-1]["arrays"].items()}
        if "name" in message:
            self.kept[message["name"]] = shown
        return shown


STILL = {"spec": "{}", "height": "9rem", "fileName": "x"}


def grown(n, seed=0):
    """A map, and two curves that share their steps; the newest point of one is still to change."""
    rng = np.random.default_rng(seed)
    steps = np.arange(float(n))
    curve = np.concatenate([np.sqrt(steps[:-1]), [seed]])
    arrays = {"0.z": rng.random((3, 4)), "1.x": steps, "1.y": curve, "2.x": steps, "2.y": steps % 7}
    return Picture(spec="{}", arrays=arrays, layout={"title.text": f"step {n}", "x": 1}, step=n)


def assert_shown(shown, picture):
    assert shown.keys() == picture.arrays.keys()
    for name, values in picture.arrays.items():
        np.testing.assert_allclose(shown[name], values, atol=1e-5, rtol=1e-6)


def test_what_is_new_is_enough_for_the_whole_picture_however_long_it_grows():
    kept, browser, sizes = Kept(), Browser(), []
    for n in range(100, 400, 3):
        message = kept.message("figure", STILL, [grown(n, seed=n)])
        assert_shown(browser.take(message), grown(n, seed=n))
        sizes.append(len(message) if isinstance(message, bytes) else None)
    assert sizes[0] is None
    assert max(sizes[1:]) < 800  # the curves alone are 4 kB in the end


def test_a_lost_refresh_does_no_harm_unless_others_build_upon_it_and_then_it_is_asked_for():
    kept, browser = Kept(), Browser()
    browser.take(kept.message("figure", STILL, [grown(10)]))
    kept.message("figure", STILL, [grown(12)])  # lost
    assert_shown(browser.take(kept.message("figure", STILL, [grown(14)])), grown(14))
    kept.message("figure", STILL, [grown(300)])  # so much that it is built upon
    assert browser.take(kept.message("figure", STILL, [grown(302)])) is None
    assert browser.asked == 1
    kept.forget("figure")
    assert_shown(browser.take(kept.message("figure", STILL, [grown(304)])), grown(304))


def test_an_unchanged_picture_brings_no_numbers_and_a_changed_title_brings_only_that():
    kept = Kept()
    kept.message("figure", STILL, [grown(10)])
    line, _, behind = kept.message("figure", STILL, [grown(10)]).partition(b"\n")
    assert json.loads(line)["frames"] == [{"step": 10, "layout": {}, "arrays": {}}]
    assert behind == b""
    retitled = Picture(spec="{}", arrays=grown(10).arrays, layout={"title.text": "other", "x": 1}, step=10)
    line, _, _ = kept.message("figure", STILL, [retitled]).partition(b"\n")
    assert json.loads(line)["frames"][0]["layout"] == {"title.text": "other"}


@pytest.mark.parametrize(
    "changes",
    [
        {"still": STILL | {"spec": '{"other": 1}'}},
        {"still": STILL | {"height": "5rem"}},
        {"picture": Picture(spec="{}", arrays={"0.z": np.zeros((2, 2))}, layout={"title.text": "", "x": 1})},
        {"picture": Picture(spec="{}", arrays=grown(10).arrays, layout={"title.text": ""})},
    ],
)
def test_another_picture_is_sent_whole(changes):
    kept = Kept()
    kept.message("figure", STILL, [grown(10)])
    message = kept.message("figure", changes.get("still", STILL), [changes.get("picture", grown(10))])
    assert {"key", "name", "frames", "spec"} <= message.keys()


def test_a_blocked_cell_and_a_gap_come_back_as_such():
    kept, browser = Kept(), Browser()
    browser.take(kept.message("figure", STILL, [grown(5)]))
    arrays = dict(grown(5).arrays) | {"0.z": np.array([[np.nan, 1.0], [0.0, 0.5]]), "1.y": np.full(5, np.nan)}
    gaps = Picture(spec="{}", arrays=arrays, layout=grown(5).layout, step=5)
    assert_shown(browser.take(kept.message("figure", STILL, [gaps])), gaps)


def test_a_browser_that_lacks_a_message_is_sent_the_whole_figure_next(monkeypatch):
    asked, kept = {}, Kept()
    monkeypatch.setattr(module, "_component", lambda **arguments: asked.update(arguments))
    monkeypatch.setattr(module.st, "session_state", {})

    def draw():
        live_figure([PICTURE], key="figure", height="9rem", file_name="x", kept=kept)
        return asked["data"]

    assert isinstance(draw(), dict)
    assert isinstance(draw(), bytes)
    asked["on_lost_change"]()
    assert isinstance(draw(), dict)


def test_a_script_is_handed_out_by_a_name_of_its_content(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FILES", {})
    script, other = tmp_path / "lamp.js", tmp_path / "other" / "lamp.js"
    other.parent.mkdir()
    script.write_text("export default () => 1")
    other.write_text("export default () => 2")
    for one in (script, other, script):
        (name,) = re.findall(r"/files/(lamp-\w+\.js)\?", loading(one))
        assert files.FILES[name].read_text() == one.read_text()
    assert len(files.FILES) == 2


@pytest.mark.parametrize("base", ["", "/", "headlight", "/a/b/"])
def test_the_files_have_addresses_under_the_base_path_of_the_server(monkeypatch, base):
    monkeypatch.setattr(files.config, "get_option", {"server.baseUrlPath": base}.get)
    (route,) = files.routes()
    assert route.path == "/".join(["", *filter(None, base.split("/")), "files", "{name:path}"])


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
def test_a_click_means_a_trace_and_the_point_in_it(sent, meant):
    assert point_of(PICTURE, sent) == meant


@pytest.mark.parametrize(
    "sent",
    [
        None,
        3,
        "0",
        [0, 1],
        {},
        {"point": 1},
        {"trace": None, "point": 1},
        {"trace": True, "point": 1},
        {"trace": "1", "point": 1},
        {"trace": 1.0, "point": 1},
        {"trace": 2, "point": 0},
        {"trace": -1, "point": 0},
        {"trace": 1, "point": 3},
        {"trace": 1, "point": -1},
        {"trace": 1, "point": False},
        {"trace": 1, "point": "1"},
        {"trace": 1, "point": [1]},
        {"trace": 1, "point": [0, 1]},
        {"trace": 1, "point": {"x": 1}},
        {"trace": 0, "point": 1},
        {"trace": 0, "point": [2, 0]},
        {"trace": 0, "point": [0, 4]},
        {"trace": 0, "point": [-1, 0]},
        {"trace": 0, "point": [0, None]},
        {"trace": 0, "point": [0, 1, 0]},
        {"trace": 0, "point": []},
    ],
)
def test_a_click_upon_what_is_not_there_means_nothing(monkeypatch, sent):
    calls = clicks(monkeypatch, sent)
    assert calls == []


def test_a_click_is_answered_with_the_trace_and_the_point(monkeypatch):
    assert clicks(monkeypatch, {"trace": 0, "point": [1, 3]}) == [(0, (1, 3))]
    assert clicks(monkeypatch, {"trace": 1, "point": 2}) == [(1, 2)]


def clicks(monkeypatch, sent):
    """What the caller of a live figure is told when a browser sends this."""
    calls, asked = [], {}
    monkeypatch.setattr(module, "_component", lambda **arguments: asked.update(arguments))
    monkeypatch.setattr(module.st, "session_state", {"figure": AttributeDictionary(clicked=sent)})
    live_figure(
        [PICTURE], key="figure", height="9rem", file_name="x", on_click=lambda *click: calls.append(click)
    )
    asked["on_clicked_change"]()
    return calls


def test_importing_the_pages_writes_nothing_into_the_tree(tmp_path):
    """A clone of the files alone, in which every component's module is imported."""
    for name in ("pages", "transformer"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(tmp_path.rglob("*"))
    code = "import pages.parts.keyring, pages.parts.live_figure, pages.parts.time_slider, pages.parts.painted"
    options = ["-W", "ignore", "-B", "-c", code]
    subprocess.run([sys.executable, *options], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(tmp_path.rglob("*")) == before
