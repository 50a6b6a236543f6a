"""A race in a browser: both runs on one clock at every redraw, the difference, and following viewers."""

from __future__ import annotations

from playwright.sync_api import expect

from pages.controls.beside import names_of
from pages.settings.races import RACES
from tests.browser.conftest import SMALL

WATCH = """() => {
  const host = (side) => document.querySelector(`.st-key-race_${side} .live-figure`);
  const about = (side) => host(side).querySelector(".map-about")?.textContent ?? "";
  const of = (side) => `${about(side)} step ${host(side).dataset.step}`;
  const plain = (text) => text?.replaceAll(",", "");
  const counter = () => plain(document.querySelector(".headlight-player .counter b").textContent);
  // A run that stopped a step before the other shows "ended at" instead.
  const clock = (text) => (text.includes("ended at") ? counter() : null)
    ?? /[\\d.,]+ s(?=[ ,])/.exec(text)?.[0] ?? plain(/step ([\\d,]+)/.exec(text)?.[1]);
  window.redraws = [];
  let before = "";
  const look = () => {
    const [left, difference, right] = ["left", "difference", "right"].map(of);
    const now = {
      left: clock(left), difference: clock(difference), right: clock(right),
      counter: counter(),
      most: host("difference").dataset.most,
      badge: document.querySelector(".st-key-time_badge").textContent,
    };
    if (left + right !== before) window.redraws.push(now);
    before = left + right;
    window.watching = requestAnimationFrame(look);
  };
  look();
}"""
"""Logs what all panels show at every animation frame in which a panel has changed."""
PLAIN = f"steps=100000{SMALL}&letters=6&pace=20+steps/s"


def start(watch, path=f"/?{PLAIN}", setting="causal mask", until=8):
    """Race the model of a link against one with another setting."""
    watch.open(path)
    watch.click("race_menu")
    watch.page.locator(".st-key-race_setting input").click()
    watch.page.get_by_role("option", name=setting, exact=True).click()
    watch.click("race_start")
    watch.drawn("race_difference")
    watch.until(lambda: step(watch) >= until, what=f"step {until} of the race")


def step(watch):
    return int(watch.page.locator(".headlight-player").get_attribute("data-step") or -1)


def redraws(watch, n):
    """Return what the panels show at the next redraws, at least `n` of them."""
    watch.page.evaluate(WATCH)
    watch.until(lambda: watch.page.evaluate("window.redraws.length") >= n, what=f"{n} redraws")
    return watch.page.evaluate("cancelAnimationFrame(window.watching) ?? window.redraws")


def mixed(seen):
    """Return the redraws at which the panels do not show the same step or second."""
    return [one for one in seen if not one["left"] == one["right"] == one["difference"]]


def test_both_panels_show_the_same_step_at_200_redraws_in_live_in_review_and_in_a_film(watch):
    start(watch)
    live = redraws(watch, 100)
    assert {one["badge"] for one in live} == {"● LIVE"}
    watch.click("run_stop")
    expect(watch.page.locator(".st-key-time_badge")).to_have_text("last step")
    watch.page.evaluate(WATCH)
    for key in ("Home", *["ArrowRight"] * 24, "PageUp", *["ArrowLeft"] * 24):
        watch.step_by(key)
        watch.page.wait_for_timeout(60)  # until the step is drawn
    watch.until(lambda: watch.page.evaluate("window.redraws.length") >= 40, what="40 redraws")
    review = watch.page.evaluate("cancelAnimationFrame(window.watching) ?? window.redraws")
    watch.page.locator(".st-key-time_speed select").select_option("20/s")
    watch.page.get_by_role("button", name="Play the film").click()
    film = redraws(watch, 60)
    watch.page.get_by_role("button", name="Stop the film").click()
    seen = [*live, *review, *film]
    assert len(seen) >= 200
    assert mixed(seen) == []
    assert [one for one in seen if one["counter"] != one["left"]] == []
    assert len({one["left"] for one in seen}) > 60
    assert any(float(one["most"]) != 0 for one in seen)


def test_in_a_race_by_seconds_both_panels_show_the_same_second_and_the_link_names_the_clock(watch):
    start(watch, setting="width")
    watch.page.locator(".st-key-race_clock select").select_option("seconds")
    expect(watch.page.locator(".counter small")).to_have_text("seconds of training")
    seen = redraws(watch, 40)
    assert all(one["left"].endswith(" s") for one in seen)
    assert mixed(seen) == []
    watch.until(lambda: "clock=seconds" in watch.page.url, what="the clock in the link")


