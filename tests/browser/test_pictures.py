"""The pictures of Watch: their response to clicks, the pointer, another theme and a lost socket."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import CALM, RUNS, SMALL, STEADY, finish, start

AT_ONCE = 2.0
"""Maximum seconds of an immediate response, generous for a busy machine."""


def test_choosing_a_head_or_a_kind_of_attention_needs_no_server(visit):
    """No further message of the server reaches the page."""
    finish(visit, f"/?steps=20{SMALL}", 20)
    for key, step in (("ArrowLeft", 19), ("ArrowLeft", 18), ("ArrowLeft", 17), ("ArrowRight", 18)):
        visit.step_by(key)
        visit.until(lambda step=step: visit.stands_at(step))  # the browser now holds the maps of this step
    visit.step_by("ArrowRight")
    visit.until(lambda: visit.stands_at(19))
    visit.page.evaluate("window.deaf = /./")
    visit.page.context.set_offline(True)
    for step in (19, 18):
        for kind, site in (
            ("encoder", "encoder.0"),
            ("decoder", "decoder.0.self"),
            ("cross", "decoder.0.cross"),
        ):
            visit.choose("kind", kind)
            large = visit.page.locator(f".st-key-live_map .live-figure[data-site='{site}']")
            large.wait_for(timeout=1000 * AT_ONCE)
            before = visit.plot("live_map", "weights()")
            head = 1 - int(large.get_attribute("data-head"))
            visit.tile(0, head)
            visit.page.wait_for_selector(f".live-figure[data-head='{head}']", timeout=1000 * AT_ONCE)
            assert visit.plot("live_map", "weights()") != before
            assert visit.stands_at(step)
        visit.step_by("ArrowLeft")
        visit.until(lambda: visit.stands_at(step - 1), AT_ONCE)  # noqa: B023


def test_another_kind_of_attention_and_another_theme_are_drawn_into_the_existing_picture(watch):
    """Creating a new picture takes the browser twice as long."""
    watch.open()
    watch.plot("live_map", "gd.querySelector('canvas').kept = gd.kept = true")
    watch.choose("kind", "decoder")
    watch.until(lambda: "letters of the answer" in watch.plot("live_map", "gd.picture.columnTitle"))
    assert "decoder" in watch.plot("live_map", "gd.picture.fileName")
    ink = "getComputedStyle(gd.querySelector('.row')).color"
    light = watch.plot("live_map", ink)
    watch.page.emulate_media(color_scheme="dark")
    watch.until(lambda: watch.plot("live_map", ink) != light, what="dark text")
    assert watch.plot("live_map", "gd.kept && gd.querySelector('canvas').kept")


STRIPED = """((canvas) => {
  const wide = canvas.width - 8, middle = Math.floor(canvas.height / 2);
  const { data } = canvas.getContext("2d").getImageData(4, middle, wide, 1);
  return Array.from({ length: wide }, (_, x) => [...data.slice(4 * x, 4 * x + 4)]);
})(gd.querySelector("canvas"))"""
"""The colours of the pixels along the middle of a map."""


def test_a_switched_off_head_is_marked_on_the_large_map_and_among_the_small_maps(watch):
    start(watch, f"{CALM}&head=decoder.0.cross.2")
    watch.page.get_by_role("link", name="Ask", exact=True).click()
    watch.page.get_by_role("tab", name="Break").click()
    heads = watch.page.locator(".st-key-ablate_heads input")
    heads.click()
    watch.page.keyboard.type("cross 1 · head 2")
    expect(watch.page.get_by_role("option")).to_have_count(1)
    watch.page.get_by_role("option").click()
    expect(watch.page.locator(".st-key-ablate_heads")).to_contain_text("cross 1 · head 2")
    watch.click("intervene_run")
    watch.page.get_by_text("Active in the run").wait_for()
    watch.page.get_by_role("link", name="Watch", exact=True).click()
    watch.page.wait_for_selector(".st-key-live_map .live-figure[data-off='1']")
    watch.page.wait_for_selector(".st-key-live_maps .live-figure[data-off='1']")
    corners = watch.plot("live_map", STRIPED)
    assert all(100 < red < 245 and abs(red - blue) < 45 for red, _, blue, _ in corners)  # nearly grey
    assert len({tuple(color) for color in corners}) > 1


def test_content_that_appears_or_disappears_does_not_move_the_pictures(watch):
    """The end of a run, an error about a word, changed settings, and more words than fit on a line."""
    watch.open(f"/?steps=12{SMALL}")

    def stands():
        box = watch.page.locator(".st-key-live_map").bounding_box()
        return box["y"], box["height"]

    before = stands()
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    expect(watch.button("run_continue")).to_be_enabled()
    assert stands() == before
    for n, letter in enumerate("abcdefg"):
        watch.type("own_word", 12 * letter)
        expect(watch.page.locator(".st-key-word button")).to_have_count(6 + n)
    assert stands() == before
    chosen = watch.page.locator(".st-key-word button[aria-pressed=true]")
    assert chosen.inner_text() == 12 * "g"
    words = watch.page.locator(".st-key-word").bounding_box()
    assert words["x"] <= chosen.bounding_box()["x"] < words["x"] + words["width"]
    watch.type("own_word", "über")
    expect(watch.page.locator(".st-key-word_problem")).to_be_visible()
    watch.page.get_by_text("All settings").click()
    watch.type("seed", "5")
    expect(watch.page.locator(".st-key-run_changes")).to_contain_text("seed 0 → 5")
    assert stands() == before


def test_the_value_under_the_pointer_is_rounded_as_in_the_sentences(watch):
    watch.open()
    weights = watch.plot("live_map", "weights()")
    canvas = watch.page.locator(".st-key-live_map canvas")
    box = canvas.bounding_box()
    x, y = 2.5 * box["width"] / len(weights[0]), 1.5 * box["height"] / len(weights)
    canvas.hover(position={"x": x, "y": y})
    expect(watch.page.locator(".st-key-live_map .map-bubble")).to_contain_text(f"{100 * weights[1][2]:.0f}%")


def test_a_library_that_fails_to_load_once_is_fetched_again(app, browser: Browser):
    context = browser.new_context()
    page = context.new_page()
    refused = []

    def refuse_once(route):
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    page.route("**/files/plotly-*", refuse_once)
    page.goto(app)
    page.wait_for_selector(".st-key-live_map .map[data-step]")
    assert len(refused) == 1
    assert page.locator(".live-figure .failed").count() == 0
    context.close()


def test_the_first_map_is_drawn_after_one_run_of_the_page_script(first_visit):
    """Also in a browser that keeps the key of an earlier run: the key is sent after the map."""
    first_visit.page.add_init_script(
        """new MutationObserver(() => {
          if (window.asked === undefined && document.querySelector(".live-figure[data-step]"))
            window.asked = window.sockets.find((one) => one.url.endsWith("/_stcore/stream")).sent;
        }).observe(document, { subtree: true, childList: true, attributes: true })"""
    )
    finish(first_visit, f"/?steps=5{SMALL}", 5)
    first_visit.open("/")
    first_visit.until(lambda: first_visit.page.evaluate("window.asked") is not None)
    assert first_visit.page.evaluate("window.asked") == 1
    expect(first_visit.page.locator(RUNS)).to_have_count(1)  # the key has been sent by now


def test_a_closed_socket_is_reopened_and_delivers_later_steps(visit):
    start(visit, STEADY)
    visit.until(lambda: visit.number("live_map", "step") > 30)  # the redraw of the page by Start is complete
    visit.page.evaluate("window.map = document.querySelector('.st-key-live_map .map[data-step]')")
    cut = "window.sockets.filter((one) => one.url.endsWith('/news') && one.readyState === 1)"
    assert visit.page.evaluate(f"{cut}.map((one) => one.close()).length") == 1
    seen = visit.number("live_map", "step")
    visit.until(lambda: visit.page.evaluate(f"{cut}.length") == 1, what="another socket")
    visit.until(lambda: visit.number("live_map", "step") > seen, what="a later step")
    assert visit.page.evaluate("window.map.isConnected")
    expect(visit.page.get_by_test_id("stException")).to_have_count(0)


def test_a_hidden_tab_is_sent_nothing_until_it_is_visible_again(visit):
    start(visit, STEADY)
    news = "window.sockets.find((one) => one.url.endsWith('/news')).heard"

    def hide(hidden):
        visit.page.evaluate(
            """(hidden) => {
              Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            hidden,
        )

    hide(True)
    visit.page.wait_for_timeout(1000)  # until messages on their way have arrived
    heard, seen = visit.page.evaluate(news), visit.shown_steps()["map"]
    visit.page.wait_for_timeout(2000)
    assert visit.page.evaluate(news) == heard
    hide(False)
    visit.until(lambda: visit.shown_steps()["map"] > seen, what="a later step")


