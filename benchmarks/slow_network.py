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
from typing import Any

from benchmarks.player import WARM, pictures
from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options, spread
from benchmarks.tools.proxy import Proxy
from benchmarks.tools.server import Server

DELAY, RATE = 0.2, 1e6
PICTURES = 5.0
"""Minimum pictures a second."""


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
            rows.append({"round": number, **pictures(page, server)})
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
