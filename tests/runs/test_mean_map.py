"""A mean map is tracked as a word is: with its past, in files and in exports; but it is never asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.exports.test_page import run_data
from tests.runs.conftest import take
from transformer.errors import InputError
from transformer.exports.film import film_gif
from transformer.exports.page import html_page
from transformer.exports.tables import frame_json
from transformer.player.chunks import look_of
from transformer.player.index import Index
from transformer.player.outputs import outputs
from transformer.player.sentences import narration
from transformer.runs.file_run import FileRun
from transformer.storage.format import write_run

NAME = "mean of 64 words of 4 letters"
SITE = "decoder.1.cross"


@pytest.fixture
def mean_run(tiny, make_run, until):
    """A finished run of 8 steps that tracks two words and the mean map of words of 4 letters."""
    run = make_run(tiny(goal=None), words=("kayak", NAME, "cab"))
    run.start().result(60)
    until(lambda: run.view.state == "finished")
    return run


def test_a_mean_map_added_late_has_its_whole_past_and_replaces_the_one_before(tiny, training, losses):
    config = tiny(steps=8, goal=None)
    (late, view), (early, other) = training(config), training(config)
    for one in (late, early):
        one.recording.add_word(one.state.task.mean(3 if one is late else 4))
        take(one, 5)
    late.recording.add_word(late.state.task.mean(4))
    early.recording.compute()
    while late.recording.has_backfill:
        late.recording.compute_past()
    assert view.view.frames.words == ("ox", "cab", NAME)
    assert view.view.frames.steps_of(NAME) == tuple(range(6))
    for frame, same in zip(view.view.frames, other.view.frames, strict=True):
        for site in frame.axes:
            np.testing.assert_allclose(frame.map(2, site), same.map(2, site), atol=2e-4, equal_nan=True)
    take(late, None)
    assert view.view.metrics.column("loss").tolist() == losses(config)


def test_no_answer_and_no_sentence_is_of_a_mean_map(mean_run):
    view = mean_run.view
    whole = Index(view.config).whole(view)
    assert whole["words"] == ["kayak", NAME, "cab"]
    assert whole["means"] == {NAME: "all words of 4 letters"}
    assert {tuple(one["outputs"]) for one in whole["segments"]} == {("kayak", "cab")}
    assert NAME not in outputs(view.frame, NAME)
    assert narration(view.frame, "cab", SITE, 0)
    assert not narration(view.frame, NAME, SITE, 0)


def test_its_heading_is_its_name_and_its_labels_are_places(mean_run):
    chunk = mean_run.view.frames.chunks_of(NAME)[0]
    look = json.loads(look_of(chunk)[1])
    assert (look["heading"], look["mean"], look["fed"]) == (NAME, True, "teacher-forced")
    cross = look["kinds"]["cross"]
    assert cross["rows"] == ["[SOS] → 1", "output 1 → 2", "output 2 → 3", "output 3 → 4", "output 4 → [EOS]"]
    assert cross["columns"] == ["[SOS]", "letter 1", "letter 2", "letter 3", "letter 4", "[EOS]"]
    assert cross["columnTitle"] == "looks at: letters of the word"


def test_a_file_keeps_it_and_refuses_a_name_that_no_mean_map_has(mean_run, tmp_path):
    run, path = mean_run, tmp_path / "run.headlight"
    write_run(path, run.view, run.words, task=run.task, weights=run.view.snapshots[-1].source)
    read = FileRun(path)
    assert read.questions == run.questions
    for one, other in zip(read.view.frames, run.view.frames, strict=True):
        assert one.words[1] == other.words[1]
        assert np.array_equal(one.map(1, SITE), other.map(1, SITE))
    for name in (
        "mean of 64 words of 9 letters",
        "mean of 64 words of 2 letters",
        "mean of 65 words of 4 letters",
    ):
        with pytest.raises(InputError, match="letters"):
            run.add_word(name)
    with pytest.raises(InputError, match="letters"):
        run.task.question(NAME)


def test_a_run_of_a_mean_map_alone_also_tracks_the_words_of_its_task_and_keeps_one(tiny, make_run):
    run = make_run(tiny(), words=(NAME,))
    assert run.words == ("kayak", "cat", NAME)
    run.drop_word("kayak").result(60)
    with pytest.raises(InputError, match="“cat” is the only word"):
        run.drop_word("cat")
    run.drop_word(NAME).result(60)
    assert run.words == ("cat",)


def test_exports_show_it_by_its_name_and_the_page_asks_a_word_instead(mean_run):
    view = mean_run.view
    data = run_data(html_page(view, word=NAME, site=SITE, head=0))
    assert data["index"]["chunks"].keys() == {"kayak", NAME, "cab"}
    assert data["pictures"]["word"] == "kayak"
    assert film_gif(view, word=NAME, site=SITE, head=0).startswith(b"GIF")
    probe = json.loads(frame_json(view, view.frame))["probes"][1]
    assert (probe["word"], probe["answer"], probe["output"], probe["right"]) == (NAME, None, None, None)
    assert np.allclose(np.sum(probe["maps"][SITE], axis=-1), 1, atol=1e-3)
