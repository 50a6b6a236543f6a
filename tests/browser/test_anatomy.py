"""Look inside in a browser: opening boxes, pointing at numbers, and the links to the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SMALL, STEADY, start, trained
from transformer.anatomy.parts import score_parts
from transformer.anatomy.trace import trace
from transformer.config.recipes import RECIPES
from transformer.runs.untrained import untrained_model
from transformer.storage.own_data import OwnData
from transformer.tasks import resolved, task_of

FRAMED = """(figure) => {
  const cells = figure.querySelector("canvas").getBoundingClientRect();
  const [high, wide] = figure.querySelector("small").textContent.split("×").map(Number);
  return [...figure.querySelectorAll(".cells i")].filter((one) => !one.hidden).map((one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    const [down, across] = [cells.height / high, cells.width / wide];
    return [(y - cells.y) / down, (x - cells.x) / across, height / down, width / across].map(Math.round);
  });
}"""
"""Row, column, height and width, in cells, of every visible frame on a table."""
WEIGHTS = "[data-box='decoder.1.cross'] figure[data-table=weights]"


def look_inside(watch):
    watch.page.get_by_role("link", name="Look inside").click()
    watch.drawn("model_picture")


@pytest.fixture
def inside(watch):
    """The picture of an untrained model for "cat"."""
    watch.open("/?word=cat")
    look_inside(watch)
    return watch


@pytest.fixture(scope="module")
def run(app):
    """The id of a finished run of 60 steps."""
    return trained(app, f"steps=60{SMALL}&word=cat")


def title(watch, name):
    return watch.page.locator(f".st-key-model_picture [data-box='{name}'] .title")


def test_a_box_that_is_closed_at_once_stays_closed_and_opens_again(inside):
    box = inside.page.locator("[data-box='decoder.1.cross'].open")
    for delay in (40, 160, 400):
        title(inside, "decoder.1.cross").click()
        inside.page.wait_for_timeout(delay)
        inside.page.locator("[data-box='decoder.1.cross'] .closes").click()
        inside.page.wait_for_timeout(1500)
        expect(box).to_have_count(0)
        inside.until(lambda: "box=" not in inside.page.url)
    title(inside, "decoder.1.cross").click()
    expect(box).to_have_count(1)
    inside.until(lambda: "box=decoder.1.cross" in inside.page.url)
    inside.page.reload()
    expect(box).to_have_count(1)
    inside.errors[:] = [error for error in inside.errors if "404" not in error]  # Streamlit's own 404s


def point(watch, row, column, figure=WEIGHTS):
    """Move the pointer to a cell of a table; return its position on the page."""
    table = watch.page.locator(figure)
    high, wide = map(int, table.locator("small").inner_text().split("×"))
    box = table.locator("canvas").bounding_box()
    x, y = box["x"] + (column + 0.5) * box["width"] / wide, box["y"] + (row + 0.5) * box["height"] / high
    watch.page.mouse.move(x, y)
    return x, y


def framed(watch, table):
    return watch.page.locator(f"[data-box='decoder.1.cross'] figure[data-table={table}]").evaluate(FRAMED)


def readout(watch):
    return watch.page.locator(".st-key-model_readout").inner_text()


def percent(watch):
    return float(readout(watch).rpartition(": ")[2].removesuffix("%"))


def has_focus(locator):
    return locator.evaluate("element => element === document.activeElement")


def test_a_box_opens_in_place_and_closes_by_click_and_by_keyboard_alone(inside):
    cross = title(inside, "decoder.1.cross")
    cross.click()
    expect(cross).to_have_attribute("aria-expanded", "true")
    assert inside.page.locator(".st-key-model_picture figure.table").count() > 10
    cross.click()
    expect(cross).to_have_attribute("aria-expanded", "false")
    expect(inside.page.locator(".st-key-model_picture figure.table")).to_have_count(0)
    title(inside, "encoder.embedding").focus()
    inside.page.keyboard.press("ArrowRight")
    first = title(inside, "encoder.0")
    assert has_focus(first)
    inside.page.keyboard.press("Enter")
    expect(first).to_have_attribute("aria-expanded", "true")
    table = inside.page.locator("[data-box='encoder.0'] figure.table").last
    for _ in range(40):
        inside.page.keyboard.press("Tab")
        if has_focus(table):
            break
    inside.page.keyboard.press("ArrowDown")
    inside.page.keyboard.press("ArrowDown")
    assert readout(inside).startswith("Self-attention 1 · after · “c” · feature 1: ")
    inside.page.keyboard.press("Escape")
    expect(first).to_have_attribute("aria-expanded", "false")
    assert has_focus(first)
    inside.page.keyboard.press("ArrowDown")
    assert has_focus(title(inside, "decoder.0.self"))


def test_pointing_at_a_number_frames_the_related_numbers_without_a_request_to_the_server(inside):
    title(inside, "decoder.1.cross").click()
    inside.page.wait_for_timeout(1000)  # until the open box has been sent
    asked = []
    note = lambda request: asked.append(request.url)  # noqa: E731
    inside.page.on("request", note)
    sent = "window.sockets.reduce((sum, one) => sum + one.sent, 0)"
    before = inside.page.evaluate(sent)
    point(inside, 2, 3)
    expect(inside.page.locator(".st-key-model_readout")).to_contain_text("softmax: weights · “a → c” · “t”: ")
    width = 8  # of 32 features in 4 heads
    assert framed(inside, "weights") == [[2, 3, 1, 1]]
    assert framed(inside, "query") == [[2, 0, 1, width]]
    assert framed(inside, "key") == framed(inside, "value") == [[3, 0, 1, width]]
    point(inside, 3, 5, WEIGHTS.replace("weights", "value"))
    assert framed(inside, "key") == framed(inside, "scores") == []  # scores do not depend on values
    assert framed(inside, "mixed") == [[0, 5, 4, 1]]
    assert framed(inside, "weights") == [[0, 3, 4, 1]]
    into = inside.page.locator(f"{WEIGHTS.replace('weights', 'mixed')} .cells i.into:not([hidden])")
    expect(into).to_have_count(1)
    inside.page.wait_for_timeout(500)
    inside.page.remove_listener("request", note)
    assert (asked, inside.page.evaluate(sent)) == ([], before)


def test_a_click_selects_a_cell_and_shows_its_formula_and_a_second_click_deselects_it(inside):
    title(inside, "decoder.1.cross").click()
    inside.page.wait_for_timeout(1000)  # until the open box has been sent
    inside.page.mouse.click(*point(inside, 2, 3))
    formula = inside.page.locator(".st-key-anatomy_formula annotation")
    inside.until(lambda: formula.count() == 2, what="the formula")
    numbers = formula.all_text_contents()[1]
    assert numbers.startswith("w_{3,4} = ")
    assert float(numbers.split()[-1]) == pytest.approx(percent(inside) / 100, abs=1e-3)
    assert "box=decoder.1.cross~0~2~3~weights" in inside.page.url.replace("%7E", "~")
    inside.page.mouse.click(*point(inside, 2, 3))
    expect(formula).to_have_count(0)


def test_a_kept_score_has_a_table_of_its_parts_that_adds_up_and_follows_the_cell(inside):
    config = RECIPES["default"].small
    model = untrained_model(config, [task_of(config).question("cat")], OwnData()).result()
    passed = trace(resolved(config), model.view.snapshot_at(0), "cat")
    for name, site, row, column in (("cross", "decoder.1.cross", 2, 3), ("self", "decoder.0.self", 3, 1)):
        title(inside, site).click()
        inside.page.wait_for_timeout(1000)  # until the open box has been sent
        figure = f"[data-box='{site}'] figure[data-table={'weights' if name == 'cross' else 'masked'}]"
        inside.page.mouse.click(*point(inside, row, column, figure))
        says = inside.page.locator(".st-key-score_parts summary")
        expect(says).to_contain_text(f"{name.capitalize()}-attention")
        score, table = inside.score_table()
        queries, keys = score_parts(passed, site)
        expected = {(q, k): queries[q][0, row] @ keys[k][0, column] for q in queries for k in keys}
        assert table == pytest.approx(expected, abs=0.0101)
        assert list(table) == list(expected)
        assert score == pytest.approx(passed.attentions[site].scores[0, row, column], abs=0.0051)
        assert sum(table.values()) == pytest.approx(score, abs=1e-9)
        sums = [float(text.replace("−", "-")) for text in inside.page.locator(".sum").all_text_contents()]
        by_query = [sum(value for (q, _), value in table.items() if q == query) for query in queries]
        by_key = [sum(value for (_, k), value in table.items() if k == key) for key in keys]
        assert sums == pytest.approx([*by_query, *by_key, score], abs=1e-9)
        expect(inside.page.locator(".st-key-score_parts table")).to_be_hidden()
        says.click()
        expect(inside.page.locator(".st-key-score_parts table")).to_be_visible()
        says.click()
    inside.page.mouse.click(*point(inside, 1, 1, figure.replace("masked", "value")))
    expect(inside.page.locator(".st-key-score_parts")).to_be_hidden()


def test_the_title_of_the_large_map_opens_its_head_and_the_tabs_open_the_other_heads(watch):
    watch.open("/?word=cat&seed=3")
    weights = []
    for head in (0, 2):
        watch.tile(1, head)
        watch.until(lambda h=head: f"head {h + 1}" in watch.plot("live_map", "title()"))
        weights.append(watch.plot("live_map", "weights()[2][3]"))
    watch.page.locator(".st-key-live_map .map-name").click()
    watch.drawn("model_picture")
    tabs = watch.page.locator("[data-box='decoder.1.cross'] .heads button")
    expect(tabs.nth(2)).to_have_attribute("aria-pressed", "true")
    point(watch, 2, 3)
    assert percent(watch) / 100 == pytest.approx(weights[1], abs=2e-3)
    tabs.nth(0).click()
    expect(tabs.nth(0)).to_have_attribute("aria-pressed", "true")
    watch.until(lambda: point(watch, 2, 3) and abs(percent(watch) / 100 - weights[0]) < 2e-3)
    assert abs(weights[0] - weights[1]) > 2e-3


def test_the_small_map_of_the_model_chooses_another_attention_on_ask(watch):
    watch.open("/?word=cat")
    watch.page.get_by_role("link", name="Ask", exact=True).click()
    watch.drawn("explore_map_figure")
    here = watch.page.locator(".st-key-model_map button[data-site='encoder.1']")
    here.click()
    expect(here).to_have_attribute("aria-pressed", "true")
    title = "gd.layout.title.text"
    watch.until(lambda: "encoder 2 · head" in watch.plot("explore_map_figure", title), what="its map")


def test_this_step_shows_the_changes_in_every_box_and_the_batch_of_the_step(watch, run):
    watch.open(f"/?run={run}&word=cat")
    look_inside(watch)
    watch.step_by("Home", *20 * ["ArrowRight"])
    watch.until(lambda: watch.number("model_picture", "step") == 20, what="step 20")
    watch.page.locator(".st-key-model_mode button[value=step]").click()
    batch = watch.page.locator(".st-key-model_batch")
    expect(batch.locator("tr")).to_have_count(4)
    expect(batch).to_contain_text("Step 21: loss ")
    boxes = watch.page.locator(".st-key-model_picture [data-box]")
    shown = boxes.evaluate_all(
        "all => all.map(box => box.querySelectorAll('.bars:not([hidden]) > div').length)"
    )
    assert set(shown) == {3}
    watch.page.locator(".st-key-model_mode button[value=forward]").click()
    expect(batch).to_be_hidden()


def test_live_numbers_follow_the_training_and_a_chosen_step_does_not_change(watch):
    start(watch, f"{STEADY}&word=cat")
    look_inside(watch)
    title(watch, "decoder.0.cross").click()
    seen = watch.number("model_picture", "step")
    watch.until(lambda: watch.number("model_picture", "step") > seen + 10, what="later numbers")
    watch.step_by("Home", "ArrowRight")
    expect(watch.page.locator(".st-key-model_readout")).to_contain_text("The model of step 1.")
    assert watch.number("model_picture", "step") == 1


def test_a_picture_moved_to_a_step_equals_a_picture_first_drawn_at_that_step(watch, run):
    watch.open(f"/?run={run}&word=cat")
    look_inside(watch)
    title(watch, "decoder.0.cross").click()
    drawn = "[...document.querySelectorAll('.model canvas')].map((one) => one.toDataURL())"
    last = watch.page.evaluate(drawn)
    watch.step_by("Home", *10 * ["ArrowRight"])
    watch.until(lambda: watch.number("model_picture", "step") == 10, what="step 10")
    chosen = watch.page.evaluate(drawn)
    assert not set(last) & set(chosen) - {chosen[mask(watch)]}
    watch.until(lambda: "step=10" in watch.page.url, what="the step in the link")
    watch.page.get_by_role("link", name="Watch", exact=True).click()
    watch.drawn("live_map")
    look_inside(watch)
    watch.until(lambda: watch.number("model_picture", "step") == 10, what="step 10 again")
    watch.until(lambda: watch.page.evaluate(drawn) == chosen, what="the same picture")


def mask(watch):
    """Return the index of the mask's canvas, the only one that is the same at every step."""
    tables = watch.page.locator(".model canvas").evaluate_all(
        "all => all.map((one) => one.closest('figure')?.dataset.table)"
    )
    return tables.index("mask")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_opening_a_box_is_animated_only_without_reduced_motion(inside, motion):
    inside.page.emulate_media(reduced_motion=motion)
    moving = "document.getAnimations().filter((one) => one.effect.target.closest('.model')).length"
    inside.until(lambda: inside.page.evaluate(moving) == 0, what="a picture that has settled")
    opened = title(inside, "decoder.1.cross").evaluate(f"button => (button.click(), {moving})")
    assert (opened > 0) == (motion == "no-preference")
