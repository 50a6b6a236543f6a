"""What one refresh of the Watch page costs: the server, the wire and the browser.

    python -m benchmarks.tick_cost [--seeds N] [--json]

A run of the default settings with a word of twelve letters (8 heads of 13 x 14 cells) has taken 2,000
steps, so that its curves are thinned, and goes on at 20 steps a second, so that every refresh brings new
numbers. The same run is watched on the Watch page and as Streamlit's own charts (`_plotly_page.py`), with the
same settings of the server, equally often. The two take turns, N times (`--seeds`).

The time of the server is that of its process while a plain viewer watches, without the training thread and
without what the process takes unwatched. Bytes are those of the websocket. The time of Chromium is that of
all its processes, with the page open in a headless one of 1280 x 720, less what it takes with nothing open.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import Any

from benchmarks._browser import SIZE, Refreshes, browser_seconds, chromium
from benchmarks._measuring import end, options, spread
from benchmarks._server import Server
from benchmarks._viewer import Viewer

SERVER_MS, BYTES, SHARE = 15.0, 24_000, 0.55
WORD, OTHERS = "refrigerator", ("playground", "headlight", "moon")
STEPS, PACE = 2000, 20.0
WARM, SECONDS = 3.0, 8.0
"""Seconds until a page has settled, and in which it is measured."""
PAGES = {"watch": "app.py", "plotly": "benchmarks/_plotly_page.py"}


def apart(server: Server, seconds: float) -> float:
    """Milliseconds of processor a second that a server takes unwatched, without its training."""
    began = server.look()
    time.sleep(seconds)
    return 1e3 * _beside_training(began, server.look()) / seconds


def _beside_training(began: dict[str, Any], ended: dict[str, Any]) -> float:
    return float(ended["process"] - began["process"] - (ended["training"] - began["training"]))


async def viewed(server: Server, run: str, unwatched: float) -> dict[str, float]:
    """Milliseconds and bytes a refresh, with a plain viewer."""
    viewer = Viewer(server.address, f"run={run}&word={WORD}")
    watching = asyncio.create_task(viewer.watch())
    await asyncio.wait_for(viewer.painted.wait(), 30)
    await asyncio.sleep(WARM)
    began, received, refreshed = server.look(), viewer.received, len(viewer.refreshed)
    await asyncio.sleep(SECONDS)
    ended, n = server.look(), len(viewer.refreshed) - refreshed
    watching.cancel()
    seconds = ended["wall"] - began["wall"]
    busy = 1e3 * _beside_training(began, ended) - unwatched * seconds
    return {"server_ms": busy / n, "bytes": (viewer.received - received) / n}


def shown(server: Server, run: str) -> float:
    """Milliseconds of Chromium a refresh."""
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE)
        refreshes = Refreshes(page)
        page.wait_for_timeout(1e3 * WARM)
        began = browser_seconds()
        page.wait_for_timeout(1e3 * WARM)
        idle = (browser_seconds() - began) / WARM
        page.goto(f"{server.address}/?run={run}&word={WORD}")
        page.wait_for_selector("svg.main-svg")
        page.wait_for_timeout(2e3 * WARM)
        began, refreshed = browser_seconds(), refreshes.count
        page.wait_for_timeout(1e3 * SECONDS)
        busy = browser_seconds() - began - idle * SECONDS
        return 1e3 * busy / (refreshes.count - refreshed)


def measure(server: Server, run: str) -> dict[str, float]:
    """One page of one server."""
    server.resume()
    found = asyncio.run(viewed(server, run, apart(server, WARM)))
    found["chromium_ms"] = shown(server, run)
    server.pause()
    return found


def median(rows: list[dict[str, Any]], name: str) -> float:
    """Of one column."""
    return statistics.median(row[name] for row in rows)


def main() -> int:
    """Print a row for each turn; exit status 1 where a limit is not met."""
    arguments = options(__doc__, seeds=5)
    write = sys.stdout.write
    servers = {name: Server(script) for name, script in PAGES.items()}
    runs = {}
    for name, server in servers.items():
        runs[name] = server.begin([WORD, *OTHERS], goal=None, steps=STEPS + 6000)
        server.until_step(STEPS)
        server.pace(PACE)
        server.pause()
    write("turn  page    server ms  kB on the wire  Chromium ms\n")
    rows: list[dict[str, Any]] = []
    for turn in range(arguments.seeds):
        row: dict[str, Any] = {"turn": turn}
        for name, server in servers.items():
            found = measure(server, runs[name])
            row |= {f"{name}_{what}": round(value, 1) for what, value in found.items()}
            write(
                f"{turn:4d}  {name:6s}  {found['server_ms']:9.1f}  {found['bytes'] / 1e3:14.1f}  "
                f"{found['chromium_ms']:11.0f}\n"
            )
            sys.stdout.flush()
        row["chromium_share"] = round(row["watch_chromium_ms"] / row["plotly_chromium_ms"], 3)
        rows.append(row)
    for server in servers.values():
        server.close()
    names = [f"{name}_{what}" for name in PAGES for what in ("server_ms", "bytes", "chromium_ms")]
    spread(rows, [*names, "chromium_share"], "g")
    met = {
        "tick_at_most_15_ms_of_server_cpu": median(rows, "watch_server_ms") <= SERVER_MS,
        "tick_at_most_24_kB": median(rows, "watch_bytes") <= BYTES,
        "chromium_at_most_0.55_of_plotly_chart": median(rows, "chromium_share") <= SHARE,
    }
    what = {"watch": "a refresh of the Watch page", "plotly": "its pictures as `st.plotly_chart`"}
    figures = {
        what[name]: f"{median(rows, f'{name}_server_ms'):.1f} ms of the server, "
        f"{median(rows, f'{name}_bytes') / 1e3:.0f} kB, "
        f"{median(rows, f'{name}_chromium_ms'):.0f} ms of Chromium"
        for name in PAGES
    }
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
