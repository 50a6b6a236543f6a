"""Five hundred runs or more on one server in an hour: what grows, what fails, and whether all learn the same.

    python -m benchmarks.soak [--minutes N] [--visitors N] [--seeds N] [--json]

The app runs in a process of its own, with its usual limits but few runs in memory. For N minutes
(`--minutes`, by default 60) visitors come and leave: three to thirty at a time (`--visitors`), in each
quarter of the time the same numbers. Each speaks Streamlit's protocol and receives the stream of its run, as
a browser does. It trains a small model, and then does two of these: it asks words, looks inside,
races against a second run, takes the tour, trains on uploaded pairs, downloads files and opens a downloaded
run. One in five leaves while its run trains; others return to an earlier run. What a visit does depends only
on its number and on `--seeds`. At least 500 runs are made in 60 minutes.

Every minute, or 40 times in all if that is more often, these are read: memory of the server, resident and
in use, blocks of Python's memory, its threads, files and sockets, bytes of the folder of runs, entries of
stores and caches, objects of some classes; and the time within which 95 % of the pages were answered.

Limits: from the second to the last quarter, no figure's highest value grows by more than 5 %, and small
numbers by more than a few, unless it stays within what the server's limits allow; no page shows an exception,
and no visitor waits in vain; the log has no traceback; and the losses of every tenth run are, bit for bit,
those of its configuration trained alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import psutil
import torch

from benchmarks.stream import CountingViewer
from benchmarks.tools.measuring import end
from benchmarks.tools.server import Server
from benchmarks.tools.viewer import Viewer, get
from pages.stream.tickets import HEADER
from transformer.recording.view import ENDED, PAUSED, TRAINING
from transformer.runs.limits import Limits
from transformer.storage.file import SUFFIX
from transformer.storage.saved import read_run
from transformer.training.loop import train
from transformer.training.state import TrainState

RUNS, MINUTES = 500, 60.0
CROWD = (0.1, 1.0, 0.4, 0.7)
"""Share of the visitors that are there at a time, one after the other, in each quarter."""
KEPT, SESSIONS, CACHED = 10, 128, 16 * 2**20
"""Runs in memory; left sessions that Streamlit holds for two minutes; most bytes of each cache of results."""
EACH = {
    "files": {"sockets": 1, "sessions": 3, "runs": 3},
    "threads": {"runs": 2},
    "python blocks": {"Run objects": 7_000, "started": 200},
}
"""Files that are open for each socket, session (its event loop) and run (its database with two logs); the
threads of each run: one that trains and one that writes its file; and blocks of Python's memory for each run
in memory (6,800 measured) and for each run in the list (170, about 10 kB)."""
GROWTH, FEW = 1.05, 5
WAITING_SECONDS = 300.0
"""Longest wait for a run that is in line or trains."""
SAMPLE = 10
"""Every so many runs are trained again, alone."""
SHOWN = (
    *("minute", "visitors", "started", "p95_ms", "megabytes", "heap megabytes"),
    *("question bytes", "threads", "files", "sockets", "disk bytes"),
)
SMALL = "layers_encoder=1&layers_decoder=1&heads=2&width=16&letters=6&batch_size=8&goal=none&device=cpu"
EXPORTS = ("export_html", "export_strip", "export_csv", "export_parquet", "export_json", "export_weights")
WORDS = ("banana", "cat", "planet", "abcde", "zoo", "lemon", "river", "stone")
PAIRS = [(f"the {a} {b} {c}", f"le {c} {b} {a}") for a in WORDS for b in WORDS for c in WORDS]


class Stream(CountingViewer):
    """The messages about a run, of which the newest state is kept."""

    state = ""

    def take(self, message: bytes) -> None:
        """Count a message, and read the state of the run from it."""
        super().take(message)
        self.state = json.loads(message.partition(b"\n")[0])["state"]


class Visitor(Viewer):
    """A browser that does one thing after the other, and receives the stream of the run on its page."""

    def __init__(self, soak: Soak, query: str) -> None:
        super().__init__(soak.server.address, query)
        self.soak, self._followed = soak, ""
        self.stream: Stream = Stream()
        self._tasks: list[asyncio.Task[None]] = []

    async def does(self, asking: Awaitable[None]) -> None:
        """Send a request, wait for the whole page, and receive the stream of its run."""
        began = time.perf_counter()
        await self.answered(asking)
        self.soak.answers.append(time.perf_counter() - began)
        if self.run != self._followed:
            for task in self._tasks[1:]:
                task.cancel()
            self._followed, self.stream = self.run, Stream()
            self._tasks.append(asyncio.create_task(self.follow()))

    @property
    def run(self) -> str:
        """The id of the run that the page shows."""
        return str(self._shown.get("run", ""))

    @property
    def tokens(self) -> list[list[str]]:
        """Id and token of the runs that this visitor may command."""
        keys: list[list[str]] = json.loads(self._others["keyring"].json)[0]
        return keys

    async def open(self) -> None:
        """Open the page."""
        self._tasks.append(asyncio.create_task(self.watch()))
        await self.until(lambda: self.full_runs)

    async def leave(self) -> list[str]:
        """Close the page; return what went wrong on it."""
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        problems = [f"{type(one).__name__}: {one}" for one in ended if isinstance(one, Exception)]
        return problems + [f"on its page: {error.message}" for error in self.exceptions]

    async def until_ended(self) -> None:
        """Wait until the run on the page has ended or is paused, then ask for the page, as a browser does."""
        stream = self.stream
        await self.until(lambda: stream.state in (*ENDED, PAUSED), WAITING_SECONDS)
        await self.does(self.ask())

    async def picture(self, step: int) -> None:
        """Look at one forward pass of the run."""
        word = quote(self._shown["first"]["word"])
        url = f"{self.address}/stream/{self.run}/picture/{step}?word={word}"
        await asyncio.to_thread(get, url, {HEADER: self._shown["ticket"]})


async def _ask(visitor: Visitor, run: str, draw: random.Random) -> None:
    """Ask words."""
    await visitor.does(visitor.go("ask", f"run={run}"))
    for word in draw.sample(WORDS, 3):
        await visitor.set_widgets(explore_text={"string_value": word})


async def _inside(visitor: Visitor, run: str, draw: random.Random) -> None:
    """Look inside, at some steps."""
    await visitor.does(visitor.go("inside", f"run={run}"))
    for _ in range(3):
        await visitor.picture(draw.randint(0, 20))


async def _race(visitor: Visitor, run: str, draw: random.Random) -> None:
    """Race against a second run, and download the race."""
    await visitor.does(visitor.press("race_start"))
    await visitor.until(lambda: "race=" in visitor.query)
    await visitor.does(visitor.ask())
    await visitor.until_ended()
    if "export_race" in visitor._others and not visitor._others["export_race"].disabled:
        await _download(visitor, "export_race")


async def _story(visitor: Visitor, run: str, draw: random.Random) -> None:
    """Take the tour, with the visitor's own run."""
    await visitor.does(visitor.go("stories", f"story=tour&run={run}"))
    for beat in range(len(visitor._shown["story"]["beats"])):
        presentation = {"at": beat, "shown": [], "recorded": [], "by": "key"}
        await visitor.tell("player", "chosen", presentation, stays=True)
        await asyncio.sleep(draw.uniform(0.1, 0.5))


