"""What only a browser shows: pictures that stay in place and agree, clicks that answer at once."""

from __future__ import annotations

import urllib.parse

import pytest
from playwright.sync_api import Browser, expect

from benchmarks._browser import SIZE
from tests.browser.conftest import LOOKED, Watcher

LONG = "/?steps=5000&goal=none"
"""At full speed."""
SMALL = "&goal=none&layers_encoder=1&layers_decoder=1&heads=2&width=16"
CALM = f"/?steps=5000{SMALL}&pace=1+steps%2Fs"
"""Leaves the processor to the page."""
RUNS = ".st-key-run_picker [class*=st-key-show_] button"
AT_ONCE = 2.0
"""Seconds, on a machine that does other things too."""
FONTS = """() => {
  const root = document.querySelector(".headlight-player");
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let text; (text = texts.nextNode());) {
    const range = document.createRange();
    range.selectNodeContents(text);
    const { width, height } = range.getBoundingClientRect();
    const style = getComputedStyle(text.parentElement);
    const seen = text.textContent.trim() && width && height;
    if (seen && style.visibility === "visible") found.push([parseFloat(style.fontSize), text.textContent]);
  }
  return found;
}"""
"""Every text of the player that is on the screen, and how large it is."""


def start(watch, path="/"):
    watch.open(path)
    watch.click("run_start")
    watch.until(lambda: watch.number("live_map", "step") > 0, what="the first trained map")


def test_before_start_the_untrained_model_is_on_the_screen(watch):
    watch.open()
    assert watch.number("live_map", "step") == 0
    assert watch.state == "idle"
    expect(watch.page.locator(".st-key-words_right")).to_contain_text("0 / 200")
    assert watch.plot("live_map", "gd.data[0].z.map(r => r.reduce((a, b) => a + b, 0))") == pytest.approx(
        [1.0] * 11, abs=2e-3
    )


def test_start_can_be_pressed_as_soon_as_it_is_there(app, browser: Browser):
    page = browser.new_context(viewport=SIZE).new_page()
    page.add_init_script("""const press = setInterval(() => {
        const start = document.querySelector(".st-key-run_start button");
        if (!start) return;
        clearInterval(press);
        start.click();
    }, 1)""")
    page.goto(app + LONG)
    visitor = Watcher(page, app)
    visitor.until(lambda: visitor.state == "training")
    expect(page.locator(".st-key-run_start button")).to_contain_text("New run")
    expect(page.locator(RUNS)).to_have_count(1)
    page.locator(".st-key-run_stop button:enabled").click()
    page.context.close()


def test_one_press_trains_until_the_goal_and_names_the_head_that_turned_large_for_the_last_row_too(watch):
    watch.open()
    watch.click("run_start")
    watch.until(lambda: watch.number("live_map", "step") > 0, what="the first trained map")
    watch.until(lambda: watch.state == "finished", 240, "the end of the default preset")
    moment = watch.page.locator(".st-key-moment")
    expect(moment).to_contain_text("turned anti-diagonal")
    expect(moment).to_contain_text("Goal reached")
    chips = watch.page.locator(".st-key-moments button")
    assert "turned anti-diagonal" in " ".join(chips.all_inner_texts())
    last = int(watch.page.locator(".st-key-time_step .time-slider").get_attribute("data-newest"))
    watch.until(lambda: watch.stands_at(last), what="the last frame")
    assert "decoder 2" in shown(watch)
    widths = watch.plot("live_maps", "gd.layout.shapes.map(s => s.line.width)")
    assert sorted(set(widths)) == [0, 2, 4]  # other heads, those that have turned, and the large one
    turned = chips.filter(has_text="turned anti-diagonal").first
    step = int(turned.get_attribute("data-step"))
    turned.click()
    watch.until(lambda: watch.stands_at(step), what="the step of the moment")
    current = watch.page.locator(".st-key-moments button[aria-current=true]")
    expect(current).to_have_attribute("data-step", str(step))  # of several at one step, the last
    watch.page.keyboard.press("f")
    watch.until(lambda: watch.page.evaluate("Boolean(document.fullscreenElement)"))
    watch.until(lambda: watch.plot("live_map", "gd.clientHeight") > 400)
    watch.page.wait_for_timeout(500)  # type of another size
    found = watch.page.evaluate(FONTS)
    assert [one for one in found if one[0] < 22] == []
    written = "".join(text for _, text in found)
    for part in ("finished", "decoder 2", "“playground”", "[SOS]", "head 1", "layer 2", "words right"):
        assert part in written
    inside = watch.page.evaluate(
        "(({ scrollWidth, scrollHeight }) => [scrollWidth, scrollHeight])(document.fullscreenElement)"
    )
    assert inside == [1280, 720]
    watch.step_by("ArrowLeft")
    watch.until(lambda: watch.stands_at(step - 1))
    watch.page.keyboard.press("f")
    watch.until(lambda: not watch.page.evaluate("Boolean(document.fullscreenElement)"))


