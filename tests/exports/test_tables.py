"""Exported numbers: other programs read back what the run has recorded."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load

from tests.conftest import LIVE
from tests.exports.conftest import TAKEN
from transformer.config import RunConfig
from transformer.exports.tables import curves_csv, frame_json, weights_file
from transformer.recording.frame import Ablations

STEP_4 = 4
WEIGHTS = {
    "encoder.0.weight": np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32),
    "bias": np.arange(7, dtype=np.float16),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "scalar": np.float32(2.5).reshape(()),
}
CONFIG = RunConfig(seed=9).with_changes(n_heads=2, d_model=24, goal=0.5)


@pytest.fixture
def frame(view):
    return next(frame for frame in view.frames if frame.step == STEP_4)


@pytest.fixture
def document(view, frame):
    return json.loads(frame_json(view, frame))


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), None])
def test_a_loss_that_is_no_number_is_null_in_json(view, frame, loss):
    assert json.loads(frame_json(view, replace(frame, loss=loss)))["loss"] is None


def test_the_csv_reads_back_as_the_table_with_a_row_for_every_step(view):
    rows = list(csv.DictReader(io.StringIO(curves_csv(view))))
    table = view.metrics.table()
    assert list(rows[0]) == list(table.columns)
    for name in table.columns:
        read = [float(row[name]) if row[name] else np.nan for row in rows]
        np.testing.assert_array_equal(read, table[name])
    assert [row["step"] for row in rows] == [str(step) for step in range(1, 9)]
    assert [row["exact"] != "" for row in rows] == [step in (4, 8) for step in range(1, 9)]
    assert "\r" not in curves_csv(view)


def test_the_json_names_its_run_and_step(view, frame, document):
    configuration = RunConfig.from_json(json.dumps(document["configuration"]))
    assert configuration == view.config
    assert (document["format"], document["seed"], document["step"]) == (1, 5, 4)
    assert document["loss"] == view.metrics.column("loss")[3]
    assert document["held_out_words"] == {"right": frame.evaluation.right, "asked": LIVE, "step": 4}
    assert document["interventions"] == TAKEN.to_dict()
    assert view.id not in frame_json(view, frame)  # anyone who has it may watch the run


def test_each_site_lists_its_axes_and_the_masks_that_are_on(document):
    keys = ("kind", "rows", "columns", "writes", "causal", "padding")
    assert {site: tuple(said[key] for key in keys) for site, said in document["sites"].items()} == {
        "encoder.0": ("encoder", "src", "src", False, False, True),
        "decoder.0.self": ("decoder", "tgt", "tgt", True, True, True),
        "decoder.0.cross": ("cross", "tgt", "src", True, False, True),
        "decoder.1.self": ("decoder", "tgt", "tgt", True, True, True),
        "decoder.1.cross": ("cross", "tgt", "src", True, False, True),
    }


def test_weights_are_those_of_the_frame_to_four_digits_and_null_where_blocked(frame, document):
    banana = document["probes"][0]
    for site in frame.axes:
        expected = frame.map(0, site)
        found = np.array(banana["maps"][site], dtype=float)  # null becomes NaN
        np.testing.assert_allclose(found, expected, atol=5.1e-5)
    assert banana["maps"]["decoder.0.self"][1][4][2] is None  # blocked by hand, in this head only
    assert banana["maps"]["decoder.0.self"][0][4][2] is not None
    assert all(len(str(weight)) <= 6 for row in banana["maps"]["encoder.0"][0] for weight in row)


def test_each_word_has_its_tokens_and_its_output(frame, document):
    assert [tracked["word"] for tracked in document["probes"]] == ["banana", "cat", "ox"]
    cat, recorded = document["probes"][1], frame.words[1]
    assert cat["src_tokens"] == ["[SOS]", "c", "a", "t", "[EOS]"]
    assert cat["tgt_tokens"] == ["[SOS]", "t", "a", "c"]
    assert cat["expected"] == ["t", "a", "c", "[EOS]"]
    assert cat["predicted"] == list(recorded.predicted)
    assert (cat["answer"], cat["output"], cat["stopped"]) == ("tac", recorded.output, recorded.stopped)
    assert cat["right"] is False


def test_scores_have_a_number_for_every_head(frame, document):
    assert set(document["scores"]) == set(frame.axes)
    mirror = document["scores"]["decoder.1.cross"]["mirror"]
    assert mirror == pytest.approx(frame.scores["decoder.1.cross"], abs=5.1e-5)
    assert len(mirror) == 3


def test_step_0_has_no_loss_and_numbers_between_evaluations_carry_the_step_of_their_evaluation(view):
    first, before, between = (json.loads(frame_json(view, view.frames.of_step(step))) for step in (0, 4, 6))
    assert (first["step"], first["loss"]) == (0, None)
    assert (between["step"], between["loss"]) == (6, view.metrics.column("loss")[5])
    assert (between["held_out_words"], between["scores"]) == (before["held_out_words"], before["scores"])
    assert (between["held_out_words"]["step"], between["scored_step"]) == (4, 4)


def test_a_word_added_later_has_maps_at_every_step_and_no_output_before_it_was_added(view):
    for step, written in enumerate((0, 1, 2, 3, 4, 4, 4, 4, 8)):  # single steps up to step 4
        *others, ox = json.loads(frame_json(view, view.frames.of_step(step)))["probes"]
        assert (ox["word"], np.shape(ox["maps"]["decoder.1.cross"])) == ("ox", (3, 3, 4))
        assert ox["output_step"] == (written if step >= 4 else None)
        said = [ox[key] for key in ("output", "stopped", "right")]
        assert [one is None for one in said] == 3 * [step < 4]
        assert {tracked["output_step"] for tracked in others} == {written}


def test_safetensors_reads_the_file_of_weights_and_its_metadata():
    data = weights_file(CONFIG, 4, WEIGHTS)
    weights = load(data)
    assert set(weights) == set(WEIGHTS)
    for name, array in WEIGHTS.items():
        assert weights[name].dtype == array.dtype
        np.testing.assert_array_equal(weights[name], array)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert header["__metadata__"]["step"] == "4"
    assert RunConfig.from_json(header["__metadata__"]["config"]) == CONFIG


def test_what_heads_are_worth_has_the_name_of_its_number_beside_fixed_keys(recorded):
    frame = recorded.frames[-1]
    site = next(iter(frame.axes))
    known = Ablations(step=1, name="step", whole=2.0, without={site: np.array([2.5, np.nan])})
    said = json.loads(frame_json(recorded, replace(frame, ablations=known)))["without"]
    assert said == {"step": 1, "measure": "step", "with_all": 2.0, "heads": {site: [2.5, None]}}
    assert json.loads(frame_json(recorded, frame))["without"] is None
