"""Look inside in a real browser: walked through by keyboard alone, and by clicks on cells."""

from __future__ import annotations

import pytest

from transformer.anatomy.panels import STAGES
from transformer.anatomy.positions import position_stages
from transformer.config import ModelConfig

POSITION_STAGES = position_stages(ModelConfig())


def inside(watch, stage="tokens", link="/?word=cat"):
    """Open the app, go to the page, and walk to a stage by keyboard."""
    watch.open(link, "live_map")
    watch.page.get_by_role("link", name="Look inside").click()
    watch.page.wait_for_selector(".st-key-anatomy_picture svg.main-svg")
    for title in [*STAGES.values()][1 : list(STAGES).index(stage) + 1]:
        watch.page.keyboard.press("ArrowRight")
        watch.until(lambda t=title: f"{t} " in shown_title(watch), what=title)


def shown_title(watch):
    return watch.page.locator(".st-key-anatomy_title").inner_text()


@pytest.mark.slow
def test_the_whole_walk_is_walked_by_keyboard_alone(watch):
    inside(watch)
    titles, walk = [], [*3 * list(STAGES.values()), *POSITION_STAGES.values()]
    for title in walk:
        watch.until(lambda t=title: f"{t} " in shown_title(watch), what=title)
        titles.append(title)
        formulas = watch.page.locator(".st-key-anatomy_formula .katex-display")
        watch.until(lambda found=formulas: found.count() == 2, what="two formulas")
        assert watch.page.locator(".st-key-anatomy_formula .katex-error").count() == 0
        drawn = watch.plot("anatomy_picture", "gd.data.length")
        assert drawn >= 1
        watch.page.keyboard.press("ArrowRight")
    watch.until(lambda: "Tokens " in shown_title(watch), what="the first stage again")
    watch.page.keyboard.press("ArrowLeft")
    last = list(POSITION_STAGES.values())[-1]
    watch.until(lambda: last in shown_title(watch), what=last)
    assert titles == walk


def test_a_click_on_a_score_shows_the_query_and_the_key_that_it_was_computed_from(watch):
    inside(watch, "scores", "/?word=cat&kind=cross")
    row, column = 2, 3
    numbers = watch.page.locator(".st-key-anatomy_formula annotation")

    def explained(product):
        return any(product in text for text in numbers.all_text_contents()[1:2])

    watch.until(lambda: explained("\\cdot k_"), what="the numbers of a score, which come after the picture")
    watch.press("anatomy_picture", column, row)
    watch.until(lambda: explained("q_{3} \\cdot k_{4}"), what="the numbers of that score")
    score = watch.plot("anatomy_picture", f"gd.data[0].z[{row}][{column}]")
    strips = watch.plot("anatomy_picture", "gd.data.slice(-3).map((trace) => trace.z[0])")
    query, key, products = strips
    assert sum(q * k for q, k in zip(query, key, strict=True)) == pytest.approx(score, abs=2e-3)
    assert sum(products) == pytest.approx(score, abs=2e-3)


def test_a_cell_of_the_large_map_leads_to_how_it_came_about(watch):
    watch.open("/?word=banana")
    weight = watch.plot("live_map", "gd.data[0].z[3][2]")
    watch.press("live_map", 2, 3)
    watch.until(lambda: "stage=weights" in watch.page.url, what="the cell in the link")
    watch.page.get_by_role("link", name="Explain a cell").click()
    watch.page.wait_for_selector(".st-key-anatomy_picture svg.main-svg")
    watch.until(lambda: "Softmax " in shown_title(watch), what="the softmax")
    formula = watch.page.locator(".st-key-anatomy_formula annotation")
    watch.until(lambda: formula.count() > 1, what="the numbers")  # they come after the picture
    assert formula.all_text_contents()[1].startswith("w_{4,3}")
    assert watch.plot("anatomy_picture", "gd.data[0].z[3][2]") == pytest.approx(weight, abs=2e-3)


def test_the_keys_of_the_walk_go_on_from_a_chapter_and_rest_while_typing_or_on_the_step_control(watch):
    inside(watch)
    watch.page.locator(".st-key-chapter_cross button").click()
    watch.until(lambda: "the encoder" in shown_title(watch), what="the chapter on cross-attention")
    watch.page.keyboard.press("ArrowRight")
    watch.until(lambda: "Embeddings " in shown_title(watch), what="its next stage")
    box = watch.page.locator(".st-key-explore_text input")
    box.click()
    box.press("ArrowRight")
    watch.page.locator(".st-key-time_step input").focus()
    watch.page.keyboard.press("ArrowRight")
    watch.page.wait_for_timeout(600)
    assert "Embeddings " in shown_title(watch)