def test_while_it_trains_every_picture_is_of_a_later_step_and_all_panels_agree_on_it(watch):
    start(watch, LONG)
    watch.plot("live_map", "{ gd.marked = true; gd.querySelector('svg').marked = true; return 0 }")
    watch.plot("live_map", "window.Plotly.relayout(gd, {'xaxis.range': [2.5, 6.5]}).then(() => 0)")
    looks = watch.page.evaluate(
        f"""() => new Promise((done) => {{
          const looks = [], status = document.querySelector(".st-key-run_status");
          const look = () => {{
            const said = Number(/step ([\\d,]+)/.exec(status.textContent)[1].replaceAll(",", ""));
            looks.push({{ ...({LOOKED})(), said }});
            if (new Set(looks.map((one) => one.map)).size > 12) done(looks);
            else requestAnimationFrame(look);
          }};
          requestAnimationFrame(look);
        }})"""
    )
    assert [look for look in looks if len(set(look.values())) > 1] == []
    steps = [look["map"] for look in looks]
    assert steps == sorted(steps)
    assert watch.plot("live_map", "gd.marked === true && gd.querySelector('svg').marked === true")
    assert watch.plot("live_map", "gd.layout.xaxis.range") == [2.5, 6.5]
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")


def test_a_head_and_a_kind_of_attention_answer_a_click_without_the_server(visit):
    """Nothing that it says any more reaches this page."""
    visit.open(f"/?steps=20{SMALL}")
    visit.click("run_start")
    visit.until(lambda: visit.state == "finished" and visit.stands_at(20))
    for key, step in (("ArrowLeft", 19), ("ArrowLeft", 18), ("ArrowLeft", 17), ("ArrowRight", 18)):
        visit.step_by(key)
        visit.until(lambda step=step: visit.stands_at(step))  # whose maps are in the browser from now on
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
            before = visit.plot("live_map", "gd.data[0].z")
            head = 1 - int(large.get_attribute("data-head"))
            visit.tile(0, head)
            visit.page.wait_for_selector(f".live-figure[data-head='{head}']", timeout=1000 * AT_ONCE)
            assert visit.plot("live_map", "gd.data[0].z") != before
            assert visit.stands_at(step)
        visit.step_by("ArrowLeft")
        visit.until(lambda: visit.stands_at(step - 1), AT_ONCE)  # noqa: B023


@pytest.mark.slow
def test_a_reload_and_another_browser_show_the_same_run_undisturbed(watch, app, browser: Browser):
    start(watch, CALM)
    address = watch.page.url
    before = watch.number("live_map", "step")
    watch.page.reload()
    watch.page.wait_for_selector(".st-key-live_map svg.main-svg")
    assert watch.page.url == address
    assert watch.number("live_map", "step") >= before
    assert watch.state == "training"
    other = browser.new_context()
    page = other.new_page()
    page.goto(address)
    page.wait_for_selector(".st-key-live_map svg.main-svg")
    assert "training" in page.locator(".st-key-run_status").inner_text()
    assert page.locator(".st-key-steps input").input_value() == "5000"  # the settings are the run's
    other.close()
    watch.click("run_stop")


def assert_word_is_on_the_axes(watch, word):
    columns = watch.plot("live_map", "gd.layout.xaxis.ticktext.map(t => t.replace('<br>', ''))")
    assert columns == ["[SOS]", *word, "[EOS]"]
    rows = [row.split(" <b>")[0] for row in watch.plot("live_map", "gd.layout.yaxis.ticktext")]
    backwards = word[::-1]
    assert rows == [
        f"{read} → {write}" for read, write in zip(["[SOS]", *backwards], [*backwards, "[EOS]"], strict=True)
    ]


def shown(watch):
    return watch.plot("live_map", "gd.layout.title.text")


