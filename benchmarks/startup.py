"""The time from a visit to the first map, and to the first map of a training.

    python -m benchmarks.startup [--seeds N] [--json]

Each of N turns (`--seeds`) measures, with an empty browser cache:

- on a server that has had visitors: from a visit to the first map, and the same for a page with one
  `st.plotly_chart`;
- on a server just started: from a visit, with Start pressed as soon as possible, to the first map of the
  training; for comparison, `import torch` in a separate process, and a first visit to the one-chart page.

Every visit begins once the server answers its health check. The medians are compared.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page

from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options, spread
from benchmarks.tools.server import ROOT, clean_environment, free_port, until_healthy

APP, PLAIN = "app.py", "benchmarks/tools/plotly_page.py"
MAP = {APP: ".st-key-live_map .live-figure[data-step]", PLAIN: ".js-plotly-plot .main-svg .hm"}
"""The CSS selector of the first figure of each script."""
WARM, TRAINED = 1.25, 1.5
"""Maximum ratios: to the page with one chart; to `import torch` plus the first visit to that page."""
TRAINING = """() => {
  const step = document.querySelector(".st-key-live_map .live-figure")?.dataset.step;
  const status = document.querySelector(".st-key-run_status")?.innerText ?? "recorded";
  return step >= 1 && !status.includes("recorded");
}"""


@contextmanager
def server(script: str) -> Iterator[str]:
    """Start a server; yields its address once it answers."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_healthy(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@contextmanager
def visitor(browser: Browser) -> Iterator[Page]:
    """Yield a page of a browser context with an empty cache."""
    context = browser.new_context(viewport=SIZE)
    yield context.new_page()
    context.close()


def until_drawn(page: Page, address: str, script: str) -> float:
    """Return the seconds from the request for a page to its first picture."""
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_function("what => document.querySelector(what)?.checkVisibility()", arg=MAP[script])
    return time.perf_counter() - began


def warm(browser: Browser, address: str, script: str) -> float:
    """Return the seconds of one visit to a running server."""
    with visitor(browser) as page:
        return until_drawn(page, address, script)


def fresh(browser: Browser) -> dict[str, float]:
    """Return the seconds measured on servers that were just started."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True, cwd=ROOT)
    seconds = {"torch": time.perf_counter() - began}
    with server(PLAIN) as address, visitor(browser) as page:
        seconds["plain_first"] = until_drawn(page, address, PLAIN)
    with server(APP) as address, visitor(browser) as page:
        began = time.perf_counter()
        page.goto(address, wait_until="commit")
        start = page.locator(".st-key-run_start button")
        page.wait_for_function("() => document.querySelector('.st-key-run_start button')?.checkVisibility()")
        seconds["start"] = time.perf_counter() - began
        start.click()
        page.wait_for_function(TRAINING)
        seconds["trained"] = time.perf_counter() - began
    return seconds


def main() -> int:
    """Print a row for each turn; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=7)
    write = sys.stdout.write
    write("turn  warm map  one chart  Start  trained map  torch  one chart, first visit\n")
    rows: list[dict[str, Any]] = []
    with chromium() as browser, server(APP) as app, server(PLAIN) as plain:
        for address, script in ((app, APP), (plain, PLAIN)):
            warm(browser, address, script)
        time.sleep(5.0)  # the first visit makes the server build the model and measure the machine
        for number in range(arguments.seeds):
            row: dict[str, Any] = {"turn": number}
            row["map"], row["chart"] = warm(browser, app, APP), warm(browser, plain, PLAIN)
            row |= fresh(browser)
            rows.append({name: round(value, 3) for name, value in row.items()})
            write(
                f"{number:4d}  {row['map']:8.2f}  {row['chart']:9.2f}  {row['start']:5.2f}  "
                f"{row['trained']:11.2f}  {row['torch']:5.2f}  {row['plain_first']:22.2f}\n"
            )
            sys.stdout.flush()
    seconds = [name for name in rows[0] if name != "turn"]
    spread(rows, seconds, ".2f")
    middle = {name: statistics.median(row[name] for row in rows) for name in seconds}
    late = statistics.median(row["map"] / row["chart"] for row in rows)
    later = statistics.median(row["trained"] / (row["torch"] + row["plain_first"]) for row in rows)
    write(f"warm map over one chart: {late:.2f}; trained map over torch and one chart: {later:.2f}\n")
    met = {"warm_map": late <= WARM, "trained_map": later <= TRAINED}
    figures = {
        "from a visit to the first map": f"{middle['map']:.1f} s (a page with one `st.plotly_chart`: "
        f"{middle['chart']:.1f} s)",
        "from a server just started to the first map of a training": f"{middle['trained']:.1f} s "
        f"(`import torch` {middle['torch']:.1f} s, that page {middle['plain_first']:.1f} s)",
    }
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
