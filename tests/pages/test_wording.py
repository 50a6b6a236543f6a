"""What the pages say: numbers of the run in plain words, marks that need no colour, and no markup let in."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pages.parts.refresh import refresh_seconds
from pages.parts.wording import (
    by_length,
    changed,
    differences,
    in_line,
    looking_back,
    moment,
    outputs,
    status_line,
    words_right,
)
from tests.pages.conftest import scored
from transformer.config import RunConfig
from transformer.insight.moments import Moment
from transformer.recording.frame import Probe
from transformer.runs import calibration
from transformer.tasks import completed

PROBE = Probe(
    text="cat",
    answer="tac",
    output="tac",
    output_step=0,
    stopped=True,
    src_tokens=("[SOS]", "c", "a", "t", "[EOS]"),
    tgt_tokens=("[SOS]", "t", "a", "c"),
    expected=("t", "a", "c", "[EOS]"),
    predicted=("t", "a", "c", "[EOS]"),
    held_out=False,
    too_long=False,
    drawn_at=None,
    looked_up_to=0,
    right=True,
    pieces=("t", "a", "c"),
    wanted=("t", "a", "c"),
    n_read=3,
)


@pytest.fixture
def view(visit):
    """An untrained run, to be changed as a test needs it."""
    return visit().run.view


def mirror(view, step, *scores, **more):
    """A frame in which the heads of the only cross-attention have these mirror scores."""
    return scored(view.frame, {"decoder.0.cross": {"mirror": list(scores)}}, step, **more)


def row(view, probe):
    """The row of one probe in the table of outputs: its marks, and the text without any."""
    table = outputs(replace(view.frame, probes=(probe,)), "cat")
    return table, re.sub("<[^>]*>", "", table)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"state": "idle"}, "○ **idle** · step **0** / 3"),
        (
            {"state": "training", "step": 1200, "planned": 2000, "steps_per_second": 41.4},
            "● **training** · step **1,200** / 2,000 · 41 steps/s · at most 19 s left",
        ),
        (
            {"state": "training", "step": 1, "planned": 11, "steps_per_second": 1.0, "pace": 1.0},
            "● **training** · step **1** / 11 · 1.0 steps/s · at most 10 s left · pace 1 steps/s",
        ),
        (
            {"state": "paused", "step": 2, "seconds": 12.34, "every": 4},
            "❚❚ **paused** · step **2** / 3 · 12.3 s of training · 1 in 4 steps recorded",
        ),
        ({"state": "failed", "step": 2}, "✖ **failed** · step **2** / 3"),
    ],
)
def test_the_status_says_state_step_speed_and_time_left(view, changes, expected):
    assert status_line(replace(view, **changes)) == expected


def test_a_run_that_waits_says_its_place_in_line(view):
    waits = replace(view, state="queued")
    assert status_line(waits, (2, 3)) == "◌ **queued** · waiting: place 2 of 3 · step **0** / 3"
    assert status_line(waits) == "◌ **queued** · step **0** / 3"
    assert in_line((2, 3), 4) == (
        "**Waiting: place 2 of 3.** This server trains 4 at a time; this run goes on by itself when it is "
        "its turn."
    )


def test_each_state_has_a_sign_of_its_own(view):
    states = ("idle", "queued", "training", "paused", "finished", "stopped", "failed")
    assert len({status_line(replace(view, state=state)).split()[0] for state in states}) == len(states)


def test_the_moment_names_the_head_that_turned_the_step_and_its_score(view):
    frame = mirror(view, 140, 0.1, 0.83)
    turned = replace(view, frames=(frame,), state="training", turned_at=(120, "decoder.0.cross", 1))
    assert moment(turned, "") == (
        "★ **Decoder layer 1, head 2 turned anti-diagonal** at step 120: "
        "it reads the word backwards (83% on the mirrored letter)."
    )
    ended = replace(turned, state="finished", reason="Goal reached at step 140.")
    assert moment(ended, "").endswith("(83% on the mirrored letter). Goal reached at step 140\\.")
    later = replace(turned, frames=(replace(frame, step=150),))
    assert moment(later, "").endswith("(83% on the mirrored letter, as measured at step 140).")


def test_without_a_pattern_the_moment_says_how_far_it_is(view):
    frame = mirror(view, 9, 0.1, 0.27, clearest=("decoder.0.cross", 1))
    text = moment(replace(view, frames=(frame,), state="training"), "")
    assert text.startswith(
        "**No clear pattern yet.** The clearest head puts 27% of its weight on the mirrored"
    )
    assert "at 50% it counts as anti-diagonal" in text


def test_before_the_first_frame_and_after_a_failure_the_moment_says_so(view):
    assert moment(replace(view, frames=()), "") == "Building the untrained model…"
    failed = replace(view, state="failed", reason="No memory.")
    assert moment(failed, "") == "**The run failed.** No memory\\."


def test_words_right_are_counted_with_the_step_at_which_they_were(view):
    known = replace(view.frame.evaluation, step=50, right=1, total=1000)
    frame = replace(view.frame, step=60, evaluation=known)
    old = replace(frame, step=25, evaluation=replace(known, step=20, right=0))
    seen = replace(view, frames=(old, frame), everyday=(7, 9))
    assert "<b>1</b> / 1,000<em>held-out words, at step 50<br>everyday words" in words_right(seen, frame)
    assert "when last asked: 7 / 9" in words_right(seen, frame)
    assert "<b>0</b> / 1,000<em>held-out words, at step 20</em>" in words_right(seen, old)  # not those of now
    assert words_right(replace(view, frames=()), None).count("–") == 1


def test_words_right_by_length_are_bars_with_their_numbers(view):
    def said(lengths):
        return by_length(replace(view.frame, evaluation=replace(view.frame.evaluation, by_length=lengths)))

    text = said({3: (0, 40), 4: (20, 40), 12: (40, 40)})
    for title, bar, length in (
        ("length 3: 0 of 40 right", "·", 3),
        ("length 4: 20 of 40 right", "▄", 4),
        ("length 12: 40 of 40 right", "█", 12),
    ):
        assert f"<span title='{title}'>{bar}<i>{length}</i></span>" in text
    assert said({}) == ""


def test_a_past_step_is_told_with_what_came_next(view):
    frame = mirror(view, 140, 0.1, 0.83, clearest=("decoder.0.cross", 1))
    seen = replace(
        view, moments=(Moment(140, "turned", "head 2 turned"), Moment(1200, "accuracy", "90 % right"))
    )
    assert looking_back(seen, frame) == (
        "**At step 140** the clearest head, decoder layer 1, head 2, put 83% of its weight on the mirrored "
        "letter: anti-diagonal. ★ Head 2 turned. Next moment, step 1,200: 90 % right."
    )
    # The head that stays framed, though another one is just above it.
    before = mirror(view, 15, 0.27, 0.28, clearest=("decoder.0.cross", 0))
    assert looking_back(replace(view, moments=()), replace(before, step=20)) == (
        "**At step 20** the clearest head, decoder layer 1, head 1, put 27% of its weight on the mirrored "
        "letter, as measured at step 15."
    )


@pytest.mark.parametrize(
    ("output", "stopped", "shown", "right_letters"),
    [
        ("tac", True, "→ tac✓", 3),
        ("tax", True, "→ tax✗", 2),
        ("ta", True, "→ ta·✗", 2),
        ("", True, "→ ···✗", 0),
        ("tact", True, "→ tact✗", 3),
        ("tac", False, "→ tac…✗", 3),
        ("[PAD]ac", True, "→ [PAD]ac✗", 2),
    ],
)
def test_every_letter_of_an_output_is_marked_right_or_wrong_by_more_than_colour(
    view, output, stopped, shown, right_letters
):
    pieces, right = tuple(re.findall(r"\[PAD\]|.", output)), output == "tac" and stopped
    table, text = row(view, replace(PROBE, output=output, pieces=pieces, stopped=stopped, right=right))
    assert shown in text
    assert table.count("class='ok'") == right_letters
    assert ("✓" in text) == right


def test_outputs_that_were_written_earlier_say_at_which_step(view):
    now = replace(view.frame, step=9, probes=(PROBE, replace(PROBE, text="owl", output_step=None)))
    assert outputs(now, "cat").startswith("<small>As written at step 0:</small>")
    assert "<td>owl</td><td>→ <small>not asked yet</small></td>" in outputs(now, "cat")
    assert "As written" not in outputs(replace(now, step=0), "cat")


def test_where_nobody_knows_the_answer_nothing_is_marked_wrong(view):
    unknown = {"text": "a dog", "answer": None, "written_at": 12, "wanted": (), "right": False}
    table, text = row(view, replace(PROBE, **unknown, pieces=("un", " chien")))
    assert "→ un chien?" in text
    assert table.count("class='ok'") == 2
    assert "✓" not in text
    assert "✗" not in text
    assert "nobody here knows the right answer: the maps run over what the model wrote by itself" in table
    assert "at step 12'" in table


@pytest.mark.parametrize(
    ("changes", "short", "full"),
    [
        ({}, "unseen", "training has not drawn it in its first 0 steps"),
        ({"drawn_at": 1234}, "step 1,234", "training drew it first at step 1,234"),
        ({"held_out": True}, "held out", "kept from training by its hash: training never draws it"),
        ({"too_long": True, "held_out": True}, "too long", "longer than anything trained on"),
    ],
)
def test_what_training_knows_of_a_word_is_said_beside_it(view, changes, short, full):
    table, text = row(view, replace(PROBE, **changes))
    assert short in text or full in text
    assert f"title='{full}'" in table


def test_no_markup_gets_in_by_a_word(view):
    table, _ = row(view, replace(PROBE, text="<script>", output="<b>&", pieces=("<b>", "&")))
    assert "<script>" not in table
    assert "&lt;script&gt;" in table
    assert "<b>&" not in table


def test_settings_that_differ_are_named_in_plain_words_with_both_values(view):
    before = RunConfig().with_changes(goal=0.99)
    now = before.with_changes(d_model=64, d_ff=256, learning_rate=0.01, goal=None, recipe="other", seed=3)

    def run(config):
        rate = config.train.learning_rate
        return SimpleNamespace(config=config, view=replace(view, learning_rate=rate))

    assert differences(changed(run(before), now)) == (
        "width 32 → 64, learning rate 0.005 → 0.01, goal 0.99 → none, seed 0 → 3"
    )
    assert changed(run(before), before) == changed(run(before), None) == {}
    assert changed(run(now), now.with_changes(d_ff=8)) == {"d_ff": (256, 8)}  # by itself it is a change


@pytest.mark.parametrize("task", ["reverse", "zh-en", "numbers"])
def test_what_a_task_needs_is_no_change_to_a_run_that_was_saved_with_it(view, task):
    asked = RunConfig().with_changes(task=task, seed=3)
    saved = SimpleNamespace(config=completed(asked), view=replace(view, learning_rate=0.005))
    assert saved.config.model.max_len != asked.model.max_len or task == "reverse"
    assert changed(saved, asked) == {}
    assert changed(saved, asked.with_changes(batch_size=16)) == {"batch_size": (64, 16)}


def test_the_page_looks_again_only_while_something_may_move(view, monkeypatch):
    monkeypatch.setattr(calibration, "_speed", object())  # this machine has been measured

    def seconds(**changes):
        return refresh_seconds(replace(view, **changes))

    assert seconds(state="training") == 1.0
    assert seconds(state="training", pace=5.0) == seconds(state="training", pace=1.0) == 0.2
    assert seconds(state="idle", frames=()) == 0.4
    assert seconds(state="paused") == 2.0
    assert [seconds(state=state) for state in ("idle", "finished", "stopped", "failed")] == [None] * 4
    assert refresh_seconds(replace(view, state="finished"), waiting=True) == 0.2