def test_a_typed_word_becomes_a_button_and_shows_its_maps_in_any_state_its_past_too(watch):
    start(watch, LONG)

    def ask(text, word):
        watch.type("own_word", text)
        watch.until(lambda: f"“{word}" in shown(watch), what=word)
        expect(watch.page.locator(f".st-key-word button[data-value='{text.lower()}']")).to_have_attribute(
            "aria-pressed", "true"
        )

    ask("Lantern", "lantern”")
    assert_word_is_on_the_axes(watch, "lantern")
    watch.click("run_pause")
    watch.until(lambda: watch.state == "paused")
    ask("moon", "moon”")
    assert_word_is_on_the_axes(watch, "moon")
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    ask("refrigeratorrefrigerator", "refrigerator")
    expect(watch.page.locator(".st-key-live_outputs .chosen [title]")).to_have_attribute(
        "title", "longer than anything trained on"
    )
    watch.choose("word", "moon")
    watch.step_by("Home")
    watch.until(lambda: watch.stands_at(0), what="its map of the untrained model")
    assert_word_is_on_the_axes(watch, "moon")
    assert watch.plot("live_map", "gd.data[0].z.map(r => r.reduce((a, b) => a + b, 0))") == pytest.approx(
        [1.0] * 5, abs=2e-3
    )


@pytest.mark.slow
def test_settings_that_cannot_be_used_are_answered_in_place_and_the_run_goes_on(watch):
    start(watch, CALM)
    for key, value, message in (
        ("heads", "3", "cannot be split into 3 equal heads"),
        ("layers_decoder", "0", "Decoder layers: 0 is outside 1 to 12"),
        ("width", "1000000", "Width: 1,000,000 is outside 2 to 1,024"),
        ("learning_rate", "-1", "Learning rate: -1 cannot be used"),
    ):
        good = watch.page.locator(f".st-key-{key} input").input_value()
        watch.type(key, value)
        expect(watch.page.locator(".stSidebar .stAlert", has_text=message)).to_be_visible()
        expect(watch.page.locator(".st-key-run_start button")).to_be_disabled()
        watch.type(key, good)
        expect(watch.page.locator(".stSidebar .stAlert")).to_have_count(0)
    step = watch.number("live_map", "step")
    watch.until(lambda: watch.number("live_map", "step") > step, what="the run goes on")
    watch.click("run_stop")


@pytest.mark.slow
def test_edited_settings_leave_the_run_alone_and_start_another_beside_it(watch):
    start(watch, f"/?steps=5000{SMALL}")
    first = watch.page.url
    watch.type("seed", "5")
    expect(watch.page.locator(".st-key-run_changes")).to_contain_text("seed 0 → 5")
    button = watch.page.locator(".st-key-run_start button")
    expect(button).to_contain_text("Start new")
    assert watch.page.url.split("run=")[1].split("&")[0] in first
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    button.click()
    watch.until(lambda: watch.state == "training" and watch.number("live_map", "step") > 0)
    watch.until(
        lambda: watch.plot("live_curves", "gd.data[0].y.filter(v => v !== null).length") > 1, what="the ghost"
    )
    expect(watch.page.locator(RUNS)).to_have_count(2)
    watch.click("run_stop")


def test_at_a_slow_pace_every_step_is_drawn(watch):
    watch.open("/?pace=1+steps%2Fs&goal=none&steps=6")
    watch.page.evaluate("""() => {
        window.drawn = [];
        new MutationObserver(() => {
            const host = document.querySelector(".st-key-live_map .live-figure");
            const step = Number(host?.dataset.step ?? 0);
            if (step > 0 && window.drawn.at(-1) !== step) window.drawn.push(step);
        }).observe(document.body, { subtree: true, attributeFilter: ["data-step"] });
    }""")
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    watch.until(lambda: watch.stands_at(6))
    assert watch.page.evaluate("window.drawn") == list(range(1, 7))


def test_a_run_is_commanded_from_the_keyboard(watch):
    watch.open(CALM)
    keyboard = watch.page.keyboard
    keyboard.press("n")
    watch.until(lambda: watch.state == "paused" and watch.number("live_map", "step") == 1)
    keyboard.press("n")
    watch.until(lambda: watch.number("live_map", "step") == 2)
    keyboard.press("s")
    watch.until(lambda: watch.state == "training")
    expect(watch.page.locator(".st-key-run_pause button")).to_be_enabled()
    keyboard.press("p")
    watch.until(lambda: watch.state == "paused")
    keyboard.press("x")
    watch.until(lambda: watch.state == "stopped")
    keyboard.press("s")
    watch.until(lambda: watch.state == "training")
    keyboard.press("x")
    watch.until(lambda: watch.state == "stopped")


