"""Response times of the picture of the model: the pointer, opening a box, a step on the control, LIVE.

    python -m benchmarks.picture [--seeds N] [--json]

The setup is a server with one run of the default settings that trains at full pace, a run that has ended, and
one headless Chromium of 1280 x 720 on the page Look inside. Each of N rounds (`--seeds`) measures: the time
from a pointer move over a cell of an open attention to its readout, plus one animation frame; the time to
open a box; the time from a change of the ended run's step control until all tables show that step, while the
other run trains; and, at LIVE, the pictures per second of the small maps. The medians of the rounds are
compared with the limits.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from playwright.sync_api import Page

from benchmarks.player import percentile_95
from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options
from benchmarks.tools.server import Server

POINTER, OPENED, STEP, PICTURES = 33.0, 400.0, 60.0, 10.0
"""Maximum milliseconds of the pointer (95 %), of opening a box and of a step (median); minimum pictures per
second at LIVE."""
MOVES, BOXES, STEPS, SECONDS = 60, 8, 40, 10.0
SITE = "decoder.1.cross"
POINT = """([row, column]) => new Promise((resolve, reject) => {
  const canvas = document.querySelector('.table[data-table="weights"] canvas');
  const { x, y, width, height } = canvas.getBoundingClientRect();
  const said = document.querySelector(".st-key-model_readout"), before = said.textContent;
  const [clientX, clientY] = [x + width * (column + 0.5) / 12, y + height * (row + 0.5) / 11];
  const began = performance.now();
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
  const look = () => {
    if (said.textContent !== before) requestAnimationFrame(() => resolve(performance.now() - began));
    else if (performance.now() - began > 5000) reject(new Error("no answer"));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""
OPEN = """(name) => new Promise((resolve, reject) => {
  const began = performance.now();
  document.querySelector(`[data-box="${name}"] .title`).click();
  const look = () => {
    const box = document.querySelector(`[data-box="${name}"].open`);
    const moves = document.getAnimations().some(({ playState }) => playState === "running");
    if (box && !moves) resolve(performance.now() - began);
    else if (performance.now() - began > 5000) reject(new Error(`${name} did not open`));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""
CHOOSE = """(step) => new Promise((resolve, reject) => {
  const picture = document.querySelector(".st-key-model_picture");
  const slider = document.querySelector(".st-key-time_step input");
  const began = performance.now();
  slider.value = step;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  const look = () => {
    // The nearest recorded step is shown: a slow machine does not record every one.
    if (Math.abs(picture.dataset.step - step) < 3) resolve(performance.now() - began);
    else if (performance.now() - began > 10000) reject(new Error(`no picture of step ${step}`));
    else requestAnimationFrame(look);
  };
  look();
})"""
NOTE = """() => {
  window.drawn = [];
  const picture = document.querySelector(".st-key-model_picture");
  new MutationObserver(() => window.drawn.push(Number(picture.dataset.step)))
    .observe(picture, { attributes: true, attributeFilter: ["data-step"] });
}"""


def opened(page: Page, address: str) -> None:
    """Open Look inside, and wait for the picture."""
    page.goto(address)
    page.wait_for_selector(".model .box")
    time.sleep(2.0)


def main() -> int:
    """Print a row for each round; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=3)
    rows: list[dict[str, Any]] = []
    points: list[float] = []
    sys.stdout.write("round  pointer 95 %, ms  box, ms  step, ms  pictures/s\n")
    with Server("app.py") as server, chromium() as browser:
        ended = server.begin(goal=None, steps=300)
        server.until_step(300)
        time.sleep(2.0)
        run = server.begin(goal=None, steps=100_000)
        for number in range(arguments.seeds):
            page = browser.new_page(viewport=SIZE)
            opened(page, f"{server.address}/inside?run={ended}&word=playground")
            boxes = ["encoder.0", "encoder.1", "decoder.0.cross", "decoder.1.feed_forward"] * (BOXES // 4)
            opening = [float(page.evaluate(OPEN, name)) for name in boxes]
            page.evaluate(OPEN, SITE)
            round_points = [float(page.evaluate(POINT, [i % 11, (5 * i) % 12])) for i in range(MOVES)]
            steps = [float(page.evaluate(CHOOSE, 10 + 7 * i % 290)) for i in range(STEPS)]
            opened(page, f"{server.address}/inside?run={run}&word=playground")
            page.evaluate(NOTE)
            time.sleep(SECONDS)
            drawn = len(set(page.evaluate("window.drawn"))) / SECONDS
            page.close()
            points += round_points
            row = {
                "round": number,
                "pointer": percentile_95(round_points),
                "box": max(opening),
                "step": statistics.median(steps),
                "pictures": drawn,
            }
            rows.append({name: round(value, 3) for name, value in row.items()})
            sys.stdout.write(
                f"{number:5d}  {row['pointer']:16.0f}  {row['box']:7.0f}  {row['step']:8.0f}  {drawn:10.1f}\n"
            )
            sys.stdout.flush()
    middle = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    met = {
        "pointer": middle["pointer"] <= POINTER,
        "box": middle["box"] <= OPENED,
        "step": middle["step"] <= STEP,
        "pictures_a_second": middle["pictures"] >= PICTURES,
    }
    figures = {
        "from the pointer to the frames around its cell": f"{statistics.median(points):.0f} ms (95 % within "
        f"{percentile_95(points):.0f} ms)",
        "to open a box of the picture": f"{middle['box']:.0f} ms at most",
        "from a step on the control to the whole picture": f"{middle['step']:.0f} ms",
        "pictures a second of the small maps at LIVE": f"{middle['pictures']:.1f}",
    }
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
