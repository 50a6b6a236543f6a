"""Story files: their contents, the lines that their errors name, and the models that they fit."""

from __future__ import annotations

import pytest

from transformer.config.recipes import RECIPES
from transformer.errors import InputError
from transformer.runs.demo import OF_STORIES, recording
from transformer.stories.files import ENVIRONMENT, SHIPPED, UNNAMED, read_story, shipped, stories, with_beat
from transformer.stories.story import RECORDINGS
from transformer.tasks import resolved

NAMES = sorted(path.stem for path in SHIPPED.glob("*.toml"))
GOOD = """
title = "Two beats"

[runs.first]
recording = "reverse"

[runs.second]
task = "zh-en"
steps = 300

[[beat]]
says = "Nothing is learned yet."
word = "playground"
kind = "cross"
head = "decoder.1.cross.3"
step = 0

[[beat]]
says = "It learns."
command = "start"
until = "turned"

[[beat]]
says = "Another task."
run = "second"
word = "纽约是一座城市"
head = "clearest"
"""


def test_a_beat_keeps_what_the_previous_beat_showed():
    story = read_story(GOOD)
    one, two, three = story.beats
    assert (one.run, one.word, one.pinned, one.step) == ("first", "playground", ("decoder.1.cross", 2), "0")
    assert (two.word, two.kind, two.pinned, two.step) == ("playground", "cross", one.pinned, "live")
    assert (three.run, three.word, three.pinned) == ("second", "纽约是一座城市", None)
    assert story.runs["second"].config.train.steps == 300
    assert story.runs["first"].config == resolved(RECIPES["default"].small)
    assert story.words_of("first") == ("playground",)
    assert list(story.misfits()) == []


def test_the_fields_of_the_card_may_be_left_out():
    story = read_story(GOOD)
    assert (story.about, story.audience, story.minutes, story.needs) == ("", "", None, "")
    given = read_story('audience = "beginners"\nminutes = 240\nneeds = "' + "x" * 120 + '"' + GOOD)
    assert (given.audience, given.minutes, given.needs) == ("beginners", 240, "x" * 120)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('title = "Two beats"', "title = Two beats", 2, "not TOML"),
        ('recording = "reverse"', 'recording = "backwards"', 5, "reverse, no-causal-mask or zh-en"),
        ("steps = 300", "steps = -1", 9, "steps=-1"),
        ("steps = 300", "stepz = 300", 9, "did you mean"),
        ('kind = "cross"', 'kind = "crossed"', 14, "crossed"),
        ('head = "clearest"', 'head = "the best"', 27, "decoder.1.cross.3"),
        ('says = "It learns."', "", 18, "says"),
        ('says = "It learns."', 'says = "' + "x" * 321 + '"', 19, "320"),
        ("step = 0", "step = -3", 16, "before turned"),
        ('command = "start"', 'command = "explode"', 20, "explode"),
        ('until = "turned"', 'until = "tea"', 21, "started"),
        ('run = "second"', 'run = "third"', 25, "first, second"),
        ('command = "start"', "row = 3", 18, "hides"),
        ('command = "start"', 'row = 3\nstep = 4\nhides = "later"', 22, "trains = false"),
        ('command = "start"', 'row = 3\nhides = "later"', 18, "Nothing follows"),
        ('command = "start"', 'page = "Race"', 18, "against"),
        ('command = "start"', "colour = 1", 20, "colour"),
        ('title = "Two beats"', "", 1, "title is missing"),
        ('title = "Two beats"', 'title = "' + "x" * 61 + '"', 2, "60"),
        ('title = "Two beats"', 'title = "x"\naudience = 3', 3, "audience=3"),
        ('title = "Two beats"', 'title = "x"\naudience = "' + "x" * 61 + '"', 3, "60 are allowed"),
        ('title = "Two beats"', 'title = "x"\nneeds = ["a screen"]', 3, "needs"),
        ('title = "Two beats"', 'title = "x"\nneeds = "' + "x" * 121 + '"', 3, "120 are allowed"),
        ('title = "Two beats"', 'title = "x"\nminutes = "5"', 3, "whole number"),
        ('title = "Two beats"', 'title = "x"\nminutes = 2.5', 3, "whole number"),
        ('title = "Two beats"', 'title = "x"\nminutes = true', 3, "whole number"),
        ('title = "Two beats"', 'title = "x"\nminutes = 0', 3, "1 to 240"),
        ('title = "Two beats"', 'title = "x"\nminutes = 241', 3, "1 to 240"),
        ("step = 0", 'cover = "yes"', 16, "true nor false"),
    ],
)
def test_the_error_of_an_invalid_file_names_line_and_field(old, new, line, says):
    with pytest.raises(InputError, match=rf"(?i)line {line}\b") as refused:
        read_story(GOOD.replace(old, new, 1))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "beat = 3", "beat = [1, 2]", "beat = []", "runs = 1\n[[beat]]\nsays = 'x'"]
)
def test_a_file_without_a_list_of_beats_is_refused_with_an_explanation(text):
    with pytest.raises(InputError, match="A story has"):
        read_story(text)


