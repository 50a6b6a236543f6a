"""Stories in a browser: a talk by one key, a tour by keyboard, a guess before the answer, and followers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import CALM, new_page, trained
from tests.browser.watcher import Watcher
from tests.serving import start_server

SMALL_TEXT = """() => {
  const root = document.querySelector(".headlight-player"), found = [];
  for (const one of root.querySelectorAll("*")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const seen = one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
    const small = parseFloat(getComputedStyle(one).fontSize) < 24 && one.getBoundingClientRect().width > 1;
    if (own && seen && small) found.push(one.outerHTML.slice(0, 200));
  }
  return found;
}"""
"""The elements whose visible text is smaller than 24 pixels."""
SCROLLS = """() => [...document.querySelectorAll(".headlight-player, .headlight-player *")]
  .filter((one) => /auto|scroll/.test(getComputedStyle(one).overflowY))
  .filter((one) => one.scrollHeight > one.clientHeight + 1).map((one) => one.className)"""
FIRST_ROW = """() => {
  const look = () => {
    const table = document.querySelector(".st-key-live_map .live-figure")?.picture?.tables[0];
    const row = table && Array.from({ length: table.wide }, (_, column) => table.value(3, column));
    if (row?.some((one) => one !== undefined)) window.firstRow = row;
    else requestAnimationFrame(look);
  };
  look();
}"""
"""Stores in `window.firstRow` row 4 of the large map as it is first drawn."""
DRAWN = ".headlight-player[data-story] .map[data-step]"


class StoryPage(Watcher):
    """A page that shows a story."""

    @property
    def refusals(self):
        """The errors, except the 404s of Streamlit's own requests below the address of a page."""
        return [error for error in self.errors if "404" not in error]

    def story(self, query):
        self.page.goto(f"{self.app}/stories?{query}")
        self.page.wait_for_selector(DRAWN)
        self.until(lambda: "Waiting" not in self.hint)

    @property
    def beat(self):
        return int(self.page.locator(".headlight-player").get_attribute("data-beat"))

    @property
    def said(self):
        return self.page.locator(".st-key-story .said").inner_text()

    @property
    def hint(self):
        return self.page.locator(".st-key-story .hint").inner_text()

    @property
    def run(self):
        return re.search(r"run=([^&]+)", self.page.url)[1]

    def next_is(self, ready):
        button = self.page.locator(".st-key-story_next button")
        expect(button).to_have_attribute("aria-disabled", "false" if ready else "true")


def telling(browser, address):
    return StoryPage(new_page(browser), address)


@pytest.fixture
def told(tab, app):
    """The page of a new visitor."""
    page = StoryPage(tab, app)
    yield page
    assert page.refusals == []
    page.leave()


@pytest.fixture
def busy(browser):
    """A page of a server whose only training thread is in use by another visitor, at one step per second."""
    server, address = start_server(HEADLIGHT_TRAINING="1")
    trained(address, CALM.removeprefix("/?"), "training")
    page = telling(browser, address)
    yield page
    assert page.refusals == []
    page.page.context.close()
    server.terminate()
    server.wait(60)


def give(told):
    """Give the shipped talk by pressing its key every second; return the text, hint and step of each beat."""
    told.story("story=talk")
    told.page.keyboard.press("Space")
    told.until(lambda: told.page.evaluate("document.fullscreenElement?.className") == "headlight-player")
    said, drawn = {}, told.page.locator(DRAWN).first
    while told.beat < 8 or "Waiting" in told.hint:
        told.page.wait_for_selector(DRAWN)
        told.page.wait_for_timeout(1000)
        said[told.beat] = told.said, told.hint, int(drawn.get_attribute("data-step"))
        assert told.page.evaluate(SMALL_TEXT) == [], said
        assert told.page.evaluate(SCROLLS) == [], said
        assert len(said) < 60
        told.page.keyboard.press("Space")
    told.page.wait_for_timeout(1000)
    said[told.beat] = told.said, told.hint, int(drawn.get_attribute("data-step"))
    return said


def test_the_talk_is_given_from_an_untrained_model_to_the_last_sentence_by_one_key(told):
    said = give(told)
    assert list(said) == list(range(9))
    assert re.match(r"99\d of 1,000|1,000 of 1,000", said[4][0])
    assert re.search(r"\b0 of (200|1,000) words are right", said[6][0])
    assert "纽约是一座城市" in told.said
    told.until(lambda: told.page.locator(".live-figure [aria-label], .live-figure[aria-label]").count() > 0)
    assert "New" in told.page.locator(".st-key-live_map").inner_text()
    told.page.keyboard.press("PageUp")
    told.until(lambda: told.beat == 7)
    told.page.keyboard.press("b")
    assert told.page.evaluate("document.querySelector('.headlight-player').classList.contains('black')")
    told.page.keyboard.press("b")
    told.page.evaluate("document.exitFullscreen()")  # as Escape does in a visible window
    told.until(lambda: "/stories" not in told.page.url)


def test_the_talk_reaches_its_end_without_training_and_marks_what_is_recorded(busy):
    said = give(busy)
    assert list(said) == list(range(9))
    assert "recorded" not in said[1][1]
    assert all("recorded" in said[beat][1] for beat in (2, 3, 4, 6, 8))
    stopped, turned, last = (said[beat][2] for beat in (2, 3, 4))
    assert 0 < stopped < turned < last == 225
    assert "纽约是一座城市" in busy.said
    assert busy.page.locator(".headlight-player[data-recorded=true] .counter").is_visible()


@pytest.fixture
def forgetful(browser):
    """A page of a server that keeps a single untrained model, that of its newest visitor."""
    server, address = start_server(HEADLIGHT_KEPT="1")
    page = telling(browser, address)
    yield page
    assert page.refusals == []
    page.page.context.close()
    server.terminate()
    server.wait(60)


