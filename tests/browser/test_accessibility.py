"""Accessibility: axe-core finds no violation on any page, and the keyboard reaches every head."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import CALM, start

PICTURES = {
    "Watch": "live_map .map[data-step]",
    "Race": "race_difference .map[data-step]",
    "Ask": "explore_map_figure svg.main-svg",
    "Look inside": "model_picture [data-box]",
    "Masks": "model_picture figure.table",
    "Your data": "data_alignment_figure svg.main-svg",
}
OF_COLOURS = ["color-contrast", "link-in-text-block"]


def violations(watch):
    """Return the violations that axe-core finds, as (theme, rule, element): of every rule in the light theme,
    and in the dark theme of the rules about colours, since no other rule depends on the theme."""
    found = []
    for scheme, rules in (("light", {}), ("dark", {"runOnly": OF_COLOURS})):
        watch.page.emulate_media(color_scheme=scheme)
        dark = scheme == "dark"
        watch.until(lambda dark=dark: watch.page.evaluate(BACKGROUND) == dark, what=f"the {scheme} theme")
        watch.until(lambda: watch.page.evaluate(SETTLED), what="colours that stay as they are")
        answer = Axe().run(watch.page, options={"resultTypes": ["violations"]} | rules)
        found += [
            (scheme, rule["id"], node["html"][:200])
            for rule in answer.response["violations"]
            for node in rule["nodes"]
        ]
    return found


BACKGROUND = """() => {
  const { backgroundColor } = getComputedStyle(document.querySelector(".stApp"));
  return Number(/\\d+/.exec(backgroundColor)[0]) < 128;
}"""
"""Whether the page is dark."""
SETTLED = """async () => {
  const colours = () => [...document.querySelectorAll(".stApp :not(.headlight-player *)")].map((one) => {
    const { color, backgroundColor } = getComputedStyle(one);
    return color + backgroundColor;
  }).join();
  const before = colours();
  for (let frame = 0; frame < 15; frame += 1) await new Promise(requestAnimationFrame);
  return colours() === before;
}"""
"""Whether all colours outside the player have stayed the same for 15 animation frames; a run may be
training inside the player."""


def go_to(watch, page):
    watch.page.get_by_role("link", name=page, exact=True).click()
    watch.page.wait_for_selector(f".st-key-{PICTURES[page]}")


@pytest.mark.parametrize("state", ["before", "during", "after"])
def test_axe_finds_no_violation_on_any_page_before_during_and_after_training(watch, state):
    watch.open(CALM)
    if state != "before":
        watch.click("run_start")
        watch.until(lambda: watch.number("live_map", "step") > 0, what="the first trained map")
    if state == "after":
        watch.click("run_stop")
        watch.until(lambda: watch.state == "stopped")
    for page in PICTURES:
        go_to(watch, page)
        if page == "Look inside":
            watch.page.locator("[data-box='decoder.0.cross'] .title").click()
        assert violations(watch) == [], page


def test_axe_finds_no_violation_with_an_input_error_and_in_full_screen(watch):
    watch.open(CALM)
    watch.type("own_word", "zz 19")
    expect(watch.page.locator(".st-key-word_problem")).to_be_visible()
    assert violations(watch) == []
    watch.type("heads", "7")
    # The alert about the word is in the sidebar too.
    expect(watch.page.locator(".st-key-model_settings [data-testid=stAlert]")).to_be_visible()
    assert violations(watch) == []
    watch.page.locator(".st-key-fullscreen button").click()
    watch.until(lambda: watch.page.evaluate("Boolean(document.fullscreenElement)"))
    assert violations(watch) == []
    watch.page.keyboard.press("f")


def test_the_keyboard_reaches_every_head_and_the_label_of_the_map_names_its_strongest_cell(watch):
    watch.open(CALM)
    watch.drawn("alignment_mass")  # the last picture of the page
    watch.until_settled()
    large = watch.page.locator(".st-key-live_map .live-figure")
    maps = watch.page.locator(".st-key-live_maps .live-figure")
    watch.page.locator(".st-key-kind button").last.focus()
    for _ in range(20):  # past the Outline checkbox, the large map and its menu
        watch.page.keyboard.press("Tab")
        if maps.evaluate("element => element === document.activeElement"):
            break
    assert maps.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    for key, head in (("ArrowUp", 1), ("ArrowDown", 2), ("ArrowDown", 2), ("ArrowUp", 1)):
        maps.press(key)
        expect(large).to_have_attribute("aria-label", pattern(head))
    weights = watch.plot("live_map", "weights()")
    share = max(map(max, weights[:-1]))  # the last row writes no letter
    said = large.get_attribute("aria-label")
    assert said.endswith(
        f": {share:.0%}." if share >= 0.3 else f"It looks in many places: at most {share:.0%} in one cell."
    )


def focus_by_tab(watch, key, most=60):
    """Press Tab until a picture has the focus; return its host element."""
    host = watch.page.locator(f".st-key-{key} .live-figure")
    for _ in range(most):
        watch.page.keyboard.press("Tab")
        if host.evaluate("element => element === document.activeElement"):
            assert host.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
            return host
    raise AssertionError(f"Tab does not reach {key}")


def framed(watch, key):
    """Return the framed cell of a picture as [index of its subplot, row, column]."""
    return watch.plot(
        key,
        """(() => {
          const frame = gd.querySelector(".cell-frame:not([hidden])").getBoundingClientRect();
          const host = gd.getBoundingClientRect();
          const [x, y] = [frame.x + frame.width / 2 - host.x, frame.y + frame.height / 2 - host.y];
          const inside = (axis, p) => p > axis._offset && p < axis._offset + axis._length;
          const layout = gd._fullLayout;
          const at = layout._subplots.cartesian.map((id) => layout._plots[id])
            .findIndex(({ xaxis, yaxis }) => inside(xaxis, x) && inside(yaxis, y));
          const { xaxis, yaxis } = layout._plots[layout._subplots.cartesian[at]];
          return [at, Math.round(yaxis.p2d(y - yaxis._offset)), Math.round(xaxis.p2d(x - xaxis._offset))];
        })()""",
    )


def test_a_cell_on_the_break_tab_is_reached_and_blocked_by_keyboard(watch):
    start(watch, f"{CALM}&word=cat")
    watch.click("run_stop")
    go_to(watch, "Ask")
    watch.page.get_by_role("tab", name="Break").click()
    watch.page.wait_for_selector(".st-key-break_after_figure svg.main-svg")
    watch.page.locator(".st-key-block_add button").focus()
    host = focus_by_tab(watch, "break_before_figure")
    assert framed(watch, "break_before_figure") == [0, 0, 0]
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        host.press(key)
    assert framed(watch, "break_before_figure") == [0, 1, 1]
    weight = watch.plot("break_before_figure", "gd.data[0].z[1][1]")
    expect(host).to_have_attribute("aria-label", re.compile(rf"^Row 2 \(.+\), column 2 \(c\): {weight:.3g}"))
    assert violations(watch) == []
    host.press("Enter")
    blocked = "gd.data[0].z[1][1]"
    watch.until(lambda: watch.plot("break_after_figure", blocked) is None, what="the blocked cell")
    assert host.evaluate("element => element === document.activeElement")
    assert framed(watch, "break_before_figure") == [0, 1, 1]


def pattern(head):
    return re.compile(rf"^cross 1 · head {head}, step 0: (It looks in many places|To write)")


def test_axe_finds_no_violation_in_the_list_of_stories_and_in_a_story(watch):
    watch.open()
    watch.page.get_by_role("link", name="Stories").click()
    watch.page.wait_for_selector(".st-key-story_tour")
    assert violations(watch) == []
    watch.page.locator(".st-key-story_tour a").first.click()
    watch.page.wait_for_selector(".headlight-player[data-story] .map[data-step]")
    watch.page.mouse.move(0, 0)
    assert violations(watch) == []
    for _ in range(6):
        watch.page.locator(".st-key-story_skip button").click()
    watch.page.wait_for_selector(".guess button")
    assert violations(watch) == []
