"""Memory and nodes of one page that stays open: at LIVE, in a race, and while a film plays in a loop.

    python -m benchmarks.page_memory [--seeds N] [--json]

One headless Chromium of 1280 x 720 stays on Watch for N minutes (`--seeds`) while a run of the default
settings, without a goal, trains at full pace; then for a quarter of these minutes on Race, beside one
without the causal mask; then for another quarter on Watch, while the film of the run is played again and
again. Every 15 seconds, after a garbage collection, the heap of the page's JavaScript, the resident memory of
Chromium's GPU process and the number of the page's nodes are measured. Of each of the three parts, the mean
of the last quarter is compared with that of the second quarter: the first one loads what the part needs.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil
from playwright.sync_api import Page

from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options
from benchmarks.tools.server import Server

EVERY = 15.0
"""Seconds between two measurements."""
LIMIT = 1.10
"""Maximum ratio of the memory at the end of a part to that in its second quarter."""
MAP = ".st-key-{} .live-figure[data-step]"
PLAY = ".st-key-time_play button"


def measured(page: Page) -> dict[str, float]:
    """Return figures after a garbage collection: megabytes of the page's heap and of the GPU process, and the
    number of the page's nodes."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    children = psutil.Process().children(recursive=True)
    gpu = [child.memory_info().rss for child in children if "--type=gpu-process" in " ".join(child.cmdline())]
    return {"heap": metrics["JSHeapUsedSize"] / 1e6, "gpu": sum(gpu) / 1e6, "nodes": metrics["Nodes"]}


def stayed(page: Page, name: str, seconds: float, does: Callable[[], None]) -> list[dict[str, Any]]:
    """Stay on a page, calling `does` once a second; return a row for each measurement."""
    rows, began = [], time.monotonic()
    while (now := time.monotonic() - began) < seconds:
        if now >= EVERY * len(rows):
            rows.append({"part": name, "at": round(now), **measured(page)})
            sys.stdout.write(f"{name}, {now:.0f} s: heap {rows[-1]['heap']:.1f} MB, ")
            sys.stdout.write(f"GPU process {rows[-1]['gpu']:.0f} MB, {rows[-1]['nodes']:.0f} nodes\n")
            sys.stdout.flush()
        does()
        page.wait_for_timeout(1000)
    return rows


def main() -> int:
    """Print a row for each measurement; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=60)
    seconds = 60.0 * arguments.seeds
    with chromium() as browser, Server("app.py", HEADLIGHT_MINUTES="1000") as server:
        page = browser.new_page(viewport=SIZE)
        run = server.begin(steps=100_000, goal=None)
        page.goto(f"{server.address}/?run={run}")
        page.wait_for_selector(MAP.format("live_map"), timeout=120_000)
        rows = stayed(page, "LIVE", seconds, lambda: None)
        other = server.begin(steps=100_000, goal=None, causal_mask=False)
        page.goto(f"{server.address}/race?run={run}&race={other}")
        page.wait_for_selector(MAP.format("race_difference"), timeout=120_000)
        rows += stayed(page, "race", seconds / 4, lambda: None)
        page.goto(f"{server.address}/?run={run}")
        page.wait_for_selector(MAP.format("live_map"), timeout=120_000)
        page.locator(".st-key-time_speed select").select_option("60/s")

        def play() -> None:
            if page.locator(PLAY).inner_text().startswith("▶"):
                page.locator(PLAY).click()

        rows += stayed(page, "film", seconds / 4, play)
    figures, met = {}, {}
    for part in ("LIVE", "race", "film"):
        some = [row for row in rows if row["part"] == part]
        quarters = [some[len(some) * i // 4 : len(some) * (i + 1) // 4] for i in range(4)]
        for what, unit in (("heap", "MB"), ("gpu", "MB"), ("nodes", "nodes")):
            second, last = (statistics.mean(row[what] for row in quarters[i]) for i in (1, 3))
            met[f"{part}_{what}"] = last / second <= LIMIT
            figures[f"{what} of a page, {part}: last quarter, relative to the second"] = (
                f"{last / second:.2f} ({last:,.0f} {unit})"
            )
    for what, figure in figures.items():
        sys.stdout.write(f"{what}: {figure} (limit {LIMIT})\n")
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
