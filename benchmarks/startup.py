"""How long one waits: from `streamlit run app.py` to a page that can be used, and to the first trained map.

    python -m benchmarks.startup [--seeds N] [--json]

A Chromium with nothing open is there before each of the N starts (`--seeds`), so that only the app counts.
It opens the page when the server answers its health check; the page counts as painted when its Start button
is visible; its last settings and its status follow, and are timed too. What an app of one button needs is
measured beside it. Whether torch has been loaded is read from the memory map of the server when the first map
is there, that of the recording; where the system has none, that limit is not met. Start is pressed then, and
the first map of the training is waited for.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from benchmarks._browser import SIZE, chromium
from benchmarks._measuring import end, options, spread
from benchmarks._server import ROOT, free_port, surroundings, until_healthy

PAINTED = 1.0
"""Seconds from the health check."""
LIBRARY = "libtorch"
"""What the files of torch are called that are mapped when it is loaded."""
TRAINED = """() => {
  const step = document.querySelector(".st-key-live_map .live-figure")?.dataset.step;
  const status = document.querySelector(".st-key-run_status").innerText;
  return step >= 1 && step < 150 && !status.includes("recorded");
}"""
"""The recording stands at step 200 until the training has its first frame."""


def has_torch(pid: int) -> bool | None:
    """Whether a process has loaded torch; None where this machine does not tell."""
    maps = Path(f"/proc/{pid}/maps")
    return LIBRARY in maps.read_text() if maps.exists() else None


def until_seen(page: Page, *selectors: str) -> None:
    """Wait until elements can be seen; asked at every frame, for Playwright's own asking slows to 0.5 s."""
    page.wait_for_function(
        "all => all.every((one) => document.querySelector(one)?.checkVisibility())", arg=list(selectors)
    )


@contextmanager
def started(browser: Browser, script: str) -> Iterator[tuple[Page, int, dict[str, float]]]:
    """A fresh server and its page as soon as that has a Start button.

    Yields:
        The page, the number of the server's process, and the seconds from the command until it answered its
        health check, until the button was visible, and between the two.
    """
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    began = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)],
        cwd=ROOT,
        env=surroundings(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_healthy(server, address)
        healthy = time.perf_counter()
        page.goto(address, wait_until="commit")
        until_seen(page, ".st-key-run_start button")
        painted = time.perf_counter()
        seconds = {"began": began, "health": healthy - began, "painted": painted - began}
        yield page, server.pid, seconds | {"painted_after_health": painted - healthy}
    finally:
        server.kill()
        server.wait()
        context.close()


def measure(browser: Browser) -> dict[str, Any]:
    """Seconds of one start, each from the command, and of one of an app of one button."""
    with started(browser, "app.py") as (page, process, seconds):
        began = seconds.pop("began")
        until_seen(page, ".st-key-width input", ".st-key-run_status p")
        seconds["whole_after_health"] = time.perf_counter() - began - seconds["health"]
        loaded = has_torch(process)
        until_seen(page, ".st-key-live_map svg.main-svg")
        seconds["recorded_map"] = time.perf_counter() - began
        page.locator(".st-key-run_start button").click()
        page.wait_for_function(TRAINED)
        seconds["trained_map"] = time.perf_counter() - began
    with started(browser, "benchmarks/_button_page.py") as (_, _, bare):
        seconds["button_after_health"] = bare["painted_after_health"]
    return {name: round(value, 3) for name, value in seconds.items()} | {"torch_before_the_page": loaded}


def main() -> int:
    """Print a row for each start; exit status 1 where a limit is not met."""
    arguments = options(__doc__, seeds=5)
    write = sys.stdout.write
    write(
        "start  health  painted  after health  whole page  one button  recorded map  trained map  "
        "torch before the page\n"
    )
    rows: list[dict[str, Any]] = []
    with chromium() as browser:
        for number in range(arguments.seeds):
            row = {"start": number, **measure(browser)}
            rows.append(row)
            write(
                f"{number:5d}  {row['health']:6.2f}  {row['painted']:7.2f}  "
                f"{row['painted_after_health']:12.2f}  {row['whole_after_health']:10.2f}  "
                f"{row['button_after_health']:10.2f}  "
                f"{row['recorded_map']:12.2f}  "
                f"{row['trained_map']:11.2f}  {row['torch_before_the_page']!s:>21}\n"
            )
            sys.stdout.flush()
    seconds = [name for name in rows[0] if name not in ("start", "torch_before_the_page")]
    spread(rows, seconds, ".2f")
    middle = {name: statistics.median(row[name] for row in rows) for name in seconds}
    met = {
        "painted_within_1_s_of_health": middle["painted_after_health"] <= PAINTED,
        "no_torch_before_the_page": all(row["torch_before_the_page"] is False for row in rows),
    }
    figures = {
        "from the command to a page with its Start button": f"{middle['painted']:.1f} s "
        f"({middle['painted_after_health']:.1f} s after the server is there, its settings after "
        f"{middle['whole_after_health']:.1f} s; an app of one button {middle['button_after_health']:.1f} s)",
        "from the command to the first map of a training": f"{middle['trained_map']:.1f} s",
    }
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
