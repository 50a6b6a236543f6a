"""From one page to another while a run goes on."""

from __future__ import annotations

LONG = "/?steps=5000&goal=none&letters=6&layers_encoder=1&layers_decoder=1&heads=2&width=16&pace=20+steps%2Fs"
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