async def _upload(visitor: Visitor, run: str, draw: random.Random) -> None:
    """Upload pairs and train on them for a moment."""
    await visitor.does(visitor.go("data", ""))
    text = "\n".join(f"{left}\t{right}" for left, right in draw.sample(PAIRS, 100))
    await visitor.does(visitor.upload("pairs_upload", "pairs.tsv", text.encode()))
    await visitor.does(visitor.press("data_train"))
    await visitor.until(lambda: "run=" in visitor.query)
    await visitor.does(visitor.ask())
    stream = visitor.stream
    await visitor.until(lambda: stream.state in (TRAINING, *ENDED), WAITING_SECONDS)
    await asyncio.sleep(draw.uniform(1, 5))
    await visitor.does(visitor.press("run_stop"))
    await visitor.until_ended()


async def _download(visitor: Visitor, key: str) -> bytes:
    """Press a download button, and once more if a rerun has removed the file before it was fetched.

    Streamlit removes files that the newest script run has not asked for.
    """
    try:
        return await visitor.download(key)
    except HTTPError as error:
        if error.code != 404:
            raise
        visitor.soak.n_removed += 1
        return await visitor.download(key)


async def _export(visitor: Visitor, run: str, draw: random.Random) -> None:
    """Download files and the run, and open the run again."""
    for key in draw.sample(EXPORTS, 3):
        await _download(visitor, key)
    file = await _download(visitor, "run_download")
    await visitor.does(visitor.upload("run_open", f"run{SUFFIX}", file))


DEEDS = (_ask, _export, _story, _upload, _inside, _race)


