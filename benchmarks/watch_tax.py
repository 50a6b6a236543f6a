"""What watching costs the training: nobody, one browser, five viewers, twenty.

    python -m benchmarks.watch_tax [--seeds N] [--json]

One run of the default settings, without a goal, in a server; the plain generator in a process of its own.
Both train in turns, a few seconds each, in N rounds (`--seeds`): alone, unwatched in the server, watched by
one headless Chromium, by five and by twenty plain viewers, who refresh as often as the page tells them to.
The medians over the rounds count.

What is compared are steps a second as far as the training thread explains them: its share of the time
(processor seconds a second; less where it waits for the interpreter) divided by the processor time of a step.
Plain steps a second are printed beside it, and the same ratio without the time that the training thread stood
in the queue for a processor ("not queued"): then neither a browser on the same cores nor anyone else's work
counts, only what the viewers' refreshes take from it in the server.

Last, in mid-training and with one Chromium, another kind of attention is clicked again and again; the answer
is there when the large map shows it.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from playwright.sync_api import Browser, Page

from benchmarks._browser import SIZE, chromium
from benchmarks._measuring import end, options
from benchmarks._server import Server
from benchmarks._viewer import Viewer

WARM, SECONDS = 2.5, 4.0
"""Seconds until a phase has settled, and in which it is measured."""
VIEWERS = {"five": 5, "twenty": 20}
LEAST = {"browser": 0.95, "five": 0.95, "twenty": 0.85}
"""Of the speed unwatched."""
LONGEST_GAP, ANSWERED = 2.0, 150.0
"""Seconds between two refreshes of a viewer, and milliseconds from a click to its answer."""
CLICKS = 40
STEPS = 100_000


def measured(server: Server) -> dict[str, float]:
    """Speed of the training, and what explains it, over the next seconds."""
    began = server.look()
    time.sleep(SECONDS)
    ended = server.look()
    wall, training, queued, steps = (
        ended[name] - began[name] for name in ("wall", "training", "queued", "step")
    )
    step = training / max(1, steps)
    return {
        "share": training / wall,
        "step_ms": 1e3 * step,
        "explained": training / wall / step,
        "alone": training / (wall - queued) / step,
        "steps_per_second": steps / wall,
    }


@contextmanager
def viewers(server: Server, run: str, n: int) -> Iterator[list[Viewer]]:
    """So many visitors without a browser, in a thread of their own."""
    loop = asyncio.new_event_loop()
    watching = [Viewer(server.address, f"run={run}") for _ in range(n)]
    tasks = [loop.create_task(viewer.watch()) for viewer in watching]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    for viewer in watching:
        asyncio.run_coroutine_threadsafe(viewer.painted.wait(), loop).result(60)
    yield watching
    for task in tasks:
        loop.call_soon_threadsafe(task.cancel)
    for task in tasks:
        while not task.done():
            time.sleep(0.02)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def longest_gap(viewer: Viewer, began: float, ended: float) -> float:
    """Seconds without a refresh, the ends of the phase counted too."""
    inside = [at for at in viewer.refreshed if began <= at <= ended]
    return max(later - earlier for earlier, later in pairwise([began, *inside, ended]))


def opened(page: Page, server: Server, run: str) -> None:
    """The Watch page of a run, painted."""
    page.goto(f"{server.address}/?run={run}")
    page.wait_for_selector(".st-key-live_map svg.main-svg")


def watched(server: Server, run: str, page: Page) -> Iterator[tuple[str, dict[str, float]]]:
    """The phases of one round in the server."""
    time.sleep(WARM)
    yield "unwatched", measured(server)
    opened(page, server, run)
    time.sleep(WARM)
    yield "browser", measured(server)
    page.goto("about:blank")
    for name, n in VIEWERS.items():
        with viewers(server, run, n) as watching:
            time.sleep(WARM)
            began = time.perf_counter()
            found = measured(server)
            ended = time.perf_counter()
            gaps = [longest_gap(viewer, began, ended) for viewer in watching]
            refreshes = [sum(began <= at <= ended for at in viewer.refreshed) for viewer in watching]
        found["longest_gap"], found["median_gap"] = max(gaps), SECONDS / max(1, statistics.median(refreshes))
        yield name, found


CLICK = """kind => new Promise((resolve, reject) => {
  const figure = document.querySelector(".st-key-live_map .live-figure");
  const buttons = [...document.querySelectorAll(".st-key-kind button")];
  const button = buttons.find((one) => one.innerText.trim() === kind);
  const began = performance.now();
  button.click();
  const look = () => {
    if (figure.layout.xaxis.title.text === COLUMNS[kind]) resolve(performance.now() - began);
    else if (performance.now() - began > 10000) reject(new Error("no answer"));
    else requestAnimationFrame(look);
  };
  look();
})"""


def answers(server: Server, run: str, browser: Browser) -> list[float]:
    """Milliseconds from a click on another kind of attention until the large map shows it."""
    page = browser.new_page(viewport=SIZE)
    opened(page, server, run)
    time.sleep(WARM)
    columns = {"Cross": "letters of the word", "Decoder": "letters written so far"}
    script = CLICK.replace("COLUMNS", str(columns))
    waits = []
    for number in range(CLICKS):
        time.sleep(0.37)  # neither with the refreshes nor against them
        waits.append(float(page.evaluate(script, list(columns)[(number + 1) % 2])))
    page.close()
    return waits


def main() -> int:
    """Print a row for each phase, then the medians; exit status 1 where a limit is not met."""
    arguments = options(__doc__, seeds=10)
    write = sys.stdout.write
    write(
        "round  phase      share of time  ms a step  share / ms a step  not queued  steps/s  longest gap, s\n"
    )
    rows: list[dict[str, Any]] = []

    def note(number: int, name: str, found: dict[str, float]) -> None:
        rows.append({"round": number, "phase": name, **{what: round(x, 4) for what, x in found.items()}})
        gap = f"{found['longest_gap']:.2f}" if "longest_gap" in found else ""
        write(
            f"{number:5d}  {name:9s}  {found['share']:13.3f}  {found['step_ms']:9.2f}  "
            f"{found['explained']:17.1f}  {found['alone']:10.1f}  {found['steps_per_second']:7.1f}  "
            f"{gap:>15s}\n"
        )
        sys.stdout.flush()

    with Server("app.py") as server, Server(None) as plain, chromium() as browser:
        run = server.begin(goal=None, steps=STEPS)
        server.pause()
        plain.begin(goal=None, steps=STEPS)
        plain.pause()
        page = browser.new_page(viewport=SIZE)
        for number in range(arguments.seeds):
            plain.resume()
            time.sleep(WARM)
            note(number, "plain", measured(plain))
            plain.pause()
            server.resume()
            for name, found in watched(server, run, page):
                note(number, name, found)
            server.pause()
        page.close()
        server.resume()
        waits = answers(server, run, browser)

    def middle(phase: str, what: str) -> float:
        return statistics.median(row[what] for row in rows if row["phase"] == phase)

    def of_unwatched(phase: str, what: str) -> float:
        return statistics.median(
            row[what] / base[what]
            for row in rows
            for base in rows
            if (row["phase"], base["phase"], base["round"]) == (phase, "unwatched", row["round"])
        )

    write("\nmedians    share of time  ms a step  share / ms a step  of unwatched  not queued  steps/s\n")
    ratios = {}
    for name in ("plain", "unwatched", "browser", *VIEWERS):
        ratios[name] = of_unwatched(name, "explained")
        write(
            f"{name:9s}  {middle(name, 'share'):13.3f}  {middle(name, 'step_ms'):9.2f}  "
            f"{middle(name, 'explained'):17.1f}  {ratios[name]:12.3f}  {of_unwatched(name, 'alone'):10.3f}  "
            f"{middle(name, 'steps_per_second'):7.1f}\n"
        )
    gap = middle("twenty", "longest_gap")
    waits.sort()
    p95 = waits[min(len(waits) - 1, round(0.95 * len(waits)))]
    write(
        f"the longest wait of any of twenty viewers for a refresh: {gap:.2f} s (median of the rounds)\n"
        f"click to answer, {len(waits)} clicks: min {waits[0]:.0f}, median {statistics.median(waits):.0f}, "
        f"p95 {p95:.0f}, max {waits[-1]:.0f} ms\n"
    )
    met = {
        **{
            f"{'one_browser' if name == 'browser' else f'{name}_viewers'}_at_least_{least:g}": ratios[name]
            >= least
            for name, least in LEAST.items()
        },
        "twenty_viewers_refreshed_every_2_s": gap <= LONGEST_GAP,
        "click_answered_in_150_ms_p95": p95 <= ANSWERED,
    }
    speeds = {"browser": "one Chromium", "five": "five viewers", "twenty": "twenty viewers"}
    figures = {
        f"training watched by {who}, over unwatched": f"{ratios[name]:.2f}" for name, who in speeds.items()
    }
    figures["from a click to the picture, while it trains"] = (
        f"{statistics.median(waits):.0f} ms (95 % within {p95:.0f} ms)"
    )
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
