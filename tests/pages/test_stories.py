"""The Stories page without a browser: the list, the telling, commands, hidden parts and the editor."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pytest

from pages.presentation.beats import hides_of, named, packed
from pages.presentation.cards import pixels
from pages.stream.broadcaster import find
from tests.pages.conftest import TINY
from tests.pages.visitor import unescaped
from transformer.errors import InputError
from transformer.runs import run as run_module
from transformer.runs.registry import DRAFT_SECONDS, REGISTRY
from transformer.stories.files import ENVIRONMENT, read_story
from transformer.tasks import resolved

SHIPPED = [
    "A first tour",
    "Fifteen minutes for a class",
    "Ten minutes on induction",
    "Attention in five minutes",
]
FILE = """
title = "Two steps"

[runs.small]
n_encoder_layers = 1
n_decoder_layers = 1
n_heads = 2
d_model = 8
d_ff = 16
max_letters = 6
batch_size = 4
steps = 30
goal = "none"

[[beat]]
says = "Nothing yet."
word = "frog"
kind = "cross"

[[beat]]
says = "It trains."
command = "start"
pace = 1

[[beat]]
says = "Which letter?"
row = 2
hides = "row"

[[beat]]
says = "It is held."
command = "pause"
"""


@pytest.fixture
def told(visit):
    """The Stories page of a visitor who tells the story in FILE."""
    return visit({"story": packed(FILE)}, page="stories")


def move(visitor, at, shown=()):
    """Send the message that the browser sends after a key press."""
    return visitor.send_choice({"at": at, "shown": list(shown), "recorded": [], "by": "a page"})


def links(visitor):
    """Return the label and the query of each link on the page."""
    return [
        (unescaped(one.proto.label), unquote(one.proto.query_string)) for one in visitor.at.get("page_link")
    ]


def begins(visitor):
    """Return the names of the stories that the cards begin, in order."""
    return [query.removeprefix("story=") for label, query in links(visitor) if label == "Begin"]


def pictures(visitor):
    """Return (caption, text for screen readers) of each picture on the page."""
    return [(img.caption, img.alt) for found in visitor.at.get("image") for img in found.proto.imgs]


def runs_of(visitor):
    return {name: REGISTRY.get(one["run"]) for name, one in visitor.player["story"]["runs"].items()}


def test_the_list_has_the_built_in_stories_with_the_tour_first_and_those_of_the_folder(
    visit, tmp_path, monkeypatch
):
    (tmp_path / "mine.toml").write_text(FILE)
    (tmp_path / "broken.toml").write_text('title = "x"\n\n[[beat]]\nsays = "a"\nstep = "soon"\n')
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    visitor = visit({}, page="stories")
    titles = [unescaped(one.value) for one in visitor.at.subheader]
    assert [title for title in titles if title != "Two steps"] == SHIPPED
    assert "Two steps" in titles
    assert begins(visitor) == [
        "tour",
        *(name for name in begins(visitor) if name in ("class", "induction", "mine", "talk")),
    ]
    assert len(begins(visitor)) == 5
    assert [error for error in visitor.errors if error.startswith("broken.toml: Line 5, slide 1")]


def test_a_card_says_for_whom_a_story_is_how_long_it_takes_and_what_it_needs(visit):
    visitor = visit({}, page="stories")
    assert visitor.says("A story leads you through the app, one slide at a time.")
    for who, about, needs in (
        ("For newcomers · 10 minutes", "What a map is", "Needs nothing: its models train"),
        ("For a class and its teacher · 15 minutes", "Six questions", "Needs a screen that all can see"),
        ("For a speaker · 5 minutes", "From an untrained model", "Needs a screen and one key"),
    ):
        assert f"**{who}**" in visitor.texts
        assert any(text.startswith(about) for text in visitor.texts)
        assert any(text.startswith(needs) for text in visitor.texts)
    assert begins(visitor) == ["tour", "class", "induction", "talk"]
    assert pictures(visitor) == [
        (
            "Recorded map: “playground”, cross 2 · head 2, step 225",
            "Map of cross-attention layer 2, head 2, for playground",
        ),
        (
            "Recorded map: “playground”, decoder 1 · head 2, step 225",
            "Map of decoder layer 1, head 2, for playground",
        ),
        (
            "Recorded map: “纽约是一座城市”, cross 2 · head 3, step 225",
            "Map of cross-attention layer 2, head 3, for 纽约是一座城市",
        ),
    ]


def test_a_card_without_a_recording_has_no_picture_and_a_missing_field_no_line(visit, tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.stories.files.SHIPPED", tmp_path)
    covered = FILE.replace('kind = "cross"', 'kind = "cross"\ncover = true')
    (tmp_path / "bare.toml").write_text(covered)
    (tmp_path / "other.toml").write_text(
        f"minutes = 1\n{covered}".replace("[runs.small]", '[runs.small]\nrecording = "reverse"').replace(
            'kind = "cross"', 'kind = "sequence"'
        )
    )
    visitor = visit({}, page="stories")
    assert begins(visitor) == ["bare", "other"]
    assert pictures(visitor) == []
    assert [text for text in visitor.texts if "For " in text or "Needs" in text] == []
    assert "**1 minute**" in visitor.texts


def test_a_picture_has_the_colours_of_the_maps_and_of_blocked_cells():
    image = pixels(np.array([[0.0, 1.0], [0.25, np.nan]]))
    assert image.shape == (400, 640, 3)
    for row, column, color in (
        (0, 0, "#440154"),
        (199, 319, "#440154"),
        (0, 320, "#fde725"),
        (399, 639, "#8f959e"),
    ):
        assert "#{:02x}{:02x}{:02x}".format(*image[row, column]) == color
    halfway = [
        round((a + b) / 2) for a, b in ((0x26, 0x1F), (0x82, 0x9E), (0x8E, 0x89))
    ]  # of Viridis, at √0.25
    assert image[200, 0] == pytest.approx(halfway, abs=1)
    assert len(np.unique(image.reshape(-1, 3), axis=0)) == 4


def test_own_runs_and_stories_are_behind_the_cards_and_open_for_who_has_a_story(visit, revisit):
    stranger = visit({}, page="stories")
    (behind,) = stranger.at.expander
    assert (behind.label, behind.proto.expanded) == ("Use your own run, or write a story", False)
    assert not any("with your run" in label for label, _ in links(stranger))
    assert len(behind.get("file_uploader")) == 1
    assert len(stranger.at.sidebar.get("file_uploader")) == 0
    author = visit({}, session={"own_story": FILE}, page="stories")
    (behind,) = author.at.expander
    assert behind.proto.expanded
    assert [box.key for box in behind.text_area] == ["story_text"]
    assert ("**Tell it**", f"story={packed(FILE)}") in links(author)
    owner = revisit().go("stories")
    with_run = [(label, query) for label, query in links(owner) if "with your run" in label]
    assert [label for label, _ in with_run] == [f"{title}, with your run" for title in SHIPPED]
    assert all(owner.run.id in query for _, query in with_run)
    viewer = visit({"run": owner.run.id}).go("stories")
    assert not any("with your run" in label for label, _ in links(viewer))


def test_each_command_runs_once_and_in_order_even_if_the_teller_moves_back_and_forth(told):
    run = runs_of(told)["small"]
    assert run.view.state == "idle"
    move(told, 1)
    told.wait_until(lambda: run.view.step > 0)
    assert run.view.pace == 1
    move(told, 3)
    told.wait_until(lambda: run.view.state == "paused")
    run.resume().result(10)
    for at in (0, 3, 1, 2):
        move(told, at)
    assert run.view.state == "training"
    assert REGISTRY.owners.presentation(run.id)["obeyed"] == [0, 1, 2, 3]
    run.stop().result(10)


def test_forged_messages_leave_the_teller_at_a_beat_of_the_story(told):
    for sent in (
        {"at": 10**30},
        {"at": -5},
        {"at": True},
        {"shown": [[1], "x", 99, -1, None]},
        {"recorded": [{}, "other"]},
        {"by": "x" * 10_000},
        {"at": "1"},
        {"shown": 1},
    ):
        told.send_choice({"at": 0, "shown": [], "recorded": [], "by": "a page"} | sent)
        at = told.player["story"]["presentation"]
        assert at["at"] in range(4), sent
        assert (at["shown"], at["recorded"]) == ([], []), sent
        assert len(at["by"]) <= 20, sent


def test_a_row_is_hidden_until_its_beat_has_shown_it(told):
    withheld = told.player["story"]["runs"]["small"]["hidden"]
    assert withheld
    move(told, 2)
    assert told.player["story"]["runs"]["small"]["hidden"] == withheld
    move(told, 2, shown=[2])
    assert told.player["story"]["runs"]["small"]["hidden"] == ""


def test_later_steps_of_a_recording_are_hidden_until_their_beat_has_shown_them():
    story = named("class")
    place = next(i for i, beat in enumerate(story.beats) if beat.hides == "later")
    (hidden,) = hides_of(story, "recorded", frozenset())
    assert hidden.after == 60
    assert hides_of(story, "recorded", frozenset({place})) == ()
    assert all(one.after < 0 for one in hides_of(story, "reverse", frozenset({place})))


def test_a_viewer_follows_the_teller_and_controls_nothing(told, visit):
    run = runs_of(told)["small"]
    move(told, 1)
    viewer = visit({"story": packed(FILE), "run": run.id}, page="stories")
    assert viewer.player["run"] == run.id
    assert viewer.player["story"]["presentation"]["at"] == 1
    assert not viewer.player["story"]["tells"]
    move(viewer, 3)
    assert REGISTRY.owners.presentation(run.id)["at"] == 1
    assert run.view.state in ("queued", "training")
    run.stop().result(10)


WITHOUT_RECORDING = (
    FILE
    + """
