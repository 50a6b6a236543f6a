"""Cost and correctness of recording: time of the training thread, losses, maps, memory of a long run.

    python -m benchmarks.recording [--seeds N] [--limit SECONDS] [--json]

Cost: for each seed the default preset is trained three times to its last planned step: with every step
recorded and viewers, with every step recorded and no viewers, and without recording (the bare loop, evaluated
as often). The three take turns of 25 steps in one thread, whose processor time is measured. `share` is the
part of this time that goes to recording (median over the seeds). `longer` is the extra time over the bare
loop; each total is the sum over the turns of the median over the seeds. On a shared machine it varies by
several percent. The losses of the three must be equal bit for bit.

Maps: each recipe is trained for some steps, and each recorded map is compared with the map of a separate
forward pass with the weights of the same step.

Memory: the default model with one encoder and one decoder layer trains for 20,000 steps (fewer if `--limit`
ends it), with batches of four words and the maximum number of tracked words. Samples the bytes of the frames,
the bytes of the weights, and the process's resident memory (RSS), which rises and falls as frames and weights
are added and thinned. Memory counts as flat if, after the first thinning of the frames, the highest RSS of
the second half is at most 8 MB above that of the first half; the table of numbers and the list of drawn words
need about 3 MB of these.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psutil
import torch

from benchmarks.tools.measuring import end, machine, options
from pages.settings.presets import DEFAULT_PRESET, PRESETS
from transformer.asking.model import model_of
from transformer.config import RunConfig
from transformer.config.recipes import RECIPES
from transformer.recording.activations import record
from transformer.recording.recording import MEMORY_LIMIT
from transformer.recording.view import FINISHED, MAX_WORDS, Publisher, untrained
from transformer.recording.weights import IN_MEMORY
from transformer.runs.training_session import TrainingSession
from transformer.tasks import task_of
from transformer.training.loop import train
from transformer.training.state import TrainState

DEFAULT = PRESETS[DEFAULT_PRESET].config.with_changes(goal=None, device="cpu", threads=1)
TURN = 25
"""Steps of a turn; also the steps between two evaluations, so that every turn has one."""
UNWATCHED, WATCHED, DIFFERENCE, MOST_GROWTH = 0.06, 0.08, 2e-4, 8.0
"""Maximum shares of the thread's time, difference of an attention weight, and growth in megabytes."""
STEPS, LIMIT, SAMPLE_EVERY = 20_000, 240.0, 100


class Recorded:
    """A run's training with its recording; its view contains all that a page would show."""

    def __init__(self, config: RunConfig, words: int | None = None) -> None:
        self.published = Publisher(untrained(config, "benchmark"))
        task = task_of(config)
        asked = (
            [*task.corpus.tracked_words(), *task.corpus.everyday()][:words]
            if words
            else task.corpus.tracked_words()
        )
        self.training = TrainingSession(self.published, [task.question(word) for word in asked])
        self.recording, record = 0.0, self.training.recording.record

        def timed(*args: Any, **options: Any) -> None:
            began = time.thread_time()
            record(*args, **options)
            self.recording += time.thread_time() - began

        self.training.recording.record = timed  # type: ignore[method-assign]

    def turn(self, *, watched: bool) -> Callable[[], None]:
        """Return a function that takes one turn; the run's clock stops between turns."""
        left = time.perf_counter()

        def turn() -> None:
            nonlocal left
            self.training.recording._shown_at += time.perf_counter() - left
            for _ in range(TURN):
                self.training.step(alone=False, watched=watched)
            left = time.perf_counter()

        return turn


def bare(config: RunConfig, losses: list[float]) -> Callable[[], None]:
    """Return a function that takes one turn of the loop without recording."""
    reports = train(TrainState.begin(config))

    def turn() -> None:
        for _ in range(TURN):
            losses.extend(next(reports).losses)

    return turn


