"""The tree of beams in a browser: drawn, told under the pointer, and drawn anew with another width."""

from __future__ import annotations

LINK = "/?letters=6&steps=30&goal=none&layers_encoder=1&layers_decoder=1&heads=2&width=16&word=zebra"


def test_the_tree_is_drawn_told_and_drawn_anew(watch):
    watch.open(LINK)
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished")
    watch.page.get_by_role("link", name="Ask", exact=True).click()
    watch.page.wait_for_selector(".st-key-explore_map_figure svg.main-svg")
    watch.page.get_by_role("tab").filter(has_text="Beams").click()
    watch.page.wait_for_selector(".st-key-beam_tree svg.main-svg")
    places = "Math.max(...gd.data.filter(t => t.mode === 'markers+text').flatMap(t => t.y))"
    assert watch.plot("beam_tree", places) == 4
    told = watch.page.locator(".st-key-beam_tree .hoverlayer")
    watch.point("beam_tree", 1, 2, lambda: "place 2" in (told.text_content() or ""))
    watch.type("beam_width", "2")
    watch.until(lambda: watch.plot("beam_tree", places) == 2, what="a tree of two beams")
    assert "beam_width=2" in watch.page.url
    watch.page.get_by_role("tab").filter(has_text="Spell").click()
    watch.page.wait_for_selector(".st-key-explore_map_figure svg.main-svg")
    watch.page.get_by_role("tab").filter(has_text="Beams").click()
    watch.page.wait_for_selector(".st-key-beam_tree svg.main-svg")
    assert watch.plot("beam_tree", places) == 2  # it has not been forgotten meanwhile
    assert watch.page.get_by_test_id("stException").count() == 0
