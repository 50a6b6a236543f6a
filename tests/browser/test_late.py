"""Messages and answers that arrive late or out of order."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LONG, SMALL, STEADY, finish, start

STREAMLIT = "window.sockets.filter((one) => one.url.includes('_stcore'))"
N_SENT_TO_STREAMLIT = f"{STREAMLIT}.reduce((sum, one) => sum + one.sent, 0)"
N_OPEN_NEWS_SOCKETS = (
    f"window.sockets.filter((one) => one.readyState === 1 && !{STREAMLIT}.includes(one)).length"
)


def open_masks_page(visit):
    start(visit, STEADY)
    visit.page.get_by_role("link", name="Masks").click()
    visit.drawn("model_picture")


def test_a_page_sends_nothing_more_after_a_click_on_a_link_to_another_page(visit):
    """The Masks page reports newer steps; after the click, a report would make Streamlit run Masks again."""
    open_masks_page(visit)
    before = visit.page.evaluate(N_SENT_TO_STREAMLIT)
    visit.until(
        lambda: visit.page.evaluate(N_SENT_TO_STREAMLIT) > before + 1, what="the page telling of newer steps"
    )
    visit.page.evaluate("window.deaf = /_stcore/")  # simulates a server that answers late
    # The player holds the click back until earlier messages are sent, and repeats it: from there they count.
    visit.page.evaluate(
        f"addEventListener('click', () => (window.sentBefore = {N_SENT_TO_STREAMLIT}), {{ capture: true }})"
    )
    visit.page.evaluate("addEventListener('click', (event) => (window.trusted = event.isTrusted))")
    visit.page.get_by_role("link", name="Watch", exact=True).click()
    visit.page.wait_for_timeout(3000)
    assert not visit.page.evaluate("window.trusted")
    assert visit.page.evaluate(N_SENT_TO_STREAMLIT) == visit.page.evaluate("window.sentBefore") + 1


def test_a_page_that_was_left_closes_its_socket(visit):
    open_masks_page(visit)
    visit.until(lambda: visit.page.evaluate(N_OPEN_NEWS_SOCKETS) == 1, what="only this page listening")
    visit.page.get_by_role("link", name="Your data").click()
    visit.until(lambda: visit.page.evaluate(N_OPEN_NEWS_SOCKETS) == 0)
    visit.page.get_by_role("link", name="Watch", exact=True).click()
    visit.click("run_stop")


@pytest.mark.parametrize("late", ["an answer from before", pytest.param("an error", marks=pytest.mark.slow)])
def test_a_map_recorded_while_the_index_was_loading_is_shown(visit, late):
    """The socket announces the map before the index arrives; for an idle run it announces nothing more."""
    asked = []

    def answer_late(route):
        asked.append(route.request.url)
        if len(asked) > 1:
            visit.page.evaluate("window.deaf = null")
            return route.continue_()
        visit.page.wait_for_timeout(3000)
        visit.page.evaluate("window.deaf = /news/")
        if late == "an error":
            return route.fulfill(status=503)
        return route.fulfill(json={"version": 0})

    visit.page.route("**/stream/*/index", answer_late)
    visit.open("/")
    assert visit.stands_at(0)
    assert len(asked) == 2


@pytest.fixture
def held(watch):
    """Return a function that holds back the next index request of a page and returns its route."""

    def hold(ask):
        waiting = []
        watch.page.route(
            "**/stream/*/index", lambda route: route.continue_() if waiting else waiting.append(route)
        )
        ask()
        watch.until(lambda: waiting, what="the index being asked for")
        return waiting[0]

    return hold


def test_a_choice_made_before_the_index_has_loaded_is_kept(watch, held):
    index = held(lambda: watch.page.goto(f"{watch.app}/?step=5"))
    watch.page.locator(".st-key-outline input").check()
    watch.page.wait_for_timeout(500)  # until the choice has been sent
    index.continue_()
    watch.page.wait_for_selector(".st-key-live_map .map[data-step]")
    assert watch.stands_at(0)
    expect(watch.page.locator(".st-key-outline input")).to_be_checked()


def test_play_is_disabled_while_the_index_of_a_run_is_loading(watch, held):
    finish(watch, f"/?steps=20{SMALL}", 20)
    index = held(lambda: watch.click("run_start"))
    expect(watch.page.locator(".st-key-time_play button")).to_be_disabled()
    index.continue_()
    watch.until(lambda: watch.state == "finished" and watch.stands_at(20))
    expect(watch.page.locator(".st-key-time_play button")).to_be_enabled()


SLOW = """() => {
  window.came = window.painted = 0;
  const paint = CanvasRenderingContext2D.prototype.putImageData;
  CanvasRenderingContext2D.prototype.putImageData = function (...what) {
    for (const end = performance.now() + 250; performance.now() < end;);
    window.painted += 1;
    return paint.apply(this, what);
  };
  const news = window.sockets.find((one) => one.readyState === 1 && !one.url.includes("_stcore"));
  news.addEventListener("message", () => { window.came += 1; });
}"""
"""Each of the two canvases of a picture takes a quarter of a second."""
BROKEN = """() => {
  window.came = 0;
  CanvasRenderingContext2D.prototype.putImageData = () => { throw new Error('no picture today'); };
}"""


def test_a_slow_page_is_sent_only_what_it_draws_and_a_page_that_cannot_draw_is_still_sent_news(visit):
    start(visit, LONG)
    visit.page.evaluate(SLOW)
    visit.page.wait_for_timeout(3000)
    came, painted = visit.page.evaluate("[window.came, window.painted]")
    assert 2 < painted < 30  # two canvases of each picture, a quarter of a second each
    assert came <= painted  # half as many pictures, some undrawn messages, and not all 60 steps
    visit.page.evaluate(BROKEN)
    visit.until(lambda: visit.page.evaluate("window.came") > 8, what="more news")
    visit.errors.clear()