def test_identical_settings_differ_by_exactly_zero_at_every_step(watch):
    start(watch, setting="seed")
    seen = redraws(watch, 40)
    assert {one["most"] for one in seen} == {"0"}
    assert watch.plot("race_difference", "weights().flat().every((n) => n === 0)")
    expect(watch.page.locator(".st-key-run_status p")).to_contain_text("losses are the same so far")


def test_the_difference_is_right_minus_left_and_a_blocked_cell_counts_as_zero(watch):
    start(watch)
    watch.click("run_stop")
    expect(watch.page.locator(".st-key-time_badge")).to_have_text("last step")
    watch.choose("kind", "decoder")
    watch.page.locator(".st-key-race_head select").select_option(index=1)
    watch.until(lambda: "decoder 1 · head 1" in watch.plot("race_right", "title()"), what="the head")
    left, difference, right = (
        watch.plot(f"race_{name}", "weights()") for name in ("left", "difference", "right")
    )
    cells = [(i, j) for i in range(len(left)) for j in range(len(left))]
    assert all(difference[i][j] == (right[i][j] or 0) - (left[i][j] or 0) for i, j in cells)
    assert all((left[i][j] is None) == (j > i) for i, j in cells)  # the future is blocked on the left only
    assert not any(right[i][j] is None for i, j in cells)
    assert any(difference[i][j] > 0 for i, j in cells if j > i)


def test_a_viewer_with_the_link_sees_the_owners_step_and_has_no_buttons_to_control_the_race(watch, guest):
    start(watch)
    watch.click("run_stop")
    watch.until(lambda: "race=" in watch.page.url, what="the race in the link")
    guest.page.goto(watch.page.url)
    guest.drawn("race_difference")
    expect(guest.page.locator(".st-key-follow")).to_be_visible()
    watch.step_by("Home", "ArrowRight", "ArrowRight")
    guest.until(lambda: step(guest) == 2, what="the owner's step")
    assert not guest.page.locator(".st-key-run_stop, .st-key-run_continue").count()
    guest.errors[:] = [error for error in guest.errors if "404" not in error]  # Streamlit's own 404s


def test_the_race_can_be_downloaded_as_one_page(watch, tmp_path):
    start(watch)
    watch.click("run_stop")
    expect(watch.button("run_continue")).to_be_visible()
    watch.page.wait_for_timeout(1500)  # both runs have ended, and each may have redrawn the page
    watch.page.wait_for_selector(".stApp[data-test-script-state=notRunning]")
    with watch.page.expect_download() as download:
        watch.click("export_race")
    download.value.save_as(tmp_path / "race.html")
    text = (tmp_path / "race.html").read_text(encoding="utf-8")
    assert "<title>Headlight: causal mask on against causal mask off, seed 0</title>" in text


def test_a_prepared_race_fits_the_projector_without_scrolling_in_both_themes(watch):
    watch.open()
    watch.page.get_by_role("link", name="Race").click()
    watch.drawn("race_difference")
    ink = "gd._fullLayout.font.color"
    light = watch.plot("race_curves", ink)
    for name, race in RACES.items():
        watch.page.locator(".st-key-prepared_race").get_by_text(name, exact=True).click()
        shown = watch.page.locator(".st-key-race_right .map-head")
        expect(shown).to_contain_text(names_of([race.left, race.right])[1])
        for scheme in ("light", "dark"):
            watch.page.emulate_media(color_scheme=scheme)
            watch.until(lambda: (watch.plot("race_curves", ink) == light) == (scheme == "light"), what=scheme)  # noqa: B023
            inside = watch.page.locator(".stMain").evaluate("(main) => main.scrollHeight - main.clientHeight")
            assert inside <= 0
            bottom = watch.page.locator(".st-key-race_curves").bounding_box()
            assert bottom["y"] + bottom["height"] <= 720


def test_a_map_that_cannot_be_loaded_leaves_the_race_as_it_was(visit):
    start(visit, "/?" + PLAIN.replace("100000", "12"), until=12)
    visit.page.wait_for_timeout(500)
    visit.page.route("**/chunk/**", lambda route: route.abort())
    visit.page.reload()
    visit.drawn("race_difference")
    visit.step_by("Home")
    visit.page.wait_for_timeout(500)
    assert visit.page.locator(".failed").count() == 0
    assert visit.page.locator(".st-key-race_left .map-head").is_visible()
    visit.page.unroute("**/chunk/**")
    visit.step_by("ArrowRight", "Home")
    visit.until(lambda: step(visit) == 0, what="step 0")
