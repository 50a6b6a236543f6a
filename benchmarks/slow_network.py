"""LIVE on a slow network: bytes take 0.2 s in each direction, and 1 MB a second passes.

    python -m benchmarks.slow_network [--seeds N] [--json]

One headless Chromium of 1280 x 720 watches a run of the default settings, without a goal and at full pace,
through a proxy. In N rounds of 20 s (`--seeds`) every picture of the large map is recorded with its step, the
time since that step was trained, and whether the page says that LIVE is late. A picture that is older than a
second must be said to be late.
"""

from __future__ import annotations

import statistics
import sys
import time
from itertools import pairwise
from typing import Any

from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options, spread
from benchmarks.tools.proxy import Proxy
from benchmarks.tools.server import Server

DELAY, RATE = 0.2, 1e6
WARM, SECONDS = 4.0, 20.0
PICTURES, OLDEST = 5.0, 1.0
"""Minimum pictures a second; maximum seconds since the step of a picture that is not said to be late."""
NOTE = """() => {
  const host = document.querySelector(".st-key-live_map .live-figure");
  window.drawn = [];
  window.noting?.disconnect();
  window.noting = new MutationObserver(() => {
    const late = document.querySelector(".st-key-run_status p").textContent.includes("late");
    window.drawn.push([Date.now() / 1e3, Number(host.dataset.step), late]);
  });
  window.noting.observe(host, { attributes: true, attributeFilter: ["data-draws"] });
}"""


def main() -> int:
    """Print the spread of the rounds; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=3)
    rows: list[dict[str, Any]] = []
    with Server("app.py") as server, Proxy(server.address) as proxy, chromium() as browser:
        run = server.begin(goal=None, steps=100_000)
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{proxy.address}/?run={run}")
        page.wait_for_selector(".st-key-live_map .map[data-step]")
        proxy.delay, proxy.rate = DELAY, RATE
        for number in range(arguments.seeds):
            time.sleep(WARM)
            server.steps()
            page.evaluate(NOTE)
            time.sleep(SECONDS)
            drawn = page.evaluate("window.drawn")
            trained = dict(server.steps())
            ages = [(at - trained[step], late) for at, step, late in drawn if step in trained]
            rows.append(
                {
                    "round": number,
                    "pictures": sum(one[1] != next_[1] for one, next_ in pairwise(drawn)) / SECONDS,
                    "age": statistics.median(age for age, _ in ages),
                    "oldest": max(age for age, _ in ages),
                    "unsaid": sum(age > OLDEST and not late for age, late in ages),
                }
            )
        page.close()
    spread(rows, ("pictures", "age", "oldest", "unsaid"), ".2f")
    middle = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    met = {
        "pictures_a_second": middle["pictures"] >= PICTURES,
        "none_older_unless_it_says_so": all(row["unsaid"] == 0 for row in rows),
    }
    figures = {
        "pictures a second at LIVE, with 0.2 s of delay in each direction and 1 MB/s": (
            f"{middle['pictures']:.1f}, each {middle['age']:.2f} s after its step "
            f"(at most {max(row['oldest'] for row in rows):.2f} s)"
        )
    }
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