class Soak:
    """The visits to one server, and what was measured meanwhile."""

    def __init__(self, server: Server, folder: Path, options: argparse.Namespace) -> None:
        self.server, self.folder, self.seed = server, folder, options.seeds
        self.n_most, self.seconds = options.visitors, 60 * options.minutes
        self.n_runs = round(RUNS * options.minutes / MINUTES)
        self.answers: list[float] = []
        self.problems: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.n_visits = self.n_present = 0
        self.n_removed = 0  # downloads that were pressed twice
        self._left: list[list[str]] = []  # id and token of earlier runs
        self._began = time.monotonic()

    @property
    def _at(self) -> float:
        """The share of the time that has passed."""
        return (time.monotonic() - self._began) / self.seconds

    def n_started(self) -> int:
        """The number of runs on the disk."""
        return len(list(self.folder.glob(f"*{SUFFIX}")))

    async def run(self) -> None:
        """Let visitors come and go, and measure, until the time has passed."""
        tasks = [asyncio.create_task(self._seat(place)) for place in range(self.n_most)]
        interval = min(60.0, self.seconds / 40)
        for number in range(1, round(self.seconds / interval) + 1):
            await asyncio.sleep(max(0.0, self._began + number * interval - time.monotonic()))
            await self._measure()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _seat(self, place: int) -> None:
        """Serve one visitor after the other, as long as so many are wanted."""
        pause = random.Random(f"{self.seed} seat {place}")
        while self._at < 1:
            crowd = self.n_most * CROWD[int(self._at * 4 * len(CROWD)) % len(CROWD)]
            if place >= crowd:
                await asyncio.sleep(0.5)
                continue
            await asyncio.sleep(pause.uniform(0, 3))
            number = self.n_visits
            self.n_visits += 1
            self.n_present += 1
            await self._visit(number)
            self.n_present -= 1

    async def _visit(self, number: int) -> None:
        draw = random.Random(f"{self.seed} {number}")
        visitor = Visitor(self, f"{SMALL}&seed={number}&steps={draw.randint(20, 120)}")
        doing = "start"
        try:
            await visitor.open()
            await visitor.does(visitor.press("run_start"))
            await visitor.until(lambda: "run=" in visitor.query)
            await visitor.does(visitor.ask())
            run = visitor.run
            self._left += [token for token in visitor.tokens if token[0] == run]
            if draw.random() < 0.2:
                return
            await visitor.until_ended()
            # The first visits do all deeds: some load modules, which must not count as growth.
            for deed in (DEEDS[number % len(DEEDS)], draw.choice(DEEDS)):
                doing = deed.__name__
                await deed(visitor, run, draw)
                await visitor.does(visitor.go("", f"run={run}"))
            doing = "return"
            if draw.random() < 0.3:
                self.problems += [f"visit {number}, back: {one}" for one in await self._return(draw)]
        except Exception as error:  # the other visitors go on
            steps = traceback.extract_tb(error.__traceback__)
            line = next(step.line for step in reversed(steps) if step.filename == __file__)
            problem = f"{type(error).__name__}: {error}, at {line}"
            shown = f"{visitor.query[:90]}, {visitor.stream.state}, {visitor.alerts[-1:]}"
            self.problems.append(f"visit {number}, {doing}: {problem} ({shown})")
        finally:
            self.problems += [f"visit {number}, {doing}: {one}" for one in await visitor.leave()]

    async def _return(self, draw: random.Random) -> list[str]:
        """Open an earlier run in a new session, with the tokens that a browser keeps; return the problems."""
        run, _ = draw.choice(self._left)
        visitor = Visitor(self, f"run={run}")
        try:
            await visitor.open()
            keys = [[id_, token, 0] for id_, token in self._left[-50:]]
            await visitor.does(visitor.tell("keyring", "found", [keys, "", None]))
            await visitor.does(visitor.ask())
        finally:
            problems = await visitor.leave()
        return problems

    async def _measure(self) -> None:
        """Add a row with the figures of this moment."""
        process, answers = psutil.Process(self.server.pid), sorted(self.answers)
        self.answers.clear()
        sizes = []
        for path in self.folder.iterdir():
            with suppress(OSError):
                sizes.append(path.stat().st_size)
        row = {
            "minute": round((time.monotonic() - self._began) / 60, 1),
            "visitors": self.n_present,
            "started": self.n_started(),
            "p95_ms": round(1e3 * answers[int(0.95 * len(answers))]) if answers else None,
            "megabytes": round(process.memory_info().rss / 1e6),
            "threads": process.num_threads(),
            "files": process.num_fds(),
            "sockets": len(process.net_connections()),
            "disk bytes": sum(sizes),
            **await asyncio.to_thread(self.server.counts),
        }
        self.rows.append(row)
        sys.stdout.write("  ".join(f"{row[name] or 0:>{len(name)},}" for name in SHOWN) + "\n")
        sys.stdout.flush()


