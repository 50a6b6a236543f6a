"""Ask, Measure: the scores of every head, their curves, and letters right by word length and position."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pages.questions.conftest import separate_model

NAMES = {
    "encoder.0": "encoder 1 · head {}",
    "decoder.0.self": "decoder 1 · head {}",
    "decoder.0.cross": "cross 1 · head {}",
}
ROLES = ("mirror", "prefix", "diagonal", "previous", "next", "same", "first", "eos")

LEARNED = {"steps": 30, "width": 16, "learning_rate": 0.05}


@pytest.fixture
def ask(revisit):
    """The Measure tab of a finished run of 30 steps, whose heads were measured at steps 0, 25 and 30."""
    return revisit(**LEARNED).go("ask").tab("Measure")


def table(visitor):
    (frame,) = visitor.at.dataframe
    return frame.value.set_index("head")


@pytest.mark.parametrize(("step", "measured"), [(30, 30), (0, 0), (27, 25), (24, 0)])
def test_the_table_holds_the_newest_scores_at_the_step_on_the_screen(ask, step, measured):
    """The expected scores come from a model with the weights of the step of the measurement."""
    view, rows = ask.run.view, table(ask.go_to_step(step))
    found = separate_model(ask, measured).head_scores
    assert list(rows.index) == [name.format(head) for name in NAMES.values() for head in (1, 2)]
    assert list(rows.columns) == ["role", *ROLES, "focus", "entropy", "place", "token"]
    for site, name in NAMES.items():
        for head in range(2):
            row = rows.loc[name.format(head + 1)]
            assert row["role"] == view.frame_at(step).role(site, head)
            for score in (*ROLES, "focus", "entropy", "place", "token"):
                if score in found[site]:
                    assert row[score] == pytest.approx(float(found[site][score][head]), abs=1e-5)
                else:
                    assert np.isnan(row[score])  # a decoder, for example, has no [EOS] to attend to
    assert ask.says(f"Scores at step {measured}, on up to 64 test examples, ")


@pytest.mark.parametrize(("score", "sites"), [("mirror", 2), ("previous", 2), ("first", 3), ("entropy", 3)])
def test_the_curves_show_the_score_of_every_head_at_every_measurement(ask, score, sites):
    ask.set("measure_score", score)
    frames = [ask.run.view.frames.of_step(step) for step in (0, 25, 30)]
    shown = ask.drawn("score_curves_figure")
    heads = [(site, head) for site in NAMES if score in frames[0].head_scores[site] for head in range(2)]
    assert len(heads) == 2 * sites
    for trace, (site, head) in enumerate(heads):
        assert shown.data[trace]["name"] == NAMES[site].format(head + 1).replace(" · head ", " h")
        np.testing.assert_allclose(shown.arrays[f"{trace}.x"], [frame.step for frame in frames])
        expected = [frame.head_scores[site][score][head] for frame in frames]
        np.testing.assert_allclose(shown.arrays[f"{trace}.y"], expected, atol=1e-5)
    steps, losses = ask.run.view.metrics.columns("step", "loss")
    (loss,) = [i for i, trace in enumerate(shown.data) if trace["name"] == "training loss"]
    np.testing.assert_allclose(shown.arrays[f"{loss}.x"], steps)
    np.testing.assert_allclose(shown.arrays[f"{loss}.y"], losses, rtol=1e-5)


def test_the_step_on_the_screen_is_marked_on_the_curves(ask):
    assert ask.drawn("score_curves_figure").changing["shapes[0].visible"] is False
    ask.go_to_step(10)
    changing = ask.drawn("score_curves_figure").changing
    assert (changing["shapes[0].visible"], changing["shapes[0].x0"]) == (True, 10)


def test_letters_right_are_reported_by_word_length_and_position(revisit):
    ask = revisit(width=32, letters=4, batch_size=32, steps=130, seed=3).go("ask").tab("Measure")
    for step in (130, 25):
        report = separate_model(ask, step).by_length
        shown = ask.go_to_step(step).drawn("length_report_figure")
        np.testing.assert_allclose(shown.arrays["0.z"], report.share, atol=1e-4)
        np.testing.assert_allclose(shown.arrays["1.z"][:, 0], report.exact, atol=1e-4)
        assert f"step {step}" in shown.changing["title.text"]
        labels = shown.changing["yaxis.ticktext"]
        assert labels == [f"{n} (25)" for n in report.lengths]
        assert report.asked == (25,) * len(report.lengths)
        assert report.lengths[-1] > 4  # also words longer than any in training
    assert 0 < np.nanmean(ask.go_to_step(130).drawn("length_report_figure").arrays["0.z"]) < 1


def test_a_score_that_does_not_exist_is_not_shown(ask):
    ask.forge("measure_score", "charm")
    assert ask.errors == []
    assert ask.drawn("score_curves_figure").data[0]["name"]


def test_the_tab_opens_on_the_score_that_the_heads_of_the_task_are_to_reach(revisit):
    ask = revisit(task="copy", **LEARNED).go("ask").tab("Measure")
    assert ask.value("measure_score") == ask.run.task.target_score == "gold"
