"""What looking costs: the training thread with frames at several cadences, and the memory of a long run.

    python -m benchmarks.recording [--seeds N] [--limit SECONDS] [--json]

Cost: with each seed the default preset is trained to the end of its plan five times: without any
recording (the bare loop), and by a `Worker` with a frame at every step, every 10th, every 50th, and as a
run makes them that is watched (live). The five take turns of 25 steps in one thread, and what counts is that
thread's time on the processor. Of each turn the median over the seeds is taken, and the turns are added up.

Memory: a model like the default's with one layer each takes 20,000 steps (fewer within a smaller limit), with
batches of four words and, at every 10th step, a frame of as many probes as a run may have. Sampled are the
bytes that frames and snapshots hold, and the process's resident memory (RSS). It is flat if it has grown by
no more than a few megabytes since the timeline was full (from the median of the first tenth of these samples
to that of the last), of which the table of numbers and the list of drawn words need about three. The timeline
must have been full for half of the run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from benchmarks._measuring import end, machine, options
from pages.parts.presets import DEFAULT_PRESET, PRESETS
from transformer.config import RunConfig
from transformer.recording.timeline import MEMORY_LIMIT
from transformer.runs.view import FINISHED, MAX_WORDS
from transformer.runs.worker import Worker
from transformer.tasks import task_of
from transformer.training.loop import train
from transformer.training.state import TrainState

DEFAULT = PRESETS[DEFAULT_PRESET].config.with_changes(goal=None, device="cpu", threads=1)
TURN = 25
"""Steps between two evaluations too, so that every turn has one."""
MOST_COST, MOST_GROWTH = 0.05, 8.0
"""Share of the bare loop's time, and megabytes."""
STEPS, LIMIT, SAMPLE_EVERY = 20_000, 240.0, 100


def looking(config: RunConfig, every: int) -> Worker:
    """A run's worker with a frame at every so many steps, instead of as someone who watches needs them."""
    worker = Worker(config, None, live=True)
    worker._looks._frame_is_due = lambda report, alone: report.step % every == 0
    return worker


def built(worker: Worker, probes: int | None = None) -> Worker:
    """With its untrained model, and so many probes; by default those of its task."""
    task = task_of(worker.view.config)
    words = [*task.probes(), *task.everyday()][:probes] if probes else task.probes()
    worker.build([task.question(word) for word in words])
    return worker


def turn_of(worker: Worker) -> Callable[[], None]:
    """A turn of a worker; while the others have theirs, its clock stands still."""
    left = time.perf_counter()

    def turn() -> None:
        nonlocal left
        worker._looks._last_frame_at += time.perf_counter() - left
        for _ in range(TURN):
            worker.step(alone=False)
        left = time.perf_counter()

    return turn


def bare(config: RunConfig) -> Callable[[], None]:
    """A turn of the loop alone."""
    reports = train(TrainState.begin(config))

    def turn() -> None:
        for _ in range(TURN):
            next(reports)

    return turn


