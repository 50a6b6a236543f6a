"""No two texts or controls overlap, and no text is cut, on any page and in any state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SMALL, finish, start
from tests.browser.watcher import Watcher

DETECTOR = Path(__file__).with_name("layout.js").read_text(encoding="utf-8")
SIZES = ((1920, 1080), (1280, 720), (1000, 720), (800, 720), (390, 844))
ON_TOP = """(selector) => {
  const { x, y, width, height } = document.querySelector(selector).getBoundingClientRect();
  return Boolean(document.elementFromPoint(x + width / 2, y + height / 2)?.closest(selector));
}"""
"""Whether an element is on top of everything else at its centre."""


def faults(watch: Watcher, state: str) -> Iterator[str]:
    """Yield what the detector finds, in windows of all sizes."""
    for width, height in SIZES:
        watch.page.set_viewport_size({"width": width, "height": height})
        found: list[str] = ["not looked at yet"]
        for wait in (400, 1000, 3000):  # pictures take time to get their new sizes
            if found:
                watch.page.wait_for_timeout(wait)
                found = watch.page.evaluate(DETECTOR)
        yield from (f"{state}, {width}: {one}" for one in found)
    watch.page.set_viewport_size({"width": 1280, "height": 720})


TRAINING = "/?steps=100000&goal=none&pace=1+steps/s"


def test_on_watch_nothing_overlaps_or_is_cut(watch):
    watch.open()
    found = [*faults(watch, "idle, with the recording")]
    start(watch, TRAINING)
    found += faults(watch, "training")
    assert not found, "\n".join(found)


def test_on_watch_a_refusal_is_always_seen_and_covers_nothing(watch, guest):
    start(watch, TRAINING)
    watch.type("own_word", "Zürich 7")
    refusal = ".st-key-word_problem [data-testid=stAlert]"
    watch.page.wait_for_selector(refusal)
    expect(watch.page.locator(refusal)).to_be_in_viewport(ratio=0.9)  # without scrolling
    found = [*faults(watch, "refused word")]
    watch.page.get_by_text("All settings").first.click()
    watch.type("learning_rate", "0.001")
    changed = ".st-key-run_changes"
    watch.page.locator(changed).get_by_text("learning rate 0.005 → 0.001").wait_for()
    for seen in (refusal, changed, ".st-key-run_learning_rate button"):
        watch.page.locator(seen).first.scroll_into_view_if_needed()
        assert watch.page.evaluate(ON_TOP, seen), seen
    found += faults(watch, "changed setting and refused word")
    watch.type("heads", "7")
    watch.page.get_by_text("choose 1, 2, 4, 8 or 16 heads").wait_for()
    found += faults(watch, "wrong setting")
    watch.type("heads", "4")
    watch.click("run_pause")
    watch.until(lambda: watch.state == "paused")
    found += faults(watch, "paused")
    guest.open(watch.page.url.removeprefix(watch.app))
    found += faults(guest, "viewer")
    assert not found, "\n".join(found)


def test_eight_runs_that_differ_in_their_seeds_fit_a_page_and_are_followed_to_their_sentence(watch, guest):
    start(watch, f"/?steps=40&evaluate_every=20{SMALL}")
    watch.click("seeds_menu")
    watch.click("seeds_start")
    said = "No head began to read backwards in any of 8 runs."
    watch.page.locator(".st-key-moment").get_by_text(said).wait_for()
    found = [*faults(watch, "seeds")]
    main = watch.page.locator(".stMain")
    over = "(main) => main.scrollHeight - main.clientHeight"
    watch.until(lambda: main.evaluate(over) <= 0, what="a page without a scroll bar, at 1280 x 720 again")
    guest.open(watch.page.url.removeprefix(watch.app), picture="seeds_7")
    found += faults(guest, "seeds, a viewer")
    guest.page.locator(".st-key-prepared_race").get_by_text("4 heads against 1", exact=True).click()
    guest.drawn("race_difference")  # in the same place of the page
    assert not guest.page.locator(".tiles").is_visible()
    found += faults(guest, "two runs after seeds")
    watch.page.locator(".st-key-seeds_3 .map-name").click()
    watch.drawn("live_map")
    assert "seed 3" in watch.plot("live_map", "title()")
    guest.errors[:] = [error for error in guest.errors if "404" not in error]  # Streamlit's own 404s
    assert not found, "\n".join(found)


def test_on_every_page_of_a_finished_run_nothing_overlaps_or_is_cut(watch):
    finish(watch, "/?steps=50&evaluate_every=25&goal=none", 50)
    found = [*faults(watch, "Watch, finished")]
    watch.step_by("ArrowLeft")
    found += faults(watch, "Watch, an earlier step")
    watch.page.keyboard.press("f")
    watch.until(lambda: watch.page.evaluate("Boolean(document.fullscreenElement)"))
    watch.page.wait_for_timeout(600)
    found += [f"full screen: {one}" for one in watch.page.evaluate(DETECTOR)]
    watch.page.keyboard.press("f")
    for page, drawn in (
        ("Ask", ".st-key-explore_map_figure .main-svg"),
        ("Look inside", "[data-box]"),
        ("Masks", "[data-box]"),
        ("Your data", ".st-key-data_alignment_figure .main-svg"),
        ("Race", ".st-key-race_right .map[data-step]"),
        ("Stories", ".st-key-story_tour"),
    ):
        watch.page.get_by_role("link", name=page, exact=True).click()
        watch.page.wait_for_selector(drawn)
        watch.until_settled()
        found += faults(watch, page)
        for tab in ("Break", "Beams", "Measure") if page == "Ask" else ():
            watch.page.get_by_role("tab", name=tab).click()
            watch.until_settled()
            found += faults(watch, f"Ask, {tab}")
        if page == "Look inside":
            watch.page.locator("[data-box='decoder.1.cross'] .title").click()
            found += faults(watch, "Look inside, open")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("story", ["tour", "talk", "class"])
def test_in_a_story_nothing_overlaps_or_is_cut(visit, story):
    watch = visit  # a link into the app makes Streamlit ask for two files that are not there
    watch.page.goto(f"{watch.app}/stories?story={story}{SMALL}")
    watch.page.wait_for_selector(".headlight-player[data-story] :is(.map[data-step], [data-box])")
    found = [*faults(watch, story)]
    if story == "talk":
        watch.page.keyboard.press("Space")
        watch.until(lambda: watch.page.evaluate("Boolean(document.fullscreenElement)"))
        watch.page.wait_for_timeout(600)
        found += [f"full screen: {one}" for one in watch.page.evaluate(DETECTOR)]
        width, height = watch.page.evaluate(
            "(({ clientWidth, clientHeight }) => [clientWidth, clientHeight])"
            "(document.querySelector('.st-key-live_map .map-field canvas'))"
        )
        assert width * height >= 0.3 * 1280 * 720
    assert not found, "\n".join(found)
