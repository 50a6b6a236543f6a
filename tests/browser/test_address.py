"""The address describes what is on the screen, also after Back and after a restart of the server."""

from __future__ import annotations

import pytest

from benchmarks.tools.server import free_port
from tests.browser.conftest import CALM, SMALL, finish, new_page, start
from tests.browser.watcher import Watcher
from tests.serving import start_server

PICTURES = {
    "Ask": "explore_map_figure",
    "Masks": "model_picture",
    "Your data": "data_alignment_figure",
}
SHORT = f"/?steps=20{SMALL}"


def stand_at(watch, step, *keys):
    watch.step_by(*keys)
    watch.until(lambda: watch.stands_at(step) and f"step={step}" in watch.page.url)
    watch.page.wait_for_timeout(1000)  # choices within a second share one history entry


def test_one_press_of_back_returns_to_the_previous_page_or_step(watch):
    finish(watch, SHORT, 20)
    watch.page.wait_for_timeout(1000)
    stand_at(watch, 0, "Home")
    stand_at(watch, 1, "ArrowRight")
    for name, picture in PICTURES.items():
        watch.page.get_by_role("link", name=name, exact=True).click()
        watch.drawn(picture)
        watch.page.wait_for_timeout(500)
    for name in ("Masks", "Ask"):
        watch.page.go_back()
        watch.drawn(PICTURES[name])
        watch.until(lambda: watch.number(PICTURES[name], "step") == 1)  # noqa: B023
        watch.page.wait_for_timeout(500)
    for step in (1, 0, 20):
        watch.page.go_back()
        watch.until(lambda: watch.stands_at(step), what=f"step {step}")  # noqa: B023
        watch.page.wait_for_timeout(500)
        assert ("step=" in watch.page.url) == (step < 20)
    watch.page.go_forward()
    watch.until(lambda: watch.stands_at(0), what="step 0 again")


def test_a_link_that_is_drawn_anew_right_after_a_click_on_it_is_followed(watch):
    """As when a page is drawn again while the click waits for earlier messages to be sent."""
    start(watch, SHORT)
    watch.page.evaluate("""() => {
        const link = (open) => {
            const made = document.createElement("a");
            Object.assign(made, { href: "/elsewhere", textContent: "There" });
            made.addEventListener("click", (event) => {
                event.preventDefault();
                window.opened = open;
            });
            return made;
        };
        const before = link("the old link");
        document.body.append(before);
        before.click();
        before.replaceWith(link("the new link"));
    }""")
    watch.page.wait_for_function("window.opened")
    assert watch.page.evaluate("window.opened") == "the new link"


def test_a_button_pressed_just_before_a_link_takes_effect_and_the_link_opens_its_page(watch):
    """Both clicks at once, as on a busy machine: Streamlit sends a press later than it opens a page."""
    start(watch, CALM)
    watch.page.evaluate(
        "document.querySelector('.st-key-run_stop button').click();"
        "[...document.querySelectorAll('a')].find((one) => one.textContent.trim() === 'Ask').click()"
    )
    watch.drawn("explore_map_figure")
    watch.page.get_by_role("link", name="Watch", exact=True).click()
    watch.until(lambda: watch.state == "stopped", what="the stopped run")


CLICK = """(delay) => {
  const before = window.sockets.length;
  const look = () => {
    const open = (one) => one.url.includes("_stcore") && one.readyState === 1;
    if (!window.sockets.slice(before).some(open)) return setTimeout(look, 1);
    const link = [...document.querySelectorAll("a")].find((one) => one.textContent.trim() === "Ask");
    setTimeout(() => link.click(), delay);
  };
  look();
}"""
"""Clicks the link to Ask `delay` milliseconds after the page has reconnected to the server."""


@pytest.mark.parametrize("delay", [0, 300])
def test_a_link_clicked_as_soon_as_the_server_is_back_keeps_the_run_and_step_of_the_address(
    browser, tmp_path, delay
):
    port = free_port()
    server, address = start_server(port, HEADLIGHT_RUNS=str(tmp_path))
    watch = Watcher(new_page(browser), address)
    try:
        finish(watch, SHORT, 20)
        stand_at(watch, 3, "Home", *3 * ["ArrowRight"])
        run = watch.page.url.split("run=")[1].split("&")[0]
        server.terminate()
        server.wait(60)
        watch.page.evaluate(CLICK, delay)
        server, _ = start_server(port, HEADLIGHT_RUNS=str(tmp_path))
        parts = ("/ask?", f"run={run}", "step=3")
        watch.until(lambda: all(part in watch.page.url for part in parts), what="the run in the address")
        watch.until(lambda: watch.number("explore_map_figure", "step") == 3, what="its step 3")
    finally:
        watch.page.context.close()
        server.kill()
        server.wait()
