"""Watch in a browser: Start, words, settings and keys, and panels that agree during training."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import CALM, FAST, RUNS, SMALL, STEADY, shown, start
from tests.browser.watcher import FRAMES, LOOKED

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
"""Every visible text of the player, with its font size."""


def test_start_can_be_pressed_as_soon_as_it_appears(first_visit):
    page = first_visit.page
    page.add_init_script("""const press = setInterval(() => {
        const start = document.querySelector(".st-key-run_start button");
        if (!start) return;
        clearInterval(press);
        start.click();
    }, 1)""")
    first_visit.open(STEADY)
    first_visit.until(lambda: first_visit.state == "training")
    expect(first_visit.button("run_pause")).to_contain_text("Pause")
    expect(page.locator(RUNS)).to_have_count(1)


def test_one_press_trains_to_the_goal_and_full_screen_shows_the_anti_diagonal_head_in_large_type(watch):
    start(watch)
    watch.until(lambda: watch.state == "training")
    mark = watch.page.locator(".st-key-moments button").first
    mark.focus()
    named = mark.get_attribute("aria-label")
    watch.until(lambda: watch.state == "finished", 240, "the end of the default preset")
    expect(watch.page.locator(":focus")).to_have_attribute("aria-label", named)  # though other moments came
    moment = watch.page.locator(".st-key-moment")
    expect(moment).to_contain_text("reads the word backwards")
    expect(watch.page.locator(".st-key-run_status p")).to_contain_text("goal reached")
    turned = watch.page.locator(".st-key-moments button[aria-label*='began to read backwards']").first
    last = int(watch.page.locator(".st-key-time_step .time-slider").get_attribute("data-newest"))
    watch.until(lambda: watch.stands_at(last), what="the last frame")
    assert "cross 2" in shown(watch)
    widths = watch.plot("live_maps", FRAMES)
    assert sorted(set(widths)) == [0, 2, 4]  # other heads, anti-diagonal heads, and the enlarged head
    step = int(turned.get_attribute("data-step"))
    turned.press("Enter")
    watch.until(lambda: watch.stands_at(step), what="the step of the moment")
    expect(watch.page.locator(".time-slider .bubble")).to_contain_text("began to read backwards")
    expect(watch.page.locator(".st-key-run_status")).to_contain_text("a milestone (head, loss or test score)")
    signs = watch.page.locator(".st-key-live_outputs > small")  # only those that an output has
    wrong = watch.page.locator(".hl-outputs .no").count() > 0
    assert ("dotted: wrong" in signs.text_content()) == wrong
    current = watch.page.locator(".st-key-moments button[aria-current=true]")
    expect(current).to_have_attribute("data-step", str(step))  # the last of several at one step
    watch.page.keyboard.press("f")
    watch.until(lambda: watch.page.evaluate("Boolean(document.fullscreenElement)"))
    watch.until(lambda: watch.plot("live_map", "gd.clientHeight") > 400)
    watch.page.wait_for_timeout(500)  # until the font size has changed
    found = watch.page.evaluate(FONTS)
    assert [one for one in found if one[0] < 24] == []
    written = "".join(text for _, text in found)
    for part in ("finished", "cross 2", "[SOS]", "head 1", "layer 2", "test words right"):
        assert part in written
    inside = watch.page.evaluate(
        "(({ scrollWidth, scrollHeight }) => [scrollWidth, scrollHeight])(document.fullscreenElement)"
    )
    assert inside == [1280, 720]
    watch.step_by("ArrowLeft")
    watch.until(lambda: (at := watch.number("live_map", "step")) < step and watch.stands_at(at))
    watch.page.keyboard.press("f")
    watch.until(lambda: not watch.page.evaluate("Boolean(document.fullscreenElement)"))


def test_during_training_the_step_never_decreases_and_all_panels_show_the_same_step(watch):
    start(watch, FAST)
    watch.plot("live_map", "gd.querySelector('canvas').kept = true")
    looks = watch.page.evaluate(
        f"""() => new Promise((done) => {{
          const looks = [];
          const look = () => {{
            looks.push(({LOOKED})());
            if (new Set(looks.map((one) => one.map)).size > 12) done(looks);
            else requestAnimationFrame(look);
          }};
          requestAnimationFrame(look);
        }})"""
    )
    assert [look for look in looks if len(set(look.values())) > 1] == []
    steps = [look["map"] for look in looks]
    assert steps == sorted(steps)
    assert watch.plot("live_map", "gd.querySelector('canvas').kept")


@pytest.mark.slow
def test_a_reload_and_another_browser_show_the_same_run_undisturbed(watch, guest):
    start(watch, CALM)
    address = watch.page.url
    before = watch.number("live_map", "step")
    watch.page.reload()
    watch.page.wait_for_selector(".st-key-live_map .map[data-step]")
    assert watch.page.url == address
    assert watch.number("live_map", "step") >= before
    assert watch.state == "training"
    guest.open(address.removeprefix(guest.app))
    assert guest.state == "training"
    assert guest.page.locator(".st-key-steps input").input_value() == "5000"  # the settings are the run's


def assert_word_is_on_the_axes(watch, word):
    columns = watch.plot("live_map", "gd.picture.columns")
    assert columns == ["[SOS]", *word, "[EOS]"]
    rows = watch.plot("live_map", "gd.picture.rows")
    backwards = word[::-1]
    assert rows == [
        f"{read} → {write}" for read, write in zip(["[SOS]", *backwards], [*backwards, "[EOS]"], strict=True)
    ]


def test_a_typed_word_becomes_a_button_and_shows_current_and_past_maps_in_any_state(watch):
    start(watch, STEADY)

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
    assert watch.plot("live_map", "weights().map(r => r.reduce((a, b) => a + b, 0))") == pytest.approx(
        [1.0] * 5, abs=2e-3
    )


@pytest.mark.slow
def test_invalid_settings_show_an_error_in_place_and_the_run_goes_on(watch):
    start(watch, CALM)
    watch.page.get_by_text("All settings").click()
    for key, value, message in (
        ("heads", "3", "cannot be split into 3 equal heads"),
        ("layers_decoder", "0", "Decoder layers: 0 is outside 1 to 12"),
        ("width", "1000000", "Width: 1,000,000 is outside 2 to 1,024"),
        ("learning_rate", "-1", "Learning rate: -1 cannot be used"),
    ):
        good = watch.page.locator(f".st-key-{key} input").input_value()
        watch.type(key, value)
        expect(watch.page.locator(".stSidebar .stAlert", has_text=message)).to_be_visible()
        expect(watch.page.locator(".st-key-run_start button")).to_have_count(0)
        watch.type(key, good)
        expect(watch.page.locator(".stSidebar .stAlert")).to_have_count(0)
    step = watch.number("live_map", "step")
    watch.until(lambda: watch.number("live_map", "step") > step, what="the run goes on")


@pytest.mark.slow
def test_edited_settings_do_not_change_the_run_and_start_a_second_one(watch):
    start(watch, f"/?steps=5000{SMALL}")
    first = watch.page.url
    watch.page.get_by_text("All settings").click()
    watch.type("seed", "5")
    expect(watch.page.locator(".st-key-run_changes")).to_contain_text("seed 0 → 5")
    button = watch.page.locator(".st-key-run_start button")
    expect(button).to_contain_text("New run")
    assert watch.page.url.split("run=")[1].split("&")[0] in first
    watch.click("run_stop")
    watch.until(lambda: watch.state == "stopped")
    button.click()
    watch.until(lambda: watch.state == "training" and watch.number("live_map", "step") > 0)
    watch.until(
        lambda: watch.plot("live_curves", "gd.data[0].y.filter(v => v !== null).length") > 1, what="the ghost"
    )
    expect(watch.page.locator(RUNS)).to_have_count(2)


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


def test_a_run_is_controlled_by_keyboard(watch):
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
    expect(watch.page.locator(".st-key-run_start button").filter(has_text="New run")).to_be_enabled()
    keyboard.press("s")
    watch.until(lambda: watch.state == "training")
    keyboard.press("x")
    watch.until(lambda: watch.state == "stopped")


@pytest.mark.slow
def test_a_slow_browser_does_not_undo_the_choice_of_a_word(first_visit):
    """The browser's late requests carry values of text boxes from before the page filled them in."""
    watch = first_visit
    watch.open()
    watch.page.context.new_cdp_session(watch.page).send("Emulation.setCPUThrottlingRate", {"rate": 12})
    watch.type("own_word", "Café")
    watch.click("offered_word")
    watch.until(lambda: "“cafe”" in shown(watch))
    watch.page.wait_for_timeout(3000)  # until its late requests have been answered
    assert_word_is_on_the_axes(watch, "cafe")
    expect(watch.page.locator(".st-key-own_word input")).to_have_value("")
    expect(watch.page.locator(".stAlert")).to_have_count(0)


def test_start_uses_the_values_in_the_boxes_even_if_they_were_just_typed(watch):
    watch.open(CALM)
    watch.page.get_by_text("All settings").click()
    watch.page.locator(".st-key-seed input").fill("7")  # no Enter: the click on Start takes the focus away
    watch.page.locator(".st-key-run_start button").click()
    watch.until(lambda: watch.state == "training" and watch.number("live_map", "step") > 0)
    assert "seed 7" in watch.plot("live_map", "title()")
