"""Drawing speed of the player: pictures a second during a training, clicks, a film, the step control.

    python -m benchmarks.player [--seeds N] [--json]

One headless Chromium of 1280 x 720 watches a run of the default settings, without a goal, on a server. In N
rounds (`--seeds`), for 20 s of training at full pace, every picture of the large map is recorded with its
step and the time since that step was trained. Then heads, kinds of attention and words are clicked; a click
is answered when the large map shows the choice. Then the training is paused, the film of a run that has ended
is played, and its step control is dragged for a few seconds. Finally the same model races one without the
causal mask, both at full pace in turns; the pictures of both maps and the clicks on the left map are measured
(both maps are drawn together). The medians of the rounds are compared with the limits.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from playwright.sync_api import Page

from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options
from benchmarks.tools.server import Server

WARM, SECONDS, FILMED = 4.0, 20.0, 5.0
CLICKS, WORDS = 40, 20
PICTURES, OLDEST, FILM, DRAGGED = 20.0, 0.3, 55.0, 55.0
"""Minimum pictures a second; maximum seconds since the step; minimum steps a second of film and drag."""
CLICK, WORD = (33.0, 50.0), (150.0, 400.0)
"""Maximum milliseconds to the answer: the median and 95 %."""
LATE = 1.0
"""Seconds from which on a picture must be said to be late."""
RACED = 6.0
"""Minimum pictures a second of each map of a race."""
NOTE = """(name) => {
  const host = document.querySelector(`.st-key-${name} .live-figure`);
  window.drawn = [];
  window.noting?.disconnect();
  window.noting = new MutationObserver(() => {
    const late = document.querySelector(".st-key-run_status p")?.textContent.includes("late");
    window.drawn.push([Date.now() / 1e3, Number(host.dataset.step), Boolean(late)]);
  });
  window.noting.observe(host, { attributes: true, attributeFilter: ["data-draws"] });
}"""
PRESS = """([name, selector, shows]) => new Promise((resolve, reject) => {
  const host = document.querySelector(`.st-key-${name} .live-figure`);
  const began = performance.now();
  document.querySelector(selector).click();
  const look = () => {
    const text = `${host.picture.rowTitle} ${host.picture.columnTitle} ${host.picture.columns.join("")}`;
    if (text.includes(shows)) resolve(performance.now() - began);
    else if (performance.now() - began > 10000) reject(new Error(`no answer: ${shows}`));
    else requestAnimationFrame(look);
  };
  look();
})"""
TILE = """(head) => new Promise((resolve, reject) => {
  const host = document.querySelector(".st-key-live_map .live-figure");
  let began;
  window.addEventListener("pointerup", () => { began = performance.now(); }, { once: true, capture: true });
  const look = () => {
    if (began && host.dataset.head === head) resolve(performance.now() - began);
    else if (began && performance.now() - began > 10000) reject(new Error("no answer"));
    else requestAnimationFrame(look);
  };
  look();
})"""


def pictures(page: Page, server: Server) -> dict[str, float]:
    """Return the rate and the age of the pictures drawn in the next seconds of the training.

    `unsaid` is the number of those older than LATE seconds while the page did not say that LIVE is late.
    """
    server.steps()
    page.evaluate(NOTE, "live_map")
    time.sleep(SECONDS)
    drawn = page.evaluate("window.drawn")
    trained = dict(server.steps())
    inside = [(at - trained[step], late) for at, step, late in drawn if step in trained]
    ages = sorted(age for age, _ in inside)
    steps = [step for _, step, _ in drawn]
    return {
        "pictures": sum(later != earlier for earlier, later in pairwise(steps)) / SECONDS,
        "backwards": sum(later < earlier for earlier, later in pairwise(steps)),
        "unsaid": sum(age > LATE and not late for age, late in inside),
        "age": statistics.median(ages),
        "oldest": ages[-1],
    }


def answers(page: Page, times: int, press: Callable[[int], float]) -> list[float]:
    """Return the milliseconds to the answer of each click."""
    waits = []
    for number in range(times):
        time.sleep(0.37)  # out of phase with the messages
        waits.append(press(number))
    return waits


def choices(page: Page, name: str) -> dict[str, list[float]]:
    """Return the milliseconds from each click on a kind or a word until a map shows it."""
    kinds = {"decoder": "letters of the answer", "cross": "letters of the word"}
    words = page.eval_on_selector_all(".st-key-word button", "all => all.map((one) => one.dataset.value)")

    def kind(number: int) -> float:
        kind = list(kinds)[number % 2]
        return float(page.evaluate(PRESS, [name, f'.st-key-kind [data-value="{kind}"]', kinds[kind]]))

    def word(number: int) -> float:
        word = words[(number + 1) % len(words)]
        return float(page.evaluate(PRESS, [name, f'.st-key-word [data-value="{word}"]', word]))

    return {"kind": answers(page, CLICKS, kind), "word": answers(page, WORDS, word)}


def clicks(page: Page) -> dict[str, list[float]]:
    """Return the milliseconds from each click until the large map shows the choice."""
    strip = page.locator(".st-key-live_maps .live-figure canvas")
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    assert box is not None

    def head(number: int) -> float:
        wanted = (number + 1) % 4
        x, y = box["x"] + 0.75 * box["width"], box["y"] + (wanted + 0.5) / 4 * box["height"]
        page.mouse.move(x, y)
        time.sleep(0.1)
        page.evaluate(f"head => {{ window.answered = ({TILE})(head); }}", str(wanted))
        page.mouse.down()
        page.mouse.up()
        return float(page.evaluate("window.answered"))

    return {"head": answers(page, CLICKS, head), **choices(page, "live_map")}


def race(page: Page) -> dict[str, list[float]]:
    """Race the model of the page against one without the causal mask, and measure both."""
    page.locator(".st-key-race_menu button").first.click()
    page.locator(".st-key-race_start button").first.click()
    page.wait_for_selector(".st-key-race_difference .map[data-step]")
    time.sleep(WARM)
    milliseconds: dict[str, list[float]] = {}
    for side in ("left", "right"):
        page.evaluate(NOTE, f"race_{side}")
        time.sleep(SECONDS / 2)
        drawn = page.evaluate("window.drawn.map(([, step]) => step)")
        milliseconds[side] = [sum(a != b for a, b in pairwise(drawn)) / (SECONDS / 2)]
    milliseconds |= choices(page, "race_left")
    page.locator(".st-key-run_stop button").first.click()
    return milliseconds


def film(page: Page, address: str) -> dict[str, float]:
    """Return the steps per second shown by the film of an ended run, and by dragging its step control."""
    page.goto(address)
    page.wait_for_selector(".st-key-live_map .map[data-step]")
    time.sleep(1.0)
    slider = page.locator(".st-key-time_step input[type=range]")
    page.locator(".st-key-time_speed select").select_option("60/s")
    slider.focus()
    slider.press("Home")
    time.sleep(1.0)
    page.evaluate(NOTE, "live_map")
    page.locator(".st-key-time_play button").click()
    time.sleep(FILMED)
    played = page.evaluate("new Set(window.drawn.map(([, step]) => step)).size")
    page.locator(".st-key-time_play button").click()
    time.sleep(1.0)
    box = slider.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 10, y)
    page.mouse.down()
    page.evaluate(NOTE, "live_map")
    began = time.perf_counter()
    while (passed := time.perf_counter() - began) < FILMED:
        share = abs(1 - passed % 2)  # there and back: the slider has fewer pixels than pictures are drawn
        page.mouse.move(box["x"] + 10 + share * (box["width"] - 20), y)  # waits for the page
    steps = page.evaluate("window.drawn.map(([, step]) => step)")
    dragged = sum(later != earlier for earlier, later in pairwise(steps))
    page.mouse.up()
    page.locator(".st-key-time_live button").click()
    return {"film": played / FILMED, "drag": dragged / FILMED}


def percentile_95(values: list[float]) -> float:
    """Return the 95th percentile of the values."""
    return sorted(values)[min(len(values) - 1, round(0.95 * len(values)))]


def main() -> int:
    """Print a row for each round; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=3)
    write = sys.stdout.write
    rows: list[dict[str, Any]] = []
    waits: dict[str, list[float]] = {"head": [], "kind": [], "word": []}
    write("round  pictures/s  backwards  age, s  oldest  head, ms  kind  word  film, steps/s  drag\n")
    with Server("app.py") as server, chromium() as browser:
        ended = server.begin(goal=None, steps=300)
        server.until_step(300)
        run = server.begin(goal=None, steps=100_000)
        past = browser.new_page(viewport=SIZE)
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{server.address}/?run={run}")
        page.wait_for_selector(".st-key-live_map .map[data-step]")
        for number in range(arguments.seeds):
            time.sleep(WARM)
            row: dict[str, Any] = {"round": number, **pictures(page, server)}
            for name, found in clicks(page).items():
                waits[name] += found
                row[name] = statistics.median(found)
            server.pause()
            row |= film(past, f"{server.address}/?run={ended}")
            past.goto("about:blank")
            server.resume()
            rows.append({name: round(value, 3) for name, value in row.items()})
            write(
                f"{number:5d}  {row['pictures']:10.1f}  {row['backwards']:9d}  {row['age']:6.2f}  "
                f"{row['oldest']:6.2f}  {row['head']:8.0f}  {row['kind']:4.0f}  {row['word']:4.0f}  "
                f"{row['film']:13.1f}  {row['drag']:4.1f}\n"
            )
            sys.stdout.flush()
        server.pause()
        raced: dict[str, list[float]] = {}
        for _ in range(arguments.seeds):
            page.goto(f"{server.address}/?goal=none&steps=100000")
            page.wait_for_selector(".st-key-live_map .map[data-step]")
            for name, values in race(page).items():
                raced[name] = raced.get(name, []) + values
    race_pictures = min(statistics.median(raced[side]) for side in ("left", "right"))
    middle = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    chosen = waits["head"] + waits["kind"]
    race_click = statistics.median(raced["kind"]), percentile_95(raced["kind"])
    race_word = statistics.median(raced["word"]), percentile_95(raced["word"])
    click, word = ((statistics.median(one), percentile_95(one)) for one in (chosen, waits["word"]))
    write(
        f"head or kind: median {click[0]:.0f}, 95 % {click[1]:.0f} ms; word: median {word[0]:.0f}, "
        f"95 % {word[1]:.0f} ms\n"
        f"race: {race_pictures:.1f} pictures a second; kind: median {race_click[0]:.0f}, "
        f"95 % {race_click[1]:.0f} ms; word: median {race_word[0]:.0f}, 95 % {race_word[1]:.0f} ms\n"
    )
    met = {
        "pictures_a_second": middle["pictures"] >= PICTURES,
        "each_of_a_later_step": all(row["backwards"] == 0 for row in rows),
        "none_older": middle["oldest"] <= OLDEST,
        "film": middle["film"] >= FILM,
        "drag": middle["drag"] >= DRAGGED,
        "click": click[0] <= CLICK[0] and click[1] <= CLICK[1],
        "word": word[0] <= WORD[0] and word[1] <= WORD[1],
        "pictures_of_a_race": race_pictures >= RACED,
        "click_in_a_race": race_click[0] <= CLICK[0] and race_click[1] <= CLICK[1],
        "word_in_a_race": race_word[0] <= WORD[0] and race_word[1] <= WORD[1],
    }
    figures = {
        "pictures a second beside a training at full pace": f"{middle['pictures']:.1f}, each "
        f"{middle['age']:.2f} s after its step (at most {middle['oldest']:.2f} s)",
        "from a click on a head or a kind to its map": f"{click[0]:.0f} ms (95 % within {click[1]:.0f} ms)",
        "from a click on a word to its map": f"{word[0]:.0f} ms (95 % within {word[1]:.0f} ms)",
        "pictures a second of each map of a race, and from a click to both": f"{race_pictures:.1f}, and "
        f"{race_click[0]:.0f} ms (95 % within {race_click[1]:.0f} ms)",
        "steps a second of the film, and of a drag": f"{middle['film']:.0f} and {middle['drag']:.0f}",
    }
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
