"""One head on one screen: headline, large map, framed small map and sentences, on pages and in stories."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import CALM, finish, trained
from tests.browser.test_stories import DRAWN, telling
from tests.serving import start_server

SEEN = """() => {
  const root = document.querySelector(".headlight-player");
  const find = (selector) => root.querySelector(selector);
  const visible = (one) => Boolean(one?.checkVisibility());
  const read = (selector) => {
    const copy = find(selector)?.cloneNode(true);
    copy?.querySelectorAll("button[data-head]").forEach((link) => link.remove());
    return visible(find(selector)) ? copy.textContent : "";
  };
  const large = find(".st-key-live_map .live-figure"), strip = find(".st-key-live_maps .live-figure");
  const tables = strip?.picture?.tables ?? [], layers = new Set(tables.map(({ column }) => column)).size;
  const width = ({ frames }) => frames[0]?.[5] ?? 0, places = (n) => [...Array(n).keys()];
  const [map] = large?.picture?.tables ?? [];
  return {
    maps: visible(large), kind: find(".st-key-kind [aria-pressed=true]")?.dataset.value,
    word: find(".st-key-word [aria-pressed=true]")?.dataset.value,
    title: ["name", "about"].map((part) => large?.querySelector(`.map-${part}`)?.textContent ?? "").join(" "),
    site: large?.dataset.site, head: Number(large?.dataset.head),
    weights: map ? places(map.high).map((i) => places(map.wide).map((j) => map.value(i, j) ?? null)) : [],
    large: tables.flatMap((one, i) => (width(one) > 2 ? [[i % layers, Math.floor(i / layers)]] : [])),
    clear: tables.filter((one) => width(one) === 2).length,
    headline: read(".st-key-moment p"), callout: large?.picture?.callout, columns: large?.picture?.columns,
    story: read(".st-key-story .said"), bubble: read(".time-slider .bubble"),
    beat: Number(root.dataset.beat), hint: find(".st-key-story .hint")?.textContent ?? "",
  };
}"""
"""What the panels of the player show and say, without links to other heads, all read at once."""
ON = """() => ["recording", "next", "skip"]
  .map((name) => `.st-key-story_${name}:not([hidden]) button:not([aria-disabled=true])`)
  .map((selector) => document.querySelector(selector)).find(Boolean).click()"""
"""Goes on in a story, by the first of its buttons that is ready."""
NAME = re.compile(
    r"(encoder|decoder|cross)(?:-attention)? (?:layer )?(\d+)(?:,| ·) head (\d+)", re.IGNORECASE
)
STRONGEST = re.compile(r"looks at “?([^”:]+)”?: (\d+)%\.$")
NUMBERS = ("", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")


def names(text):
    """Return the heads that a text names, as (kind, layer, head), counted from 1."""
    return {(kind.lower(), int(layer), int(head)) for kind, layer, head in NAME.findall(text)}


def disagreements(seen):
    """Return what on the screen speaks of another head than the one that is large, without a link to it."""
    if not seen["maps"]:
        return []
    if not seen["weights"]:
        return ["no map is drawn yet"]
    _, layer, *attention = seen["site"].split(".")
    shown = seen["kind"], int(layer) + 1, seen["head"] + 1
    found = []
    if names(seen["title"]) != {shown}:
        found.append(f"title: {seen['title']}")
    if seen["large"] != [[int(layer), seen["head"]]]:
        found.append(f"framed: {seen['large']}")
    if attention != {"cross": ["cross"], "encoder": [], "decoder": ["self"]}[seen["kind"]]:
        found.append(f"kind: {seen['kind']}")
    for place in ("headline", "story", "bubble"):
        if names(seen[place]) not in (set(), {shown}):
            found.append(f"{place}: {seen[place]}")
    if seen["callout"]:  # the cell in the ring is that of the sentence
        row, column = seen["callout"]
        said = STRONGEST.search(seen["title"])
        weight = seen["weights"][row][column] or 0
        if said is None or said[1] != seen["columns"][column] or abs(100 * weight - int(said[2])) > 0.51:
            found.append(f"callout: {seen['title']}")
    if said := re.match(r"(\w+) heads? reads? backwards", seen["story"]):
        n_clear = seen["clear"] + ("no clear pattern" not in seen["title"])
        if NUMBERS.index(said[1]) != n_clear:
            found.append(f"story: {said[0]}, but {n_clear} have a frame")
    return [f"{one}; large: {seen['site']}, head {seen['head'] + 1}" for one in found]


def agreed(watch, where):
    """Return what is shown, as soon as all of it agrees: the panels are not redrawn at the same moment."""
    looks = []

    def agree():
        looks.append(watch.page.evaluate(SEEN))
        return disagreements(looks[-1]) == []

    try:
        watch.until(agree)
    except AssertionError:
        raise AssertionError(f"{where}: {disagreements(looks[-1])}") from None
    return looks[-1]


def follow(watch, page, picture):
    """Follow the link to a page."""
    watch.page.get_by_role("link", name=page, exact=True).first.click()
    watch.drawn(picture)
    watch.until_settled()


def selection(seen):
    return {name: seen[name] for name in ("word", "kind", "site", "head")}


def asked_head(watch):
    """Return the head of the large map on Ask, whose frame among the small maps must be the same."""
    ((kind, layer, head),) = names(watch.plot("explore_map_figure", "gd.layout.title.text"))
    framed = watch.plot("explore_strip_figure", "gd.layout.shapes.findIndex(({line}) => line.width > 2)")
    n_layers = watch.plot("explore_strip_figure", "new Set(gd.layout.shapes.map(({x0}) => x0)).size")
    assert (framed % n_layers, framed // n_layers) == (layer - 1, head - 1)
    return kind, layer, head


def test_every_page_shows_the_head_of_watch_after_race_and_masks_and_names_others_as_links(watch):
    watch.page.emulate_media(reduced_motion="reduce")
    finish(watch, "/?steps=150&goal=none", 150)
    clearest = agreed(watch, "Watch")
    assert watch.page.locator(".st-key-moment button[data-head]").count() == 0
    links = watch.page.locator(".st-key-moment button[data-head]")
    for pinned in (None, (0, 2)):
        if pinned is not None:
            watch.tile(*pinned)
            expect(links.first).to_be_visible()
            watch.until(lambda: "head=decoder.0.cross.3" in watch.page.url, what="the head in the link")
        before = agreed(watch, "Watch")
        if pinned is not None:
            assert (before["site"], before["head"]) == ("decoder.0.cross", 2)
        for page, picture in (("Race", "race_left"), ("Masks", "model_picture")):
            follow(watch, page, picture)
            follow(watch, "Watch", "live_map")
            assert selection(agreed(watch, f"Watch after {page}")) == selection(before), page
        follow(watch, "Ask", "explore_map_figure")
        assert {asked_head(watch)} == names(before["title"])
        expect(watch.page.get_by_role("radio", name="Cross", exact=True)).to_be_checked()
        follow(watch, "Look inside", "model_picture")
        assert watch.page.locator(".st-key-model_picture section.open").count() == 0
        follow(watch, "Watch", "live_map")
    watch.choose("kind", "decoder")
    expect(links.first).to_contain_text("ross-attention layer")
    agreed(watch, "the decoder's self-attention")
    links.first.click()
    expect(links).to_have_count(0)
    assert selection(agreed(watch, "the head of the link")) == selection(clearest)


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
    """Tell a story to its end; yield what is shown at each beat, before and after its answer or film."""
    told.story(f"story={story}")
    n_beats = int(told.hint.partition("/")[2].split()[0])
    for _ in range(5 * n_beats):
        told.page.wait_for_selector(f"{DRAWN}, [data-story] [data-box]")
        told.page.wait_for_timeout(300)  # until the map of the last beat is replaced
        seen = agreed(told, f"{story}, beat {told.beat + 1}")
        yield seen
        if seen["beat"] == n_beats - 1 and not re.search("Waiting|Your guess", seen["hint"]):
            return
        told.page.evaluate(ON)
    raise AssertionError(f"{story} does not end")


@pytest.mark.parametrize("story", ["talk", "class"])
def test_every_beat_of_a_talk_names_the_head_that_it_shows(teller, story):
    assert any(names(seen["story"]) for seen in beats(teller, story))


def test_the_tour_keeps_the_head_that_was_chosen_unless_a_beat_names_another(teller):
    chosen, named = ["decoder.0.cross", 2], []
    for seen in beats(teller, "tour"):
        shown = [seen["site"], seen["head"]]
        if seen["beat"] == 1 and shown != chosen:
            teller.tile(0, 2)
        elif seen["beat"] > 1 and names(seen["story"]):
            named.append(shown)
        elif seen["beat"] > 1 and seen["maps"]:
            assert shown == chosen, seen["beat"]
    assert named
    assert chosen not in named
