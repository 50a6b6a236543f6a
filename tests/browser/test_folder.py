"""Saved runs: none is lost when a server dies, and the run of another process is watched live."""

from __future__ import annotations

import subprocess
import sys

import pytest
from playwright.sync_api import expect

from benchmarks.tools.browser import SIZE
from benchmarks.tools.server import ROOT, free_port
from tests.browser.conftest import SMALL, finish
from tests.browser.watcher import Watcher
from tests.conftest import facts_of
from tests.serving import start_server


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport=SIZE)
    yield context.new_page()
    context.close()


SECRET = {"STREAMLIT_SERVER_COOKIE_SECRET": 8 * "secret"}


@pytest.mark.parametrize("kept", [{}, pytest.param(SECRET, marks=pytest.mark.slow)])
def test_an_open_page_reconnects_by_itself_when_its_server_restarts(page, tmp_path, kept):
    """At the same run and step, with the same cookie secret or a new one; the map stays on the screen."""
    port = free_port()
    server, address = start_server(port, HEADLIGHT_RUNS=str(tmp_path), **kept)
    try:
        watch = Watcher(page, address)
        finish(watch, f"/?steps=40{SMALL}", 40)
        watch.step_by("Home", "ArrowRight", "ArrowRight", "ArrowRight")
        watch.until(lambda: watch.stands_at(3) and "step=3" in page.url)
        link = page.url
        page.evaluate(
            """() => {
              window.white = 0;
              const look = () => {
                window.white += !document.querySelector(".st-key-live_map .map[data-step]");
                setTimeout(look, 20);
              };
              look();
            }"""
        )
        server.terminate()
        server.wait(60)
        page.wait_for_timeout(2000)
        assert watch.stands_at(3)
        server, _ = start_server(port, HEADLIGHT_RUNS=str(tmp_path), **kept)
        expect(watch.button("run_continue")).to_be_enabled()
        watch.until(lambda: page.get_by_test_id("stStatusWidget").count() == 0)
        watch.choose("word", "banana")  # its maps come from the new server
        watch.until(lambda: "“banana”" in watch.plot("live_map", "title()"))
        assert watch.stands_at(3)
        assert page.evaluate("window.white") == 0
        watch.until(lambda: page.url == link.replace("word=playground", "word=banana"))
        expect(page.get_by_test_id("stException")).to_have_count(0)
        watch.click("time_live")
        watch.click("run_continue")
        watch.until(lambda: watch.state == "training" or watch.shown_steps()["map"] > 40)
        watch.until(lambda: watch.shown_steps()["map"] > 40, what="what the new server trains")
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_the_page_of_a_training_run_shows_its_state_after_a_long_absence_of_the_server(page, tmp_path):
    port = free_port()
    server, address = start_server(port, HEADLIGHT_RUNS=str(tmp_path))
    try:
        watch = Watcher(page, address)
        watch.open("/?steps=20000&goal=none&pace=5+steps%2Fs")
        watch.click("run_start")
        watch.until(lambda: watch.number("live_map", "step") >= 5)
        server.terminate()
        server.wait(60)
        page.wait_for_timeout(12_000)
        server, _ = start_server(port, HEADLIGHT_RUNS=str(tmp_path))
        expect(page.locator(".st-key-run_status")).to_contain_text("paused", timeout=60_000)
        assert "run=" in page.url
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_after_a_server_was_killed_the_browser_finds_its_run_and_resumes_it(page, tmp_path):
    port = free_port()
    server, address = start_server(port, HEADLIGHT_RUNS=str(tmp_path))
    try:
        watch = Watcher(page, address)
        watch.open("/?steps=20000&goal=none")
        watch.click("run_start")
        watch.until(lambda: watch.number("live_map", "step") >= 25, 60)
        run = page.url.split("run=")[1].split("&")[0]
        page.wait_for_timeout(1500)
        seen = watch.number("live_map", "step")
        server.kill()
        server.wait()
        assert facts_of(tmp_path / f"{run}.headlight")["step"] > 0
        server, _ = start_server(port, HEADLIGHT_RUNS=str(tmp_path))
        watch.open("/")  # a plain visit: only the browser knows which runs are its own
        page.locator(".st-key-run_picker").get_by_text("paused").click(timeout=30_000)
        watch.until(lambda: watch.state == "paused")
        assert f"run={run}" in page.url
        stood = watch.number("live_map", "step")
        assert stood >= seen - 100  # not every step has a frame
        expect(page.locator(".st-key-run_start button")).to_contain_text("Resume")
        watch.click("run_start")
        watch.until(lambda: watch.state == "training" and watch.number("live_map", "step") > stood)
        watch.click("run_stop")
        watch.until(lambda: watch.state == "stopped")
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_a_run_of_another_process_is_listed_and_watched_live_but_cannot_be_controlled(page, tmp_path):
    command = [sys.executable, "-m", "transformer", "train", "--steps", "100000", "--out", tmp_path / "night"]
    trained = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server, address = start_server(HEADLIGHT_RUNS=str(tmp_path))
    try:
        watch = Watcher(page, address)
        watch.open("/")
        for _ in range(30):
            if page.locator(".st-key-run_remote button").count():
                break
            page.wait_for_timeout(1000)
            page.reload()
            page.wait_for_selector(".st-key-live_map .map[data-step]")
        page.locator(".st-key-run_remote button").click()
        watch.until(lambda: watch.state == "training")
        step = watch.number("live_map", "step")
        watch.until(lambda: watch.number("live_map", "step") > step, 60)
        expect(page.locator(".st-key-run_remote button")).to_contain_text("training")
        expect(page.locator(".st-key-run_changes").get_by_text("Changed:")).to_have_count(0)
        for key in ("run_pause", "run_stop"):
            expect(page.locator(f".st-key-{key} button")).to_have_count(0)
        page.get_by_role("link", name="Ask", exact=True).click()
        expect(page.locator(".st-key-explore_narrator")).to_contain_text("this head")
        expect(page.locator(".stMain .stAlert")).to_have_count(0)
    finally:
        for process in (trained, server):
            process.kill()
            process.wait()
