"""What comes late, or in another order than it was asked for."""

from __future__ import annotations

import pytest

from tests.browser.conftest import LONG

STREAMLIT = "window.sockets.filter((one) => one.url.includes('_stcore'))"
TOLD = f"{STREAMLIT}.reduce((sum, one) => sum + one.sent, 0)"
NEWS = f"window.sockets.filter((one) => one.readyState === 1 && !{STREAMLIT}.includes(one)).length"


def follow_masks(visit):
    visit.open(LONG)
    visit.click("run_start")
    visit.until(lambda: visit.number("live_map", "step") > 0, what="the first trained map")
    visit.page.get_by_role("link", name="Masks").click()
    visit.page.wait_for_selector(".st-key-mask_weights svg.main-svg")


def test_a_link_to_another_page_is_the_last_that_a_page_says(visit):
    """Streamlit runs the page from which it has heard last, and this one tells of newer steps by itself."""
    follow_masks(visit)
    before = visit.page.evaluate(TOLD)
    visit.until(lambda: visit.page.evaluate(TOLD) > before + 1, what="the page telling of newer steps")
    visit.page.evaluate("window.deaf = /_stcore/")  # the server takes long to answer
    visit.page.wait_for_timeout(200)
    before = visit.page.evaluate(TOLD)
    visit.page.get_by_role("link", name="Watch", exact=True).click()
    visit.page.wait_for_timeout(3000)
    assert visit.page.evaluate(TOLD) == before + 1


def test_a_page_that_has_been_left_listens_no_more(visit):
    follow_masks(visit)
    visit.until(lambda: visit.page.evaluate(NEWS) == 1, what="only this page listening")
    visit.page.get_by_role("link", name="Your data").click()
    visit.until(lambda: visit.page.evaluate(NEWS) == 0)
    visit.page.get_by_role("link", name="Watch", exact=True).click()
    visit.click("run_stop")


@pytest.mark.parametrize("late", ["an answer from before", pytest.param("an error", marks=pytest.mark.slow)])
def test_a_map_that_was_recorded_while_the_index_was_on_its_way_is_shown(visit, late):
    """The socket has told of it by then, and of an idle run it tells no more."""
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