def cost(seed: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds on the processor of each turn of each contender; and how many frames each has made."""
    config = DEFAULT.with_changes(seed=seed)
    workers = {f"every {every}": built(looking(config, every)) for every in (1, 10, 50)}
    workers["live"] = built(Worker(config, None, live=True))
    turns = {"none": bare(config)} | {name: turn_of(worker) for name, worker in workers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(config.train.steps // TURN):
        for name, turn in turns.items():
            began = time.thread_time()
            turn()
            seconds[name].append(time.thread_time() - began)
    return seconds, {name: len(worker.view.frames) for name, worker in workers.items()}


def costs(seeds: int) -> list[dict[str, Any]]:
    """A row for each cadence."""
    found: defaultdict[str, list[list[float]]] = defaultdict(list)
    frames: Mapping[str, int] = {}
    for seed in range(seeds):
        seconds, frames = cost(seed)
        for name, turns in seconds.items():
            found[name].append(turns)
    totals = {name: sum(map(statistics.median, zip(*rows, strict=True))) for name, rows in found.items()}
    return [
        {
            "recording": name,
            "frames": frames.get(name, 0),
            "ms_a_step": round(1e3 * total / DEFAULT.train.steps, 3),
            "cost": round(total / totals["none"] - 1, 4),
            "throughput": round(totals["none"] / total, 4),
        }
        for name, total in totals.items()
    ]


def memory(limit: float) -> dict[str, Any]:
    """A long run, sampled."""
    small = {"n_encoder_layers": 1, "n_decoder_layers": 1, "batch_size": 4}
    config = DEFAULT.with_changes(steps=STEPS, evaluate_every=500, **small)
    worker = built(looking(config, 10), MAX_WORDS)
    process, began = psutil.Process(), time.perf_counter()
    samples: list[tuple[int, float, float]] = []
    made, full_at = 1, None
    while worker.view.state != FINISHED and time.perf_counter() - began < limit:
        worker.step(alone=False)
        view = worker.view
        made += view.frames[-1].step == view.step
        if full_at is None and len(view.frames) < made:
            full_at = view.step
        if view.step % SAMPLE_EVERY == 0:
            held = sum(frame.nbytes for frame in view.frames) + sum(one.nbytes for one in view.snapshots)
            samples.append((view.step, held / 2**20, process.memory_info().rss / 2**20))
    after = [rss for step, _, rss in samples if full_at is not None and step >= full_at]
    tenth = max(1, len(after) // 10)
    grown = statistics.median(after[-tenth:]) - statistics.median(after[:tenth]) if after else None
    view = worker.view
    return {
        "steps": view.step,
        "seconds": round(time.perf_counter() - began, 1),
        "full_at": full_at,
        "frames": len(view.frames),
        "snapshots": len(view.snapshots),
        "held_mb": round(max(held for _, held, _ in samples), 1),
        "rss_mb_grown_since_full": None if grown is None else round(grown, 1),
        "samples": [
            (step, round(held, 1), round(rss, 1)) for step, held, rss in samples[:: len(samples) // 20 or 1]
        ],
    }


def print_costs(rows: Sequence[dict[str, Any]]) -> None:
    """A line for each cadence."""
    write = sys.stdout.write
    write("frames     frames made  ms a step   cost  throughput\n")
    for row in rows:
        write(
            f"{row['recording']:9s}  {row['frames']:11d}  {row['ms_a_step']:9.2f}  {row['cost']:5.1%}  "
            f"{row['throughput']:10.3f}\n"
        )


def main() -> int:
    """Print both tables; exit status 1 where a limit is not met."""
    arguments = options(__doc__, seeds=3, limit=LIMIT)
    write = sys.stdout.write
    write(f"{machine()}, one thread\n")
    long = memory(arguments.limit)  # first: what other runs have given back would hide what this one takes
    write("  step  timeline MB  RSS MB\n")
    for step, held, rss in long["samples"]:
        write(f"{step:6d}  {held:11.1f}  {rss:6.1f}\n")
    growth = long["rss_mb_grown_since_full"]
    full = "never full"
    if long["full_at"] is not None:
        full = f"full from step {long['full_at']:,} on, and the RSS has grown by {growth} MB since"
    write(
        f"{long['steps']:,} steps in {long['seconds']:.0f} s, with {long['frames']} frames and "
        f"{long['snapshots']} snapshots kept, {long['held_mb']} MB at most; the timeline was {full}.\n"
    )
    sys.stdout.flush()
    rows = costs(arguments.seeds)
    print_costs(rows)
    live = next(row for row in rows if row["recording"] == "live")
    met = {
        "default_cadence_costs_at_most_5_percent": live["cost"] <= MOST_COST,
        "memory_flat_after_the_timeline_is_full": long["full_at"] is not None
        and long["full_at"] <= long["steps"] / 2
        and growth <= MOST_GROWTH
        and long["held_mb"] <= MEMORY_LIMIT / 2**20,
    }
    for name, holds in met.items():
        write(f"{name}: {'yes' if holds else 'no'}\n")
    figures = {
        "frames of a watched run": f"{live['cost']:.1%} more time of the training thread",
        f"memory of a run of {long['steps']:,} steps": f"the timeline was {full}",
    }
    return end(arguments, [*rows, long], met, figures)


if __name__ == "__main__":
    sys.exit(main())
