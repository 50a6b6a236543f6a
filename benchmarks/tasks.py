"""Every task with its own settings: is it learned, how much slower than the reversal, and do heads align?

    python -m benchmarks.tasks [--seeds N] [--json]

Each row is one run to its goal (99 % of the held-out examples exactly right) or to the end of its schedule.
For every seed the reversal runs first; the ratio is a task's processor time over the reversal's (processor
time excludes other work on the machine). The alignment is the attention mass of the clearest head on the gold
links (for the reversal, the mirrored letters), before and after training.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from benchmarks.tools.measuring import end, finished, options
from transformer.config import GRAMMARS, TASKS, RunConfig
from transformer.config.recipes import RECIPES
from transformer.config.tasks import with_task

EXACT, SENTENCES_EXACT, RATIO = 0.99, 0.95, 4.0


def beginnings() -> dict[str, RunConfig]:
    """Return the settings of the reversal, then of every other task."""
    own = RECIPES["default"].small
    return {name: with_task(own, name) for name in TASKS if name != "pairs"}


def measure(name: str, config: RunConfig) -> dict[str, Any]:
    """Measure one run of these settings."""
    began = time.process_time()
    view, frame, exact = finished(config)
    return {
        "task": name,
        "seed": config.seed,
        "steps": view.step,
        "seconds": round(view.seconds, 1),
        "cpu_seconds": round(time.process_time() - began, 1),
        "exact": exact,
        "bleu": None if frame.evaluation.bleu is None else round(frame.evaluation.bleu, 1),
        "alignment_first": round(view.frames[0].best[1], 3),
        "alignment_last": round(frame.best[1], 3),
    }


def main() -> int:
    """Print a row for each task and seed; exit status 1 if a claim does not hold."""
    arguments = options(__doc__, seeds=3)
    write = sys.stdout.write
    write(
        "task        seed  steps  seconds  on the processor  ratio  exact   BLEU  alignment, first and last\n"
    )
    rows: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        reversal = 0.0
        for name, config in beginnings().items():
            row = measure(name, config.with_changes(seed=seed))
            reversal = reversal or row["cpu_seconds"]
            row["ratio"] = round(row["cpu_seconds"] / reversal, 2)
            rows.append(row)
            write(
                f"{name:10s}  {seed:4d}  {row['steps']:5d}  {row['seconds']:7.1f}  {row['cpu_seconds']:9.1f} "
                f"{row['ratio']:5.2f}  {row['exact']:.3f}  {row['bleu'] or '–':>5}  "
                f"{row['alignment_first']:.3f}  {row['alignment_last']:.3f}\n"
            )
            sys.stdout.flush()
    sentences = [row for row in rows if row["task"] in GRAMMARS]
    others = [row for row in rows if row["task"] not in GRAMMARS]
    met = {
        "sentences_reach_95_percent": all(row["exact"] >= SENTENCES_EXACT for row in sentences),
        "others_reach_99_percent": all(row["exact"] >= EXACT for row in others),
        "at_most_four_times_the_reversal": all(row["ratio"] <= RATIO for row in rows),
        "alignment_rises": all(row["alignment_last"] > row["alignment_first"] for row in rows),
    }
    return end(arguments, rows, met)


if __name__ == "__main__":
    sys.exit(main())