def allowed(n_visitors: int) -> dict[str, float]:
    """What the server's limits allow each figure to be, whatever it was before."""
    limits, sessions, runs = Limits(kept=KEPT), n_visitors + SESSIONS, 2 * KEPT
    of_visitors = KEPT + 2 * n_visitors  # runs that somebody looks at, two in a race, and those that are kept
    objects = of_visitors + sessions  # a session that was left still refers to its run
    return {
        "disk bytes": limits.disk_mb * 1e6,
        "runs": of_visitors,
        "broadcasters": of_visitors,
        "RunBroadcaster objects": of_visitors,
        "Run objects": objects,
        "Runner objects": objects,
        "Archive objects": objects,
        "drafts": KEPT,
        "reserved": 1000,
        "digests": 1000 + runs,
        "pages of owners": 1000 + runs,
        "positions": 2 * (1000 + runs),
        "queue": runs,
        "upload bytes": 64e6,
        "question bytes": CACHED,
        "tasks": sessions + runs,
        "untrained bytes": CACHED,
        "sessions": sessions,
        "AppSession objects": sessions,
        "deferred files": 10 * sessions,
        "uploaded files": sessions,
    }


def grown(rows: list[dict[str, Any]], n_visitors: int) -> dict[str, tuple[float, float]]:
    """The highest values in two quarters of the figures that have grown beyond what is allowed.

    Files, threads and blocks of memory may also grow by what is open now, and by the list of runs.
    """
    quarter = len(rows) // 4
    early, late = rows[quarter : 2 * quarter], rows[-quarter:]

    def highest(name: str) -> tuple[float, float]:
        return max(row[name] for row in early), max(row[name] for row in late)

    def more(name: str) -> float:
        before, after = highest(name)
        return max(0.0, after - before)

    bounds, grown_figures = allowed(n_visitors), {}
    for name in [*rows[0]][4:]:
        before, after = highest(name)
        extra = sum(n * more(of) for of, n in EACH.get(name, {}).items())
        if after > max(GROWTH * before + extra, before + FEW, bounds.get(name, 0)):
            grown_figures[name] = before, after
    return grown_figures


def differing(folder: Path) -> tuple[int, list[str]]:
    """Train every tenth run again, alone; return how many, and the names of those whose losses differ."""
    torch.set_num_threads(1)  # as a run on a server
    paths, different = sorted(folder.glob(f"*{SUFFIX}"))[::SAMPLE], []
    for path in paths:
        saved = read_run(path)
        (losses,) = saved.view.metrics.columns("loss")
        planned = [*map(float, losses[: saved.view.config.train.steps])]
        alone: list[float] = []
        for report in train(TrainState.begin(saved.view.config)):
            if len(alone) >= len(planned):  # it was stopped here
                break
            alone += report.losses
        if planned != alone[: len(planned)]:
            different.append(path.name)
    return len(paths), different


def main() -> int:
    """Print a row for each minute; exit status 1 if a limit is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--visitors", type=int, default=30, help="at most, at a time")
    parser.add_argument("--seeds", type=int, default=0, help="the seed of the visits")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headlight-soak-", ignore_cleanup_errors=True) as name:
        folder, log = Path(name) / "runs", Path(name) / "log"
        folder.mkdir()
        with Server("app.py", log=log, HEADLIGHT_RUNS=str(folder), HEADLIGHT_KEPT=str(KEPT)) as server:
            soak = Soak(server, folder, arguments)
            sys.stdout.write("  ".join(SHOWN) + "\n")
            server.limit_caches(CACHED)  # full in the first quarter: memory must not grow afterwards
            server.counts()  # from now on objects are counted
            asyncio.run(soak.run())
            server.end()
        started, text = soak.n_started(), log.read_text(errors="replace")
        n_compared, differ = differing(folder)
    tracebacks = re.findall(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(.*)", text)
    growth = grown(soak.rows, arguments.visitors)
    for figure, (early, late) in growth.items():
        sys.stdout.write(f"{figure} has grown: {early:,} to {late:,}\n")
    for problem in [*soak.problems[:20], *tracebacks[:20], *(f"{name}: other losses" for name in differ)]:
        sys.stdout.write(f"{problem}\n")
    last, p95 = soak.rows[-1], [row["p95_ms"] for row in soak.rows if row["p95_ms"]]
    sys.stdout.write(
        f"{started} runs of {soak.n_visits} visits; {n_compared} runs trained again alone; "
        f"{soak.n_removed} downloads pressed twice\n"
    )
    met = {
        "nothing_grows": not growth,
        "no_problem_of_any_visitor": not soak.problems,
        "no_exception_in_the_log": not tracebacks,
        "losses_as_alone": not differ,
        "all_runs": started >= soak.n_runs,
    }
    who = f"{started} runs of 3 to {arguments.visitors} visitors in {arguments.minutes:g} minutes"
    figures = {
        who: f"{last['megabytes']:,} MB, {last['threads']} threads and {last['files']} files at the end; "
        f"{len(growth)} of {len(last)} figures have grown since the first quarter; pages within "
        f"{max(p95, default=0):,} ms (95 % of each minute)"
    }
    return end(arguments, soak.rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
