"""The time to open Watch on a server with 300 runs, 20 of them live, relative to three runs.

    python -m benchmarks.long_list [--seeds N] [--json]

The folder of each server holds copies of one small run. Every second run is the visitor's own, by its token
in the browser; the others were trained elsewhere. This process holds the files of the live ones and writes a
step of each every second. Each of N turns (`--seeds`) visits both servers with an empty browser cache, in
changing order, and measures the seconds to the first map and to the whole page, with its list; the medians of
the latter are compared. With 300 runs, it also opens the dialog that lists all.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import Browser

from benchmarks.tools.browser import SIZE, chromium
from benchmarks.tools.measuring import end, options, spread
from benchmarks.tools.server import ROOT, clean_environment, free_port, until_healthy
from transformer.config import RunConfig
from transformer.recording.view import TRAINING
from transformer.runs.run import Run
from transformer.storage.archive import Archive
from transformer.storage.file import OWNER, RUN, SUFFIX, Store, put
from transformer.storage.format import RunFile, read_run_file
from transformer.storage.tokens import digest_of, new_token

FEW, MANY, LIVE, STEPS = 3, 300, 20, 4
LIMIT = 1.2
"""Maximum ratio of the time with many runs to that with few."""
MAP = ".st-key-live_map .live-figure[data-step]"
WHOLE = """n => document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]")
  && document.querySelector(".st-key-all_runs_open button")?.innerText.includes(`All ${n} runs`)"""
WAIT = 120_000.0
"""Longest wait in ms, for a machine that does other work too."""
TABLE = "[data-testid=stDialog] [data-testid=stDataFrame] canvas"


def train_small_run(path: Path) -> None:
    """Train a small run and keep it in a file."""
    small = {"n_encoder_layers": 1, "n_decoder_layers": 1, "n_heads": 2, "d_model": 8, "d_ff": 8}
    config = RunConfig().with_changes(steps=STEPS, warmup_steps=1, goal=None, device="cpu", **small)
    run = Run(config, archive=Archive(path))
    run.start()
    run.wait()
    run.close()
    run.join()


@contextmanager
def copies(small: Path, folder: Path, n: int, live: int) -> Iterator[dict[str, Any]]:
    """Fill a folder with n copies of a run, and write a step of the live ones every second.

    Yields:
        The visitor's own runs, as the browser stores them: every second one.
    """
    folder.mkdir()
    own: dict[str, Any] = {}
    held: list[tuple[Store, RunFile]] = []
    for number in range(n):
        id_, token = new_token(), new_token()
        mine, lives = number % 2 == 1, number % 2 == 0 and number < 2 * live
        path = folder / f"{id_ if mine else f'night {number:03}'}{SUFFIX}"
        shutil.copy(small, path)
        run = read_run_file(path)
        run = replace(
            run,
            id=id_,
            name=f"model {number}",
            config=run.config.with_changes(seed=number),
            state=TRAINING if lives else run.state,
            planned=10**6,
        )
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            put(database, RUN, msgspec.json.encode(run))
            if mine:
                put(database, OWNER, digest_of(token).encode())
                own[id_] = {"token": token, "at": number}
        if lives:
            held.append((Store(path, new=False), run))
    ended = threading.Event()

    def train() -> None:
        step = STEPS
        while not ended.wait(1.0):
            step += 1
            for store, run in held:
                with store.transaction() as database:
                    put(database, RUN, msgspec.json.encode(replace(run, step=step)))

    thread = threading.Thread(target=train)
    thread.start()
    try:
        yield own
    finally:
        ended.set()
        thread.join()
        for store, _ in held:
            store.close()


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Start the app with this folder of runs; yields its address once it answers."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
        cwd=ROOT,
        env=clean_environment() | {"HEADLIGHT_RUNS": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_healthy(process, address)
        yield address
    finally:
        process.kill()
        process.wait()


def visit(browser: Browser, address: str, own: dict[str, Any], n: int) -> dict[str, float]:
    """Return the seconds from a visit to the first map, to the whole page, and from a click to all runs."""
    context = browser.new_context(viewport=SIZE)
    context.add_init_script(f"localStorage['headlight-runs'] ??= {json.dumps(json.dumps(own))}")
    page = context.new_page()
    began = time.perf_counter()
    page.goto(address, wait_until="commit", timeout=WAIT)
    page.wait_for_function("what => document.querySelector(what)?.checkVisibility()", arg=MAP, timeout=WAIT)
    seconds = {"map": time.perf_counter() - began}
    page.wait_for_function(WHOLE, arg=n, timeout=WAIT)
    seconds["whole"] = time.perf_counter() - began
    if n == MANY:
        began = time.perf_counter()
        page.locator(".st-key-all_runs_open button").first.click()  # the second is hidden
        page.wait_for_selector(TABLE, timeout=WAIT)
        seconds["dialog"] = time.perf_counter() - began
    context.close()
    return seconds


def main() -> int:
    """Print a row for each turn; exit status 1 if the limit is not met."""
    arguments = options(__doc__, seeds=7)
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headlight-list-")))
        train_small_run(root / "small")
        servers = {}
        for n, live in ((FEW, 1), (MANY, LIVE)):
            own = stack.enter_context(copies(root / f"small{SUFFIX}", root / str(n), n, live))
            servers[n] = stack.enter_context(server(root / str(n))), own
        browser = stack.enter_context(chromium())
        for number in range(-1, arguments.seeds):  # the first turn makes the servers read and build
            row: dict[str, Any] = {"turn": number}
            for n in (FEW, MANY) if number % 2 else (MANY, FEW):
                row |= {
                    f"{name}_{n}": round(seconds, 3)
                    for name, seconds in visit(browser, *servers[n], n).items()
                }
            sys.stdout.write(", ".join(f"{name} {value}" for name, value in row.items()) + "\n")
            sys.stdout.flush()
            rows.append(row)
    first, *rows = rows
    spread(rows, [name for name in first if name != "turn"], ".2f")
    middle = {name: statistics.median(row[name] for row in rows) for name in first}
    ratio = middle[f"whole_{MANY}"] / middle[f"whole_{FEW}"]
    sys.stdout.write(f"with {MANY} runs over {FEW}: {ratio:.2f} (limit {LIMIT})\n")
    figures = {
        f"Watch opens with {MANY} runs, {LIVE} of them live, relative to {FEW} runs": f"{ratio:.2f} "
        f"({middle[f'whole_{MANY}']:.1f} s); all are listed {middle[f'dialog_{MANY}']:.1f} s after a click"
    }
    return end(arguments, rows, {"opens_as_fast": ratio <= LIMIT}, figures)


if __name__ == "__main__":
    sys.exit(main())
