"""A bad network: a connection that is lost and comes back, one that is slow, and one without WebSockets."""

from __future__ import annotations

import math
import re
import time

import pytest
from playwright.sync_api import expect

from benchmarks.tools.proxy import Proxy
from tests.browser.conftest import CALM, SMALL, STEADY, finish, new_page, start
from tests.browser.test_race import start as start_race
from tests.browser.test_stories import StoryPage

LOST = "document.querySelector('.headlight-player[data-lost]') !== null"
FIRST = """() => new MutationObserver((_, observer) => {
  const said = document.querySelector(".headlight-player[data-lost] .st-key-run_status p")?.textContent;
  if (!said) return;
  window.firstSaid = said;
  observer.disconnect();
}).observe(document, { subtree: true, childList: true, attributes: true })"""
"""Keeps what the status line says first once the connection is lost."""


@pytest.fixture(scope="module")
def only_proxy(app):
    """The proxy of all tests: at one address, so that the browser keeps the files of the app."""
    with Proxy(app) as proxy:
        yield proxy


@pytest.fixture
def proxy(only_proxy):
    yield only_proxy
    only_proxy.silent = only_proxy.closed = False
    only_proxy.delay, only_proxy.rate = 0.0, math.inf


@pytest.fixture
def watch(proxy, tab):
    """A page whose connection is the proxy's."""
    watch = StoryPage(tab, proxy.address)
    yield watch
    proxy.silent = proxy.closed = False
    watch.leave()


def lose(watch, proxy, how, seconds=0.0):
    """Lose the connection for some seconds, at least until the page says so."""
    setattr(proxy, how, True)
    began = time.monotonic()
    watch.until(lambda: watch.page.evaluate(LOST), what="the lost connection on the page")
    while time.monotonic() - began < seconds:
        watch.page.wait_for_timeout(200)


def regain(watch, proxy):
    proxy.silent = proxy.closed = False
    watch.until(lambda: not watch.page.evaluate(LOST), what="the connection on the page")
    connected = "[data-testid=stApp][data-test-connection-state=CONNECTED]"
    watch.page.wait_for_selector(connected + "[data-test-script-state=notRunning]")


@pytest.mark.parametrize("how", ["silent", "closed"])
def test_a_lost_connection_is_said_within_3_s_and_what_was_seen_can_be_replayed(watch, proxy, how):
    start(watch, STEADY)
    watch.until(lambda: watch.number("live_map", "step") > 20)
    watch.page.evaluate(FIRST)
    lose(watch, proxy, how)
    # The page counts from the last sign of the server.
    assert re.match("No connection for 3 s. What is loaded can be replayed", watch.page.evaluate("firstSaid"))
    watch.step_by("Home")
    watch.until(lambda: watch.stands_at(0), what="the first step")
    watch.click("time_play")
    watch.until(lambda: watch.shown_steps()["map"] > 10, what="the film")
    watch.click("time_play")
    watch.until(lambda: len({*watch.shown_steps().values()}) == 1, what="one step")
    watch.click("time_live")
    seen = watch.number("live_map", "step")
    regain(watch, proxy)
    assert "No connection" not in watch.status
    watch.until(lambda: watch.number("live_map", "step") > seen, what="later steps")


def selection(watch):
    return [watch.page.url, watch.shown_steps(), watch.plot("live_map", "title()")]


@pytest.mark.parametrize(
    ("how", "seconds"),
    [
        ("silent", 0),
        ("closed", 0),
        *(pytest.param(how, n, marks=pytest.mark.slow) for how in ("silent", "closed") for n in (30, 150)),
    ],
)
def test_after_a_lost_connection_owner_run_step_word_and_head_are_as_before(watch, proxy, how, seconds):
    finish(watch, f"/?steps=12{SMALL}", 12)
    watch.choose("word", "banana")
    watch.tile(0, 1)
    watch.step_by("Home", "ArrowRight", "ArrowRight")
    watch.until(
        lambda: watch.stands_at(2) and all(one in watch.page.url for one in ("step=2", "head=", "banana"))
    )
    before = selection(watch)
    lose(watch, proxy, how, seconds)
    expect(watch.page.get_by_role("dialog")).to_have_count(0)
    assert selection(watch) == before
    go_on = watch.page.locator(".st-key-run_continue button").first
    if how == "closed":  # Streamlit knows it, and disables its widgets
        expect(go_on).to_be_disabled()
    go_on.click(force=True)  # waits, unless it is disabled
    regain(watch, proxy)
    if how == "closed":
        watch.page.wait_for_timeout(1000)  # until a press that was sent late would have been carried out
        assert (selection(watch), watch.state) == (before, "finished")
        watch.click("run_continue")
    watch.until(lambda: watch.state == "training", what="the owner's press")
    assert selection(watch) == before


