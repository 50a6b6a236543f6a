"""The page as it opens: ready to use, untrained, and with every control that is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest

SETTINGS = {"preset", "task", "layers_encoder", "layers_decoder", "heads", "width", "device", "seed"}
TRAINING = {"learning_rate", "goal", "pace", "steps", "letters", "batch_size", "label_smoothing", "dropout"}
COMMANDS = {"run_start", "run_pause", "run_step", "step_size", "run_stop", "run_reset"}


@pytest.fixture
def opened(visit):
    """The app without any setting in the link."""
    return visit({})


def test_the_opened_page_is_idle_and_shows_the_untrained_model(opened):
    assert "**idle** · step **0** / 300" in opened.status
    assert not opened.says("LIVE")  # nothing moves yet
    assert opened.says("<small>words right</small> <b>0</b> / 200<em>held-out words, at step 0</em>")
    assert opened.says("**Step 0, untrained:** every head looks everywhere. Press **Start**.")
    assert opened.says("Runs: none yet")
    assert opened.errors == []


def test_every_control_that_is_promised_is_there(opened):
    assert opened.keys >= SETTINGS | TRAINING | COMMANDS | {"own_word", "add_word", "word", "kind"}
    assert "run_continue" not in opened.keys  # nothing has ended


def test_before_the_start_one_can_start_and_step_and_there_is_nothing_to_pause_or_stop(opened):
    assert {key: opened.enabled(key) for key in ("run_start", "run_step", "run_pause", "run_stop")} == {
        "run_start": True,
        "run_step": True,
        "run_pause": False,
        "run_stop": False,
    }
    start = opened.at.button(key="run_start")
    assert start.label == "Start"
    assert start.proto.type == "primary"


def test_every_control_has_a_help_text(opened):
    without_label = {"continue_steps", "continue_rate"}
    for kind in ("selectbox", "number_input", "text_input", "button_group", "toggle"):
        for element in opened.at.get(kind):
            assert element.key in without_label or element.proto.help, element.key


def test_a_task_that_works_is_chosen_with_the_settings_of_the_default_preset(opened):
    values = {key: opened.value(key) for key in SETTINGS | {"learning_rate", "goal", "pace"}}
    assert values == {
        "preset": "Reverse words",
        "task": "reverse",
        "layers_encoder": 2,
        "layers_decoder": 2,
        "heads": 4,
        "width": 32,
        "device": "auto",
        "seed": 0,
        "learning_rate": 0.005,
        "goal": "99 %",
        "pace": "full pace",
    }
    assert opened.run.config.to_dict() == opened.run.config.with_changes(goal=0.99).to_dict()


def test_the_large_map_is_that_of_the_first_word_with_its_letters_as_labels(opened):
    shown = opened.drawn("live_map_figure")
    assert shown.step == 0
    assert [label.replace("<br>", "") for label in shown.layout["xaxis"]["ticktext"]] == [
        "[SOS]",
        *"playground",
        "[EOS]",
    ]
    backwards = "dnuorgyalp"
    assert shown.layout["yaxis"]["ticktext"] == [
        f"{read} → {write}" for read, write in zip(["[SOS]", *backwards], [*backwards, "[EOS]"], strict=True)
    ]
    weights = shown.arrays["0.z"]
    assert weights.shape == (11, 12)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-3)
    assert weights.max() < 0.5  # every head looks everywhere
    title = shown.changing["title.text"]
    assert "“playground”" in title
    assert "step 0" in title
    assert "seed 0" in title
    assert "teacher-forced" in title


def test_an_untrained_row_says_which_wrong_letter_it_would_write(opened):
    frame = opened.run.view.frame
    probe = frame.probes[0]
    labels = opened.drawn("live_map_figure").changing["yaxis.ticktext"]
    wrong = [i for i in range(11) if probe.predicted[i] != probe.expected[i]]
    assert wrong == [i for i, label in enumerate(labels) if "✗" in label] != []
    for i in wrong:
        assert labels[i].endswith(f"<b>✗</b> {probe.predicted[i]}")


def test_the_strip_shows_every_head_of_every_layer_and_the_curves_wait_empty(opened):
    strip, curves = opened.drawn("live_maps_figure"), opened.drawn("live_curves_figure")
    names = [strip.changing[f"annotations[{i}].text"] for i in range(8)]
    assert names == [f"dec {layer} · head {head}" for head in (1, 2, 3, 4) for layer in (1, 2)]
    frame = opened.run.view.frame
    for head in range(4):
        for layer in range(2):
            np.testing.assert_allclose(
                strip.arrays[f"{2 * head + layer}.z"],
                frame.map(0, f"decoder.{layer}.cross")[head],
                atol=1e-4,
            )
    assert all(math.isnan(value) for name in curves.arrays for value in curves.arrays[name])
    vocabulary = opened.run.view.config.model.tgt_vocab_size
    assert curves.layout["yaxis"]["range"][1] > math.log(vocabulary)  # where guessing stands


def test_a_link_to_another_page_arrives(visit):
    visitor = visit({"mask_layer": "0"}, page="masks")
    assert visitor.says(
        "**Decoder self-attention** is to write letters one by one; a row may not read what comes after it "
        "and no row may read padding."
    )
    assert visitor.at.query_params["mask_layer"] == "0"
