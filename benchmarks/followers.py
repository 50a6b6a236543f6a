"""The delay until followers of a talk see the next beat: one Chromium and a hundred viewers.

    python -m benchmarks.followers [--seeds N] [--json]

One Chromium presents the shipped talk on a server. A second Chromium follows the link of the talk, and so do
a hundred WebSockets, which receive maps as a browser does. In each of N rounds (`--seeds`) the speaker goes
one beat forward (the third beat starts the training) or back. Measures the seconds from the key press to the
message with the beat at each socket, and to the beat on the screen of the second Chromium.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from typing import Any

from playwright.sync_api import Page

from benchmarks.stream import CountingViewer, sockets
from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options
from benchmarks.tools.server import Server

FOLLOWERS = 100
WITHIN = 1.0
"""Maximum seconds until every follower shows the speaker's beat."""
DRAWN = ".headlight-player[data-story] .st-key-live_map .map[data-step]"


class Follower(CountingViewer):
    """A viewer that records when it received each beat."""

    def __init__(self) -> None:
        super().__init__()
        self.beats: dict[int, float] = {}

    def take(self, message: bytes) -> None:
        """Count a message, and read the speaker's beat from it."""
        super().take(message)
        presentation = json.loads(message.partition(b"\n")[0])["presentation"]
        if presentation:
            self.beats.setdefault(presentation["at"], time.perf_counter())


def opened(page: Page, address: str) -> Page:
    """Open a page that shows a story, and return it."""
    page.goto(address)
    page.wait_for_selector(DRAWN)
    page.wait_for_timeout(3000)
    return page


def main() -> int:
    """Print a line for each round; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=6)
    rows: list[dict[str, Any]] = []
    with Server("app.py") as server, chromium() as browser:
        teller = opened(browser.new_page(viewport=SIZE), f"{server.address}/stories?story=talk")
        run = re.search(r"run=([^&]+)", teller.url)
        assert run is not None
        viewer = opened(browser.new_context(viewport=SIZE).new_page(), teller.url)
        teller.keyboard.press("Space")  # fills the screen
        with sockets(server, run[1], [Follower() for _ in range(FOLLOWERS)]) as viewers:
            time.sleep(3)
            for number in range(arguments.seeds):
                for one in viewers:
                    one.beats.clear()
                back = number > 1 and not number % 2
                began = time.perf_counter()
                teller.keyboard.press("PageUp" if back else "Space")
                place = int(teller.evaluate("document.querySelector('.headlight-player').dataset.beat"))
                viewer.wait_for_function(
                    "at => Number(document.querySelector('.headlight-player').dataset.beat) === at", arg=place
                )
                seen = time.perf_counter() - began
                time.sleep(2)
                heard = [viewer.beats.get(place, float("inf")) - began for viewer in viewers]
                rows.append(
                    {"beat": place, "screen": seen, "median": statistics.median(heard), "last": max(heard)}
                )
                sys.stdout.write(
                    f"beat {place}: Chromium {seen:.2f} s, of {FOLLOWERS} viewers the median "
                    f"{rows[-1]['median']:.2f} s, the last {rows[-1]['last']:.2f} s\n"
                )
    last = max(max(row["last"], row["screen"]) for row in rows)
    figures = {f"from a key of a talk to its beat at the last of {FOLLOWERS} viewers": f"{last:.2f} s"}
    return end(arguments, rows, {"followed": last <= WITHIN}, figures)


if __name__ == "__main__":
    sys.exit(main())
