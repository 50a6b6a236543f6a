"""The masks page in a browser: a cold link, the stages around the mask, and switching one off in mid-run."""

from __future__ import annotations

import pytest

from tests.browser.watcher import Watcher
from tests.serving import start_server

PROBES = ("_stcore/health", "_stcore/host-config")
PICTURES = ("mask_scores", "mask_layer", "mask_after", "mask_weights")


@pytest.mark.slow
def test_a_cold_deep_link_shows_the_masks_inside_the_app(browser):
    server, address = start_server()
    context = browser.new_context()
    watch = Watcher(context.new_page(), address)
    try:
        watch.page.on("response", lambda r: missing.append(r.url) if r.status == 404 else None)
        missing: list[str] = []
        watch.open("/masks?kind=encoder", "mask_weights")
        assert watch.page.get_by_role("link", name="Watch").count() == 1
        assert "kind=encoder" in watch.page.url
        switches = [watch.page.locator(f".st-key-mask_{mask}_on") for mask in ("causal", "padding")]
        assert len({switch.bounding_box()["y"] for switch in switches}) == 1  # the maps need the height
        assert all(url.endswith(PROBES) for url in missing)  # Streamlit looks for its base path
        assert len(watch.errors) == len(missing)
    finally:
        context.close()
        server.terminate()
        server.wait(60)


def masks_of(watch, link="/?word=cat"):
    """Open the app, and go to the page; the word is one selection on every page."""
    watch.open(link, "live_map")
    watch.page.get_by_role("link", name="Masks").click()
    for key in PICTURES:
        watch.page.wait_for_selector(f".st-key-{key} svg.main-svg")


def test_no_label_is_cut_off_where_a_page_is_high_and_narrow(watch):
    watch.page.set_viewport_size({"width": 1280, "height": 1024})
    masks_of(watch)
    for key in PICTURES:
        room = "gd.getBoundingClientRect().left"
        labels = "[...gd.querySelectorAll('.ytick text')].map((label) => label.getBoundingClientRect().left)"
        left = watch.plot(key, f"Math.min(...{labels}) - {room}")
        assert left >= 0, key


@pytest.mark.slow
def test_the_causal_mask_is_switched_off_in_mid_run_and_both_losses_part(watch):
    masks_of(watch, "/?word=cat&steps=2000&goal=none")
    watch.click("run_start")
    page = watch.page
    said = page.locator(".stVerticalBlock.st-key-moment")
    watch.until(lambda: watch.state == "training")
    watch.until(lambda: watch.number("mask_weights", "step") >= 25, what="a snapshot of step 25")
    assert watch.plot("mask_weights", "gd.data[0].z[0][1]") is None
    page.locator(".st-key-mask_causal_on label").first.click()
    watch.until(lambda: watch.plot("mask_weights", "gd.data[0].z[0][1]") is not None, what="a look ahead")
    watch.until(lambda: "No causal mask" in said.inner_text(), what="what to look at")
    page.wait_for_selector(".st-key-moments button[aria-label*='causal mask switched off']", state="attached")

    def losses() -> list[float]:
        found = page.locator(".st-key-two_losses b").all_inner_texts()
        return [float(text) for text in found if text[0].isdigit()]

    watch.until(lambda: len(losses()) == 2 and losses()[1] > 3 * losses()[0], what="two losses that part")
    page.locator(".st-key-mask_causal_on label").first.click()
    watch.until(lambda: watch.plot("mask_weights", "gd.data[0].z[0][1]") is None, what="the mask again")
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