@pytest.mark.slow
def test_a_finished_run_goes_on_at_a_stated_rate(watch):
    watch.open(f"/?steps=5{SMALL}")
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    watch.page.locator(".st-key-controls [data-testid=stPopover] button").first.click()
    watch.type("continue_steps", "20")
    watch.page.keyboard.press("Escape")
    watch.click("run_continue")
    watch.until(lambda: "25 / 25" in watch.status)
    watch.until(lambda: watch.number("live_map", "step") == 25)


def test_another_kind_of_attention_is_drawn_in_the_picture_that_is_there(watch):
    """Making a picture anew takes the browser twice as long."""
    watch.open()
    watch.plot("live_map", "{ gd.querySelector('.main-svg').kept = true; return 0 }")
    watch.choose("kind", "decoder")
    watch.until(lambda: "letters written so far" in str(watch.plot("live_map", "gd.layout.xaxis.title.text")))
    assert watch.plot("live_map", "gd.querySelector('.main-svg').kept")
    assert watch.plot("live_map", "gd._context.toImageButtonOptions.filename.includes('decoder')")


def test_a_click_on_a_small_map_keeps_it_large_and_another_one_lets_go_of_it(watch):
    watch.open()
    before = shown(watch)
    watch.tile(1, 1)
    watch.until(lambda: "decoder 2 · head 2" in shown(watch))
    watch.tile(1, 1)
    watch.until(lambda: shown(watch) == before)


def test_a_head_that_is_off_is_drawn_as_off_large_and_among_the_small_maps(watch):
    start(watch, f"{CALM}&head=decoder.0.cross.2")
    watch.page.get_by_role("link", name="Ask", exact=True).click()
    watch.page.get_by_role("tab", name="Break").click()
    heads = watch.page.locator(".st-key-ablate_heads input")
    heads.click()
    watch.page.keyboard.type("dec 1 cross · head 2")
    expect(watch.page.get_by_role("option")).to_have_count(1)
    watch.page.get_by_role("option").click()
    expect(watch.page.locator(".st-key-ablate_heads")).to_contain_text("dec 1 cross · head 2")
    watch.click("intervene_run")
    watch.page.get_by_role("link", name="Watch", exact=True).click()
    watch.page.wait_for_selector(".st-key-live_map .live-figure[data-off='1']")
    watch.page.wait_for_selector(".st-key-live_maps .live-figure[data-off='1']")
    over = watch.page.locator(".st-key-live_map .layer-above image").bounding_box()
    plot = watch.page.locator(".st-key-live_map .nsewdrag").bounding_box()
    assert [over[side] for side in over] == pytest.approx([plot[side] for side in over], abs=2)
    copied = "Plotly.toImage(document.querySelector('.st-key-live_map .js-plotly-plot'), {format: 'svg'})"
    assert "<image" in urllib.parse.unquote(watch.page.evaluate(copied))
    watch.click("run_stop")


def test_nothing_that_comes_or_goes_moves_the_pictures(watch):
    """The end of a run, what was wrong with a word, changed settings, more words than a line has room for."""
    watch.open(f"/?steps=12{SMALL}")

    def stands():
        box = watch.page.locator(".st-key-live_map").bounding_box()
        return box["y"], box["height"]

    before = stands()
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    expect(watch.page.locator(".st-key-run_continue button")).to_be_enabled()
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
    watch.type("seed", "5")
    expect(watch.page.locator(".st-key-run_changes")).to_contain_text("seed 0 → 5")
    assert stands() == before


def test_values_show_under_the_pointer(watch):
    watch.open()
    told = watch.page.locator(".st-key-live_map .hoverlayer")
    watch.point("live_map", 2, 1, lambda: "%" in (told.text_content() or ""))


def test_pictures_follow_a_change_of_theme_in_place(watch):
    watch.open()
    watch.plot("live_map", "{ gd.marked = true; return 0 }")
    light = watch.plot("live_map", "gd._fullLayout.font.color")
    watch.page.emulate_media(color_scheme="dark")
    watch.until(lambda: watch.plot("live_map", "gd._fullLayout.font.color") != light, what="dark text")
    assert watch.plot("live_map", "gd.marked")


@pytest.mark.slow
def test_an_accented_word_is_offered_without_its_accent(watch):
    watch.open()
    watch.type("own_word", "Café")
    watch.click("offered_word")
    watch.until(lambda: "“cafe”" in shown(watch))
    assert_word_is_on_the_axes(watch, "cafe")


