"""An own model that another process trains: followed live, reviewed, exported, and ended."""

from __future__ import annotations

import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import new_page
from tests.browser.watcher import Watcher
from tests.conftest import facts_of
from tests.serving import start_server

LOOP = """
import sys, time, torch
from torch import nn
from transformer import Watch
model = nn.Transformer(16, 4, 2, 2, 16, batch_first=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
pair = torch.randn(1, 6, 16), torch.randn(1, 5, 16)
watch = Watch(model, {"six": pair}, sys.argv[1], tokens={"six": {"encoder*": "abcdef"}}, share=0.5)
for step in range(1, 100_000):
    loss = ((model(*pair) - pair[1]) ** 2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    watch.step(step, loss=loss.item(), norm=float(step))
    time.sleep(0.1)
"""


@pytest.fixture
def followed(browser, tmp_path):
    """A page of a server, and the process that trains an own model in the server's folder."""
    loop = subprocess.Popen([sys.executable, "-W", "ignore", "-c", LOOP, tmp_path / "mine"])
    server, address = start_server(HEADLIGHT_RUNS=str(tmp_path))
    try:
        watch = Watcher(new_page(browser), address)
        yield watch, loop
        assert watch.errors == []
        watch.page.context.close()
    finally:
        for process in (loop, server):
            process.kill()
            process.wait(60)


def test_an_own_model_is_followed_live_reviewed_exported_and_stays_when_its_process_is_killed(
    followed, tmp_path
):
    watch, loop = followed
    page = watch.page
    watch.until(lambda: facts_of(tmp_path / "mine.headlight"), what="the file of the training")
    watch.open("/")
    page.locator(".st-key-run_remote button").click()
    watch.until(lambda: watch.state == "training", what="the training")
    step = watch.number("live_map", "step")
    watch.until(lambda: watch.number("live_map", "step") > step + 5, what="later steps")
    expect(page.locator(".st-key-kind button")).to_have_text(
        ["encoder.self_attn", "decoder.self_attn", "decoder.multihead_attn"]
    )
    assert watch.plot("live_map", "gd.picture.columns.join('')") == "abcdef"
    page.locator(".st-key-kind button").nth(2).click()
    watch.until(lambda: watch.plot("live_map", "weights().length") == 5)
    rows = watch.plot("live_map", "weights().map((row) => row.reduce((a, b) => a + b))")
    assert rows == pytest.approx([1] * 5, abs=1e-3)
    page.locator(".time-slider > input").focus()
    page.keyboard.press("Home")
    watch.until(lambda: watch.number("live_map", "step") == 0, what="step 0")
    stood = watch.plot("live_map", "weights()[0]")
    page.wait_for_timeout(1500)
    assert (watch.number("live_map", "step"), watch.plot("live_map", "weights()[0]")) == (0, stood)
    page.get_by_role("button", name="Take it away").click()
    with page.expect_download() as made:
        page.locator(".st-key-export_html button").click()
    made.value.save_as(tmp_path / "mine.html")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Take it away")).to_have_count(0)
    page.get_by_role("link", name="Masks", exact=True).click()
    page.locator(".st-key-leave_own button").click()
    expect(page.locator(".st-key-leave_own")).to_have_count(0)
    page.wait_for_timeout(1500)
    page.get_by_role("link", name="Watch", exact=True).click()
    watch.until(lambda: "/masks" not in page.url, what="the page Watch")
    expect(page.locator(".st-key-run_start button")).to_be_visible()
    watch.until_settled()
    page.locator(".st-key-run_remote button").click()
    watch.until(lambda: watch.state == "training", what="the training again")
    expect(page.locator(".time-slider > input")).to_have_count(1)  # the player of the previous run has gone
    page.locator(".time-slider > input").focus()
    page.keyboard.press("Home")
    loop.kill()
    loop.wait(60)
    page.goto(f"file://{tmp_path / 'mine.html'}")
    page.wait_for_selector(".st-key-live_map .map[data-step]")
    expect(page.locator("h1")).to_contain_text("Transformer")
    page.go_back()
    watch.until(lambda: watch.state == "paused", what="the end of a process that was killed")
    page.locator(".st-key-time_live button").click()
    expect(page.locator(".st-key-moment")).to_contain_text("Its process ended; the last saved step is")
