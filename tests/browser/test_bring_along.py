"""A first visit plays a recording; a run goes home as one file, and is opened by somebody else."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Watcher
from tests.serving import start_server
from transformer.runs.demo import SHIPPED


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """A server as somebody starts it: it keeps its runs, and shows the recording."""
    runs = str(tmp_path_factory.mktemp("runs"))
    server, address = start_server(HEADLIGHT_RUNS=runs, HEADLIGHT_RECORDING=str(SHIPPED))
    yield address
    server.terminate()
    server.wait(60)


def test_a_first_visit_plays_the_recording_and_start_trains_a_model_of_its_own(watch):
    watch.open("/")
    assert watch.number("live_map", "step") == 200
    assert watch.state == "recorded"
    watch.click("time_play")
    watch.until(lambda: 0 < watch.number("live_map", "step") < 200)
    watch.click("run_start")
    watch.until(lambda: watch.state in ("training", "finished"))
    watch.until(lambda: watch.number("live_map", "step") > 0)
    expect(watch.page.locator(".st-key-moment")).not_to_contain_text("Recorded")


def test_a_run_is_taken_away_as_one_file_and_opened_in_another_browser(watch, app, browser, tmp_path):
    watch.open("/?steps=6&goal=none&seed=4&heads=2")
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    watch.page.get_by_text("Take it away").click()
    button = watch.page.locator(".st-key-run_download button").first
    with watch.page.expect_download() as download:
        button.click()
    assert download.value.suggested_filename == "headlight-seed4-run.zip"
    download.value.save_as(tmp_path / "run.zip")

    context = browser.new_context(viewport={"width": 1280, "height": 720})
    other = Watcher(context.new_page(), app)
    other.open("/")
    other.page.get_by_text("Open a run").click()
    other.page.locator(".st-key-run_open input[type=file]").set_input_files(tmp_path / "run.zip")
    other.until(lambda: other.state == "finished" and other.number("live_map", "step") == 6)
    assert watch.page.url.split("run=")[1][:22] != other.page.url.split("run=")[1][:22]
    other.click("run_continue")
    other.until(lambda: other.number("live_map", "step") > 6)
    assert watch.number("live_map", "step") == 6
    context.close()
    assert other.errors == []