def test_a_story_reports_which_beats_do_not_fit_another_model():
    story = read_story(GOOD)
    small = resolved(RECIPES["default"].small.with_changes(n_decoder_layers=1))
    assert [place for place, _ in story.with_run(small).misfits()] == [0, 1]
    assert "decoder has 1 layers" in next(why for _, why in story.with_run(small).misfits())
    two_heads = resolved(RECIPES["default"].small.with_changes(n_heads=2))
    assert "2 heads" in dict(story.with_run(two_heads).misfits())[0]
    translating = story.runs["second"].config
    assert "playground" in dict(story.with_run(translating).misfits())[0]


def test_a_written_story_is_read_back_unchanged():
    config = resolved(
        RECIPES["default"].small.with_changes(n_heads=2, seed=7, positions="learned", goal=None)
    )
    beats = [
        {"says": 'A "quoted" — 句子\n', "word": "cat", "kind": "encoder", "step": "12"},
        {"says": "{step}", "until": "ended"},
    ]
    text = ""
    for beat in beats:
        text = with_beat(text, [config], beat)
    story = read_story(text.replace(UNNAMED, "Mine: é"))
    assert story.title == "Mine: é"
    assert {name: role.config for name, role in story.runs.items()} == {"run1": config}
    assert [beat.says for beat in story.beats] == [beat["says"] for beat in beats]


def test_a_server_adds_stories_from_its_folder_and_reports_an_invalid_one(monkeypatch, tmp_path):
    (tmp_path / "ours.toml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "broken.toml").write_text("title = 3", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no story", encoding="utf-8")
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    found = stories()
    assert found["ours"] == read_story(GOOD)
    assert isinstance(found["broken"], InputError)
    assert "notes" not in found


def test_every_recording_that_a_story_may_name_is_shipped_and_small():
    assert tuple(OF_STORIES) == RECORDINGS
    assert sum(path.stat().st_size for name, path in OF_STORIES.items() if name != "reverse") <= 4_500_000
    word = {"no-causal-mask": "playground", "zh-en": "纽约是一座城市"}
    for name in RECORDINGS[1:]:
        found = recording(OF_STORIES[name])
        assert found.view.state == "recorded"
        assert found.words == (word[name],)
    unmasked, translated = (recording(OF_STORIES[name]).view for name in RECORDINGS[1:])
    assert unmasked.right[0] == 0
    assert translated.right[0] >= 0.9 * translated.right[1]
    assert unmasked.config.model.causal_mask is False
    ahead = {unmasked.frames[-1].role("decoder.0.self", head).rpartition(" ")[0] for head in range(4)}
    assert ahead == {"looks one token ahead"}


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_story_fits_its_models_and_its_recordings(name):
    story = shipped(name)
    assert list(story.misfits()) == []
    for role in (run for run in story.runs if story.runs[run].recording):
        found = recording(OF_STORIES[story.runs[role].recording])
        assert set(story.words_of(role)) <= set(found.words)
        assert found.config.with_changes(goal=None, steps=1) == story.runs[role].config.with_changes(
            goal=None, steps=1
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_guess_of_what_a_head_will_do_shows_the_head_that_the_answer_names(name):
    story = shipped(name)
    for beat in story.beats:
        if beat.hides == "later" and "{head}" in beat.answer:
            found = recording(OF_STORIES[story.runs[beat.run].recording])
            assert found.view.turned_at[1:] == beat.pinned
