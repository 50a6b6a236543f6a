"""The picture of the model over GET: a forward pass of a word, and what one training step changes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.stream.conftest import good

SITES = ("encoder.0", "decoder.0.self", "decoder.0.cross")
SIXTEEN_BITS = 1e-3
"""As maps are recorded."""


@pytest.fixture
def ask(server, run):
    """Ask for a picture of the run, with a ticket."""
    headers = {"x-headlight-ticket": good(run.id)}
    return lambda what, **asked: server.get(f"/stream/{run.id}/{what}", params=asked, headers=headers)


def unpacked(content, shapes_of):
    """A line of JSON, and the numbers behind it by name; none may be left over."""
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


def test_a_pass_has_the_weights_that_were_recorded_at_its_step_and_is_never_kept(ask, run):
    for step in (0, 7):
        answer = ask(f"picture/{step}", word="cat")
        assert answer.headers["cache-control"] == "no-store"
        head, tables = pass_of(answer)
        assert (head["step"], head["word"], head["arranged"]) == (step, "cat", head["own"])
        for site in SITES:
            expected = recorded_map(run, step, site)
            np.testing.assert_allclose(tables[site, "weights"], expected, atol=SIXTEEN_BITS)


def test_a_word_in_its_batch_is_padded_to_the_longest_and_nobody_attends_to_that(ask):
    alone, _ = pass_of(ask("picture/5", word="cat"))
    assert alone["tokens"]["src"] == ["[SOS]", *"cat", "[EOS]"]
    head, tables = pass_of(ask("picture/5", word="cat", batch="1"))
    assert head["tokens"]["src"] == ["[SOS]", *"cat", "[EOS]", "[PAD]"]  # as long as frog
    assert (tables["decoder.0.cross", "weights"][..., -1] == 0).all()


def test_the_same_weights_can_be_arranged_in_another_way(ask):
    """Before any training a norm has neither gain nor bias: what comes out of it has a mean of 0."""
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
    )  # 4 of 8 features
    assert whole["own"]["score_scale"] == "sqrt_d_head"


def test_a_change_has_the_loss_of_its_step_and_the_weights_behind_it(ask, run):
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
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(ask, what, asked, sentence):
    answer = ask(what, **asked)
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith(sentence)


def test_before_there_is_a_model_there_is_nothing_to_look_into(ask, run):
    run.view = replace(run.view, snapshots=())
    answer = ask("picture/0", word="cat")
    assert (answer.status_code, answer.text.split(":")[0]) == (422, "There is nothing to look into yet")


def test_nothing_else_is_made_of_a_run(ask):
    assert ask("weights/3", word="cat").status_code == 404
