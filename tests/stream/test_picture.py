"""The picture of the model over GET: a forward pass of a word, and what one training step changes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.stream.conftest import good
from transformer.recording.recording import Recording

SITES = ("encoder.0", "decoder.0.self", "decoder.0.cross")
SIXTEEN_BITS = 1e-3
"""Tolerance for maps, which are recorded in 16 bits."""


@pytest.fixture
def ask(server, run):
    """Request a picture or a change of the run with a ticket."""
    headers = {"x-headlight-ticket": good(run.id)}
    return lambda what, **asked: server.get(f"/stream/{run.id}/{what}", params=asked, headers=headers)


def unpacked(content, shapes_of):
    """Return the line of JSON, and the numbers after it by name; fail if any are left over."""
    line, _, numbers = content.partition(b"\n")
    head, values, found = json.loads(line), np.frombuffer(numbers, dtype="<f4"), {}
    for name, shape in shapes_of(head):
        found[name], values = values[: math.prod(shape)].reshape(shape), values[math.prod(shape) :]
    assert values.size == 0
    return head, found


def pass_of(answer):
    assert answer.status_code == 200
    return unpacked(
        answer.content,
        lambda head: [
            ((box["name"], table["key"]), table["shape"]) for box in head["boxes"] for table in box["tables"]
        ],
    )


def recorded_map(run, step, site):
    frame = run.view.frame_at(step)
    return np.nan_to_num(frame.map(frame.row_of("cat"), site))


def test_a_forward_pass_has_the_weights_recorded_at_its_step_and_is_never_cached(ask, run):
    for step in (0, 7):
        answer = ask(f"picture/{step}", word="cat")
        assert answer.headers["cache-control"] == "no-store"
        head, tables = pass_of(answer)
        assert (head["step"], head["word"], head["arranged"]) == (step, "cat", head["own"])
        for site in SITES:
            expected = recorded_map(run, step, site)
            np.testing.assert_allclose(tables[site, "weights"], expected, atol=SIXTEEN_BITS)


def test_a_word_in_its_batch_is_padded_to_the_longest_and_the_padding_has_no_weight(ask):
    alone, _ = pass_of(ask("picture/5", word="cat"))
    assert alone["tokens"]["src"] == ["[SOS]", *"cat", "[EOS]"]
    head, tables = pass_of(ask("picture/5", word="cat", batch="1"))
    assert head["tokens"]["src"] == ["[SOS]", *"cat", "[EOS]", "[PAD]"]  # padded to the length of frog
    assert (tables["decoder.0.cross", "weights"][..., -1] == 0).all()


def test_the_same_weights_can_be_run_with_another_norm_placement_or_score_scale(ask):
    """The gain of an untrained norm is 1 and its bias 0, so its output has a mean of 0."""
    means = {}
    for placement in ("pre", "post"):
        head, tables = pass_of(ask("picture/0", word="cat", norm_placement=placement))
        assert head["arranged"]["norm_placement"] == placement
        means[placement] = np.abs(tables["encoder.0", "residual"].mean(axis=1)).max()
    assert means["post"] < 1e-5 < 0.01 < means["pre"]
    (whole, wide), (_, narrow) = (
        pass_of(ask("picture/0", word="cat", score_scale=scale)) for scale in ("sqrt_d_head", "sqrt_d_model")
    )
    site = "encoder.0", "scale"
    np.testing.assert_allclose(
        narrow[site], wide[site] / math.sqrt(2), rtol=1e-4, atol=1e-6
    )  # d_head is 4, d_model is 8
    assert whole["own"]["score_scale"] == "sqrt_d_head"


@pytest.mark.parametrize("how", [{}, {"norm_placement": "post", "score_scale": "none"}])
def test_the_parts_of_an_attention_add_up_to_the_scores_of_the_forward_pass(ask, how):
    site = "decoder.0.cross"
    _, tables = pass_of(ask("picture/7", word="cat", **how))
    shapes = {side: tables[site, side].shape for side in ("query", "key")}
    answer = ask("parts/7", word="cat", site=site, **how)
    assert answer.headers["cache-control"] == "no-store"
    names, found = unpacked(
        answer.content,
        lambda names: [(side, (len(parts), *shapes[side])) for side, parts in names[site].items()],
    )
    assert names[site]["key"][0] == "token"
    scores = np.einsum("ahqk,bhsk->hqs", found["query"], found["key"])
    np.testing.assert_allclose(scores, tables[site, "scale"], atol=1e-5)


def test_a_change_has_the_loss_of_its_step_and_the_weights_after_it(ask, run):
    answer = ask("change/6", word="cat")
    assert answer.status_code == 200
    head, maps = unpacked(answer.content, lambda head: [(s, (n,)) for s, n in head["sites"].items()])
    assert head["step"] == 7
    assert head["loss"] == pytest.approx(run.view.metrics.column("loss")[6], rel=1e-4)
    for site in SITES:
        np.testing.assert_allclose(maps[site], recorded_map(run, 7, site).ravel(), atol=SIXTEEN_BITS)
    for box in head["boxes"].values():
        assert box["ratio"] == pytest.approx(box["update"] / box["weight"] if box["weight"] else 0.0)


@pytest.mark.parametrize(
    ("what", "asked", "sentence"),
    [
        ("picture/3", {"word": "c4t"}, "Only the letters a to z are in the alphabet"),
        ("change/3", {"word": "c4t"}, "Only the letters a to z are in the alphabet"),
        (
            "picture/3",
            {"word": "cat", "norm_placement": "sideways"},
            "norm_placement is 'sideways'; choose one of pre, post, branch.",
        ),
        ("change/30", {"word": "cat"}, "The weights of step 31 are not kept"),
        ("parts/99", {"word": "cat", "site": "encoder.0"}, "The weights of step 99 are not kept"),
        ("parts/7", {"word": "cat", "site": "<b>"}, "This model does not have the chosen cell; choose"),
    ],
)
def test_an_invalid_request_is_refused_with_a_message(ask, what, asked, sentence):
    answer = ask(what, **asked)
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith(sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "No weights of this run are kept, so there is nothing to look into."),
        ({"frames": Recording()}, "There is nothing to look into yet: the untrained model is being built."),
    ],
)
def test_a_request_without_a_snapshot_is_refused(ask, run, changes, sentence):
    run.view = replace(run.view, snapshots=(), **changes)
    answer = ask("picture/0", word="cat")
    assert (answer.status_code, answer.text) == (422, sentence)


def test_a_change_that_cannot_be_shown_names_the_nearest_step_whose_change_can_be(ask, run):
    every = run.view.snapshots
    run.view = replace(run.view, snapshots=tuple(one for one in every if one.step in (3, 4, 9, 10, 20, 22)))
    answer = ask("change/20", word="cat")
    assert (answer.status_code, answer.text.partition(". ")[2]) == (
        422,
        "Choose step 9, the nearest one whose change can be.",
    )
    assert ask("change/9", word="cat").status_code == 200
    run.view = replace(run.view, snapshots=tuple(one for one in every if one.step in (20, 22)))
    assert ask("change/20", word="cat").text.endswith(" No two consecutive steps of this run are kept.")


def test_an_unknown_route_is_not_found(ask):
    assert ask("weights/3", word="cat").status_code == 404
