"""Load test of one server: thirty visitors, each with their own run; two runs train at a time.

    python -m benchmarks.crowd [--seeds N] [--limit SECONDS] [--json]

The app runs as the README starts it, with its usual limits and a folder for its runs. N visitors (`--seeds`,
by default 30) open the page, each with another seed, and press Start: two runs train, the others wait in the
queue. For two minutes (`--limit`) each visitor receives the stream of its run and requests its page every few
seconds, as a press on a button does. Then each presses Stop and leaves; the memory of the server is measured
for two more minutes.

Measures the seconds from the request for a page to its answer, the messages of the stream, exceptions and
error boxes on any page, runs that are missing on disk or in a state other than training or queued, and the
server's memory.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from benchmarks.tools.measuring import end, options
from benchmarks.tools.server import ROOT, clean_environment, free_port, until_healthy
from benchmarks.tools.viewer import Viewer
from transformer.storage.file import SUFFIX
from transformer.storage.format import read_run_file

TRAINING = 2
AFTERWARDS = 60.0
ANSWERED_SECONDS, ASKS_SECONDS = 1.0, 6.0
FLAT_MB = 10.0
"""Growth in the last minute above which memory counts as leaking."""


def megabytes(server: subprocess.Popen[bytes]) -> float:
    """Return the resident memory of a server in MB."""
    return float(psutil.Process(server.pid).memory_info().rss / 1e6)


def states(folder: Path) -> dict[str, str]:
    """Return the state of each saved run, by run id."""
    state_of = {}
    for path in folder.glob(f"*{SUFFIX}"):
        run = read_run_file(path)
        state_of[run.id] = run.state
    return state_of


async def run_visitors(
    address: str, n: int, seconds: float, folder: Path
) -> tuple[list[Viewer], dict[str, str]]:
    """Let n visitors start a run each, watch it and leave.

    Returns:
        The visitors, and the states of their runs before Stop was pressed.
    """
    viewers = [Viewer(address, f"seed={seed}&steps=100000&goal=none") for seed in range(n)]
    tasks = [asyncio.create_task(viewer.watch()) for viewer in viewers]
    for viewer in viewers:
        await asyncio.wait_for(viewer.painted.wait(), 120)
    for viewer in viewers:
        await viewer.press("run_start")
    began = time.perf_counter()
    while any("run=" not in viewer.query for viewer in viewers):
        if time.perf_counter() - began > 120:
            raise RuntimeError("not every visitor has a run after two minutes")
        await asyncio.sleep(0.2)
    tasks += [asyncio.create_task(viewer.follow()) for viewer in viewers]
    ended = time.perf_counter() + seconds
    while time.perf_counter() < ended:
        for viewer in viewers:
            await viewer.ask()
            await asyncio.sleep(ASKS_SECONDS / n)
    state_of = states(folder)
    for viewer in viewers:
        await viewer.press("run_stop")
    await asyncio.sleep(5.0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return viewers, state_of


def main() -> int:
    """Print the results; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=30, limit=120.0)
    n, port = arguments.seeds, free_port()
    with tempfile.TemporaryDirectory(prefix="headlight-runs-", ignore_cleanup_errors=True) as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
            cwd=ROOT,
            env=clean_environment() | {"HEADLIGHT_RUNS": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            until_healthy(server, address)
            viewers, state_of = asyncio.run(run_visitors(address, n, arguments.limit, Path(folder)))
            full = megabytes(server)
            time.sleep(AFTERWARDS)
            left, ended = megabytes(server), Counter(states(Path(folder)).values())
            time.sleep(AFTERWARDS)
            later = megabytes(server)
        finally:
            server.kill()
            server.wait()
    answered = sorted(seconds for viewer in viewers for seconds in viewer.answer_seconds)
    ids = {viewer.query.split("run=")[1].split("&")[0] for viewer in viewers}
    counted = Counter(state_of.get(id_, "lost") for id_ in ids)
    errors = [text for viewer in viewers for text in viewer.errors]
    errors += [error.message for viewer in viewers for error in viewer.exceptions]
    row: dict[str, Any] = {
        "visitors": n,
        "asked": len(answered),
        "messages": sum(viewer.stream.messages for viewer in viewers),
        "median_ms": round(1e3 * statistics.median(answered)),
        "p95_ms": round(1e3 * answered[int(0.95 * len(answered))]),
        "longest_ms": round(1e3 * answered[-1]),
        "states": dict(counted),
        "stopped": ended["stopped"],
        "errors": errors[:5],
        "megabytes": round(full),
        "megabytes_later": [round(left), round(later)],
    }
    sys.stdout.write("".join(f"{name}: {value}\n" for name, value in row.items()))
    met = {
        "no_error_on_any_page": not errors,
        "no_run_lost": len(ids) == n
        and counted == {"training": TRAINING, "queued": n - TRAINING}
        and ended == {"stopped": n},
        "answered_within_1_s_p95": row["p95_ms"] <= 1e3 * ANSWERED_SECONDS,
        "memory_flat_afterwards": later - left <= FLAT_MB,
    }
    figures = {
        f"{n} visitors, each with a run, {TRAINING} training": f"a page is answered within "
        f"{row['p95_ms']:,} ms (95 %), {full:,.0f} MB, and {later:,.0f} MB after they have left"
    }
    return end(arguments, [row], met, figures)


if __name__ == "__main__":
    sys.exit(main())
