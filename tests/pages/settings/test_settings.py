"""The settings: taken from the link, from a preset and from boxes; the impossible is answered in place."""

from __future__ import annotations

import pytest

from pages.settings.beginnings import values_of
from pages.settings.presets import PRESETS
from tests.pages.conftest import KEYS

IMPOSSIBLE = [  # key, value, and the whole message: value, limit, next step
    (
        "heads",
        3,
        "Width: 8 cannot be split into 3 equal heads; choose 1, 2, 4 or 8 heads, or another ",
    ),
    ("heads", 0, "Heads: 0 is outside 1 to 64; choose a value in between."),
    ("layers_encoder", 0, "Encoder layers: 0 is outside 1 to 12; choose a value in between."),
    ("layers_decoder", 13, "Decoder layers: 13 is outside 1 to 12; choose a value in between."),
    ("width", 1_000_000, "Width: 1,000,000 is outside 2 to 1,024; choose a value in between."),
    ("width", -8, "Width: -8 is outside 2 to 1,024; choose a value in between."),
    ("steps", 0, "Steps: 0 is outside 1 to 1,000,000; choose a value in between."),
    ("seed", -1, "Seed: -1 is outside 0 to 4,294,967,295; choose a value in between."),
    ("letters", 41, "Longest word: 41 is outside 3 to 40; choose a value in between."),
    ("batch_size", 5000, "Batch: 5,000 is outside 1 to 4,096; choose a value in between."),
    ("learning_rate", 0.0, "Learning rate: 0 cannot be used; choose more than 0."),
    ("learning_rate", -0.5, "Learning rate: -0.5 cannot be used; choose more than 0."),
    ("label_smoothing", 0.95, "Label smoothing: 0.95 cannot be used; choose at least 0 and at most 0.9."),
    ("dropout", 1.0, "Dropout: 1 cannot be used; choose at least 0 and at most 0.9."),
]
DEFAULTS = values_of(PRESETS["Reverse words"].config) | {
    "preset": "Reverse words",
    "pace": "full pace",
    "task": "reverse",
}


def shown(visitor):
    return {key: visitor.value(key) for key in KEYS}


def of(config):
    """What they are to show."""
    values = values_of(config)
    return {key: values[key] for key in KEYS}


@pytest.mark.parametrize(("key", "value", "message"), IMPOSSIBLE)
def test_an_impossible_setting_is_answered_in_place_and_cannot_be_started(visit, key, value, message):
    visitor = visit()
    draft, good = visitor.run, visitor.value(key)
    visitor.set(key, value)
    (answer,) = visitor.errors
    assert answer.startswith(message)
    assert visitor.value(key) == value  # what was typed stays, to be mended
    assert not visitor.enabled("run_start")
    assert visitor.run is draft  # the model that is there stays on the screen
    assert visitor.player["run"] == draft.id
    visitor.set(key, good)
    assert visitor.errors == []
    assert visitor.enabled("run_start")


@pytest.mark.parametrize(("key", "value", "message"), IMPOSSIBLE[::4])
def test_an_impossible_setting_in_the_link_is_answered_and_can_be_mended(visit, key, value, message):
    visitor = visit(**{key: value})
    assert [error.startswith(message) for error in visitor.errors] == [True]
    assert not visitor.enabled("run_start")
    visitor.set(key, {"learning_rate": 0.1, "label_smoothing": 0.1, "dropout": 0.1, "letters": 5}.get(key, 2))
    assert visitor.errors == []
    assert visitor.enabled("run_start")


@pytest.mark.parametrize("key", ["preset", "goal", "pace", "task", "device"])
def test_a_choice_that_the_list_does_not_offer_means_the_default_whoever_sends_it(visit, key):
    visitor = visit().forge(key, "../../secret")
    config = visitor.run.config
    assert visitor.errors == []
    assert config.train.goal == (0.99 if key in ("preset", "goal", "task") else None)
    assert (config.recipe, config.train.task) == ("default", "reverse")
    assert config.device == ("auto" if key in ("preset", "task", "device") else "cpu")
    assert visitor.run.view.pace is None
    assert visitor.enabled("run_start")


@pytest.mark.parametrize("value", [10**30, None, 2.5])
def test_what_is_no_whole_number_never_reaches_the_model(visit, value):
    visitor = visit().set("heads", value)
    assert visitor.value("heads") in {2, 4}  # what was there, or the setting's default
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
        "goal": "90 %",
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


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("heads", "many"),
        ("width", "1e99"),
        ("learning_rate", "nan"),
        ("device", "toaster"),
        ("goal", "0.9"),
        ("preset", "no such preset"),
        ("pace", "warp"),
        ("task", "fr-en"),
    ],
)
def test_a_setting_in_the_link_that_means_nothing_falls_back_to_the_default(visit, key, wrong):
    visitor = visit(**{key: wrong})
    assert visitor.errors == []
    assert visitor.value(key) == DEFAULTS[key]
    assert visitor.enabled("run_start")


@pytest.mark.parametrize("name", [name for name in PRESETS if PRESETS[name].config.train.task != "pairs"])
def test_a_preset_fills_in_its_settings_and_is_the_model_on_the_screen(visit, name):
    visitor = visit(seed=5)
    if name == "Reverse words":
        visitor.set("preset", "One head")
    visitor.set("preset", name).once(lambda: visitor.run.ready.is_set())
    assert shown(visitor) == of(PRESETS[name].config)
    recipe = "default" if name == "Reverse words" else name
    assert visitor.run.config.to_dict() == PRESETS[name].config.with_changes(recipe=recipe).to_dict()
    assert PRESETS[name].look_for in visitor.headline


def test_the_preset_of_ones_own_pairs_asks_for_them_and_leaves_the_model_that_is_there(visit):
    visitor = visit(seed=5)
    before = visitor.run
    visitor.set("preset", "Your own pairs")
    assert visitor.errors == []  # nothing is wrong yet
    assert visitor.says("There are no pairs yet; upload or paste some on the page Your data")
    assert shown(visitor) == of(PRESETS["Your own pairs"].config)
    assert visitor.run is before
    assert not visitor.enabled("run_start")


def test_reset_sets_back_what_was_edited_to_the_chosen_preset(visit):
    visitor = visit().set("preset", "One layer each")
    for key, value in {"width": 16, "seed": 9, "learning_rate": 0.5, "goal": "none", "dropout": 0.3}.items():
        visitor.set(key, value)
    assert visitor.run.config.model.d_model == 16
    visitor.press("run_reset")
    assert visitor.value("preset") == "One layer each"
    assert shown(visitor) == of(PRESETS["One layer each"].config)
    assert visitor.run.config == PRESETS["One layer each"].config


def test_an_edited_setting_gives_a_new_untrained_model_with_the_same_words(visit):
    visitor = visit().set("own_word", "zebra")
    visitor.once(lambda: visitor.run.view.frame.probes[-1].text == "zebra")
    before = visitor.run
    visitor.set("seed", 1)
    assert visitor.run is not before
    assert visitor.run.config.seed == 1
    assert [q.text for q in visitor.run.questions] == [q.text for q in before.questions]
    assert visitor.value("word") == "zebra"
    before.join()  # the model that was replaced has ended
    visitor.set("letters", 3)  # zebra has 5 letters, of 6 that may be asked
    assert [q.text for q in visitor.run.questions] == ["banana", "kayak", "cat", "zebra"]
