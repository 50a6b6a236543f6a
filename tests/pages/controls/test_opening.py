"""The page as it opens: ready to use, untrained, and with all controls."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from pages.shared import style as styles
from tests.pages.visitor import APP

SETTINGS = {"preset", "task", "layers_encoder", "layers_decoder", "heads", "width", "device", "seed"}
TRAINING = {"learning_rate", "goal", "pace", "steps", "letters", "batch_size", "label_smoothing", "dropout"}
COMMANDS = {"run_start", "run_step", "step_size", "run_reset"}


def count_reruns(monkeypatch):
    """Return a list that grows by one entry each time the script of a page runs."""
    runs = []
    style = styles.style
    monkeypatch.setattr(styles, "style", lambda: runs.append(1) or style())
    return runs


@pytest.fixture
def opened(visit):
    """The app, opened from a link without settings."""
    return visit({})


def test_the_opened_page_is_idle_and_shows_the_untrained_model(opened):
    assert opened.progress == "idle at 0 of 300"
    assert opened.headline.startswith("Untrained model. Press Start to train it.")
    assert opened.player["run"] == opened.run.id
    assert opened.player["first"] == {
        "word": "playground",
        "kind": "cross",
        "pinned": None,
        "step": None,
        "outline": False,
        "follow": False,
    }
    assert opened.says("Your runs: none yet")
    assert opened.errors == []


def test_every_control_is_on_the_page_and_has_a_help_text(opened):
    assert opened.keys >= SETTINGS | TRAINING | COMMANDS | {"own_word", "add_word"}
    assert not opened.keys & {"run_pause", "run_stop", "run_continue"}  # nothing trains, nothing has ended
    assert opened.enabled("run_start")
    assert opened.enabled("run_step")
    start = opened.at.button(key="run_start")
    assert start.label == "Start"
    assert start.proto.type == "primary"
    for kind in ("selectbox", "number_input", "text_input", "button_group", "toggle"):
        for element in opened.at.get(kind):
            assert element.proto.help, element.key
    assert opened.at.number_input(key="layers_encoder").proto.help == "Layers that read the word, 1 to 12."


def test_a_new_page_has_the_task_and_settings_of_the_default_preset(opened):
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
        "goal": "99%",
        "pace": "as fast as it can",
    }
    assert opened.run.config.to_dict() == opened.run.config.with_changes(goal=0.99).to_dict()


@pytest.mark.parametrize(
    ("page", "finished"),
    [("watch", False), ("watch", True), ("ask", True), ("inside", True), ("masks", True)],
)
def test_opening_a_page_runs_its_script_once(visit, revisit, monkeypatch, page, finished):
    visitor = (revisit if finished else visit)().go(page)
    runs = count_reruns(monkeypatch)
    fresh = AppTest.from_file(str(APP), default_timeout=60)
    if page != "watch":
        fresh.switch_page(f"{page}.py")
    for name, value in visitor.link.items():
        fresh.query_params[name] = value
    fresh.run()
    assert len(runs) == 1
    assert not fresh.exception


def test_a_choice_in_the_player_and_the_tokens_from_a_browser_each_run_the_page_once(revisit, monkeypatch):
    visitor = revisit()
    runs = count_reruns(monkeypatch)
    visitor.choose(word="cat", step=1)
    assert len(runs) == 1
    visitor.send("keyring", "found", [[["nobody", "x" * 22, 0]], ""])
    assert len(runs) == 2


def test_when_a_run_changes_its_state_the_whole_page_is_rerun_once(visit, monkeypatch):
    visitor = visit()
    runs = count_reruns(monkeypatch)
    visitor.send("player", "changed", "training")
    assert len(runs) == 2  # once for the message, and once more for the state
    visitor.look()
    assert len(runs) == 3
