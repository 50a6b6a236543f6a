"""How long one waits: from `streamlit run app.py` to a page that can be used, and to the first trained map.

    python -m benchmarks.startup [--seeds N] [--json]

A Chromium with nothing open is there before each of the N starts (`--seeds`), so that only the app counts.
It opens the page when the server answers its health check; the page counts as painted when its Start button
is visible. Start is pressed as soon as it can be. Whether torch has been loaded is read from the memory map
of the server when the page has been painted; where the system has none, that limit is not met.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from benchmarks._browser import SIZE, chromium
from benchmarks._measuring import end, options, spread
from benchmarks._server import ROOT, free_port, surroundings, until_healthy

PAINTED = 1.0
"""Seconds from the health check."""
LIBRARY = "libtorch"
"""What the files of torch are called that are mapped when it is loaded."""


def has_torch(pid: int) -> bool | None:
    """Whether a process has loaded torch; None where this machine does not tell."""
    maps = Path(f"/proc/{pid}/maps")
    return LIBRARY in maps.read_text() if maps.exists() else None


def measure(browser: Browser) -> dict[str, Any]:
    """Seconds of one start, each from the command."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    began = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
        cwd=ROOT,
        env=surroundings(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_healthy(server, address)
        healthy = time.perf_counter()
        page.goto(address, wait_until="commit")
        start = page.locator(".st-key-run_start button")
        start.wait_for(state="visible")
        painted, loaded = time.perf_counter(), has_torch(server.pid)
        page.locator(".st-key-live_map svg.main-svg").first.wait_for(state="attached")
        untrained = time.perf_counter()
        start.click()
        page.wait_for_function("document.querySelector('.st-key-live_map .live-figure')?.dataset.step >= 1")
        trained = time.perf_counter()
    finally:
        server.kill()
        server.wait()
        context.close()
    return {
        "health": round(healthy - began, 3),
        "painted": round(painted - began, 3),
        "painted_after_health": round(painted - healthy, 3),
        "untrained_map": round(untrained - began, 3),
        "trained_map": round(trained - began, 3),
        "torch_before_the_page": loaded,
    }


def main() -> int:
    """Print a row for each start; exit status 1 where a limit is not met."""
    arguments = options(__doc__, seeds=5)
    write = sys.stdout.write
    write("start  health  painted  after health  untrained map  trained map  torch before the page\n")
    rows: list[dict[str, Any]] = []
    with chromium() as browser:
        for number in range(arguments.seeds):
            row = {"start": number, **measure(browser)}
            rows.append(row)
            write(
                f"{number:5d}  {row['health']:6.2f}  {row['painted']:7.2f}  "
                f"{row['painted_after_health']:12.2f}  {row['untrained_map']:13.2f}  "
                f"{row['trained_map']:11.2f}  {row['torch_before_the_page']!s:>21}\n"
            )
            sys.stdout.flush()
    spread(rows, ("health", "painted", "painted_after_health", "untrained_map", "trained_map"), ".2f")
    waits = sorted(row["painted_after_health"] for row in rows)
    met = {
        "painted_within_1_s_of_health": waits[len(waits) // 2] <= PAINTED,
        "no_torch_before_the_page": all(row["torch_before_the_page"] is False for row in rows),
    }
    return end(arguments, rows, met)


if __name__ == "__main__":
    sys.exit(main())
