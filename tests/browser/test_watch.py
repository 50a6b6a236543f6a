"""What only a browser shows: pictures that stay in place, commands that answer, words that appear at once."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

LONG = "/?steps=5000&goal=none"


def start(watch, path="/"):
    watch.open(path)
    watch.click("run_start")
    watch.until(lambda: watch.number("live_map", "step") > 0, 10, "the first trained map")


def test_before_start_the_untrained_model_is_on_the_screen(watch):
    watch.open()
    assert watch.number("live_map", "step") == 0
    assert "idle" in watch.status
    expect(watch.page.locator(".st-key-words_right")).to_contain_text("0 / 200")
    assert watch.plot("live_map", "gd.data[0].z.map(r => r.reduce((a, b) => a + b, 0))") == pytest.approx(
        [1.0] * 11, abs=2e-3
    )


def test_one_press_trains_until_the_goal_and_names_the_head_that_turned(watch):
    watch.open()
    watch.click("run_start")
    took = watch.until(lambda: watch.number("live_map", "step") > 0, 10)
    assert took < 5
    watch.until(lambda: "finished" in watch.status, 120, "the end of the default preset")
    moment = watch.page.locator(".st-key-moment")
    expect(moment).to_contain_text("turned anti-diagonal")
    expect(moment).to_contain_text("Goal reached")
    assert "★" in watch.plot("live_maps", "gd.layout.annotations.map(a => a.text).join()")
    watch.until(
        lambda: watch.number("live_map", "step") == watch.number("live_curves", "step"), 5, "the last frame"
    )


def test_pictures_stay_in_place_and_keep_a_zoom_while_training_goes_on(watch):
    start(watch, LONG)
    watch.plot("live_map", "{ gd.marked = true; gd.querySelector('svg').marked = true; return 0 }")
    watch.plot("live_map", "window.Plotly.relayout(gd, {'xaxis.range': [2.5, 6.5]}).then(() => 0)")
    steps = [watch.number("live_map", "step")]
    draws = watch.number("live_map", "draws")
    for _ in range(20):
        watch.until(lambda: watch.number("live_map", "step") > steps[-1], 5, "another update")
        steps.append(watch.number("live_map", "step"))
    assert watch.number("live_map", "draws") >= draws + 20
    assert watch.plot("live_map", "gd.marked === true && gd.querySelector('svg').marked === true")
    assert watch.plot("live_map", "gd.layout.xaxis.range") == [2.5, 6.5]
    watch.click("run_stop")
    assert watch.until(lambda: "stopped" in watch.status, 3) < 1.0


def test_a_reload_and_another_browser_show_the_same_run_undisturbed(watch, app, browser: Browser):
    start(watch, LONG)
    address = watch.page.url
    before = watch.number("live_map", "step")
    watch.page.reload()
    watch.page.wait_for_selector(".st-key-live_map svg.main-svg")
    assert watch.page.url == address
    assert watch.number("live_map", "step") >= before
    assert "training" in watch.status
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
    start(watch, LONG)
    watch.type("own_word", "Lantern")
    assert watch.until(lambda: shows(watch, "“lantern”"), 5) < 2.5
    assert_word_is_on_the_axes(watch, "lantern")
    watch.click("run_pause")
    watch.until(lambda: "paused" in watch.status, 3)
    watch.type("own_word", "moon")
    assert watch.until(lambda: shows(watch, "“moon”"), 5) < 2.5
    assert_word_is_on_the_axes(watch, "moon")
    watch.click("run_stop")
    watch.until(lambda: "stopped" in watch.status, 3)
    watch.type("own_word", "refrigeratorrefrigerator")
    assert watch.until(lambda: shows(watch, "refrigeratorrefrigerator"), 5) < 2.5
    expect(watch.page.locator(".st-key-live_outputs tr.chosen [title]")).to_have_attribute(
        "title", "longer than anything trained on"
    )


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("   ", "There is no word to ask"),
        ("abc123", "Only the letters a to z"),
        ("über", "Try uber"),
        ("a" * 50, "50 letters is too long"),
    ],
)
def test_a_word_that_cannot_be_asked_is_answered_in_place(watch, word, message):
    watch.open()
    watch.plot("live_map", "{ gd.marked = true; return 0 }")
    watch.type("own_word", word)
    expect(watch.page.locator(".stAlert", has_text=message)).to_be_visible()
    assert watch.plot("live_map", "gd.marked")


def test_an_empty_box_is_answered_too(watch):
    watch.open()
    watch.click("add_word")
    expect(watch.page.locator(".stAlert", has_text="There is no word to ask")).to_be_visible()


def test_settings_that_cannot_be_used_are_answered_in_place_and_the_run_goes_on(watch):
    start(watch, LONG)
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
    watch.until(lambda: watch.number("live_map", "step") > step, 5, "the run goes on")
    watch.click("run_stop")


def test_edited_settings_leave_the_run_alone_and_start_another_beside_it(watch):
    start(watch, LONG)
    first = watch.page.url
    watch.plot("live_map", "{ gd.marked = true; return 0 }")
    watch.type("seed", "5")
    expect(watch.page.locator(".st-key-run_changes")).to_contain_text("seed 0 → 5")
    button = watch.page.locator(".st-key-run_start button")
    expect(button).to_contain_text("Start a new run with these changes")
    assert watch.page.url.split("run=")[1].split("&")[0] in first
    watch.click("run_stop")
    watch.until(lambda: "stopped" in watch.status, 3)
    button.click()
    watch.until(lambda: "training" in watch.status and watch.number("live_map", "step") > 0, 10)
    watch.until(
        lambda: watch.plot("live_curves", "gd.data[0].y.filter(v => v !== null).length") > 1, 5, "the ghost"
    )
    expect(watch.page.locator(".st-key-run_list button")).to_have_count(2)
    assert watch.plot("live_map", "gd.marked")
    watch.click("run_stop")


def test_at_a_slow_pace_every_step_is_drawn(watch):
    watch.open("/?pace=5+steps%2Fs&goal=none&steps=10")
    draws = watch.number("live_map", "draws")
    watch.click("run_start")
    watch.until(lambda: "finished" in watch.status, 30)
    watch.until(lambda: watch.number("live_map", "step") == 10, 5)
    assert watch.number("live_map", "draws") - draws == 10


def test_a_run_is_commanded_from_the_keyboard(watch):
    watch.open(LONG)
    keyboard = watch.page.keyboard
    keyboard.press("n")
    watch.until(lambda: "paused" in watch.status and watch.number("live_map", "step") == 1, 10)
    keyboard.press("n")
    watch.until(lambda: watch.number("live_map", "step") == 2, 5)
    keyboard.press("p")
    watch.until(lambda: "training" in watch.status, 5)
    keyboard.press("p")
    watch.until(lambda: "paused" in watch.status, 5)
    keyboard.press("x")
    watch.until(lambda: "stopped" in watch.status, 5)
    keyboard.press("s")
    watch.until(lambda: "training" in watch.status, 10)
    keyboard.press("x")
    watch.until(lambda: "stopped" in watch.status, 5)


def test_a_finished_run_goes_on_at_a_stated_rate(watch):
    watch.open("/?steps=5&goal=none")
    watch.click("run_start")
    watch.until(lambda: "finished" in watch.status, 20)
    watch.type("continue_steps", "20")
    watch.click("run_continue")
    watch.until(lambda: "25 / 25" in watch.status, 20)
    watch.until(lambda: watch.number("live_map", "step") == 25, 5)


def test_a_click_on_a_small_map_keeps_it_large(watch):
    watch.open()
    before = watch.plot("live_map", "gd.layout.title.text")
    strip = watch.page.locator(".st-key-live_maps .live-figure")
    box = strip.bounding_box()
    strip.click(position={"x": box["width"] * 0.7, "y": box["height"] * 0.4})
    watch.until(lambda: "decoder 2 · head 2" in watch.plot("live_map", "gd.layout.title.text"), 5)
    strip.click(position={"x": box["width"] * 0.7, "y": box["height"] * 0.4})
    watch.until(lambda: watch.plot("live_map", "gd.layout.title.text") == before, 5)


def test_values_show_under_the_pointer(watch):
    watch.open()
    watch.page.locator(".st-key-live_map .nsewdrag").hover(position={"x": 100, "y": 100})
    expect(watch.page.locator(".st-key-live_map .hoverlayer .hovertext")).to_contain_text("%")


def test_pictures_follow_a_change_of_theme_in_place(watch):
    watch.open()
    watch.plot("live_map", "{ gd.marked = true; return 0 }")
    light = watch.plot("live_map", "gd._fullLayout.font.color")
    watch.page.emulate_media(color_scheme="dark")
    watch.until(lambda: watch.plot("live_map", "gd._fullLayout.font.color") != light, 10, "dark text")
    assert watch.plot("live_map", "gd.marked")


def test_an_accented_word_is_offered_without_its_accent(watch):
    watch.open()
    watch.type("own_word", "Café")
    watch.click("offered_word")
    watch.until(lambda: shows(watch, "“cafe”"), 5)
    assert_word_is_on_the_axes(watch, "cafe")


def test_a_browser_that_is_behind_does_not_take_a_word_back(watch):
    """It refreshes with what stood in the boxes before the page filled them in."""
    watch.open()
    watch.page.context.new_cdp_session(watch.page).send("Emulation.setCPUThrottlingRate", {"rate": 12})
    watch.type("own_word", "Café")
    watch.click("offered_word")
    watch.until(lambda: shows(watch, "“cafe”"), 20)
    watch.page.wait_for_timeout(3000)  # its late refreshes have arrived
    assert shows(watch, "“cafe”")
    expect(watch.page.locator(".st-key-own_word input")).to_have_value("")
    expect(watch.page.locator(".stAlert")).to_have_count(0)


def test_start_takes_what_stands_in_the_boxes_even_if_it_was_typed_a_moment_ago(watch):
    watch.open(LONG)
    watch.page.locator(".st-key-seed input").fill("7")  # no Enter: the click on Start takes the focus away
    watch.page.locator(".st-key-run_start button").click()
    watch.until(lambda: "training" in watch.status and watch.number("live_map", "step") > 0, 15)
    assert "seed 7" in watch.plot("live_map", "gd.layout.title.text")
    watch.click("run_stop")
    watch.until(lambda: "stopped" in watch.status, 3)


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

    page.route("**/app/static/plotly-*", refuse_once)
    page.goto(app)
    page.wait_for_selector(".st-key-live_map svg.main-svg", timeout=30_000)
    assert len(refused) == 1
    assert page.locator(".live-figure .failed").count() == 0
    context.close()
