"""The cost of viewers for the training: none, one browser, 20, 100 and 290 sockets.

    python -m benchmarks.stream [--seeds N] [--json]

One run of the default settings, without a goal, trains on a server. In N rounds (`--seeds`) it trains for
some seconds in each of these phases: without a viewer, with one headless Chromium, and with 20, 100 and 290
sockets (a server takes 300). Each socket requests the maps of a word and acknowledges every message as drawn.
In every phase the run records as if it had a viewer, so that phases differ only in the stream. The medians
over the rounds are compared with the limits.

Compared is the share of the time that the training thread has: its processor seconds per second, lower while
it waits for the GIL or for a processor. Also printed: the processor time of a step, which varies by a tenth
on a shared machine; the share divided by it; that quotient without the time in which the thread waited for a
processor ("not queued"), which excludes the load of the browser and of the viewers on the same cores; and the
steps per second as counted.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import websockets
from playwright.sync_api import Browser

from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options
from benchmarks.tools.server import Server

WARM, SECONDS = 2.5, 6.0
"""Seconds until a phase has settled, and seconds for which it is measured."""
LEAST = {"browser": 0.93, "20": 0.93, "100": 0.93, "290": 0.80}
"""Minimum share of the time in each phase, relative to that without a viewer."""
MESSAGES, KILOBYTES = 5.0, 100.0
"""Minimum messages and maximum kilobytes, per second and viewer."""
STEPS = 100_000


def measured(server: Server) -> dict[str, float]:
    """Measure the speed of the training and its components over the next seconds."""
    began = server.look()
    time.sleep(SECONDS)
    ended = server.look()
    wall, training, queued, steps = (
        ended[name] - began[name] for name in ("wall", "training", "queued", "step")
    )
    step = training / max(1, steps)
    return {
        "share": training / wall,
        "step_ms": 1e3 * step,
        "explained": training / wall / step,
        "alone": training / (wall - queued) / step,
        "steps_per_second": steps / wall,
    }


class CountingViewer:
    """A viewer that counts its messages and bytes."""

    def __init__(self) -> None:
        self.messages = self.nbytes = 0

    def take(self, message: bytes) -> None:
        """Count a message."""
        self.messages += 1
        self.nbytes += len(message)

    async def watch(self, address: str, ticket: str) -> None:
        """Request the maps of a word, and acknowledge every message as drawn."""
        protocol = websockets.Subprotocol(f"headlight.{ticket}")
        async with websockets.connect(address, subprotocols=[protocol], max_size=None) as socket:
            await socket.send('{"look": ["playground", "decoder.1.cross", 0], "live": true}')
            async for message in socket:
                self.take(message)
                await socket.send('{"drawn": 1}')


Viewer = TypeVar("Viewer", bound=CountingViewer)


@contextmanager
def sockets(server: Server, run: str, viewers: list[Viewer]) -> Iterator[list[Viewer]]:
    """Connect these viewers, without a browser, in a separate thread."""
    address = f"{server.address.replace('http', 'ws')}/stream/{run}/news"
    ticket = server.ticket(run)
    loop = asyncio.new_event_loop()
    tasks = [loop.create_task(viewer.watch(address, ticket)) for viewer in viewers]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield viewers
    for task in tasks:
        loop.call_soon_threadsafe(task.cancel)
    while not all(task.done() for task in tasks):
        time.sleep(0.02)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def phases(server: Server, run: str, browser: Browser) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the phases of one round, each with its measurements."""
    time.sleep(WARM)
    yield "none", measured(server)
    page = browser.new_page(viewport=SIZE)
    page.goto(f"{server.address}/?run={run}")
    page.wait_for_selector(".st-key-live_map .map[data-step]")
    time.sleep(WARM)
    yield "browser", measured(server)
    page.close()
    for n in (20, 100, 290):
        with ExitStack() as stack:
            viewers = stack.enter_context(sockets(server, run, [CountingViewer() for _ in range(n)]))
            time.sleep(WARM)
            before = [(viewer.messages, viewer.nbytes) for viewer in viewers]
            measurement = measured(server)
            after = [(viewer.messages, viewer.nbytes) for viewer in viewers]
        each = [
            ((m2 - m1) / SECONDS, (b2 - b1) / SECONDS / 1e3)
            for (m1, b1), (m2, b2) in zip(before, after, strict=True)
        ]
        measurement["messages"], measurement["kilobytes"] = min(m for m, _ in each), max(b for _, b in each)
        yield str(n), measurement


def main() -> int:
    """Print a row for each phase, then the medians; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=5)
    write = sys.stdout.write
    write("round  viewers  share of time  ms a step  share / ms  not queued  steps/s  messages/s  kB/s\n")
    rows: list[dict[str, Any]] = []
    with Server("app.py") as server, chromium() as browser:
        run = server.begin(goal=None, steps=STEPS)
        server.watch()
        for number in range(arguments.seeds):
            for name, now in phases(server, run, browser):
                rows.append({"round": number, "phase": name, **{k: round(v, 4) for k, v in now.items()}})
                sent = f"{now['messages']:10.1f}  {now['kilobytes']:4.0f}" if "messages" in now else ""
                write(
                    f"{number:5d}  {name:7s}  {now['share']:13.3f}  {now['step_ms']:9.2f}  "
                    f"{now['explained']:10.1f}  {now['alone']:10.1f}  {now['steps_per_second']:7.1f}  "
                    f"{sent}\n"
                )
                sys.stdout.flush()

    def of_none(phase: str, what: str) -> float:
        base = {row["round"]: row[what] for row in rows if row["phase"] == "none"}
        return statistics.median(row[what] / base[row["round"]] for row in rows if row["phase"] == phase)

    ratios = {name: of_none(name, "share") for name in LEAST}
    for name, ratio in ratios.items():
        rest = ", ".join(f"{what} {of_none(name, what):.3f}" for what in ("explained", "alone"))
        write(f"{name} relative to none: share {ratio:.3f}, {rest}\n")
    sent = [row for row in rows if "messages" in row]
    messages, kilobytes = min(row["messages"] for row in sent), max(row["kilobytes"] for row in sent)
    write(f"each viewer: at least {messages:.1f} messages a second, at most {kilobytes:.0f} kB\n")
    met = {f"{name}_at_least_{least:g}": ratios[name] >= least for name, least in LEAST.items()}
    met |= {"messages_a_second": messages >= MESSAGES, "kilobytes_a_second": kilobytes <= KILOBYTES}
    who = {"browser": "one Chromium at full rate", **{n: f"{n} viewers" for n in ("20", "100", "290")}}
    figures = {
        f"share of the time that training has with {name}, relative to none": f"{ratios[key]:.2f}"
        for key, name in who.items()
    }
    figures["each viewer gets"] = f"{messages:.0f} messages a second and more, {kilobytes:.0f} kB at most"
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
