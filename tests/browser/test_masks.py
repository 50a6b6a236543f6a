"""Masks in a browser: a deep link on a fresh server, the tables, and switching off a mask mid-run."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SMALL
from tests.browser.watcher import Watcher
from tests.serving import start_server

PROBES = ("_stcore/health", "_stcore/host-config")


@pytest.mark.slow
def test_a_deep_link_on_a_fresh_server_shows_the_masks_inside_the_app(browser):
    server, address = start_server()
    context = browser.new_context()
    watch = Watcher(context.new_page(), address)
    try:
        watch.page.on("response", lambda r: missing.append(r.url) if r.status == 404 else None)
        missing: list[str] = []
        watch.open("/masks?kind=encoder", "model_picture")
        expect(watch.page.locator("[data-box='encoder.1'] figure.table")).to_have_count(4)
        assert watch.page.get_by_role("link", name="Watch").count() == 1
        assert "kind=encoder" in watch.page.url
        assert all(url.endswith(PROBES) for url in missing)  # Streamlit looks for its base path
        assert len(watch.errors) == len(missing)
    finally:
        context.close()
        server.terminate()
        server.wait(60)


def masks_of(watch, link="/?word=cat"):
    """Open the app and go to Masks; all pages share the selected word."""
    watch.open(link, "live_map")
    watch.page.get_by_role("link", name="Masks").click()
    watch.drawn("model_picture")


def read(watch, row=0, column=1, table="weights"):
    """Move to a cell of the first decoder self-attention by keyboard; return its readout."""
    if not watch.page.locator("[data-box='decoder.0.self'].open").count():
        watch.page.locator("[data-box='decoder.0.self'] .title").click()
    figure = watch.page.locator(f"[data-box='decoder.0.self'] figure[data-table={table}]")
    watch.page.mouse.move(0, 0)
    for key in ("ArrowUp", *row * ["ArrowDown"], *column * ["ArrowRight"]):
        figure.press(key)
    return watch.page.locator(".st-key-model_readout").inner_text()


def test_a_switched_mask_is_seen_in_every_table_of_a_model_that_does_not_train(watch):
    masks_of(watch, f"/?word=cat{SMALL}")
    for blocked in (True, False, True):
        for table in ("mask", "weights"):
            watch.until(
                lambda table=table, blocked=blocked: ("causal mask" in read(watch, table=table)) == blocked,
                what=f"{table}: {blocked}",
            )
        watch.page.locator(".st-key-mask_causal_on label").first.click()


@pytest.mark.slow
def test_switching_off_the_causal_mask_mid_run_makes_the_two_losses_diverge(watch):
    masks_of(watch, "/?word=cat&steps=2000&goal=none")
    watch.click("run_start")
    page = watch.page
    weight = page.locator(".st-key-model_readout").inner_text
    said = page.locator(".stVerticalBlock.st-key-moment")
    watch.until(lambda: watch.state == "training")
    watch.until(lambda: watch.number("model_picture", "step") >= 25, what="a snapshot of step 25")
    assert read(watch).endswith("blocked: causal mask")
    page.locator(".st-key-mask_causal_on label").first.click()
    watch.until(lambda: weight().endswith("%"), what="a look ahead")
    watch.until(lambda: "No causal mask" in said.inner_text(), what="what to look at")
    page.wait_for_selector(".st-key-moments button[aria-label*='causal mask switched off']", state="attached")

    def losses() -> list[float]:
        found = page.locator(".st-key-two_losses b").all_inner_texts()
        return [float(text) for text in found if text[0].isdigit()]

    watch.until(lambda: len(losses()) == 2 and losses()[1] > 3 * losses()[0], what="two losses that part")
    page.locator(".st-key-mask_causal_on label").first.click()
    watch.until(lambda: weight().endswith("mask"), what="the mask again")
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
