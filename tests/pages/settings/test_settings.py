"""Settings from the link, from a preset and from boxes; impossible values are refused in place."""

from __future__ import annotations

import pytest
import streamlit as st

from pages.settings import beginnings, sidebar
from pages.settings.beginnings import base_of, values_of
from pages.settings.presets import PRESETS, look_for
from tests.pages.visitor import KEYS
from transformer.config import TASK_INFO

IMPOSSIBLE = [  # key, value, and how the message begins
    ("heads", 3, "Width: 8 cannot be split into 3 equal heads"),
    ("heads", 0, "Heads: 0 is outside 1 to 64"),
    ("layers_encoder", 0, "Encoder layers: 0 is outside 1 to 12"),
    ("layers_decoder", 13, "Decoder layers: 13 is outside 1 to 12"),
    ("width", 1_000_000, "Width: 1,000,000 is outside 2 to 1,024"),
    ("steps", 0, "Steps: 0 is outside"),
    ("seed", -1, "Seed: -1 is outside"),
    ("letters", 41, "Longest word: 41 is outside"),
    ("batch_size", 5000, "Batch: 5,000 is outside"),
    ("learning_rate", -0.5, "Learning rate: -0.5 cannot be used"),
    ("label_smoothing", 0.95, "Label smoothing: 0.95 cannot be used"),
    ("dropout", 1.0, "Dropout: 1 cannot be used"),
    ("threads", 300, "Threads: 300 is outside"),
    ("vocabulary", 3, "Most tokens: 3 is outside"),
    ("min_frequency", 0, "Least frequency: 0 is outside"),
]
DEFAULTS = values_of(PRESETS["Reverse words"].config) | {
    "preset": "Reverse words",
    "pace": "as fast as it can",
    "task": "reverse",
}


def shown(visitor):
    return {key: visitor.value(key) for key in KEYS}


def of(config):
    """Return the values that the widgets should show."""
    values = values_of(config)
    return {key: values[key] for key in KEYS}


def test_the_folded_settings_name_what_differs_from_the_preset(visit):
    def title(**settings):
        return next(one.label for one in visit(settings).at.expander if one.label.startswith("All settings"))

    assert title() == "All settings"
    assert title(goal="none", seed="3") == "All settings · changed: **stop at goal, seed**"
    assert title(goal="none", seed="3", batch_size="16") == "All settings · **3 changed**"


def test_an_impossible_setting_is_refused_in_place_and_cannot_be_started(visit):
    visitor = visit()
    draft = visitor.run
    for key, value, message in IMPOSSIBLE:
        good = visitor.value(key)
        visitor.set(key, value)
        (answer,) = visitor.errors
        assert answer.startswith(message)
        assert visitor.value(key) == value  # the typed value stays, to be corrected
        assert not visitor.enabled("run_start")
        assert visitor.run is draft  # the current model stays on the screen
        assert visitor.player["run"] == draft.id
        assert visitor.player["over"].startswith("<b>These settings cannot be trained.</b>")
        visitor.set(key, good)
        assert visitor.errors == []
        assert visitor.enabled("run_start")


def test_an_impossible_setting_in_the_link_is_refused_and_can_be_corrected(visit):
    visitor = visit(dropout=1.0)
    assert [error.startswith("Dropout: 1 cannot be used") for error in visitor.errors] == [True]
    assert not visitor.enabled("run_start")
    visitor.set("dropout", 0.1)
    assert visitor.errors == []
    assert visitor.enabled("run_start")


@pytest.mark.parametrize("key", ["preset", "goal", "pace", "task", "device", "recipe", "topology"])
def test_a_choice_that_the_list_does_not_offer_is_replaced_by_the_default(visit, key):
    visitor = visit().forge(key, "../../secret")
    config = visitor.run.config
    assert visitor.errors == []
    assert config.train.goal == (0.99 if key in ("preset", "goal", "task", "recipe", "topology") else None)
    assert (config.recipe, config.train.task) == ("default", "reverse")
    assert config.device == ("auto" if key in ("preset", "task", "device", "recipe", "topology") else "cpu")
    assert visitor.run.view.pace is None
    assert visitor.enabled("run_start")


@pytest.mark.parametrize("value", [10**30, None, 2.5])
def test_a_value_that_is_not_a_valid_integer_never_reaches_the_model(visit, value):
    visitor = visit().set("heads", value)
    assert visitor.value("heads") in {2, 4}  # the previous value, or the setting's default
    assert visitor.run.config.model.n_heads == visitor.value("heads")


def test_settings_are_taken_from_the_link(visit):
    link = {
        "task": "Reverse words",
        "device": "cpu",
        "layers_encoder": 3,
        "layers_decoder": 1,
        "heads": 4,
        "width": 12,
        "steps": 7,
        "seed": 42,
        "learning_rate": 0.02,
        "goal": "90%",
        "letters": 5,
        "batch_size": 6,
        "label_smoothing": 0.1,
        "dropout": 0.2,
    }
    config = visit(link, pace="5 steps/s").run.config
    model, train = config.model, config.train
    assert (model.n_encoder_layers, model.n_decoder_layers, model.n_heads, model.d_model) == (3, 1, 4, 12)
    assert model.d_ff == 4 * 12
    assert model.dropout == 0.2
    assert (train.steps, train.max_letters, train.batch_size) == (7, 5, 6)
    assert (train.learning_rate, train.goal, train.label_smoothing) == (0.02, 0.9, 0.1)
    assert (config.seed, config.device) == (42, "cpu")