def test_a_press_just_before_the_connection_is_lost_takes_effect_once(watch, proxy):
    start(watch, CALM)
    watch.click("run_pause")
    watch.until(lambda: watch.state == "paused")
    watch.until_settled()
    step = watch.number("live_map", "step")
    proxy.silent = True
    watch.click("run_step")
    lose(watch, proxy, "silent")
    watch.page.keyboard.press("p")  # the shortcut of Resume, which is refused
    regain(watch, proxy)
    watch.until(lambda: watch.number("live_map", "step") == step + 1, what="the next step")
    watch.page.wait_for_timeout(1000)
    assert (watch.number("live_map", "step"), watch.state) == (step + 1, "paused")


def test_a_slide_stays_and_says_that_the_connection_is_lost(watch, proxy):
    watch.story("story=tour")
    watch.page.keyboard.press("ArrowRight")
    lose(watch, proxy, "closed")
    beat = watch.beat
    assert watch.hint.startswith("No connection for")
    regain(watch, proxy)
    assert watch.beat == beat
    watch.until(lambda: "No connection" not in watch.hint)


def test_a_race_says_that_the_connection_is_lost_and_goes_on_afterwards(watch, proxy):
    start_race(watch)
    lose(watch, proxy, "silent")
    assert watch.status.startswith("No connection for")
    before = watch.page.url
    regain(watch, proxy)
    step = watch.number("race_left", "step")
    watch.until(lambda: watch.number("race_left", "step") > step, what="later steps")
    assert watch.page.url == before


def test_what_is_live_is_said_to_be_late_on_a_slow_connection(watch, proxy):
    start(watch, STEADY)
    proxy.delay = 0.8
    watch.until(lambda: re.search(r"LIVE is up to [1-9]\.\d s late", watch.status))


@pytest.mark.parametrize("refuses", [True, False])
def test_a_page_explains_itself_where_no_websocket_opens(app, browser, refuses):
    with Proxy(app, "/proxy/8501") as proxy:
        proxy.refuses_upgrades = refuses
        page = new_page(browser).context.new_page()
        page.goto(f"{proxy.address}/?word=cat")
        says = page.locator("#headlight-connection")
        if refuses:
            expect(says).to_contain_text("no WebSocket opens")
            expect(says).to_contain_text('watch.html("run.html")')
            proxy.refuses_upgrades = False
        page.wait_for_selector(".st-key-live_map .map[data-step]")
        expect(says).to_be_hidden()
        page.context.close()


def test_a_page_without_a_player_says_that_the_connection_is_lost(watch, proxy):
    watch.page.goto(f"{proxy.address}/data")
    watch.page.wait_for_selector(".st-key-data_text input")
    proxy.closed = True
    expect(watch.page.locator("#headlight-connection")).to_contain_text("No connection to the server.")
    proxy.closed = False
    expect(watch.page.locator("#headlight-connection")).to_be_hidden()


@pytest.mark.parametrize("how", ["silent", "closed"])
def test_an_upload_goes_on_after_the_connection_was_lost_or_can_be_chosen_again(watch, proxy, how):
    watch.page.goto(f"{proxy.address}/data?word=banana")
    watch.page.wait_for_selector(".st-key-data_text input")
    text = "".join(f"word{n} {'and so on ' * 20}\tmot{n}\n" for n in range(900))
    file = {"name": "pairs.tsv", "mimeType": "text/tab-separated-values", "buffer": text.encode()}
    box = watch.page.locator(".st-key-pairs_upload input[type=file]").first
    proxy.rate = 40_000.0  # the file takes 5 s
    box.set_input_files(file)  # type: ignore[arg-type]
    watch.page.wait_for_timeout(2000)
    setattr(proxy, how, True)
    says = watch.page.locator("#headlight-connection")
    expect(says).to_contain_text("uploads work once it is back")
    watch.page.wait_for_timeout(3000)
    proxy.silent = proxy.closed = False
    proxy.rate = float("inf")
    expect(says).to_be_hidden()
    if how == "closed":
        expect(watch.page.locator(".st-key-pairs_upload")).to_contain_text("Network Error")
        box.set_input_files(file)  # type: ignore[arg-type]
    expect(watch.page.locator(".st-key-pairs_report")).to_contain_text("900 pairs read")
    assert "task=pairs" in watch.page.url
