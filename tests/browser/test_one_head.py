"""One head on one screen: headline, large map, framed small map and sentences agree, on pages and in stories."""

from __future__ import annotations

import re

import pytest

from tests.browser.conftest import CALM, finish, trained
from tests.browser.test_stories import DRAWN, telling
from tests.serving import start_server

SEEN = """() => {
  const root = document.querySelector(".headlight-player");
  const find = (selector) => root.querySelector(selector);
  const visible = (one) => Boolean(one?.checkVisibility());
  // The text of an element without its links to heads, and these links.
  const read = (selector) => {
    const copy = find(selector)?.cloneNode(true);
    const links = [...copy?.querySelectorAll("[data-head]") ?? []].map((one) => (one.remove(), one.dataset.head));
    return { text: visible(find(selector)) ? copy.textContent : "", links };
  };
  const large = find(".st-key-live_map .live-figure"), strip = find(".st-key-live_maps .live-figure");
  const shapes = strip?.layout?.shapes ?? [], layers = new Set(shapes.map(({ x0 }) => x0)).size;
  const framed = shapes.map(({ line }, i) => (line.width > 2 ? [i % layers, Math.floor(i / layers)] : null)).filter(Boolean);
  return {
    page: visible(large) ? "maps" : root.dataset.parts, kind: find(".st-key-kind [aria-pressed=true]")?.dataset.value,
    title: large?.layout?.title.text ?? "", site: large?.dataset.site, head: Number(large?.dataset.head),
    step: root.dataset.step, drawn: large?.dataset.step, framed, others: shapes.filter(({ line }) => line.width === 2).length,
    weights: large?.data?.[0].z ?? [], word: find(".st-key-word [aria-pressed=true]")?.dataset.value,
    headline: read(".st-key-moment p"), narrator: read(".st-key-narrator p"), story: read(".st-key-story .said"),
    races: [...root.querySelectorAll(".race .live-figure[data-head]")].filter(visible).map((one) => one.layout?.title.text),
    beat: Number(root.dataset.beat), hint: find(".st-key-story .hint")?.textContent ?? "",
  };
}"""
"""What the panels of the player show and say about heads, read at once."""
NAME = re.compile(r"(encoder|decoder) (?:layer )?(\d+)(?:,| ·) head (\d+)", re.IGNORECASE)
KIND = {"cross": "cross", "encoder": "", "decoder": "self"}
NUMBERS = {"One": 1, "Two": 2, "Three": 3, "Four": 4, "Five": 5, "Six": 6, "Seven": 7, "Eight": 8}


def names(text):
    """Return the heads that a text names, as (stack, layer, head), counted from 1."""
    return {(stack.lower(), int(layer), int(head)) for stack, layer, head in NAME.findall(text)}


def disagreements(seen):
    """Return what on the screen speaks of another head than the large map shows, without a link to it."""
    if seen["page"] != "maps" or not seen["weights"]:
        return []
    stack, layer, *_ = seen["site"].split(".")
    shown = stack, int(layer) + 1, seen["head"] + 1
    found = []
    if names(seen["title"]) != {shown}:
        found.append(f"the title {seen['title']!r} over {seen['site']}, {seen['head']}")
    if seen["framed"] != [[int(layer), seen["head"]]]:
        found.append(f"the frame at {seen['framed']}")
    if seen["site"].split(".")[2:] != [part for part in [KIND[seen["kind"]]] if part]:
        found.append(f"the kind {seen['kind']} over {seen['site']}")
    for place in ("headline", "story"):
        # The heads of this app turn in cross-attention: the bare name of a decoder's head means one there.
        named = names(seen[place]["text"])
        if named - {shown} or (named and seen["kind"] == "decoder"):
            found.append(f"{place}: {seen[place]['text']!r} over {seen['title']!r} ({seen['kind']})")
    if said := re.search(r"output (\d+),? this head puts (\d+)% on letter (\d+)", seen["narrator"]["text"]):
        row, share, column = map(int, said.groups())
        if (weight := seen["weights"][row - 1][column]) is None or round(100 * weight) != share:
            found.append(f"narrator: {said[0]!r}, but the map has {weight}")
    if said := re.match(r"(\w+) heads? ha(?:s|ve) turned|One head turns", seen["story"]["text"]):
        turned = seen["others"] + ("no clear pattern" not in seen["title"])
        if NUMBERS[said[0].split()[0]] != turned:
            found.append(f"story: {said[0]!r} beside {turned}")
    return found


def agreed(watch, what):
    """Return what is shown, once all of it agrees; the panels are not redrawn at the same moment."""
    looks = []

    def agree():
        watch.page.wait_for_selector(".headlight-player")
        looks.append(watch.page.evaluate(SEEN))
        return disagreements(looks[-1]) == []

    try:
        watch.until(agree, 8)
    except AssertionError:
        raise AssertionError(f"{what}: {disagreements(looks[-1])}") from None
    return looks[-1]


