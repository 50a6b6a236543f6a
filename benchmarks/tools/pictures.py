"""The pictures of the README and of `docs/`, taken from the real app.

    python -m benchmarks.tools.pictures [NAME ...]

Trains what they show, opens the pages in Chromium at 1280 x 720, and writes docs/NAME.png; without names, all
of them. `translate` needs a Chinese font.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.server import ROOT, Server, clean_environment

DOCS = ROOT / "docs"
MAP = ".st-key-live_map .map[data-step]"
RESTED, TRAINED = 1500, 300_000
"""Milliseconds until a page has drawn everything, and until a run has ended."""


class Camera:
    """A visitor of the app, and its runs that the pictures need, each trained once."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page, self.server = page, server
        self._runs: dict[str, str] = {}

    def run(self, settings: str = "goal=none&steps=300") -> str:
        """Return the id of an ended run with the settings of this query."""
        if settings not in self._runs:
            self.open(f"?{settings}", MAP)
            self.press(".st-key-run_start button")
            self.page.get_by_text("finished", exact=True).first.wait_for(timeout=TRAINED)
            self.page.wait_for_url(re.compile(r"[?&]run="))
            (self._runs[settings],) = re.findall(r"[?&]run=([^&]+)", self.page.url)
        return self._runs[settings]

    def open(self, path: str, shows: str) -> None:
        """Open a page and wait for what it shows."""
        self.page.goto(f"{self.server.address}/{path}")
        self.page.wait_for_selector(shows)
        self.rest()

    def rest(self) -> None:
        """Wait until the page stands still."""
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
        self.page.wait_for_timeout(RESTED)

    def press(self, selector: str, n: int = 0) -> None:
        """Press an element and wait for the effect."""
        self.page.locator(selector).nth(n).click()
        self.rest()


def watch(camera: Camera) -> None:
    """Take Watch after a run."""
    camera.open(f"?run={camera.run()}", MAP)


def ask(camera: Camera) -> None:
    """Take Ask at the step at which the first head turns, at the third letter."""
    camera.open(
        f"ask?run={camera.run()}&step=125&word=playground&kind=cross&head=decoder.1.2",
        ".st-key-explore_map_figure .main-svg",
    )
    for _ in range(2):
        camera.page.get_by_role("button", name="Next", exact=True).click()
        camera.rest()


def look_inside(camera: Camera) -> None:
    """Take Look inside with the last cross-attention open, and one cell of its weights kept."""
    camera.open(f"inside?run={camera.run()}&word=playground", "[data-box]")
    camera.press("[data-box='decoder.1.cross'] .title")
    cells = camera.page.locator("[data-box='decoder.1.cross'] [data-table=weights] canvas")
    box = cells.bounding_box()
    assert box is not None
    camera.page.mouse.click(box["x"] + 8.5 / 12 * box["width"], box["y"] + 2.5 / 11 * box["height"])
    camera.rest()


def masks(camera: Camera) -> None:
    """Take Masks of a decoder self-attention."""
    camera.open(f"masks?run={camera.run()}&word=playground", "[data-box]")


def race(camera: Camera) -> None:
    """Take a race with and without the causal mask, at step 150."""
    shows = ".st-key-race_right .map[data-step]"
    camera.open("race", shows)
    camera.press(".st-key-run_start button")
    camera.page.get_by_text("Race again").wait_for(timeout=TRAINED)
    (runs,) = re.findall(r"\?(.*)", camera.page.url)
    camera.open(f"race?{re.sub('&?step=[0-9]*', '', runs)}&step=150", shows)


def stories(camera: Camera) -> None:
    """Take the talk in full screen, at the beat that shows the head that has turned."""
    camera.open("stories?story=talk", f".headlight-player[data-story] {MAP.split()[-1]}")
    for _ in range(3):
        camera.page.keyboard.press("Space")
        camera.page.wait_for_timeout(4 * RESTED)
    camera.page.wait_for_timeout(8 * RESTED)


def translate(camera: Camera) -> None:
    """Take Watch after 250 steps of Chinese to English, with the gold cells outlined."""
    run = camera.run("preset=Chinese+to+English&goal=none&steps=250")
    camera.open(f"?run={run}", MAP)
    camera.press(".st-key-outline input")


def your_own_model(camera: Camera) -> None:
    """Take Watch on the BERT of docs/your-own-model.md."""
    programs = re.findall(
        r"```python\n(.*?)```", (DOCS / "your-own-model.md").read_text(encoding="utf-8"), re.DOTALL
    )
    (program,) = (program for program in programs if "BertForMaskedLM" in program)
    runs = Path(clean_environment()["HEADLIGHT_RUNS"])
    subprocess.run([sys.executable, "-c", program.replace("runs/", f"{runs}/")], cwd=ROOT, check=True)
    camera.open("", MAP)
    camera.press(".st-key-run_picker button:has-text('BertForMaskedLM')")


PICTURES: dict[str, Callable[[Camera], None]] = {
    "watch": watch,
    "ask": ask,
    "look-inside": look_inside,
    "masks": masks,
    "race": race,
    "stories": stories,
    "translate": translate,
    "your-own-model": your_own_model,
}


def main() -> None:
    """Take the pictures of these names."""
    with Server("app.py") as server, chromium() as browser:
        camera = Camera(browser.new_page(viewport=SIZE), server)
        for name in sys.argv[1:] or PICTURES:
            PICTURES[name](camera)
            camera.page.screenshot(path=DOCS / f"{name}.png")


if __name__ == "__main__":
    main()