def test_invalid_settings_in_the_link_fall_back_to_the_default(visit):
    wrong = {
        "heads": "many",
        "width": "1e99",
        "learning_rate": "nan",
        "device": "toaster",
        "goal": "0.9",
        "preset": "no such preset",
        "pace": "warp",
        "task": "fr-en",
        "recipe": "no such thing",
        "topology": "no such thing",
    }
    visitor = visit(wrong)
    assert visitor.errors == []
    assert {key: visitor.value(key) for key in wrong} == {key: DEFAULTS[key] for key in wrong}
    assert visitor.enabled("run_start")


@pytest.mark.parametrize("name", ["Reverse words", "One layer each", "No padding mask", "English to French"])
def test_a_preset_fills_in_its_settings_and_shows_its_model(visit, name):
    visitor = visit(seed=5)
    if name == "Reverse words":
        visitor.set("preset", "One head")
    visitor.set("preset", name).wait_until(lambda: visitor.run.ready.is_set())
    assert shown(visitor) == of(PRESETS[name].config)
    recipe = "default" if name == "Reverse words" else name
    assert visitor.run.config.to_dict() == PRESETS[name].config.with_changes(recipe=recipe).to_dict()
    assert PRESETS[name].look_for in visitor.headline


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_recognised_and_starts_with_all_of_its_settings(name):
    config = PRESETS[name].config
    assert look_for(config) == PRESETS[name].look_for
    assert base_of(config) == config
    assert TASK_INFO[config.train.task].title in PRESETS


def test_the_preset_for_own_pairs_asks_for_them_and_keeps_the_current_model(visit):
    visitor = visit(seed=5)
    before = visitor.run
    visitor.set("preset", "Your own pairs")
    assert visitor.errors == []  # nothing is wrong yet
    assert visitor.says("There are no pairs yet; upload or paste some on the page Your data")
    assert shown(visitor) == of(PRESETS["Your own pairs"].config)
    assert visitor.run is before
    assert not visitor.enabled("run_start")


def test_reset_restores_the_settings_of_the_chosen_preset(visit):
    visitor = visit().set("preset", "One layer each")
    visitor.fill({"width": 16, "seed": 9, "learning_rate": 0.5, "goal": "none", "dropout": 0.3})
    assert visitor.run.config.model.d_model == 16
    visitor.press("run_reset")
    assert visitor.value("preset") == "One layer each"
    assert shown(visitor) == of(PRESETS["One layer each"].config)
    assert visitor.run.config == PRESETS["One layer each"].config


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("outdated", [False, True])
def test_the_browser_receives_the_settings_of_a_run_whatever_it_sends_meanwhile(
    visit, shared, monkeypatch, interrupted, outdated
):
    monkeypatch.setattr(beginnings, "DELIVERED_SECONDS", 60.0)
    link = shared.link(steps=2, seed=4, batch_size=5, preset="One head")
    visitor = visit(session={"known_runs": [link["run"]]})
    earlier = visitor.at._tree.get_widget_states()
    with monkeypatch.context() as patch:
        if interrupted:  # the script run that should draw the settings
            patch.setattr(sidebar, "settings", st.stop)
        visitor.press(f"show_{link['run']}")
    visitor._pass(earlier if outdated else None)
    assert visitor.run.id == link["run"]
    assert shown(visitor) == of(visitor.run.config)
    assert visitor.value("preset") == "One head"
    assert visitor.at.number_input(key="seed").proto.set_value
    assert not visitor.says("Changed:")
    visitor.set("seed", 7)  # a change made at once
    assert visitor.value("seed") == 7
    monkeypatch.setattr(beginnings, "DELIVERED_SECONDS", 0.0)
    visitor.set("seed", 0)  # later, back to the earlier value
    assert visitor.value("seed") == 0
    assert not visitor.at.number_input(key="seed").proto.set_value


def test_an_edited_setting_gives_a_new_untrained_model_with_the_same_words(visit):
    visitor = visit().set("own_word", "zebra")
    visitor.wait_until(lambda: visitor.run.view.frame.words[-1].text == "zebra")
    before = visitor.run
    visitor.set("seed", 1)
    assert visitor.run is not before
    assert visitor.run.config.seed == 1
    assert [q.text for q in visitor.run.questions] == [q.text for q in before.questions]
    assert visitor.value("word") == "zebra"
    before.join()  # the thread of the replaced model has ended
    visitor.set("letters", 3)  # zebra has 5 letters; up to 2 * 3 may be asked
    assert [q.text for q in visitor.run.questions] == ["banana", "kayak", "cat", "zebra"]