def test_all_heads_of_a_large_model_are_drawn_as_small_maps_with_labels_beside_them(watch):
    watch.open("/?layers_encoder=6&layers_decoder=6&heads=8&width=16")
    watch.until(lambda: watch.plot("live_maps", "gd.picture.tables.length") == 48)
    for rows in watch.plot("live_maps", "gd.picture.tables.map((_, i) => weights(i))"):
        assert [sum(row) for row in rows] == pytest.approx([1.0] * len(rows), abs=2e-3)
    field, names, pictures = watch.plot(
        "live_maps",
        """(() => {
          const box = (one) => (({ left, right, top, bottom }) => [left, top, right, bottom])
            (one.getBoundingClientRect());
          const { left, top, width, height } = gd.querySelector("canvas").getBoundingClientRect();
          const { tables } = gd.picture, last = tables.at(-1);
          const [x, y] = [width / (last.column + last.wide), height / (last.row + last.high)];
          return [box(gd.querySelector(".map-field")), [...gd.querySelectorAll(".map-labels span")].map(box),
            tables.map((one) => [left + x * one.column, top + y * one.row, left + x * (one.column + one.wide),
              top + y * (one.row + one.high)])];
        })()""",
    )
    assert len(names) == 6 + 8
    for left, top, right, bottom in names:
        assert right <= pictures[0][0] + 1 or bottom <= pictures[0][1] + 1
        assert min(left, top) >= 0
    for left, top, right, bottom in pictures:
        assert field[0] <= left < left + 20 <= right <= field[2]
        assert field[1] <= top < top + 20 <= bottom <= field[3]
    for one, other in zip(names, names[1:], strict=False):
        assert one[2] <= other[0] or one[3] <= other[1] or other[2] <= one[0] or other[3] <= one[1]


@pytest.mark.parametrize(
    ("layers", "heads", "word"), [(1, 1, "cat"), (2, 2, "playground"), (1, 12, "a"), (6, 12, "playground")]
)
def test_cells_of_all_maps_are_nearly_as_wide_as_high(watch, layers, heads, word):
    size = f"/?layers_encoder={layers}&layers_decoder={layers}&heads={heads}&width={4 * heads}&word={word}"
    watch.open(size)
    count = layers * heads
    watch.until(lambda: watch.plot("live_maps", "gd.picture.tables.length") == count, what="the small maps")
    for kind in ("cross", "encoder", "decoder"):
        watch.choose("kind", kind)
        for key in ("live_map", "live_maps"):
            across, down = watch.plot(
                key,
                "(({ width, height }, last) => [width / (last.column + last.wide),"
                " height / (last.row + last.high)])"
                "(gd.querySelector('canvas').getBoundingClientRect(), gd.picture.tables.at(-1))",
            )
            assert 1 / 1.51 < across / down < 1.51, (kind, key)
