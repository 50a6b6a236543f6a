"""The time machine in a real browser: REVIEW stands still while the run goes on, scrubbing loses nothing."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

SMALL = "&goal=none&letters=6&layers_encoder=1&layers_decoder=1&heads=2&width=16"
LONG = f"/?steps=5000{SMALL}&pace=20+steps%2Fs"
SHORT = f"/?steps=30{SMALL}"
PICTURES = ("live_map", "live_maps")


def start(watch, path=LONG, step=30):
    watch.open(path)
    watch.click("run_start")
    watch.until(lambda: watch.number("live_map", "step") > step, what="some steps")


def handle(watch):
    return watch.page.locator(".st-key-time_step [role=slider]")


def press(watch, key, times=1):
    handle(watch).focus()
    for _ in range(times):
        watch.page.keyboard.press(key)
        watch.page.wait_for_timeout(30)


def steps_shown(watch):
    """What every panel says of the step that it shows."""
    title = watch.plot("live_map", "gd.layout.title.text")
    shown = [watch.number(name, "step") for name in PICTURES]
    shown.append(int(re.search(r"step ([\d,]+)", title)[1].replace(",", "")))
    shown.append(int(watch.page.locator(".hl-outputs").get_attribute("data-step")))
    return shown


def live_step(watch):
    return int(re.search(r"step ([\d,]+)", watch.status)[1].replace(",", ""))


@pytest.mark.parametrize("looks", [3, pytest.param(15, marks=pytest.mark.slow)])
def test_review_stands_still_while_the_run_goes_on(watch, looks):
    """For six seconds, and for half a minute."""
    start(watch)
    press(watch, "Home")
    press(watch, "ArrowRight", 3)
    badge = watch.page.locator(".st-key-time_badge")
    expect(badge).to_contain_text("step 3 of 5,000, training continues")
    watch.until(lambda: steps_shown(watch) == [3] * 4, what="every panel at step 3")
    before = live_step(watch)
    marker = "gd.layout.shapes[0].visible ? gd.layout.shapes[0].x0 : null"
    for _ in range(looks):
        watch.page.wait_for_timeout(2000)
        assert steps_shown(watch) == [3] * 4
        assert watch.plot("live_curves", marker) == 3
        expect(badge).to_contain_text("step 3 of 5,000, training continues")
    assert live_step(watch) > before
    watch.click("time_live")
    watch.until(lambda: watch.number("live_map", "step") > before, what="the newest step")
    assert watch.plot("live_curves", "gd.layout.shapes[0].visible") is False
    expect(badge).to_contain_text("LIVE")
    watch.click("run_stop")


def test_scrubbing_a_hundred_steps_back_and_forth_loses_nothing_and_raises_nothing(watch):
    start(watch, step=60)
    press(watch, "ArrowLeft", 50)
    press(watch, "ArrowRight", 50)
    watch.until(lambda: len(set(steps_shown(watch))) == 1, what="all panels agree")
    press(watch, "Home")
    watch.until(lambda: steps_shown(watch) == [0] * 4, what="the first step")
    # Whether it is the same picture is not asked: where a refresh begins before a busy server has sent the
    # run of the whole page that it follows, Streamlit drops that run's part, and the picture is made anew.
    assert watch.plot("live_map", "gd.data[0].z.map(r => r.reduce((a, b) => a + b, 0))") == pytest.approx(
        [1.0] * 7, abs=2e-3
    )
    expect(watch.page.locator("[data-testid=stException]")).to_have_count(0)
    watch.click("run_stop")


def test_the_handle_can_be_dragged_out_of_live_and_stays_where_it_is_let_go(watch):
    start(watch, step=60)
    slider = watch.page.locator(".st-key-time_step .time-slider")
    box = handle(watch).bounding_box()
    step = int(slider.get_attribute("data-step"))
    x, y = box["x"] + box["width"] * step / 5000, box["y"] + box["height"] / 2
    # 5,000 steps are wide: the first pixels already are the whole past.
    watch.page.mouse.move(x, y)
    watch.page.mouse.down()
    seen = []
    for i in range(12):
        watch.page.mouse.move(x - i * (x - box["x"]) / 12, y)
        watch.page.wait_for_timeout(150)
        seen.append(int(slider.get_attribute("data-step")))
    watch.page.mouse.up()
    assert seen == sorted(seen, reverse=True), "it follows the hand and nothing else"
    assert handle(watch).bounding_box()["width"] == box["width"]
    watch.until(lambda: steps_shown(watch) == [seen[-1]] * 4, what="every panel where it was let go")
    expect(watch.page.locator(".st-key-time_badge")).to_contain_text("REVIEW")
    watch.click("run_stop")


def test_the_past_is_played_as_a_film(watch):
    watch.open(SHORT)
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    watch.click("time_play")
    seen = set()

    def ended():
        seen.add(watch.number("live_map", "step"))
        return watch.number("live_map", "step") == 30 and len(seen) > 3

    watch.until(ended, what="the end of the film")
    assert {0, 1, 2, 3, 4, 5} & seen, "it began at the beginning"
    expect(watch.page.locator(".st-key-time_badge")).to_contain_text("step 30 of 30, finished")


@pytest.mark.slow
def test_step_word_kind_and_head_are_one_selection_on_every_page_and_in_the_link(watch, browser):
    watch.open(SHORT)
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    watch.page.locator(".st-key-word button", has_text="cat").click()
    watch.page.locator(".st-key-kind button", has_text="Encoder").click()
    press(watch, "Home")
    press(watch, "ArrowRight", 4)
    watch.until(lambda: "step=4" in watch.page.url, what="the step in the link")
    for page, name in (
        ("Ask", "explore_map_figure"),
        ("Masks", "mask_weights_figure"),
        ("Look inside", "anatomy_figure"),
        ("Watch", "live_map_figure"),
    ):
        watch.page.get_by_role("link", name=page, exact=True).click()
        watch.page.wait_for_selector(f".st-key-{name} svg.main-svg")
        watch.until(lambda: watch.number(name, "step") in (4, 5), what=f"step 4 on {page}")  # noqa: B023
        for part in ("word=cat", "kind=encoder", "step=4", "run="):
            assert part in watch.page.url, page
    address = watch.page.url
    watch.page.goto("about:blank")
    watch.page.goto(address)
    watch.page.wait_for_selector(".st-key-live_map svg.main-svg")
    watch.until(lambda: watch.number("live_map", "step") == 4, what="the same step after a reload")
    title = watch.plot("live_map", "gd.layout.title.text")
    assert "encoder" in title
    assert "cat" in title


def test_a_word_is_spelled_letter_by_letter_with_the_row_lit_and_lines_that_answer_the_pointer(watch):
    watch.open("/?steps=30&goal=none&letters=6&word=cat")
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    watch.page.get_by_role("link", name="Ask", exact=True).click()
    watch.page.wait_for_selector(".st-key-explore_lines svg.main-svg")
    lit = "gd.layout.shapes.at(-1).y0 + 0.5"
    assert watch.plot("explore_map_figure", lit) == 0
    watch.click("explore_next")
    watch.until(lambda: watch.plot("explore_map_figure", lit) == 1, what="the second row is lit")
    expect(watch.page.locator(".hl-spelled td.lit")).to_have_count(2)
    # The lines: every one as opaque as its weight; over a token only its own are left.
    weights = watch.plot("explore_map_figure", "gd.data[0].z.flat()")
    opacity = watch.plot("explore_lines_figure", "gd.layout.shapes.map(s => s.opacity)")
    assert opacity == pytest.approx(weights, abs=1e-3)
    x, y = watch.plot("explore_lines_figure", "[gd.data[0].x[2], gd.data[0].y[2]]")
    shown = "gd.layout.shapes.map((s, i) => s.visible === false ? -1 : i).filter(i => i >= 0)"
    third_row = list(range(2 * len("[cat]"), 3 * len("[cat]")))
    watch.point("explore_lines_figure", x, y, lambda: watch.plot("explore_lines_figure", shown) == third_row)
    watch.page.mouse.move(0, 0)
    watch.until(
        lambda: len(watch.plot("explore_lines_figure", shown)) == len(weights), what="all lines again"
    )


def test_ablation_and_a_blocked_cell_change_the_after_side_only(watch):
    watch.open(f"{SHORT}&word=cat")
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    watch.page.get_by_role("link", name="Ask", exact=True).click()
    watch.page.wait_for_selector(".st-key-explore_lines svg.main-svg")
    watch.page.get_by_role("tab", name="Break").click()
    watch.page.wait_for_selector(".st-key-break_after_figure svg.main-svg")
    before = watch.plot("break_before_figure", "gd.data[0].z")
    watch.press("break_before_figure", 1, 0)  # row 1, column 2 of the head that is shown
    blocked = "gd.data[0].z[0][1]"
    watch.until(lambda: watch.plot("break_after_figure", blocked) is None, what="the blocked cell")
    after = watch.plot("break_after_figure", "gd.data[0].z")
    assert sum(w or 0 for w in after[0]) == pytest.approx(1.0, abs=2e-3)
    assert watch.plot("break_before_figure", "gd.data[0].z") == before
    expect(watch.page.locator("[data-testid=stException]")).to_have_count(0)


def test_words_that_cannot_be_asked_are_answered_in_place_and_the_answer_stays(watch):
    watch.open("/?letters=6")
    watch.page.get_by_role("link", name="Ask", exact=True).click()
    watch.page.wait_for_selector(".st-key-explore_lines svg.main-svg")
    for text, told in (
        ("bánana", "Try banana"),
        ("", "no word to ask"),
        ("x" * 500, "500 letters is too long"),
    ):
        watch.type("explore_text", text)
        expect(watch.page.locator("[data-testid=stAlert]").first).to_contain_text(told)
        assert watch.number("explore_map_figure", "step") == 0
    expect(watch.page.locator("[data-testid=stException]")).to_have_count(0)
