"""What only a browser shows: pictures that stay in place, commands that answer, words that appear at once."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks._browser import Refreshes
from tests.browser.conftest import Watcher

LONG = "/?steps=5000&goal=none"
"""At full speed."""
SMALL = "&goal=none&layers_encoder=1&layers_decoder=1&heads=2&width=16"
CALM = f"/?steps=5000{SMALL}&pace=1+steps%2Fs"
"""Leaves the processor to the page."""
RUNS = ".st-key-run_picker [class*=st-key-show_] button"
AT_ONCE = 4
"""Refreshes of the page, two a second where the machine is quiet."""


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
    page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
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


def test_one_press_trains_until_the_goal_and_names_the_head_that_turned(watch):
    watch.open()
    watch.click("run_start")
    watch.until(lambda: watch.number("live_map", "step") > 0, what="the first trained map")
    watch.until(lambda: watch.state == "finished", 240, "the end of the default preset")
    moment = watch.page.locator(".st-key-moment")
    expect(moment).to_contain_text("turned anti-diagonal")
    expect(moment).to_contain_text("Goal reached")
    assert "★" in watch.plot("live_maps", "gd.layout.annotations.map(a => a.text).join()")
    watch.until(
        lambda: watch.number("live_map", "step") == watch.number("live_curves", "step"), what="the last frame"
    )


def test_pictures_stay_in_place_and_keep_a_zoom_while_training_goes_on(watch):
    refreshes = Refreshes(watch.page)
    start(watch, LONG)
    watch.plot("live_map", "{ gd.marked = true; gd.querySelector('svg').marked = true; return 0 }")
    watch.plot("live_map", "window.Plotly.relayout(gd, {'xaxis.range': [2.5, 6.5]}).then(() => 0)")
    steps = [watch.number("live_map", "step")]
    draws = watch.number("live_map", "draws")
    for _ in range(8):
        watch.until(lambda: watch.number("live_map", "step") > steps[-1], what="another update")
        steps.append(watch.number("live_map", "step"))
    assert watch.number("live_map", "draws") >= draws + 8
    assert watch.plot("live_map", "gd.marked === true && gd.querySelector('svg').marked === true")
    assert watch.plot("live_map", "gd.layout.xaxis.range") == [2.5, 6.5]
    before = refreshes.count
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    assert refreshes.count - before <= AT_ONCE


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


def shows(watch, word):
    return word in watch.plot("live_map", "gd.layout.title.text")


def test_a_typed_word_shows_its_maps_at_once_in_any_state(watch):
    """Within the next refreshes of the page, however long a busy machine takes over one."""
    refreshes = Refreshes(watch.page)
    start(watch, LONG)

    def ask(text, shown):
        before = refreshes.count
        watch.type("own_word", text)
        watch.until(lambda: shows(watch, shown), what=shown)
        assert refreshes.count - before <= AT_ONCE

    ask("Lantern", "“lantern”")
    assert_word_is_on_the_axes(watch, "lantern")
    watch.click("run_pause")
    watch.until(lambda: watch.state == "paused")
    ask("moon", "“moon”")
    assert_word_is_on_the_axes(watch, "moon")
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    ask("refrigeratorrefrigerator", "refrigeratorrefrigerator")
    expect(watch.page.locator(".st-key-live_outputs tr.chosen [title]")).to_have_attribute(
        "title", "longer than anything trained on"
    )


def test_a_word_that_cannot_be_asked_is_answered_in_place(watch):
    watch.open()
    watch.plot("live_map", "{ gd.marked = true; return 0 }")
    answer = watch.page.locator(".stAlert")
    watch.click("add_word")  # an empty box
    expect(answer).to_contain_text("There is no word to ask")
    for word, message in (
        ("abc123", "Only the letters a to z"),
        ("   ", "There is no word to ask"),
        ("über", "Try uber"),
        ("a" * 50, "50 letters is too long"),
    ):
        watch.type("own_word", word)
        expect(answer).to_contain_text(message)
        expect(answer).to_have_count(1)
    assert watch.plot("live_map", "gd.marked")


@pytest.mark.slow
def test_settings_that_cannot_be_used_are_answered_in_place_and_the_run_goes_on(watch):
    start(watch, CALM)
    for key, value, message in (
        ("heads", "3", "cannot be split into n_heads=3"),
        ("layers_decoder", "0", "n_decoder_layers=0 is outside 1 to 12"),
        ("width", "1000000", "d_model=1,000,000 is outside 2 to 1,024"),
        ("learning_rate", "-1", "learning_rate=-1 cannot be used"),
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
    watch.plot("live_map", "{ gd.marked = true; return 0 }")
    watch.type("seed", "5")
    expect(watch.page.locator(".st-key-run_changes")).to_contain_text("seed 0 → 5")
    button = watch.page.locator(".st-key-run_start button")
    expect(button).to_contain_text("Start a new run with these changes")
    assert watch.page.url.split("run=")[1].split("&")[0] in first
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    button.click()
    watch.until(lambda: watch.state == "training" and watch.number("live_map", "step") > 0)
    watch.until(
        lambda: watch.plot("live_curves", "gd.data[0].y.filter(v => v !== null).length") > 1, what="the ghost"
    )
    expect(watch.page.locator(RUNS)).to_have_count(2)
    assert watch.plot("live_map", "gd.marked")
    watch.click("run_stop")


def test_at_a_slow_pace_every_step_is_drawn(watch):
    watch.open("/?pace=1+steps%2Fs&goal=none&steps=12")
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
    watch.until(lambda: watch.number("live_map", "step") == 12)
    assert watch.page.evaluate("window.drawn") == list(range(1, 13))


def test_a_run_is_commanded_from_the_keyboard(watch):
    watch.open(CALM)
    keyboard = watch.page.keyboard
    keyboard.press("n")
    watch.until(lambda: watch.state == "paused" and watch.number("live_map", "step") == 1)
    keyboard.press("n")
    watch.until(lambda: watch.number("live_map", "step") == 2)
    keyboard.press("p")
    watch.until(lambda: watch.state == "training")
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
    watch.type("continue_steps", "20")
    watch.click("run_continue")
    watch.until(lambda: "25 / 25" in watch.status)
    watch.until(lambda: watch.number("live_map", "step") == 25)


def test_a_click_on_a_small_map_keeps_it_large(watch):
    watch.open()
    before = watch.plot("live_map", "gd.layout.title.text")
    x, y = watch.plot("live_maps", "[gd.data[3].x[1], gd.data[3].y[1]]")
    watch.press("live_maps", x, y)
    watch.until(lambda: "decoder 2 · head 2" in watch.plot("live_map", "gd.layout.title.text"))
    watch.press("live_maps", x, y)
    watch.until(lambda: watch.plot("live_map", "gd.layout.title.text") == before)


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
    watch.until(lambda: shows(watch, "“cafe”"))
    assert_word_is_on_the_axes(watch, "cafe")


@pytest.mark.slow
def test_a_browser_that_is_behind_does_not_take_a_word_back(watch):
    """It refreshes with what stood in the boxes before the page filled them in."""
    watch.open()
    watch.page.context.new_cdp_session(watch.page).send("Emulation.setCPUThrottlingRate", {"rate": 12})
    watch.type("own_word", "Café")
    watch.click("offered_word")
    watch.until(lambda: shows(watch, "“cafe”"))
    watch.page.wait_for_timeout(3000)  # its late refreshes have arrived
    assert shows(watch, "“cafe”")
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


def test_another_kind_of_attention_is_shown_without_running_the_rest_of_the_page(watch):
    ended = []

    def note(data):
        message = ForwardMsg.FromString(data)
        if message.WhichOneof("type") == "script_finished":
            ended.append(message.script_finished)

    watch.page.on("websocket", lambda socket: socket.on("framereceived", note))
    start(watch, CALM)
    watch.page.evaluate(
        """{
          window.drawn = [];
          for (const name of ["live_map", "live_maps"]) {
            const host = document.querySelector(`.st-key-${name} .live-figure`);
            const note = () => window.drawn.push(name);
            new MutationObserver(note).observe(host, { attributeFilter: ["data-draws"] });
          }
        }"""
    )
    watch.click("run_pause")
    watch.until(lambda: watch.state == "paused")
    watch.page.wait_for_timeout(2500)  # the last refreshes are over
    ended.clear()
    watch.page.evaluate("window.drawn = []")
    watch.page.locator(".st-key-kind button", has_text="Encoder").click()
    watch.until(lambda: "encoder" in watch.plot("live_map", "gd.layout.title.text"))
    watch.until(lambda: watch.page.evaluate("window.drawn.length") >= 2)
    assert {*ended} == {ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY}
    assert watch.page.evaluate("window.drawn") == ["live_map", "live_maps"]  # what was asked for comes first
    assert "kind=encoder" in watch.page.url


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
