"""A first visit plays a recording; a run is downloaded as one file and opened in another browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SMALL, finish
from tests.serving import start_server
from transformer.config.recipes import RECIPES
from transformer.runs.demo import record

FILM = """new MutationObserver(() => {
  const figure = document.querySelector(".st-key-live_map .live-figure[data-step]");
  window.film ??= [];
  const step = Number(figure?.dataset.step);
  if (figure && window.film.at(-1) !== step) window.film.push(step);
}).observe(document, { attributes: true, attributeFilter: ["data-step"], subtree: true });"""
"""Logs every step that the large map shows."""


LAST = 80
RECORDED = f"/?steps={LAST}{SMALL}"
"""The settings of the recording."""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """Address of a server that saves its runs and plays a shorter recording than the shipped one."""
    folder = tmp_path_factory.mktemp("runs")
    small = {"n_encoder_layers": 1, "n_decoder_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 64}
    record(
        RECIPES["default"].small.with_changes(steps=LAST, goal=None, **small), folder / "recording.headlight"
    )
    server, address = start_server(
        HEADLIGHT_RUNS=str(folder / "runs"), HEADLIGHT_RECORDING=str(folder / "recording.headlight")
    )
    yield address
    server.terminate()
    server.wait(60)


def test_a_first_visit_shows_what_was_learned_and_then_plays_the_recording_once(first_visit):
    watch = first_visit
    watch.page.add_init_script(FILM)
    watch.open(RECORDED)
    moment = watch.page.locator(".st-key-moment")
    expect(moment).to_contain_text("Watch a small Transformer")
    watch.page.locator(".st-key-time_speed select").select_option("20/s")
    watch.until(lambda: watch.number("live_map", "step") < LAST, what="the film")
    expect(moment).not_to_contain_text("Watch a small Transformer")
    watch.until(lambda: watch.stands_at(LAST), what="the end of the film")
    learned, *film = watch.page.evaluate("window.film")
    assert (learned, film[0]) == (LAST, 0)
    assert film == sorted(set(film))
    assert len(film) > LAST / 3  # even on a busy machine
    expect(watch.page.locator(".st-key-time_badge")).to_have_text("last step")
    assert "step=" not in watch.page.url
    watch.page.reload()
    watch.page.wait_for_selector(".st-key-live_map .map[data-step]")
    assert watch.number("live_map", "step") == LAST


def test_the_first_map_of_a_recorded_run_does_not_wait_for_the_charts(watch):
    watch.page.add_init_script("""new MutationObserver((_, observer) => {
      if (!document.querySelector(".st-key-live_map .live-figure[data-step]")) return;
      window.chartsWereFirst = Boolean(window.Plotly); // evaluating it takes most of a second
      observer.disconnect();
    }).observe(document, { attributes: true, attributeFilter: ["data-step"], subtree: true });""")

    def answer_late(route):  # the socket says first that there is a recording
        watch.page.wait_for_timeout(2000)
        route.continue_()

    watch.page.route("**/stream/*/index", answer_late)
    watch.open(RECORDED)
    assert watch.page.evaluate("window.chartsWereFirst") is False
    watch.until(lambda: watch.page.evaluate("Boolean(window.Plotly)"), what="the charts")


def test_with_reduced_motion_the_recording_does_not_play_and_a_typed_word_keeps_its_button(watch):
    watch.page.emulate_media(reduced_motion="reduce")
    watch.open(RECORDED)
    watch.page.wait_for_timeout(1500)
    assert watch.number("live_map", "step") == LAST
    assert watch.number("live_map", "draws") <= 3  # one each for the index, the socket and the layout
    own = watch.page.locator(".st-key-word button[data-value=garden]")
    watch.type("own_word", "garden")  # which the recording lacks
    expect(own).to_have_attribute("aria-pressed", "true")
    expect(watch.page.locator(".st-key-moment")).to_contain_text("Untrained")
    watch.choose("word", "playground")
    expect(watch.page.locator(".st-key-moment")).to_contain_text("Watch a small Transformer")
    own.click()
    expect(watch.page.locator(".st-key-moment")).to_contain_text("Untrained")
    expect(own).to_have_attribute("aria-pressed", "true")


def test_start_ends_the_film_and_trains_a_new_model(watch):
    watch.open(RECORDED)
    # At once: the player sends a step a quarter of a second after it was chosen.
    watch.page.evaluate(
        "for (const key of ['time_play', 'run_start'])"
        " document.querySelector(`.st-key-${key} button`).click()"
    )
    watch.until(lambda: watch.state in ("training", "finished"))
    watch.until(lambda: watch.number("live_map", "step") > 0)
    expect(watch.page.locator(".st-key-moment")).not_to_contain_text("A recording")
    expect(watch.page.locator(".st-key-time_badge")).not_to_contain_text("looking back")
    assert "step=" not in watch.page.url
    expect(watch.page.locator(".st-key-live_curves .marker:visible")).to_have_count(0)  # of the recording


def test_a_run_is_downloaded_as_one_file_and_opened_in_another_browser(watch, guest, tmp_path):
    finish(watch, "/?steps=6&goal=none&seed=4&heads=2", 6)
    watch.page.get_by_text("Take it away").click()
    button = watch.page.locator(".st-key-run_download button").first
    with watch.page.expect_download() as download:
        button.click()
    assert download.value.suggested_filename == "headlight-seed4.headlight"
    download.value.save_as(tmp_path / "run.headlight")

    guest.open("/")
    guest.page.get_by_text("Open a run").click()
    guest.page.locator(".st-key-run_open input[type=file]").set_input_files(tmp_path / "run.headlight")
    guest.until(lambda: guest.state == "finished" and guest.number("live_map", "step") == 6)
    assert watch.page.url.split("run=")[1][:22] != guest.page.url.split("run=")[1][:22]
    guest.click("run_continue")
    guest.until(lambda: guest.number("live_map", "step") > 6)
    assert watch.number("live_map", "step") == 6
