"""Ownership: the browser that started a run controls it, also after a reload; viewers watch or follow."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from pages.shared.plain import plain
from tests.browser.conftest import RUNS, STEADY
from tests.security.stranger import run_in_thread, visiting


@pytest.fixture
def started(watch):
    """The id of a run that trains in the first browser."""
    watch.open(STEADY)
    watch.click("run_start")
    watch.until(lambda: watch.state == "training" and watch.number("live_map", "step") > 0)
    watch.until(lambda: "run=" in watch.page.url)
    run = watch.page.url.split("run=")[1].split("&")[0]
    watch.until(lambda: run in (watch.page.evaluate("localStorage['headlight-runs']") or ""), what="its key")
    return run


def enabled(watcher, key):
    return watcher.button(key).count() == 1 and watcher.button(key).is_enabled()


def test_a_viewer_with_the_link_sees_the_run_live_and_has_no_button_to_control_it(watch, guest, started):
    guest.open(f"/?run={started}")
    before = guest.number("live_map", "step")
    guest.until(lambda: guest.number("live_map", "step") > before)
    assert [enabled(guest, key) for key in ("run_pause", "run_step", "run_stop")] == [False] * 3
    expect(guest.page.locator(".st-key-run_start button")).to_contain_text("Start your own")
    expect(guest.page.locator(".st-key-controls")).to_contain_text("Somebody else’s run.")
    assert guest.page.locator(".st-key-own_word input").count() == 0
    assert [enabled(watch, key) for key in ("run_pause", "run_step", "run_stop")] == [True] * 3


def test_the_browser_that_started_a_run_controls_it_after_a_reload_too(watch, started):
    watch.page.reload()
    watch.until(lambda: watch.state == "training")
    expect(watch.button("run_stop")).to_be_enabled()
    watch.click("run_pause")
    watch.until(lambda: watch.state == "paused")


@pytest.mark.parametrize("delay", [300, 600])
def test_an_owner_who_reloads_right_after_start_still_controls_the_run(first_visit, delay):
    watch = first_visit
    watch.open(STEADY)
    watch.until_settled()  # a press is queued while the page is being drawn, and a reload drops the queue
    watch.click("run_start")
    watch.page.wait_for_timeout(delay)
    watch.page.reload()
    watch.until(lambda: watch.state == "training", what="the run that was started")
    watch.until(lambda: enabled(watch, "run_stop"), what="its Stop button")
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    watch.open("/")  # a plain visit lists the run, and does not open it again
    expect(watch.page.locator(RUNS)).to_have_count(1)
    watch.until_settled()
    assert "run=" not in watch.page.url


def test_the_owner_link_gives_control_to_another_device_and_its_secret_leaves_the_address(
    watch, guest, started
):
    watch.page.get_by_text("Share a link").click()
    expect(watch.page.locator(".st-key-run_link code")).to_be_visible()
    assert watch.page.locator(".st-key-owner_link").count() == 0  # the page may be projected
    watch.click("owner_show")
    link = watch.page.locator(".st-key-owner_link code").inner_text()
    expect(watch.page.get_by_text("on this machine only")).to_be_visible()
    assert f"run={started}" in link
    guest.open(link.removeprefix(guest.app))
    expect(guest.button("run_stop")).to_be_enabled()
    guest.until(lambda: "owner=" not in guest.page.url)
    guest.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    guest.until(lambda: guest.state == "stopped")
    stood = watch.number("live_map", "step")
    guest.click("run_continue")
    watch.until(lambda: watch.state == "training" and watch.number("live_map", "step") > stood)


def test_a_following_viewer_sees_the_owners_step_until_they_choose_another(watch, guest, started):
    guest.open(f"/?run={started}")
    follow = guest.page.locator(".st-key-follow input")
    expect(follow).to_be_checked()
    expect(watch.page.locator(".st-key-follow")).to_be_hidden()
    watch.until(lambda: watch.number("live_map", "step") >= 25)
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    expect(watch.button("run_continue")).to_be_visible()  # the page has been drawn for this state
    watch.step_by("Home")
    watch.until(lambda: watch.stands_at(0))
    guest.until(lambda: guest.stands_at(0))
    guest.click("time_live")
    guest.until(lambda: guest.shown_steps()["map"] >= 25)
    expect(follow).not_to_be_checked()
    watch.step_by("ArrowRight")
    watch.until(lambda: watch.stands_at(1))
    guest.page.wait_for_timeout(1500)
    assert guest.shown_steps()["map"] >= 25
    follow.check()
    guest.until(lambda: guest.stands_at(1))


def test_every_page_offers_follow_to_the_viewers_of_a_run_and_after_a_reload_not_to_its_owner(
    watch, guest, started
):
    """The browser sends the owner's token only after the first pass of a page."""
    for path in ("", "race", "ask", "inside", "masks"):
        address = f"/{path}?run={started}" + (f"&race={started}" if path == "race" else "")
        for watcher in (watch, guest):
            watcher.page.goto(watcher.app + address)  # loads the page anew, as a reload does
            expect(watcher.page.locator(".headlight-player .counter")).to_have_text(re.compile(r"\d"))
            follow = watcher.page.locator(".st-key-follow")
            expect(follow, path).to_be_visible(visible=watcher is guest)
    for watcher in (watch, guest):
        watcher.errors[:] = [error for error in watcher.errors if "404" not in error]  # Streamlit's own 404s


def test_a_forged_press_over_a_raw_connection_does_not_control_the_run(app, watch, started):
    """A viewer has no such button: the client presses that of its own run, but sends the link of this run."""

    async def forge():
        async with visiting(app) as own:
            own.query = f"run={started}"
            await own.answered(own.press("run_step"))
            return own.alerts

    assert run_in_thread(forge())[-1:] == [
        plain("Only the owner of this run can change it. Start your own run.")
    ]
    step = watch.number("live_map", "step")
    watch.until(lambda: watch.number("live_map", "step") > step)
    assert watch.state == "training"
