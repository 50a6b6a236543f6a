"""The index of a run, as a player gets it: it describes each step as the frame of that step does."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.player.conftest import CONFIG
from tests.player.follower import segment_of, sent, tells_every_frame
from transformer.player.chunks import look_name, look_of, name_of
from transformer.player.index import Index
from transformer.recording.chunk import Chunk
from transformer.recording.recording import Recording

# Segments.


def test_segments_describe_every_recorded_step_as_its_frame_does(recorded):
    """At step 14 a head is switched off, a cell is blocked and a word is added."""
    index = sent(Index(recorded.config).whole(recorded))
    assert tells_every_frame(recorded, index)
    assert [moment["step"] for moment in index["moments"]] == [moment.step for moment in recorded.moments]
    begins = {segment["from"] for segment in index["segments"]}
    assert {0, 10, 14, 20, 30, 40} <= begins
    assert len(begins) < 30  # not every step
    before, after = segment_of(index, 13), segment_of(index, 39)
    assert before["taken"] == ""
    assert after["taken"] == (
        "switched off cross-attention layer 2, head 3; "
        "blocked row 2, column 4 in cross-attention layer 1, head 1"
    )
    assert before["roles"]["decoder.1.cross"][2] == "no clear pattern"
    assert after["roles"]["decoder.1.cross"][2] == "switched off"
    assert after["roles"]["decoder.0.cross"][0] == "no clear pattern"
    assert (before["measured"], after["measured"]) == (13, 30)
    assert list(after["outputs"]) == list(before["outputs"]) == ["banana", "cat", "ox"]
    assert "not asked yet" in before["outputs"]["ox"]
    assert "not asked yet" not in after["outputs"]["ox"]


def test_a_head_that_is_off_is_not_lit_however_high_its_score(recorded):
    measured = recorded.frames.measurements[-1]
    high = {
        site: scores | {"mirror": np.ones(3, dtype=np.float32)}
        for site, scores in measured.head_scores.items()
    }
    frames = recorded.frames.extended([replace(measured, head_scores=high)])
    lit = Index(CONFIG).whole(replace(recorded, frames=frames))["segments"][-1]["lit"]
    assert lit == {"decoder.0.cross": [True, True, True], "decoder.1.cross": [True, True, False]}


def test_a_word_is_shown_as_drawn_from_the_step_at_which_training_draws_it(recorded):
    """Step 33 is between two measurements, where nothing else changes."""
    records = [
        replace(record, drawn_at=33) if isinstance(record, Chunk) and record.steps[-1] >= 33 else record
        for record in recorded.frames.records
    ]
    frames = Recording(records, numbers=recorded.metrics.at, target_score=recorded.frames[-1].target_score)
    view = replace(recorded, frames=frames)
    index = sent(Index(CONFIG).whole(view))
    assert tells_every_frame(view, index)
    assert "<small>never trained on</small>" in segment_of(index, 32)["outputs"]["cat"]
    assert "<small>trained on</small>" in segment_of(index, 34)["outputs"]["cat"]


def test_where_steps_are_thinned_the_next_kept_step_shows_the_change(recorded):
    frames = recorded.frames.thinned({0, 40}, recorded.frames.nbytes // 6)
    assert len(frames) < len(recorded.frames)
    view = replace(recorded, frames=frames)
    assert tells_every_frame(view, sent(Index(CONFIG).whole(view)))


def test_each_text_is_stored_once_however_often_it_is_used(recorded):
    index = Index(CONFIG).whole(recorded)
    texts = index["texts"]
    assert len(set(texts)) == len(texts)
    used = set()
    for segment in index["segments"]:
        used |= {segment["right"], segment["lengths"], segment["samples"], *segment["outputs"].values()}
    assert used == set(range(len(texts)))
    assert 4 * len(index["segments"]) > len(texts) > 5


# The rest of an index.


def test_an_index_is_json_and_names_every_chunk_and_every_look_that_a_player_may_need(recorded):
    index = sent(Index(CONFIG).whole(recorded))
    assert list(index["chunks"]) == index["words"] == ["banana", "cat", "ox"]
    for word, entries in index["chunks"].items():
        chunks = recorded.frames.chunks_of(word)
        assert entries == [
            [chunk.steps[0], chunk.steps[-1], len(chunk.steps), name_of(chunk)] for chunk in chunks
        ]
        assert {look_name(chunk) for chunk in chunks} <= set(index["looks"])
        assert all(index["looks"][look_name(chunk)] == json.loads(look_of(chunk)[1]) for chunk in chunks)
    assert index["losses"][0] is None  # nothing was trained yet
    assert index["losses"][1:] == pytest.approx(recorded.metrics.column("loss").tolist(), abs=1e-5)
    assert {kind: one["name"] for kind, one in index["kinds"].items()} == {
        "encoder": "Encoder",
        "decoder": "Decoder",
        "cross": "Cross",
    }
    assert index["kinds"]["cross"]["sites"] == ["decoder.0.cross", "decoder.1.cross"]
    assert index["heads"]["decoder.1.cross"] == [f"cross 2 · head {n}" for n in (1, 2, 3)]
    assert (index["seed"], index["run"], index["version"]) == (5, recorded.id, 1)


def test_before_anything_is_recorded_there_is_no_version(recorded):
    index = Index(CONFIG)
    assert not index.update(replace(recorded, frames=Recording()))
    assert index.version == 0
