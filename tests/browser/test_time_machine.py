"""The step control in a browser: a past step stays while the run goes on, and no step is lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LONG, SMALL, finish, trained

SHORT = f"steps=30{SMALL}&letters=6"
FILM = """(key) => {
  const host = document.querySelector(`.st-key-${key} .live-figure, .model.st-key-${key}`);
  window.film = [Number(host.dataset.step)];
  new MutationObserver(() => {
    const step = Number(host.dataset.step);
    if (window.film.at(-1) !== step) window.film.push(step);
  }).observe(host, { attributes: true, attributeFilter: ["data-step"] });
}"""
"""Logs every step that a picture shows."""
SLOWER = """() => {
  const asked = window.fetch;
  window.fetch = (...what) => new Promise((done) => setTimeout(done, 150)).then(() => asked(...what));
}"""


def start(watch, path=LONG, step=30):
    watch.open(path)
    watch.click("run_start")
    watch.until(lambda: watch.number("live_map", "step") > step, what="some steps")


@pytest.fixture(scope="module")
def run(app):
    """The id of a finished run of 30 steps."""
    return trained(app, SHORT)


@pytest.fixture
def ended(watch, run):
    """Open the page of the finished run as a viewer."""
    watch.open(f"/?run={run}")
    watch.until(lambda: watch.state == "finished" and watch.stands_at(30), what="the end of the run")


def newest(watch):
    return int(watch.page.locator(".time-slider").get_attribute("data-newest"))


@pytest.mark.parametrize("looks", [1, pytest.param(15, marks=pytest.mark.slow)])
def test_review_stays_at_its_step_while_the_run_goes_on(watch, looks):
    """For two seconds, and for half a minute."""
    start(watch)
    watch.step_by("Home", "ArrowRight", "ArrowRight", "ArrowRight")
    badge = watch.page.locator(".st-key-time_badge")
    expect(badge).to_have_text("looking back go to LIVE")
    watch.until(lambda: watch.stands_at(3), what="every panel at step 3")
    draws, before = watch.number("live_map", "draws"), newest(watch)
    marker = watch.page.locator(".st-key-live_curves .marker").first  # each panel has one

    def from_step_3():
        """Return the pixels between the marker and step 3 of its axis, whose range grows with the run."""
        at = """(() => {
            const { x, width } = gd.querySelector(".nsewdrag").getBoundingClientRect();
            const [low, high] = gd.layout.xaxis.range;
            return x + ((3 - low) / (high - low)) * width;
        })()"""
        return marker.bounding_box()["x"] - watch.plot("live_curves", at)

    for _ in range(looks):
        watch.page.wait_for_timeout(2000)
        assert watch.stands_at(3)
        assert from_step_3() == pytest.approx(0, abs=0.1)
        expect(badge).to_have_text("looking back go to LIVE")
    assert newest(watch) > before
    assert watch.number("live_map", "draws") - draws < newest(watch) - before
    watch.click("time_live")
    watch.until(lambda: watch.shown_steps()["map"] > before, what="the newest step")
    assert marker.is_hidden()
    expect(badge).to_have_text("● LIVE")


@pytest.mark.usefixtures("ended")
def test_keys_move_by_the_right_number_of_steps_and_play_shows_every_step_in_order(watch):
    for key, step in (("ArrowLeft", 29), ("PageDown", 19), ("Home", 0), ("ArrowRight", 1), ("PageUp", 11)):
        watch.step_by(key)
        watch.until(lambda: watch.stands_at(step), what=f"step {step} after {key}")  # noqa: B023
        assert watch.plot("live_map", "weights().map(r => r.reduce((a, b) => a + b, 0))") == pytest.approx(
            [1.0] * 7, abs=2e-3
        )
    badge = watch.page.locator(".st-key-time_badge")
    expect(badge).to_have_text("looking back go to last step")
    watch.step_by("End")  # the end position follows the newest step
    watch.until(lambda: watch.stands_at(30))
    expect(badge).to_have_text("last step")
    watch.until(lambda: "step=" not in watch.page.url, what="an address without a step")
    watch.page.evaluate(FILM, "live_map")
    play = watch.page.locator(".st-key-time_play button")
    play.click()
    expect(play).to_have_text("■ Replay")
    watch.until(
        lambda: watch.page.evaluate("window.film.length > 1 && window.film.at(-1)") == 30, 60, "its end"
    )
    assert watch.page.evaluate("window.film") == [30, *range(31)]
    expect(play).to_have_text("▶ Replay")
    expect(badge).to_have_text("last step")  # the run has ended: no step is later
    assert watch.stands_at(30)
    watch.step_by("ArrowLeft")
    expect(badge).to_have_text("looking back go to last step")


@pytest.mark.usefixtures("ended")
def test_pressing_play_stop_and_play_again_plays_only_one_film(watch):
    """Counts every drawing, also of the same step: one film draws each step once."""
    watch.step_by("Home")
    watch.page.locator(".st-key-time_speed select").select_option("2/s")
    drawn = watch.page.evaluate(
        """async () => {
          const root = document.querySelector(".headlight-player");
          const play = root.querySelector(".st-key-time_play button");
          for (let i = 0; i < 3; i += 1) play.click();
          await new Promise((done) => setTimeout(done, 250));
          let n = 0;
          const watch = new MutationObserver((all) => { n += all.length; });
          watch.observe(root, { attributes: true, attributeFilter: ["data-step"] });
          await new Promise((done) => setTimeout(done, 1500));
          watch.disconnect();
          play.click();
          return n;
        }"""
    )
    assert 1 <= drawn <= 4  # three of the film, and one for the page; two films would draw six


@pytest.mark.usefixtures("ended")
def test_keys_pressed_faster_than_maps_arrive_lose_no_step(watch):
    watch.page.evaluate(SLOWER)
    watch.step_by("Home", *["ArrowRight"] * 25)
    watch.until(lambda: watch.stands_at(25), 5)


def test_the_handle_can_be_dragged_out_of_live_and_stays_where_it_is_released(watch):
    start(watch, f"/?steps=500{SMALL}&pace=20+steps%2Fs")
    slider = watch.page.locator(".st-key-time_step .time-slider")
    box = slider.get_by_role("slider").bounding_box()
    first, y = box["x"] + 8, box["y"] + box["height"] / 2
    x = first + (box["width"] - 16) * newest(watch) / 500
    watch.page.mouse.move(x, y)
    watch.page.mouse.down()
    seen = []
    for i in range(1, 13):
        watch.page.mouse.move(x - i * (x - first) / 12, y)
        watch.page.wait_for_timeout(150)
        seen.append(int(slider.get_attribute("data-step")))
    watch.page.mouse.up()
    assert slider.get_by_role("slider").bounding_box()["width"] == box["width"]
    assert seen == sorted(seen, reverse=True), "it follows the hand and nothing else"
    watch.until(lambda: watch.stands_at(seen[-1]), what="every panel where it was let go")
    expect(watch.page.locator(".st-key-time_badge")).to_contain_text("looking back")


PICTURES = {"Ask": "explore_map_figure", "Look inside": "model_picture", "Masks": "model_picture"}


@pytest.mark.parametrize(
    "page", ["Masks", *(pytest.param(page, marks=pytest.mark.slow) for page in ("Ask", "Look inside"))]
)
def test_the_step_control_moves_the_pictures_of_other_pages(watch, page):
    """LIVE follows; at a past step nothing moves while the run trains; a film waits for each picture."""
    key = PICTURES[page]
    start(watch, f"{LONG}&word=cat")
    watch.page.get_by_role("link", name=page, exact=True).click()
    watch.drawn(key)
    seen = watch.number(key, "step")
    watch.until(lambda: watch.number(key, "step") > seen, what="a later model, LIVE")
    watch.step_by("Home")
    watch.until(lambda: watch.number(key, "step") == 0 and "step=0" in watch.page.url)
    watch.page.wait_for_timeout(1000)
    assert watch.number(key, "step") == 0
    watch.page.evaluate(FILM, key)
    watch.click("time_play")
    watch.until(lambda: len(watch.page.evaluate("window.film")) > 3, what="a film")
    film = watch.page.evaluate("window.film")
    assert film == sorted(film)
    watch.click("time_live")
    watch.until(lambda: watch.number(key, "step") > seen, what="LIVE again")
    expect(watch.page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.usefixtures("ended")
def test_every_page_and_the_link_share_the_selected_step_word_kind_and_head(watch):
    watch.choose("word", "cat")
    watch.choose("kind", "encoder")
    watch.tile(0, 1)
    watch.step_by("Home", *4 * ["ArrowRight"])
    parts = ("word=cat", "kind=encoder", "head=encoder.0.2", "step=4", "run=")
    watch.until(lambda: all(part in watch.page.url for part in parts), what="all of it in the link")
    for page, name in (
        ("Ask", "explore_map_figure"),
        ("Masks", "model_picture"),
        ("Look inside", "model_picture"),
        ("Watch", "live_map"),
    ):
        watch.page.get_by_role("link", name=page, exact=True).click()
        watch.drawn(name)
        watch.until(lambda: watch.number(name, "step") in (4, 5), what=f"step 4 on {page}")  # noqa: B023
        own = ("kind=", "head=") if page == "Masks" else ()  # Masks has a kind and a head of its own
        shared = [part for part in parts if not part.startswith(own)]
        watch.until(lambda: all(part in watch.page.url for part in shared), what=f"all in the link of {page}")  # noqa: B023
    address = watch.page.url
    watch.page.goto("about:blank")
    watch.open(address.removeprefix(watch.app))
    watch.until(lambda: watch.stands_at(4), what="the same step after a reload")
    title = watch.plot("live_map", "title()")
    assert "encoder 1 · head 2" in title
    assert "“cat”" in title
    assert watch.page.url == address


def test_a_word_is_spelled_letter_by_letter_with_its_row_highlighted_and_the_pointer_filters_the_lines(watch):
    finish(watch, "/?steps=30&goal=none&letters=6&word=cat", 30)
    watch.page.get_by_role("link", name="Ask", exact=True).click()
    watch.page.wait_for_selector(".st-key-explore_lines svg.main-svg")
    lit = "gd.layout.shapes.at(-1).y0 + 0.5"
    assert watch.plot("explore_map_figure", lit) == 0
    watch.click("explore_next")
    watch.until(lambda: watch.plot("explore_map_figure", lit) == 1, what="the second row is lit")
    expect(watch.page.locator(".hl-spelled td.lit")).to_have_count(2)
    # Each line is as opaque as its weight; pointing at a token leaves only its lines.
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


def test_a_blocked_cell_changes_the_after_side_only(watch):
    finish(watch, f"/?{SHORT}&word=cat", 30)
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


def test_a_step_can_be_typed_on_every_page_with_a_timeline(watch):
    finish(watch, f"/?steps=20{SMALL}", 20)
    said = watch.page.locator(".st-key-time_number [role=status]")

    box = watch.page.get_by_role("textbox", name="Go to step")

    def type_step(text, opens=lambda: watch.page.keyboard.press("g")):
        watch.until(lambda: opens() or box.is_visible(), what="the box")
        box.fill(text)
        watch.page.keyboard.press("Enter")

    type_step("7", watch.page.locator(".counter").click)
    watch.until(lambda: watch.stands_at(7) and "step=7" in watch.page.url, what="step 7")
    assert said.is_hidden()
    assert watch.page.evaluate("document.activeElement.className") == "counter"
    for text, why in (
        ("21", "Step 21 is not recorded: the steps from 0 to 20 are."),
        ("x", "“x” is no step."),
    ):
        type_step(text)
        expect(said).to_contain_text(why)
        watch.page.keyboard.press("Escape")
        assert said.is_hidden()
        assert watch.stands_at(7)
    type_step("live")
    watch.until(lambda: watch.stands_at(20) and "step=" not in watch.page.url, what="the newest step")
    for page in ("Ask", "Look inside", "Masks"):
        watch.page.get_by_role("link", name=page, exact=True).click()
        step = {"Ask": 3, "Look inside": 5, "Masks": 11}[page]
        slider = watch.page.locator(".time-slider[data-newest='20']")
        slider.wait_for()
        watch.until_settled()
        type_step(f"{step}", watch.page.locator(".bubble").click)
        watch.until(lambda: slider.get_attribute("data-step") == str(step), what=page)  # noqa: B023
