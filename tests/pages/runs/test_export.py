"""Take it away: each button makes its file when it is pressed, from what is then on the screen."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load

from pages.runs import export as menu
from transformer.exports import film, fonts
from transformer.shared.interventions import Interventions

KEYS = (
    "export_html",
    "export_gif",
    "export_strip",
    "export_csv",
    "export_parquet",
    "export_json",
    "export_weights",
    "export_script",
    "run_download",
)


@pytest.fixture
def trained(revisit, offered):
    """The Watch page of a finished run of 22 steps."""
    return revisit(steps=22, seed=7, layers_decoder=2)


def test_before_the_first_step_the_menu_says_what_to_do(visit, offered):
    visitor = visit()
    assert visitor.says("Nothing to take away yet; train first.")
    assert offered == {}


@pytest.mark.parametrize("page", ["watch", "ask"])
def test_every_file_is_offered_and_made_only_on_request(trained, offered, page):
    offered.clear()
    trained.go(page)
    assert tuple(offered) == KEYS
    for given in offered.values():
        assert callable(given["data"])
        assert given["on_click"] == "ignore"  # the page is not drawn again
    assert trained.says("for “banana” and the large head")


def test_each_button_makes_its_file_of_this_run(trained, offered):
    begins = {
        "export_html": ("html", "<!doctype html>"),
        "export_gif": ("gif", b"GIF8"),
        "export_strip": ("png", b"\x89PNG"),
        "export_csv": ("csv", "step,"),
        "export_json": ("json", "{"),
        "export_weights": ("safetensors", b""),
        "export_script": ("py", '"""'),
        "export_parquet": ("parquet", b"PAR1"),
        "run_download": ("headlight", b"SQLite format 3"),
    }
    for key, (ending, start) in begins.items():
        given, made = offered[key], offered[key]["data"]()
        assert not given["disabled"]
        assert given["file_name"].startswith("headlight-seed7")
        assert given["file_name"].endswith(f".{ending}")
        assert made[: len(start)].lower() == start.lower()
    for key, fact in (("export_html", "seed 7"), ("export_script", "SEED"), ("export_csv", "\n22,")):
        assert fact in offered[key]["data"]()


@pytest.mark.parametrize("step", [3, 22])
def test_the_numbers_and_the_weights_are_of_the_step_on_the_screen(trained, offered, step):
    trained.go_to_step(step)
    document = json.loads(offered["export_json"]["data"]())
    frame = trained.run.view.frame_at(step)
    assert document["step"] == step
    assert document["seed"] == 7
    (banana,) = [tracked for tracked in document["probes"] if tracked["word"] == "banana"]
    shown = np.array(banana["maps"]["decoder.1.cross"], dtype=float)
    np.testing.assert_allclose(shown, frame.map(0, "decoder.1.cross"), atol=1e-4)
    saved = load(offered["export_weights"]["data"]())
    (snapshot,) = [snapshot for snapshot in trained.run.view.snapshots if snapshot.step == step]
    assert saved.keys() == dict(snapshot.weights).keys()
    for name, values in saved.items():
        np.testing.assert_array_equal(values, snapshot.weights[name])


def test_a_step_without_a_snapshot_exports_the_nearest_weights(visit, offered):
    trained = visit(steps=22).press("run_start").until("finished")
    trained.run.thin_weights(2)
    trained.go("ask").go_to_step(13)  # the snapshots are 0, 11 and 22
    data = offered["export_weights"]["data"]()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert header["__metadata__"]["step"] == "11"
    without = "The script trains the configuration from the start, without interventions."
    assert not trained.says(without)
    trained.run.intervene(Interventions(ablated=(("encoder.0", 1),))).result(30)
    assert trained.look().says(without)


def test_a_file_shows_the_step_on_the_screen_when_its_button_is_pressed(trained, offered):
    """A choice in the player redraws only the player; the menu is redrawn only with the whole page."""
    button = offered["export_json"]["data"]
    assert json.loads(button())["step"] == 22
    trained.go_to_step(5)
    assert json.loads(button())["step"] == 5


def test_the_files_show_the_head_that_is_large_on_the_screen(trained, offered, monkeypatch):
    seen = []
    monkeypatch.setattr(film, "film_gif", lambda view, **chosen: seen.append(chosen) or b"")
    monkeypatch.setattr(menu, "html_page", lambda view, **chosen: seen.append(chosen) or "")
    trained.choose(kind="decoder", word="cat", pinned=["decoder.1.self", 1])
    offered["export_gif"]["data"]()
    offered["export_html"]["data"]()
    assert seen == [{"word": "cat", "site": "decoder.1.self", "head": 1}] * 2
    button = offered["export_gif"]["data"]
    trained.choose(kind="encoder")  # the pinned head is of another kind
    button()
    assert seen[-1]["site"] == "encoder.0"


def test_a_pinned_head_that_does_not_exist_breaks_no_file(trained, offered):
    guest = trained.__class__({"run": trained.run.id, "head": "decoder.1.cross.9"}, {})
    assert guest.errors == []
    for key in ("export_html", "export_gif"):
        assert len(offered[key]["data"]()) > 1000


def test_a_word_that_has_not_been_recorded_yet_names_no_file(trained, offered, monkeypatch):
    """The files show a recorded word and are named after it."""
    monkeypatch.setattr(trained.run, "add_word", lambda word: word)  # the run's thread is busy
    trained.go("ask").set("explore_text", "zebra")
    assert trained.says("for “banana” and the large head")
    assert offered["export_gif"]["file_name"] == "headlight-seed7-banana.gif"
    assert Image.open(io.BytesIO(offered["export_gif"]["data"]())).format == "GIF"


def test_a_word_added_late_can_be_exported_at_any_step(trained, offered):
    frames = trained.run.view.frames
    trained.set("own_word", "owl").wait_until(lambda: trained.run.view.frames.steps_of("owl") == frames.steps)
    trained.choose(word="owl", step=3)  # owl was not tracked yet at step 3
    assert json.loads(offered["export_json"]["data"]())["probes"][-1]["word"] == "owl"
    assert offered["export_gif"]["file_name"] == "headlight-seed7-owl.gif"
    gif = Image.open(io.BytesIO(offered["export_gif"]["data"]()))
    assert gif.n_frames == len(frames)


def test_a_file_that_cannot_be_made_is_disabled_with_a_reason(visit, offered, monkeypatch):
    monkeypatch.setattr(fonts, "FONTS", ())
    visitor = visit(task="en-fr", steps=3).press("run_start").until("finished")
    assert visitor.errors == []
    assert offered["export_script"]["disabled"]
    assert offered["export_script"]["help"].startswith("The script supports the reversal only")
    for key in ("export_gif", "export_strip"):
        assert offered[key]["disabled"]
        assert offered[key]["help"].startswith("No font on this machine has é; install a font")
    for key in ("export_html", "export_csv", "export_json", "export_weights"):
        assert not offered[key]["disabled"]
        assert offered[key]["data"]()
    assert re.fullmatch(r"headlight-seed\d+-[\w-]+\.gif", offered["export_gif"]["file_name"])
