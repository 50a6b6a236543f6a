"""The settings of `streamlit run app.py`: local, protected, and legible in both themes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
ASKED = """
import json
from streamlit import config
options = config.get_config_options(force_reparse=True)
print(json.dumps({name: option.value for name, option in options.items()}, default=str))
"""
RECOMMENDED = {
    "runner.postScriptGC": False,  # garbage collection after every rerun would delay the training
    "server.address": "127.0.0.1",
    "server.headless": True,
    "server.fileWatcherType": "none",
    "server.enableXsrfProtection": True,
    "server.enableCORS": True,  # checks the Origin header; without it, any site could connect
    "browser.gatherUsageStats": False,
    "global.minCachedMessageSize": 1e9,  # see test_a_returning_client_gets_whole_messages in tests/security
    "client.showErrorDetails": "type",
    "client.toolbarMode": "viewer",
}


@pytest.fixture(scope="module")
def options():
    """Every Streamlit option after reading the project's configuration file, in a fresh process."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        cwd=ROOT,
        env=surroundings,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", RECOMMENDED)
def test_the_server_runs_as_recommended(options, name):
    assert options[name] == RECOMMENDED[name]


def test_every_setting_in_the_file_is_a_streamlit_option_and_takes_effect(options):
    def flat(table, before=""):
        for name, value in table.items():
            if isinstance(value, dict):
                yield from flat(value, f"{before}{name}.")
            else:
                yield before + name, value

    settings = dict(flat(FILE))
    assert set(settings) <= set(options)
    assert {name: options[name] for name in settings} == settings


def test_the_sizes_of_uploads_and_messages_are_limited(options):
    for name, most in (("maxUploadSize", 64), ("maxMessageSize", 50), ("maxWidgetStateSize", 2)):
        assert 0 < options[f"server.{name}"] <= most


def test_an_entry_of_the_secrets_file_sets_a_limit_of_the_server(tmp_path):
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "secrets.toml").write_text("HEADLIGHT_TRAINING = 3\n", encoding="utf-8")
    code = (
        "import streamlit as st\n"
        "assert st.secrets.load_if_toml_exists()\n"  # as the server does when it starts
        "from transformer.runs.registry import REGISTRY\n"
        "print(REGISTRY.limits.training, REGISTRY.queue.slots)"
    )
    surroundings = os.environ | {"PYTHONPATH": str(ROOT), "HEADLIGHT_TRAINING": "5"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["3", "3"]


def test_running_app_py_as_a_plain_script_reports_how_to_start_the_app():
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Start the app with: streamlit run app.py"


def linear(channel):
    share = channel / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def luminance(color):
    red, green, blue = (linear(int(color[i : i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """Return the WCAG 2 contrast ratio of two colours, 1 to 21."""
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_the_contrast_formula_gives_known_values():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#ffffff", "#ffffff") == 1.0
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)  # the lightest grey of level AA
    assert contrast("#595959", "#ffffff") == pytest.approx(7.0, abs=0.01)  # and of level AAA


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast_on_the_page_and_in_the_sidebar(options, theme):
    text = options[f"theme.{theme}.textColor"]
    for background in ("backgroundColor", "secondaryBackgroundColor"):
        assert contrast(text, options[f"theme.{theme}.{background}"]) >= 7.0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_main_button_has_enough_contrast_with_the_page(options, theme):
    assert contrast(options[f"theme.{theme}.primaryColor"], options[f"theme.{theme}.backgroundColor"]) >= 3.0


def test_the_light_theme_is_light_and_the_dark_theme_is_dark(options):
    light, dark = (luminance(options[f"theme.{theme}.backgroundColor"]) for theme in ("light", "dark"))
    assert light > 0.5 > 0.1 > dark