[runs.other]
n_encoder_layers = 1
n_decoder_layers = 1
n_heads = 2
d_model = 8
d_ff = 16
max_letters = 6
batch_size = 4
steps = 30
causal_mask = false
goal = "none"

[[beat]]
says = "A race."
page = "Race"
against = "other"
command = "start"
pace = 1
"""
)
"""FILE with a race against a run that has no recording."""


@pytest.fixture
def lose_drafts(tiny):
    """Move the clock on until all untrained models are forgotten, as in a break without a viewer."""

    def lose():
        before = [*REGISTRY._drafts.values()]
        for run in before:
            run.lease.seen_at -= DRAFT_SECONDS + 1
        REGISTRY.discard(REGISTRY.draft(tiny()).id)
        assert not REGISTRY._drafts
        assert all(run.join() for run in before)

    return lose


def stop(*runs):
    for run in runs:
        run.stop().result(30)


@pytest.mark.parametrize(
    "story", ["talk", "tour", "class", packed(WITHOUT_RECORDING)], ids=lambda name: name[:5]
)
def test_a_beat_whose_runs_were_forgotten_builds_them_again_and_starts_them(visit, lose_drafts, story):
    teller = visit({"story": story}, page="stories")
    asked = named(story)
    ids = teller.player["story"]["presentation"]["runs"]
    for at, beat in enumerate(asked.beats):
        if beat.command == "start":
            lose_drafts()
        move(teller, at)
        assert teller.player["story"]["presentation"]["runs"] == ids
        assert teller.player["story"]["presentation"]["at"] == at
        if beat.command == "start":
            names = [name for name in (beat.run, beat.against) if name]
            runs = [REGISTRY.get(ids[name]) for name in names]
            for run, name in zip(runs, names, strict=True):
                assert run.view.state != "idle", (at, name)
                assert run.config == asked.runs[name].config
                assert run.words == asked.words_of(name)
            stop(*runs)


def test_a_beat_whose_runs_made_room_for_others_builds_them_again_and_starts_them(visit, tiny, monkeypatch):
    monkeypatch.setattr(REGISTRY, "limits", replace(REGISTRY.limits, kept=3))
    teller = visit({"story": packed(WITHOUT_RECORDING)}, page="stories")
    ids = teller.player["story"]["presentation"]["runs"]
    for _ in range(3):
        REGISTRY.draft(tiny())
    assert not {*ids.values()} & {*REGISTRY._drafts}
    move(teller, 4)
    runs = [REGISTRY.get(id_) for id_ in ids.values()]
    assert [run.view.state for run in runs].count("idle") == 0
    stop(*runs)


def test_a_story_builds_only_the_runs_that_its_beats_have_needed(visit):
    teller = visit({"story": "talk"}, page="stories")
    ids = teller.player["story"]["presentation"]["runs"]
    assert [name for name in ids if REGISTRY.get(ids[name])] == ["reverse"]
    move(teller, 5)
    assert [name for name in ids if REGISTRY.get(ids[name])] == ["reverse", "unmasked"]
    stop(*(REGISTRY.get(ids[name]) for name in ("reverse", "unmasked")))


def test_a_story_that_shows_more_words_of_a_run_than_a_run_tracks_is_refused(visit):
    words = [letter * n for n in range(3, 7) for letter in "abcd"][:13]
    slides = "".join(f'[[beat]]\nsays = "x"\nword = "{word}"\n' for word in words)
    visitor = visit({"story": packed(f"{FILE}{slides}")}, page="stories")  # frog too
    assert visitor.says("The slides of 'small' show 14 words; a run tracks at most 12.")
    assert visitor.at.session_state["cast"] == {}


def test_start_of_the_tour_trains_a_model_that_was_forgotten(visit, lose_drafts):
    visitor = visit({"story": "tour"}, page="stories")
    id_ = visitor.player["story"]["presentation"]["runs"]["tour"]
    move(visitor, 2)
    lose_drafts()
    visitor.press("run_start")
    run = REGISTRY.get(id_)
    assert run.view.state in ("queued", "training")
    stop(run)


def test_a_run_that_an_earlier_beat_had_trained_and_that_was_lost_trains_again(told):
    run = runs_of(told)["small"]
    move(told, 2)
    stop(run)
    REGISTRY._put_away(run)  # as when 40 other runs have ended since: no folder keeps it
    told.look()
    again = runs_of(told)["small"]
    assert again is not run
    assert (again.id, again.config, again.words) == (run.id, run.config, run.words)
    assert again.view.state in ("queued", "training")
    move(told, 3, shown=[2])
    told.wait_until(lambda: again.view.state == "paused", what="the command of beat 4, on the new run")
    assert again.view.pace == 1
    stop(again)


def test_a_viewer_is_at_the_beat_of_a_teller_whose_runs_were_forgotten(told, visit, lose_drafts):
    run = runs_of(told)["small"]
    lose_drafts()
    viewer = visit({"story": packed(FILE), "run": run.id}, page="stories")
    again = runs_of(viewer)["small"]
    assert again is not run
    assert (again.id, again.config, again.words) == (run.id, run.config, run.words)
    assert not viewer.player["story"]["tells"]
    move(told, 1)
    assert again.view.state in ("queued", "training")
    assert viewer.news["presentation"]["at"] == 1
    stop(again)


def test_a_teller_who_reloads_after_a_break_tells_the_same_story_at_the_same_beat(told, visit, lose_drafts):
    run = runs_of(told)["small"]
    token = told.at.session_state["tokens"][run.id]
    move(told, 0)
    lose_drafts()
    back = visit({"story": packed(FILE), "run": run.id}, page="stories")
    back.send("keyring", "found", [[[run.id, token, 0]], "", None])
    assert back.player["run"] == run.id
    assert back.player["story"]["tells"]
    move(back, 1)
    again = runs_of(back)["small"]
    assert again.view.state in ("queued", "training")
    assert REGISTRY.owners.presentation(run.id)["obeyed"] == [0, 1]
    stop(again)


def test_a_viewer_who_goes_ahead_of_the_teller_is_shown_the_untrained_model_of_that_beat(visit, monkeypatch):
    teller = visit({"story": packed(WITHOUT_RECORDING)}, page="stories")
    id_ = teller.player["story"]["presentation"]["runs"]["other"]
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "check_machine", refuse)
        assert find(id_) is None
    run = find(id_)
    assert (run.id, run.view.state, run.words) == (id_, "idle", ("frog",))
    move(teller, 4)
    assert REGISTRY.get(id_) is run
    assert run.view.state != "idle"
    stop(run, runs_of(teller)["small"])


def refuse(config):
    raise InputError("This machine has no memory left.")


def test_a_head_is_switched_off_in_a_model_that_was_forgotten(visit, lose_drafts):
    off = '\n[[beat]]\nsays = "Off."\nhead = "decoder.0.cross.2"\ncommand = "switch off"\n'
    teller = visit({"story": packed(FILE.split('\n[[beat]]\nsays = "It trains')[0] + off)}, page="stories")
    lose_drafts()
    move(teller, 1)
    assert runs_of(teller)["small"].view.interventions.ablated == (("decoder.0.cross", 1),)


def test_a_story_told_with_a_run_of_another_depth_reports_the_beats_that_do_not_fit(visit):
    deep = FILE + '\n[[beat]]\nsays = "Deep."\nhead = "decoder.1.cross.1"\n'
    visitor = visit(TINY).press("run_start").until("finished")
    other = visit(
        {"story": packed(deep), "run": visitor.run.id},
        session={"tokens": visitor.at.session_state["tokens"]},
        page="stories",
    )
    assert other.player["run"] == visitor.run.id
    assert len(other.player["story"]["beats"]) == 4
    assert other.says("Slide 5 is left out: the decoder has 1 layers")
    with pytest.raises(InputError, match="damaged"):
        named("~???")


def test_add_beat_turns_the_screen_into_a_beat_of_a_valid_story(visit):
    visitor = visit(TINY).press("run_start").until("finished")
    visitor.press("add_beat")
    visitor.press("add_beat")
    story = read_story(visitor.at.session_state["own_story"])
    assert [beat.page for beat in story.beats] == ["Watch", "Watch"]
    (role,) = story.runs.values()
    assert role.config == resolved(visitor.run.config)
    assert story.beats[0].word in visitor.run.words
    visitor.at.switch_page("stories.py")
    visitor.look()
    assert visitor.at.text_area(key="story_text").value == visitor.at.session_state["own_story"]
    visitor.at.text_area(key="story_text").set_value('title = "x"\n[[beat]]\nsays = ""\n')
    visitor.look()
    assert "Line 3, slide 1" in visitor.errors[0]
