"""Sentences about a run: its numbers in plain words, signs that need no colour, and escaped markup."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from transformer.config import RunConfig
from transformer.insight.moments import Moment
from transformer.player.sentences import (
    change_text,
    failure,
    headline,
    in_line,
    looking_back,
    moment_said,
    narration,
    rounded,
    status_line,
    unlearned,
    without_masks,
    words_right,
)
from transformer.recording.frame import Ablations
from transformer.shared.evaluation import N_LIVE
from transformer.shared.interventions import Interventions

SITE = "decoder.1.cross"
WITH_GOAL = RunConfig().with_changes(goal=0.99)


@pytest.fixture
def view(recorded):
    """The view of a run in training, which tests change as they need."""
    return replace(recorded, reason="", moments=(), state="training", step=140, planned=300)


def mirror(frame, step, *scores, **more):
    """Return a frame in which the heads of the last cross-attention have these mirror scores."""
    head_scores = frame.head_scores | {SITE: {"mirror": list(scores)}}
    return replace(
        frame, step=step, measurement=replace(frame.measurement, step=step, head_scores=head_scores, **more)
    )


def link(head, name, site=SITE):
    """Return the name of a head, counted from 0, as a button that shows it."""
    return f'<button type="button" data-head="{site}.{head + 1}">{name}</button>'


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"state": "idle"}, "○ <b>idle</b>"),
        (
            {"step": 1200, "planned": 2000, "steps_per_second": 41.4},
            "● <b>training</b> · 41 steps/s · at most 20 s left",
        ),
        (
            {"step": 1, "planned": 11, "steps_per_second": 1.0, "pace": 1.0},
            "● <b>training</b> · 1.0 steps/s · at most 10 s left",
        ),
        (
            {"state": "paused", "seconds": 2.34, "every": 4},
            "❚❚ <b>paused</b> · 2.3 s of computing<span class='detail'> · 1 step in 4 recorded</span>",
        ),
        ({"state": "recorded", "seconds": 12.34}, "▷ <b>recorded</b>"),
        (
            {"state": "finished", "step": 225, "planned": 300, "seconds": 4.8, "config": WITH_GOAL},
            "✔ <b>finished</b><span class='detail'> · goal reached (99% right)</span> · 4.8 s of computing",
        ),
        (
            {"state": "finished", "step": 300, "planned": 300, "seconds": 4.8},
            "✔ <b>finished</b><span class='detail'> · all steps done</span> · 4.8 s of computing",
        ),
    ],
)
def test_the_status_has_state_speed_and_time_left(view, changes, expected):
    still = {"seconds": 0.0, "steps_per_second": 0.0, "pace": None, "every": 1}
    assert status_line(replace(view, **still | changes)) == expected


def test_the_status_of_a_waiting_run_shows_its_place_in_line(view):
    waits = replace(view, state="queued", seconds=0.0, pace=None, every=1)
    assert status_line(waits, (2, 3)) == "◌ <b>queued</b> · waiting: place 2 of 3"
    assert in_line((2, 3), 4) == (
        "<b>Waiting: place 2 of 3.</b> This server trains 4 at a time; this run goes on by itself when it is "
        "its turn."
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 s"),
        (9.4, "10 s"),
        (12, "15 s"),
        (88, "90 s"),
        (100, "2 min"),
        (5300, "89 min"),
        (9000, "2.5 h"),
        (9001, "2.6 h"),
    ],
)
def test_a_duration_has_the_unit_that_fits_it(seconds, said):
    assert rounded(seconds) == said


def test_each_state_has_a_sign_of_its_own(view):
    states = ("idle", "queued", "training", "paused", "finished", "stopped", "failed", "recorded")
    assert len({status_line(replace(view, state=state)).split()[0] for state in states}) == len(states)


def test_the_headline_names_the_clearest_head_its_score_and_the_step_at_which_it_turned(view, untrained):
    frame = mirror(untrained, 140, 0.1, 0.83, 0.0, clearest=(SITE, 1))
    both = (Moment(90, "turned", "it turned", SITE, 0), Moment(120, "turned", "it turned", SITE, 1))
    turned = replace(view, moments=both)
    said = (
        f"<b>{link(1, 'Cross-attention layer 2, head 2')} reads the word backwards:</b> 83% of its attention "
        "is on the letter to write next."
    )
    first = "It first did so at step 120."
    assert headline(turned, frame, "") == f"{said} {first}"
    stopped = replace(turned, state="stopped", reason="Stopped & more.")
    assert headline(stopped, frame, "").endswith(f"{first} Stopped &amp; more.")
    ended = replace(turned, state="finished", reason="Goal reached at step 140.")  # the status line says it
    assert headline(ended, frame, "").endswith(first)
    lost = mirror(untrained, 140, 0.2, 0.3, 0.0, clearest=(SITE, 1))
    assert headline(turned, lost, "").endswith("would be clear. It did so at step 120.")
    another = mirror(untrained, 140, 0.1, 0.3, 0.8, clearest=(SITE, 2))  # as clear since before the training
    assert headline(turned, another, "").endswith("80% of its attention is on the letter to write next.")


@pytest.mark.parametrize(
    ("place", "token", "said"),
    [
        (0.9, 0.1, " It finds it by its place, whatever letter stands there."),
        (0.1, 0.9, " It finds it by the letter, wherever it stands."),
        (0.05, 0.05, " It finds it neither by place nor by letter alone."),
        (0.9, 0.9, ""),
    ],
)
def test_the_headline_says_by_what_a_clear_head_finds_its_place_where_that_is_clear(
    view, untrained, place, token, said
):
    frame = mirror(untrained, 140, 0.1, 0.83, 0.0, clearest=(SITE, 1))
    shares = {"place": [0.0, place, 0.0], "token": [0.0, token, 0.0]}
    of = frame.head_scores | {SITE: {**frame.head_scores[SITE], **shares}}
    scored = replace(frame, measurement=replace(frame.measurement, head_scores=of))
    plain = headline(view, frame, "")
    assert headline(view, scored, "") == plain + said


def test_the_headline_speaks_of_several_tokens_where_a_head_looks_up_more_than_one(view, untrained):
    scores = {"gold": [0.1, 0.83, 0.0], "place": [0.0, 0.9, 0.0], "token": [0.0, 0.1, 0.0]}
    head_scores = dict.fromkeys(untrained.head_scores, scores)
    measured = replace(untrained.measurement, head_scores=head_scores, clearest=(SITE, 1))
    said = headline(view, replace(untrained, measurement=measured, target_score="gold"), "")
    assert "on the tokens to write next." in said
    assert said.endswith(" It finds them by their place, whatever token stands there.")


def test_without_a_clear_pattern_the_headline_gives_the_highest_score_and_the_threshold(view, untrained):
    frame = mirror(untrained, 9, 0.1, 0.27, 0.2, clearest=(SITE, 1))
    assert headline(view, frame, "") == (
        f"<b>No head reads the word backwards.</b> The closest, {link(1, 'cross-attention layer 2, head 2')}"
        ", puts 27% of its attention on the letter to write next; 50%, half of it, would be clear."
    )


def test_a_share_just_below_the_threshold_is_not_said_to_be_the_threshold(view, untrained):
    said = headline(view, mirror(untrained, 9, 0.1, 0.497, 0.2, clearest=(SITE, 1)), "")
    assert "puts 49% of its attention" in said
    assert said.endswith("50%, half of it, would be clear.")


def test_before_the_start_and_after_a_failure_the_headline_says_so(view, untrained):
    idle = headline(replace(view, state="idle"), untrained, "Look for a line.")
    assert idle == "<b>Untrained model.</b> Press <b>Start</b> to train it. Look for a line."
    first, second = f"Look for {'a ' * 25}line.", f"It moves {'on and ' * 7}on."
    for third in (" It ends.", f" It {'never ' * 4}ends."):
        idle = headline(replace(view, state="idle"), untrained, f"{first} {second}{third}")
        assert idle.endswith(f"train it. {first} {second}{third if len(third) < 10 else ''}")
    failed = replace(view, state="failed", reason="No memory. <b>&")
    said = "<b>The run failed.</b> No memory. &lt;b&gt;&amp;"
    assert headline(failed, untrained, "Look for a line.") == failure(failed) == said
    assert "“&lt;b&gt;&amp;”" in unlearned("<b>&")


def test_words_right_are_shown_with_the_step_of_their_evaluation(untrained):
    known = replace(untrained.evaluation, step=50, right=1, total=1000)
    said = words_right(
        replace(untrained, step=60, measurement=untrained.measurement, evaluation=known), "reverse"
    )
    assert "<b>1</b> of 1,000<small>test words right</small>" in said
    assert "title='words that training never uses, asked at step 50'" in said
    confirmed = replace(known, live=(31, 200), right=151)  # the live words are among the 1,000
    assert "<b>151</b> of 1,000" in words_right(replace(untrained, evaluation=confirmed), "reverse")
    few = replace(untrained, evaluation=replace(known, total=N_LIVE))  # as during the training
    assert f"of {N_LIVE}<small>test words right (a sample)</small>" in words_right(few, "reverse")
    every = replace(untrained, evaluation=replace(known, total=150))  # fewer are held out: all were asked
    assert "of 150<small>test words right</small>" in words_right(every, "reverse")
    said = words_right(replace(untrained, evaluation=known), "en-fr")
    assert "<small>test sentences right</small>" in said
    assert "title='sentences that" in said


def test_the_head_that_matters_most_is_named_with_its_change_and_its_step(untrained):
    changes = {SITE: np.array([2.01, 1.8, 2.5]), "decoder.0.self": np.array([2.0, 2.0, 1.9])}
    known = Ablations(step=4, name="loss", whole=2.0, without=changes)
    assert known.needed == ((SITE, 2),)  # the others change it by less than half of that
    said = looking_back(replace(untrained, step=4, ablations=known))
    assert said.endswith(
        f"Most needed: {link(2, 'cross-attention layer 2, head 3')}; without it, loss is 0.5 higher."
    )
    said = looking_back(replace(untrained, step=9, ablations=known))
    assert said.endswith("loss is 0.5 higher (at step 4).")
    fewer = replace(known, without={SITE: np.array([1.0, np.nan, 2.6])})
    assert fewer.needed == ((SITE, 0), (SITE, 2))
    assert [change_text(change) for change in fewer.changes[SITE]] == ["1 lower", "", "0.6 higher"]
    nothing = replace(known, without={SITE: np.array([2.0, 2.0 + 1e-6])})
    assert nothing.needed == ()
    assert change_text(nothing.changes[SITE][1]) == "less than 0.0001 higher"


def test_a_past_step_is_described_by_its_clearest_head(untrained):
    frame = mirror(untrained, 1140, 0.1, 0.83, 0.0, clearest=(SITE, 1))
    said = (
        f"<b>{link(1, 'Cross-attention layer 2, head 2')} reads the word backwards:</b> 83% of its attention "
        "is on the letter to write next."
    )
    assert looking_back(frame) == looking_back(replace(frame, step=1143)) == said
    # The framed head stays, though another has a slightly higher score.
    before = mirror(untrained, 15, 0.27, 0.28, 0.0, clearest=(SITE, 0))
    assert looking_back(replace(before, step=20)) == (
        f"<b>No head reads the word backwards.</b> The closest, {link(0, 'cross-attention layer 2, head 1')}"
        ", puts 27% of its attention on the letter to write next; 50%, half of it, would be clear."
    )


def test_with_masks_off_sentences_give_the_accuracy_and_the_weight_on_padding(changed_midway, tiny, make_run):
    off = Interventions(masks=(("causal", False), ("padding", False)))
    config = tiny(steps=4)
    view = changed_midway(make_run(config, words=("banan", "cat")), 2, off)
    first, last = view.frames[0], view.frame
    assert without_masks(first) == ""
    text = without_masks(last)
    known = last.evaluation
    assert f"writing on its own, the model gets {known.right:,} of {known.total:,} words" in text
    assert "a row may read the letter that" in text
    of_tokens = without_masks(replace(last, target_score="gold"))
    assert "a row may read the token that" in of_tokens
    assert f"writing on its own, the model gets {known.right:,} of {known.total:,} answers" in of_tokens
    shares = [share for site in last.axes for share in last.on_padding(1, site)]
    assert (
        f"in “cat”, at step {last.step}, [PAD] gets {sum(shares) / len(shares):.0%} of all attention" in text
    )
    assert f"and {max(shares):.0%} of that of <button" in text
    of_pairs = replace(last, words=(last.words[0], replace(last.words[1], text="<b>")))
    assert "in “&lt;b&gt;”, at step" in without_masks(of_pairs)


def test_the_head_that_a_moment_names_is_a_link_and_the_rest_is_escaped():
    turned = Moment(7, "turned", "cross-attention layer 2, head 1 began <to> read", SITE, 0)
    assert moment_said(turned) == f"{link(0, 'cross-attention layer 2, head 1')} began &lt;to&gt; read"
    own = Moment(7, "turned", "h.3.attn, head 12: looks at [SOS]", "h.3.attn", 11)
    assert moment_said(own) == f"{link(11, 'h.3.attn, head 12', 'h.3.attn')}: looks at [SOS]"
    assert moment_said(Moment(7, "drop", "the loss of head 1 <fell>")) == "the loss of head 1 &lt;fell&gt;"


@pytest.mark.parametrize(
    ("word", "site", "head"),
    [("nobody", "encoder.0", 0), ("cat", "decoder.9", 0), ("cat", "encoder.0", 3), ("cat", "encoder.0", -1)],
)
def test_nothing_is_narrated_for_an_unknown_word_site_or_head(recorded, word, site, head):
    assert narration(recorded.frame, word, site, head) == ""
    assert narration(recorded.frame, "cat", "encoder.0", 2) != ""