@pytest.mark.slow
def test_a_browser_that_is_behind_does_not_take_a_word_back(watch):
    """It asks for parts of the page with what stood in the boxes before the page filled them in."""
    watch.open()
    watch.page.context.new_cdp_session(watch.page).send("Emulation.setCPUThrottlingRate", {"rate": 12})
    watch.type("own_word", "Café")
    watch.click("offered_word")
    watch.until(lambda: "“cafe”" in shown(watch))
    watch.page.wait_for_timeout(3000)  # what it asked late has arrived
    assert "“cafe”" in shown(watch)
    expect(watch.page.locator(".st-key-own_word input")).to_have_value("")
    expect(watch.page.locator(".stAlert")).to_have_count(0)


def test_start_takes_what_stands_in_the_boxes_even_if_it_was_typed_a_moment_ago(watch):
    watch.open(CALM)
    watch.page.locator(".st-key-seed input").fill("7")  # no Enter: the click on Start takes the focus away
    watch.page.locator(".st-key-run_start button").click()
    watch.until(lambda: watch.state == "training" and watch.number("live_map", "step") > 0)
    assert "seed 7" in watch.plot("live_map", "gd.layout.title.text")
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")


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
    page.wait_for_selector(".st-key-live_map svg.main-svg")
    assert len(refused) == 1
    assert page.locator(".live-figure .failed").count() == 0
    context.close()


def test_the_first_map_is_drawn_from_one_run_of_the_page(visit):
    """Also for a browser that keeps the key of an earlier run, which is told behind it."""
    visit.page.add_init_script(
        """new MutationObserver(() => {
          if (window.asked === undefined && document.querySelector(".live-figure[data-step]"))
            window.asked = window.sockets.find((one) => one.url.endsWith("/_stcore/stream")).sent;
        }).observe(document, { subtree: true, childList: true, attributes: true })"""
    )
    visit.open(f"/?steps=5{SMALL}")
    visit.click("run_start")
    visit.until(lambda: visit.state == "finished")
    visit.open("/")
    visit.until(lambda: visit.page.evaluate("window.asked") is not None)
    assert visit.page.evaluate("window.asked") == 1
    expect(visit.page.locator(RUNS)).to_have_count(1)  # the key has been told by now


def test_a_socket_that_was_cut_comes_back_and_tells_what_it_missed(visit):
    start(visit, LONG)
    visit.page.evaluate("window.map = document.querySelector('.st-key-live_map svg.main-svg')")
    cut = "window.sockets.filter((one) => one.url.endsWith('/news') && one.readyState === 1)"
    assert visit.page.evaluate(f"{cut}.map((one) => one.close()).length") == 1
    seen = visit.looked()["map"]
    visit.until(lambda: visit.page.evaluate(f"{cut}.length") == 1, what="another socket")
    visit.until(lambda: visit.looked()["map"] > seen, what="a later step")
    assert visit.page.evaluate("window.map.isConnected")
    expect(visit.page.get_by_test_id("stException")).to_have_count(0)
    visit.click("run_stop")


def test_a_hidden_tab_is_sent_nothing_until_it_is_seen_again(visit):
    start(visit, LONG)
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
    visit.page.wait_for_timeout(1000)  # what was on its way
    heard, seen = visit.page.evaluate(news), visit.looked()["map"]
    visit.page.wait_for_timeout(2000)
    assert visit.page.evaluate(news) == heard
    hide(False)
    visit.until(lambda: visit.looked()["map"] > seen, what="a later step")
    visit.click("run_stop")


def test_all_heads_of_a_large_model_are_small_maps_side_by_side_with_their_names_beside_them(watch):
    watch.open("/?layers_encoder=6&layers_decoder=6&heads=8&width=16")
    watch.until(lambda: watch.plot("live_maps", "gd.layout.shapes.length") == 48)
    rows, columns = watch.plot("live_map", "[gd.data[0].z.length, gd.data[0].z[0].length]")
    tiles = watch.plot("live_maps", "gd.data[0].z")
    places = [(head * (rows + 1), layer * (columns + 1)) for head in range(8) for layer in range(6)]
    for y, x in places:
        for row in tiles[y : y + rows]:
            assert sum(row[x : x + columns]) == pytest.approx(1.0, abs=2e-3)
    field, names, pictures = watch.plot(
        "live_maps",
        """{
          const box = (one) => (({ left, right, top, bottom }) => [left, top, right, bottom])
            (one.getBoundingClientRect());
          return [box(gd.querySelector(".nsewdrag")), [...gd.querySelectorAll(".annotation-text")].map(box),
            [...gd.querySelectorAll(".shapelayer path")].map(box)];
        }""",
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
