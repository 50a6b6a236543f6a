"""Tables of free-running outputs: every letter is marked by more than colour, and markup is escaped."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from transformer.player.outputs import by_length, output_row, outputs, samples
from transformer.recording.frame import RecordedWord

MARKUP, TEXT = "<b>&", "&lt;b&gt;&amp;"
PROBE = RecordedWord(
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


def row(frame, tracked):
    """Return the table of outputs of one word, as HTML and as text without tags."""
    table = outputs(replace(frame, words=(tracked,)), "cat")
    return table, re.sub("<[^>]*>", "", table)


@pytest.mark.parametrize(
    ("output", "stopped", "shown", "right_letters"),
    [
        ("tac", True, "✓ tac", 3),
        ("", True, "✗ ···", 0),
        ("tact", True, "✗ tact", 3),
        ("tac", False, "✗ tac…", 3),
        ("[PAD]ac", True, "✗ [PAD]ac", 2),
    ],
)
def test_every_letter_of_an_output_is_marked_right_or_wrong_by_more_than_colour(
    untrained, output, stopped, shown, right_letters
):
    pieces, right = tuple(re.findall(r"\[PAD\]|.", output)), output == "tac" and stopped
    table, text = row(untrained, replace(PROBE, output=output, pieces=pieces, stopped=stopped, right=right))
    assert shown in text
    assert table.count("class='ok'") == right_letters
    assert ("✓" in text) == right


def test_outputs_that_were_written_earlier_show_their_step(untrained):
    now = replace(untrained, step=9, words=(PROBE, replace(PROBE, text="owl", output_step=None)))
    assert outputs(now, "cat").startswith("<small>As written at step 0:</small>")
    assert "<small>owl</small> <br><small>not asked yet</small></td>" in outputs(now, "cat")
    assert "As written" not in outputs(replace(now, step=0), "cat")


def test_nothing_is_marked_wrong_where_the_answer_is_unknown(untrained):
    unknown = {"text": "a dog", "answer": None, "written_at": 12, "wanted": (), "right": False}
    table, text = row(untrained, replace(PROBE, **unknown, pieces=("un", " chien")))
    assert "? un chien" in text
    assert "class='ok'" not in table  # nor marked right
    assert "✓" not in text
    assert "✗" not in text
    assert "the right answer is not known: the maps run over what the model wrote on its own" in table
    assert "at step 12'" in table


@pytest.mark.parametrize(
    ("changes", "short", "full"),
    [
        ({}, "never trained on", "training has not drawn it up to here"),
        ({"drawn_at": 1234}, "trained on", "training drew it first at step 1,234"),
        ({"held_out": True}, "never trained on", "a test word, held out by its hash"),
        ({"too_long": True, "held_out": True}, "too long", "longer than anything trained on"),
        ({"too_short": True}, "too short", "shorter than anything trained on"),
    ],
)
def test_whether_training_has_drawn_a_word_is_shown_beside_it(untrained, changes, short, full):
    table, _ = row(untrained, replace(PROBE, **changes))
    assert f"<small>{short}</small>" in table
    assert f"title='{full}'" in table


def test_samples_are_the_held_out_sentences_of_the_newest_evaluation(untrained):
    known = replace(untrained.evaluation, step=20, samples=(("a dog", "un chien"), ("no one", "")))
    text = re.sub("<[^>]*>", " ", samples(replace(untrained, evaluation=known)))
    assert " ".join(text.split()) == (
        "Test sentences, which are never trained on, and what the model writes on its own: "
        "a dog → un chien no one → …"
    )
    assert samples(replace(untrained, evaluation=replace(known, samples=()))) == ""


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ({3: (0, 40), 4: (20, 40), 12: (40, 40)}, "3 0% 4 50% 12 100%"),
        ({n: (n, 10) for n in range(1, 10)}, "1–3 20% 4–6 50% 7–9 80%"),
        ({2: (999, 1000)}, "2 99%"),  # 100% only if all are right
    ],
)
def test_words_right_by_length_are_shares_of_a_few_groups_of_lengths(untrained, lengths, expected):
    text = by_length(replace(untrained, evaluation=replace(untrained.evaluation, by_length=lengths)))
    assert re.sub("<[^>]*>", "", text) == f"right, by length: {expected}"


def test_everyday_words_and_scores_are_shown_beside_the_lengths(untrained):
    known = replace(untrained.evaluation, by_length={3: (1, 2)}, everyday=(7, 9), bleu=12.34, chrf=30.25)
    text = re.sub("<[^>]*>", "", by_length(replace(untrained, evaluation=known)))
    assert text == "right, by length: 3 50% Real English words: 7 of 9 right BLEU 12.3 chrF 30.2"


def test_nothing_is_shown_without_lengths(untrained):
    assert by_length(replace(untrained, evaluation=replace(untrained.evaluation, by_length={}))) == ""


def test_markup_in_questions_and_outputs_is_escaped(untrained):
    tracked = replace(PROBE, text=MARKUP, output=MARKUP, pieces=("<b>", "&"))
    known = replace(untrained.evaluation, samples=((MARKUP, MARKUP),))
    for said in (
        output_row(tracked),
        output_row(replace(tracked, text="cat")),
        output_row(replace(tracked, text="cat", answer=None, written_at=3)),
        outputs(replace(untrained, words=(tracked,)), MARKUP),
        samples(replace(untrained, evaluation=known)),
    ):
        assert "<b>" not in said
        assert TEXT in re.sub("<[^>]*>", "", said)