def visit_page(watch, name):
    watch.page.get_by_role("link", name=name, exact=True).first.click()
    picture = {"Watch": "live_map", "Race": "race_left", "Ask": "explore_map_figure"}.get(
        name, "model_picture"
    )
    watch.drawn(picture)
    watch.until_settled()


def asked_head(watch):
    """Return the kind and the title of the map on Ask, whose frame and sentence must be of the same head."""
    kind = watch.page.locator(
        ".st-key-kind button[aria-checked=true], .st-key-kind [kind$=Active]"
    ).inner_text()
    title = watch.plot("explore_map_figure", "gd.layout.title.text")
    framed = watch.plot("explore_strip_figure", "gd.layout.shapes.findIndex(({line}) => line.width > 2)")
    layers = watch.plot("explore_strip_figure", "new Set(gd.layout.shapes.map(({x0}) => x0)).size")
    ((_, layer, head),) = names(title)
    assert (framed % layers, framed // layers) == (layer - 1, head - 1), title
    return kind, title


@pytest.mark.parametrize("pinned", [None, (0, 2)])
def test_every_page_shows_the_head_of_watch_after_a_visit_of_race_and_masks(watch, pinned):
    watch.page.emulate_media(reduced_motion="reduce")
    finish(watch, "/?steps=150&goal=none", 150)
    if pinned:
        watch.tile(*pinned)
    before = agreed(watch, "Watch")
    assert not pinned or (before["site"], before["head"]) == (f"decoder.{pinned[0]}.cross", pinned[1])
    for page in ("Race", "Masks"):
        visit_page(watch, page)
        visit_page(watch, "Watch")
        after = agreed(watch, f"Watch after {page}")
        assert {name: after[name] for name in ("kind", "site", "head", "word")} == {
            name: before[name] for name in ("kind", "site", "head", "word")
        }, page
    visit_page(watch, "Ask")
    kind, title = asked_head(watch)
    assert kind == "Cross"
    assert names(title) == names(before["title"])
    visit_page(watch, "Look inside")
    assert watch.page.locator(".st-key-model_picture .open[data-box]").count() == 0


@pytest.fixture(scope="module")
def teller(browser):
    """A page of a server whose only training thread is in use: stories play their recordings."""
    server, address = start_server(HEADLIGHT_TRAINING="1")
    trained(address, CALM.removeprefix("/?"), "training")
    page = telling(browser, address)
    yield page
    page.page.context.close()
    server.terminate()
    server.wait(60)


def beats(told, story):
    """Tell a story to its end, and yield what is shown at each beat, before and after its answer or its film."""
    told.story(f"story={story}")
    n_beats = int(told.hint.partition("/")[2].split()[0])
    for _ in range(5 * n_beats):
        told.page.wait_for_selector(f"{DRAWN}, [data-story] [data-box]")
        told.page.wait_for_timeout(300)  # a map that was drawn for the last beat
        seen = agreed(told, f"{story}, beat {told.beat + 1}")
        print(
            seen["beat"],
            seen["page"],
            seen["site"],
            seen["head"],
            seen["others"],
            seen["story"]["text"][:70],
            "/",
            seen["hint"],
            flush=True,
        )
        yield seen
        ready = not re.search("Waiting|Your guess", seen["hint"])
        if seen["beat"] == n_beats - 1 and ready:
            return
        ready = ":visible:not([aria-disabled=true])"
        ways = [
            told.page.locator(f".st-key-story_{name} button{ready}") for name in ("recording", "next", "skip")
        ]
        next(way for way in ways if way.count()).click()
    raise AssertionError(f"{story} does not end")


@pytest.mark.parametrize("story", ["talk", "class"])
def test_every_beat_of_a_talk_names_the_head_that_it_shows(teller, story):
    seen = [*beats(teller, story)]
    assert any(names(one["story"]["text"]) for one in seen)
    assert all(names(title) for one in seen if one["page"] == "race" for title in one["races"])


def test_the_tour_keeps_the_head_that_was_chosen_unless_a_beat_names_another(teller):
    chosen = ["decoder.0.cross", 2]
    named = []
    for seen in beats(teller, "tour"):
        if seen["page"] != "maps":
            continue
        here = [seen["site"], seen["head"]]
        if seen["beat"] == 1 and here != chosen:
            teller.tile(0, 2)
        elif seen["beat"] > 1 and names(seen["story"]["text"]):
            named.append(here)
        elif seen["beat"] > 1:
            assert here == chosen, seen["beat"]
    assert named and chosen not in named