def test_space_starts_a_run_whose_untrained_model_was_forgotten_and_viewers_see_it_train(forgetful, browser):
    told = forgetful
    told.story("story=talk")
    run, viewer = told.run, telling(browser, told.app)
    viewer.story(f"story=talk&run={run}")
    other = telling(browser, told.app)
    other.open("/")
    other.page.context.close()
    for _ in range(3):
        told.page.keyboard.press("Space")
    for one in (told, viewer):
        one.until(
            lambda one=one: one.beat == 2 and "step 20" not in one.hint and one.number("live_map", "step") > 0
        )
    assert (told.run, viewer.run) == (run, run)
    viewer.page.context.close()


def tab_to(told, selector, key="Tab"):
    for _ in range(80):
        if told.page.evaluate(f"Boolean(document.activeElement.closest('{selector}'))"):
            return
        told.page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead to {selector}")


def test_the_tour_is_taken_by_keyboard_alone_and_restores_the_previous_screen(told):
    keys = told.page.keyboard

    def does(selector, *pressed, key="Tab"):
        told.next_is(ready=False)
        told.page.wait_for_selector(selector)
        tab_to(told, selector, key)
        for one in pressed:
            keys.press(one)

    def go_on():
        told.next_is(ready=True)
        beat = told.beat
        tab_to(told, ".st-key-story_next", "Shift+Tab")
        keys.press("Enter")
        told.until(lambda: told.beat > beat)

    told.open("/?word=kayak")
    told.page.locator(".st-key-offer_tour a").focus()
    keys.press("Enter")
    told.page.wait_for_selector(DRAWN)
    told.next_is(ready=False)
    keys.press("Enter")  # on the button "Go on", which moves the focus to the next task
    assert told.page.evaluate("Boolean(document.activeElement.closest('.st-key-live_map .live-figure'))")
    keys.press("Enter")
    assert re.search(r"Row .+, column .+: \d+%\.", told.hint)
    go_on()
    does(".st-key-live_maps .live-figure", "ArrowDown")
    go_on()
    told.next_is(ready=False)
    keys.press("Enter")
    assert told.page.evaluate("Boolean(document.activeElement.closest('.st-key-run_start'))")
    keys.press("Enter")
    told.next_is(ready=True)
    tab_to(told, ".st-key-story_next")
    go_on()
    go_on()
    assert re.match(r"Step \d+: cross \d · head", told.said)
    does(".time-slider > input", "PageDown", key="Shift+Tab")
    go_on()
    go_on()
    told.next_is(ready=True)
    tab_to(told, ".guess button", "Shift+Tab")
    keys.press("Enter")
    told.until(lambda: "of the weight of row 4 is on" in told.said)
    go_on()
    told.page.wait_for_selector("[data-box]")
    keys.press("Enter")
    does("[data-box]", "Enter")  # the previous key has moved the focus here
    go_on()
    go_on()
    assert re.search(r"With the mask [\d,]+ of 1,000 words are right. Without it \d of 1,000", told.said)
    keys.press("Escape")
    told.until(lambda: "/stories" not in told.page.url)
    told.drawn("live_map")
    expect(told.page.locator(".st-key-word button[aria-pressed=true]")).to_have_text("kayak")


def test_a_row_is_hidden_until_the_visitor_guesses_and_shown_afterwards(told):
    told.story("story=tour")
    for beat in range(6):
        told.page.locator(".st-key-story_skip button").click()
        if beat == 2:
            told.until(lambda: "No run trains yet: press Start" in told.hint)
    hidden = "weights()[3].every((one) => one === null)"
    told.until(lambda: told.plot("live_map", hidden), what="the hidden row")
    assert told.plot("live_map", "weights()[2].some((one) => one > 0)")
    told.page.evaluate(FIRST_ROW)
    told.page.locator(".guess button", has_text="b").click()
    told.until(lambda: told.page.evaluate("window.firstRow"), what="the row")
    row = told.page.evaluate("window.firstRow")
    assert sum(row) == pytest.approx(1, abs=0.01)
    share, best = round(100 * row[6]), round(100 * max(row))
    told.until(
        lambda: f"You pointed at b, which has {share}%; {best}% of the weight of row 4 is on" in told.said
    )


def test_viewers_can_follow_leave_and_rejoin_a_story_and_the_notes_show_its_beat(told, browser, app):
    told.story("story=talk")
    viewer, notes = telling(browser, app), StoryPage(told.page.context.new_page(), app)
    viewer.story(f"story=talk&run={told.run}")
    notes.page.goto(f"{told.page.url}&notes=1")
    notes.page.wait_for_selector(".notes")
    told.page.keyboard.press("Space")
    told.page.keyboard.press("Space")
    for one in (viewer, notes):
        one.until(lambda one=one: one.beat == 1)
    expect(notes.page.locator(".notes")).to_contain_text("Point at one row")
    expect(notes.page.locator(".notes")).to_contain_text("Next: Now it trains.")
    viewer.page.locator(".st-key-story_back button").click()
    assert viewer.beat == 0
    told.page.keyboard.press("Space")
    notes.until(lambda: notes.beat == 2)
    expect(notes.page.locator(".notes")).to_contain_text("Next: …: … reads the letter")  # no run's numbers
    assert (viewer.beat, told.beat) == (0, 2)
    viewer.page.locator(".st-key-story_follow button").click()
    viewer.until(lambda: viewer.beat == 2)
    notes.page.keyboard.press("PageUp")
    told.until(lambda: told.beat == 1)
    viewer.until(lambda: viewer.beat == 1)
    notes.page.close()
    viewer.page.context.close()
