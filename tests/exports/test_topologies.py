"""Exports of models of one stack, and of runs whose masks are off or are switched midway."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.exports.conftest import CONFIG, FakeRecording, sharpened
from tests.exports.test_film import color_at, decoded, is_marked, maps_in, viridis
from tests.exports.test_page import run_data
from transformer.exports.film import film_gif
from transformer.exports.frames import map_of, widest
from transformer.exports.page import html_page
from transformer.exports.tables import frame_json
from transformer.figures import colors
from transformer.runs.run import Run
from transformer.shared.interventions import Interventions

SITES = {"encoder-only": "encoder.0", "decoder-only": "decoder.1.self"}
KINDS = {"encoder-only": "encoder", "decoder-only": "sequence"}
TOPOLOGIES = ["encoder-decoder", *SITES]
BOTH_OFF = Interventions(masks=(("causal", False), ("padding", False)))
SWITCHED = {"encoder-decoder": "decoder.1.self", **SITES}


@pytest.fixture(scope="session")
def run_of(changed_midway):
    """Return the finished run of a topology, with both masks off from step 4 on; "ox" is added then."""
    made = {}

    def make(topology, taken=BOTH_OFF, **settings):
        key = topology, taken, *settings.items()
        if key not in made:
            config = CONFIG.with_changes(topology=topology, **settings)
            made[key] = changed_midway(Run(config, words=("banana", "cat")), 4, taken, "ox")
        return made[key]

    return make


def page_of(view):
    return html_page(view, word="cat", site=next(iter(view.frame.axes)), head=2)


@pytest.mark.parametrize("topology", SITES)
def test_a_page_of_a_model_of_one_stack_has_its_one_kind_of_attention(run_of, topology):
    view = run_of(topology, taken=Interventions(ablated=((SITES[topology], 1),)))
    text = page_of(view)
    kinds = run_data(text)["index"]["kinds"]
    assert list(kinds) == [KINDS[topology]]
    assert kinds[KINDS[topology]]["sites"] == list(view.frame.axes)
    layers = "1 layer" if topology == "encoder-only" else "2 layers"
    assert f"{topology} · {layers} × 3 heads · width 12 · {view.parameters:,} parameters" in text


def test_a_page_names_the_masks_that_a_run_began_with_if_they_are_not_the_default(run_of):
    off = page_of(run_of("encoder-decoder", padding_mask=False, causal_mask=False))
    assert "1 + 2 layers × 3 heads · width 12 · causal mask off · padding mask off · " in off
    on = page_of(run_of("encoder-only", causal_mask=True))
    assert "encoder-only · 1 layer × 3 heads · width 12 · causal mask on · " in on


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_map_is_enlarged_to_the_size_of_another_and_each_empty_cell_has_a_reason(run_of, topology):
    view = run_of(topology)
    first, whole = view.frames[0], widest(view.frames, "cat")
    assert whole.step >= 4
    for site in first.axes:
        made = map_of(first, "cat", site, 2, whole)
        shown, like = first.map(1, site)[2], whole.map(1, site)[2]
        assert made.weights.shape == made.reasons.shape == like.shape
        np.testing.assert_array_equal(made.weights[: shown.shape[0], : shown.shape[1]], shown)
        assert np.array_equal(made.reasons == 0, ~np.isnan(made.weights))
        same = map_of(whole, "cat", site, 2, whole)
        np.testing.assert_array_equal(same.weights, like)
        assert not same.reasons.any()


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_film_shows_padding_as_blocked_before_the_switch_and_with_its_weights_after_it(run_of, topology):
    view, site = run_of(topology), SWITCHED[topology]
    view = replace(view, frames=FakeRecording(sharpened(frame) for frame in view.frames))
    _, frames = decoded(film_gif(view, word="cat", site=site, head=2))
    assert len(frames) == len(view.frames)
    whole = widest(view.frames, "cat")
    n = whole.map(1, site).shape[1]
    real = view.frames[0].map(1, site).shape[1]
    box = maps_in(frames[-1][0])[0]
    for (pixels, _), frame in zip(frames, view.frames, strict=True):
        shown = frame.map(1, site)[2]
        for row, column in [(0, 0), (real - 1, 1), (1, 0)]:
            found = color_at(pixels, box, (n, n), row, column)
            np.testing.assert_allclose(found, viridis(shown[row, column]), atol=5)
        for row, column in ((real, 0), (0, n - 1)):
            assert is_marked(pixels, box, (n, n), row, column, colors.PADDING) == (frame.step < 4)
        if frame.step >= 4:
            found = color_at(pixels, box, (n, n), 1, n - 1)
            np.testing.assert_allclose(found, viridis(shown[1, n - 1]), atol=5)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_json_of_every_topology_has_the_weights_of_the_frame_and_the_tokens_of_both_axes(
    run_of, topology
):
    view = run_of(topology)
    for frame in (view.frames[0], view.frames[-1]):
        document = json.loads(frame_json(view, frame))
        off = frame.step >= 4
        for row, tracked in enumerate(document["probes"]):
            for site, heads in tracked["maps"].items():
                said = document["sites"][site]
                rows, columns = (tracked[f"{said[axis]}_tokens"] for axis in ("rows", "columns"))
                found = np.array(heads, dtype=float)
                assert found.shape == (3, len(rows), len(columns))
                np.testing.assert_allclose(found, frame.map(row, site), atol=5.1e-5)
                assert said["padding"] == (not off)
                assert ("[PAD]" in columns) == (off and tracked["word"] != "banana")
            assert tracked["expected"] == list(frame.words[row].expected)
        sides = {"encoder-decoder": {"src", "tgt"}, "encoder-only": {"src"}, "decoder-only": {"seq"}}
        tokens = {f"{side}_tokens" for side in sides[topology]}
        assert {name for name in document["probes"][0] if name.endswith("_tokens")} == tokens