def cost(seed: int) -> tuple[dict[str, list[float]], dict[str, Recorded], bool]:
    """Return the processor seconds of each contender's turns, the recorded runs, and whether losses agree."""
    config, losses = DEFAULT.with_changes(seed=seed), list[float]()
    recorded = {"unwatched": Recorded(config), "watched": Recorded(config)}
    turns = {name: one.turn(watched=name == "watched") for name, one in recorded.items()}
    turns["none"] = bare(config, losses)
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(config.train.steps // TURN):
        for name, turn in turns.items():
            began = time.thread_time()
            turn()
            seconds[name].append(time.thread_time() - began)
    views = [one.published.view for one in recorded.values()]
    equal = all(view.metrics.column("loss").tolist() == losses for view in views)
    return seconds, recorded, equal


def costs(seeds: int) -> tuple[list[dict[str, Any]], bool]:
    """Return a row for each contender, and whether the losses are equal bit for bit."""
    share_of: defaultdict[str, list[list[float]]] = defaultdict(list)
    shares: defaultdict[str, list[float]] = defaultdict(list)
    frames: dict[str, int] = {}
    every_equal = True
    for seed in range(seeds):
        seconds, recorded, equal = cost(seed)
        every_equal &= equal
        for name, turns in seconds.items():
            share_of[name].append(turns)
        for name, one in recorded.items():
            shares[name].append(one.recording / sum(seconds[name]))
            frames[name] = min(frames.get(name, STEPS), len(one.published.view.frames))
    totals = {name: sum(map(statistics.median, zip(*rows, strict=True))) for name, rows in share_of.items()}
    rows = [
        {
            "recording": name,
            "frames": frames.get(name, 0),
            "ms_a_step": round(1e3 * total / DEFAULT.train.steps, 3),
            "share": round(statistics.median(shares[name]), 4) if name in shares else 0.0,
            "longer": round(total / totals["none"] - 1, 4),
        }
        for name, total in totals.items()
    ]
    return rows, every_equal


def difference(config: RunConfig, steps: int = 30) -> float:
    """Return the largest difference between recorded and separately computed attention weights."""
    config = config.with_changes(device="cpu", threads=1, steps=steps, goal=None)
    recorded = Recorded(config)
    while recorded.published.view.state != FINISHED:
        recorded.training.step(alone=False, watched=False)
    view, most = recorded.published.view, 0.0
    task = task_of(view.config)
    for snapshot, frame in zip(view.snapshots, view.frames, strict=True):
        model = model_of(view.config, snapshot)
        for row, tracked in enumerate(frame.words):
            batch = task.encode([tracked.text], filled=not model.masked("padding"))
            with record(model) as cache:
                model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
            for site, weights in cache.weights.items():
                shown = frame.map(row, site)
                single = weights[0][:, : shown.shape[1], : shown.shape[2]]
                most = max(most, float(np.abs(np.nan_to_num(shown) - single).max()))
    return most


def memory(limit: float) -> dict[str, Any]:
    """Sample the memory of a long run."""
    small = {"n_encoder_layers": 1, "n_decoder_layers": 1, "batch_size": 4}
    long = Recorded(DEFAULT.with_changes(steps=STEPS, evaluate_every=500, **small), MAX_WORDS)
    process, began = psutil.Process(), time.perf_counter()
    samples: list[tuple[int, float, float, float]] = []
    full_at = None
    while (view := long.published.view).state != FINISHED and time.perf_counter() - began < limit:
        long.training.step(alone=False, watched=False)
        if full_at is None and view.frames.generation > 1:
            full_at = view.step
        if view.step % SAMPLE_EVERY == 0:
            held = view.frames.nbytes, long.training.recording.weights.nbytes, process.memory_info().rss
            frames, weights, rss = (n / 2**20 for n in held)
            samples.append((view.step, frames, weights, rss))
    after = [rss for step, _, _, rss in samples if full_at is not None and step >= full_at]
    half = len(after) // 2
    grown = max(after[half:]) - max(after[:half]) if half else None
    return {
        "steps": view.step,
        "seconds": round(time.perf_counter() - began, 1),
        "full_at": full_at,
        "recorded": f"1 in {view.every}",
        "frames": len(view.frames),
        "snapshots": len(view.snapshots),
        "frames_mb": round(max(held for _, held, _, _ in samples), 1),
        "weights_mb": round(max(held for _, _, held, _ in samples), 1),
        "rss_mb_grown_since_full": None if grown is None else round(grown, 1),
        "samples": [
            (step, *(round(n, 1) for n in held)) for step, *held in samples[:: len(samples) // 20 or 1]
        ],
    }


def print_costs(rows: Sequence[dict[str, Any]]) -> None:
    """Print a line for each contender."""
    sys.stdout.write("recording  frames  ms a step  share of the thread's time  longer than none\n")
    for row in rows:
        sys.stdout.write(
            f"{row['recording']:9s}  {row['frames']:6d}  {row['ms_a_step']:9.2f}  {row['share']:26.1%}  "
            f"{row['longer']:16.1%}\n"
        )


def main() -> int:
    """Print all tables; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=3, limit=LIMIT)
    write = sys.stdout.write
    write(f"{machine()}, one thread\n")
    long = memory(arguments.limit)  # first, since memory that other runs had freed would hide growth
    write("  step  frames MB  weights MB  RSS MB\n")
    for step, frames, weights, rss in long["samples"]:
        write(f"{step:6d}  {frames:9.1f}  {weights:10.1f}  {rss:6.1f}\n")
    growth = long["rss_mb_grown_since_full"]
    full = "never full"
    if long["full_at"] is not None:
        full = f"full from step {long['full_at']:,} on, and the RSS has grown by {growth} MB since"
    write(
        f"{long['steps']:,} steps in {long['seconds']:.0f} s, {long['recorded']} recorded at the end, with "
        f"{long['frames']} frames and the weights of {long['snapshots']} steps kept; memory was {full}.\n"
    )
    sys.stdout.flush()
    rows, equal = costs(arguments.seeds)
    print_costs(rows)
    differences = {name: difference(recipe.small) for name, recipe in RECIPES.items()}
    for name, most in differences.items():
        write(f"{name}: a weight differs from that of a pass of its own by at most {most:.1e}\n")
    shares = {row["recording"]: row["share"] for row in rows}
    met = {
        "unwatched_at_most_6_percent": shares["unwatched"] <= UNWATCHED,
        "watched_at_most_8_percent": shares["watched"] <= WATCHED,
        "every_step_recorded": all(
            row["frames"] == DEFAULT.train.steps + 1 for row in rows if row["recording"] != "none"
        ),
        "losses_equal_bit_for_bit": equal,
        "maps_within_2e-4": max(differences.values()) <= DIFFERENCE,
        "memory_flat_once_full": long["full_at"] is not None
        and long["full_at"] <= long["steps"] / 2
        and growth <= MOST_GROWTH
        and long["frames_mb"] <= MEMORY_LIMIT / 2**20
        and long["weights_mb"] <= IN_MEMORY / 2**20,
    }
    for name, holds in met.items():
        write(f"{name}: {'yes' if holds else 'no'}\n")
    figures = {
        "every step recorded, without viewers": f"{shares['unwatched']:.1%} of the training thread's time",
        "every step recorded, watched at full pace": f"{shares['watched']:.1%} of it",
        f"memory of a run of {long['steps']:,} steps": full,
    }
    others: list[dict[str, Any]] = [{"recipe": name, "differs": most} for name, most in differences.items()]
    return end(arguments, [*rows, *others, long], met, figures)


if __name__ == "__main__":
    sys.exit(main())
