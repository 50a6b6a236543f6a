"""A first visit plays a recording; a run goes home as one file, and is opened by somebody else."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Watcher
from tests.serving import start_server
from transformer.runs.demo import SHIPPED

FILM = """new MutationObserver(() => {
  const figure = document.querySelector(".st-key-live_map .live-figure[data-step]");
  window.film ??= [];
  const step = Number(figure?.dataset.step);
  if (figure && window.film.at(-1) !== step) window.film.push(step);
}).observe(document, { attributes: true, attributeFilter: ["data-step"], subtree: true });"""
"""Notes every step that the large map comes to show."""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """A server as somebody starts it: it keeps its runs, and shows the recording."""
    runs = str(tmp_path_factory.mktemp("runs"))
    server, address = start_server(HEADLIGHT_RUNS=runs, HEADLIGHT_RECORDING=str(SHIPPED))
    yield address
    server.terminate()
    server.wait(60)


def test_a_first_visit_plays_the_recording_once_from_the_untrained_model(watch):
    watch.page.add_init_script(FILM)
    watch.open("/")
    expect(watch.page.locator(".st-key-moment")).to_contain_text("Recorded")
    watch.page.locator(".st-key-time_speed select").select_option("20 steps/s")
    watch.until(lambda: watch.stands_at(200), what="the end of the film")
    film = watch.page.evaluate("window.film")
    assert film[0] == 0
    assert film == sorted(set(film))
    assert len(film) > 60  # of 201, on however busy a machine
    expect(watch.page.locator(".st-key-time_badge")).to_have_text("newest step")
    assert "step=" not in watch.page.url
    watch.page.reload()
    watch.page.wait_for_selector(".st-key-live_map svg.main-svg")
    assert watch.number("live_map", "step") == 200


def test_who_wants_no_motion_sees_the_recording_standing_still(watch):
    watch.page.emulate_media(reduced_motion="reduce")
    watch.open("/")
    watch.page.wait_for_timeout(1500)
    assert watch.number("live_map", "step") == 200
    assert watch.number("live_map", "draws") <= 2


def test_start_ends_the_film_and_trains_a_model_of_ones_own(watch):
    watch.open("/")
    watch.until(lambda: 0 < watch.number("live_map", "step") < 200, what="the film")
    assert watch.state == "recorded"
    watch.click("run_start")
    watch.until(lambda: watch.state in ("training", "finished"))
    watch.until(lambda: watch.number("live_map", "step") > 0)
    expect(watch.page.locator(".st-key-moment")).not_to_contain_text("Recorded")
    expect(watch.page.locator(".st-key-live_curves .marker:visible")).to_have_count(0)  # of the film


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
