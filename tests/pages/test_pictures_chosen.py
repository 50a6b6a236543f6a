"""What a visitor chooses to see: the kind of attention, the head shown large, outlines, groups of heads."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import streamlit as st

from pages.parts import watching
from pages.parts.pictures import large_picture, strip_picture
from tests.pages.conftest import scored
from transformer.figures import colors
from transformer.interventions import Interventions


def labels(axis):
    return [text.replace("<br>", "") for text in axis["ticktext"]]


@pytest.mark.parametrize(
    ("kind", "site", "shape", "columns"),
    [
        ("cross", "decoder.0.cross", (7, 8), ["[SOS]", *"banana", "[EOS]"]),
        ("encoder", "encoder.0", (8, 8), ["[SOS]", *"banana", "[EOS]"]),
        ("decoder", "decoder.0.self", (7, 7), ["[SOS]", *"ananab"]),
    ],
)
def test_each_kind_of_attention_shows_its_own_weights_and_letters(visit, kind, site, shape, columns):
    visitor = visit().set("kind", kind)
    shown, strip = visitor.drawn("live_map_figure"), visitor.drawn("live_maps_figure")
    assert shown.arrays["0.z"].shape == shape
    assert labels(shown.layout["xaxis"]) == columns
    maps = visitor.run.view.frame.map(0, site)
    for head in range(2):
        np.testing.assert_allclose(strip.arrays[f"{head}.z"], maps[head], atol=1e-4)
    assert np.isnan(shown.arrays["0.z"]).sum() == (21 if kind == "decoder" else 0)
    blocked = [
        trace for trace in shown.data if trace.get("colorscale") == [[0, colors.CAUSAL], [1, colors.CAUSAL]]
    ]
    assert len(blocked) == (1 if kind == "decoder" else 0)


def test_outlines_stand_on_the_mirrored_letters_of_cross_attention_only(visit):
    visitor = visit()
    assert visitor.drawn("live_map_figure").layout["shapes"] == []
    visitor.set("outline", True)
    shown = visitor.drawn("live_map_figure").layout
    columns = labels(shown["xaxis"])
    rows = [text.split(" → ")[1] for text in shown["yaxis"]["ticktext"]]
    cells = [(int(shape["y0"] + 0.5), int(shape["x0"] + 0.5)) for shape in shown["shapes"]]
    assert [rows[row] for row, _ in cells] == [columns[column] for _, column in cells] == list("ananab")
    visitor.set("kind", "encoder")
    assert visitor.drawn("live_map_figure").layout["shapes"] == []


def test_the_head_with_the_clearest_pattern_is_shown_large_and_framed_in_the_strip(visit):
    visitor = visit(heads=4)
    frame = visitor.run.view.frame
    site, head = frame.clearest
    shown, strip = visitor.drawn("live_map_figure"), visitor.drawn("live_maps_figure")
    np.testing.assert_allclose(shown.arrays["0.z"], frame.map(0, site)[head], atol=1e-4)
    assert shown.changing["title.text"].startswith(f"<b>decoder 1 · head {head + 1}</b> · step 0<br>")
    assert frame.scores[site][head] == max(frame.scores[site])
    widths = [strip.changing[f"shapes[{i}].line.width"] for i in range(4)]
    assert widths.index(max(widths)) == head


def test_a_head_that_crossed_the_threshold_carries_a_star_in_the_strip(visit):
    frame = visit(heads=4).run.view.frame
    turned = scored(frame, {"decoder.0.cross": {"mirror": np.array([0.49, 0.5, 0.02, 0.97])}})
    chosen = ("decoder.0.cross", 2)
    made = strip_picture(turned, "cat", ("decoder.0.cross",), (0, 1, 2, 3), chosen)
    assert ["★" in made.layout[f"annotations[{i}].text"] for i in range(4)] == [False, True, False, True]
    widths = [made.layout[f"shapes[{i}].line.width"] for i in range(4)]
    assert widths[0] == 0 < widths[1] == widths[3] < widths[2]
    encoder = strip_picture(frame, "cat", ("encoder.0",), (0, 1, 2, 3), chosen)  # it has no mirror score
    assert not any("★" in text for name, text in encoder.layout.items() if name.endswith("text"))


def test_a_head_that_is_switched_off_carries_no_star_and_no_role(visit):
    frame = visit(heads=4).run.view.frame
    site = "decoder.0.cross"
    frame = scored(frame, {site: {"mirror": np.array([0.9, 0.8, 0.2, 0.1])}})
    off = replace(frame, interventions=Interventions(ablated=((site, 0),)))
    made = strip_picture(off, "cat", (site,), (0, 1, 2, 3), (site, 2))
    assert ["★" in made.layout[f"annotations[{i}].text"] for i in range(4)] == [False, True, False, False]
    assert off.role(site, 0) == "switched off"
    assert off.role(site, 1) == "anti-diagonal 0.80"


@pytest.mark.parametrize(
    ("site", "scores", "said"),
    [
        ("decoder.0.cross", {"mirror": 0.78, "first": 0.1}, "anti-diagonal 0.78"),
        ("decoder.0.cross", {"mirror": 0.1, "eos": 0.5}, "[EOS] sink 0.50"),
        ("decoder.0.cross", {"mirror": 0.499, "eos": 0.4}, "no clear pattern"),
        ("decoder.0.self", {"previous": 0.6, "first": 0.61}, "[SOS] sink 0.61"),
        ("encoder.0", {"diagonal": 0.93, "entropy": 0.99}, "diagonal 0.93"),
    ],
)
def test_the_second_line_of_the_large_map_calls_the_head_by_what_it_does(visit, site, scores, said):
    frame = visit().run.view.frame
    values = {name: np.array([0.0, score]) for name, score in scores.items()}
    frame = scored(frame, {site: values}, 1325)
    for step, when in ((1325, ""), (1340, " at step 1,325")):  # it is measured less often than it is shown
        made = large_picture(replace(frame, step=step), "cat", site, 1, 3, False)
        first, second = re.sub("<span[^>]*>|</span>", "", made.layout["title.text"]).split("<br>")
        assert first.endswith(f"1 · head 2</b> · step {step:,}")
        assert second == f"{said}{when} · “cat” · seed 3 · teacher-forced"


def test_a_picture_of_a_frame_is_made_once_for_all_who_look_at_it_and_anew_for_another_frame(visit):
    frame = visit().run.view.frame
    asked = ("cat", ("decoder.0.cross",), (0, 1), ("decoder.0.cross", 0))
    made = strip_picture(frame, *asked)
    assert strip_picture(frame, *asked) is made
    again = replace(frame)  # as where it is recorded anew
    assert again != frame
    assert strip_picture(again, *asked) is not made
    assert strip_picture(frame, "cat", ("encoder.0",), (0, 1), ("encoder.0", 0)) is not made


def test_a_pinned_head_stays_large_where_there_is_one(visit):
    pinned = visit(session={"pinned": ("decoder.0.cross", 1)})
    assert "decoder 1 · head 2" in pinned.drawn("live_map_figure").changing["title.text"]
    np.testing.assert_allclose(
        pinned.drawn("live_map_figure").arrays["0.z"],
        pinned.run.view.frame.map(0, "decoder.0.cross")[1],
        atol=1e-4,
    )
    gone = visit(session={"pinned": ("decoder.0.cross", 7)})  # this model has two heads
    assert gone.run.view.frame.clearest[1] in (0, 1)
    assert "head 8" not in gone.drawn("live_map_figure").changing["title.text"]


def test_a_click_pins_the_head_of_its_tile_and_a_second_click_lets_go(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    sites, heads = ["decoder.0.cross", "decoder.1.cross", "decoder.2.cross"], [4, 5]
    for trace, chosen in (
        (1, ("decoder.1.cross", 4)),
        (5, ("decoder.2.cross", 5)),
        (6, ("decoder.0.cross", 4)),
    ):
        watching._pin(trace, sites, heads)  # beyond the six tiles are the blocked cells of the same ones
        assert st.session_state["pinned"] == chosen
    watching._pin(0, sites, heads)
    assert st.session_state["pinned"] is None


def test_heads_and_layers_beyond_what_fits_are_chosen_and_never_squeezed(visit):
    visitor = visit(heads=10, width=20, layers_encoder=5)

    def names():
        changing = visitor.drawn("live_maps_figure").changing
        return [text.removeprefix("★ ") for name, text in changing.items() if name.startswith("annotations")]

    assert "shown_heads" in visitor.keys
    assert "shown_layers" not in visitor.keys  # the decoder has one layer
    assert names() == [f"dec 1 · head {head}" for head in range(1, 9)]
    visitor.set("shown_heads", 1)
    assert names() == ["dec 1 · head 9", "dec 1 · head 10"]
    np.testing.assert_allclose(
        visitor.drawn("live_maps_figure").arrays["0.z"],
        visitor.run.view.frame.map(0, "decoder.0.cross")[8],
        atol=1e-4,
    )
    visitor.set("kind", "encoder")
    assert "shown_layers" in visitor.keys
    visitor.set("shown_layers", 1)
    assert names() == [f"enc 5 · head {head}" for head in range(5, 9)]  # four fit beside four layers
    visitor.set("shown_layers", 0)
    assert names() == [f"{layer} · {head}" for head in range(5, 9) for layer in range(1, 5)]
