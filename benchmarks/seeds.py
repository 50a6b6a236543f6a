"""The default preset over several seeds: does it learn, how fast, and how clean is the picture?

    python -m benchmarks.seeds [--seeds N] [--json]

Each seed is one run to its goal (99 % of 1,000 held-out words exactly right) or to the end of its schedule.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from typing import Any

from pages.parts.presets import DEFAULT_PRESET, PRESETS
from transformer.runs.run import Run

EXACT, MIRROR = 0.99, 0.7


def measure(seed: int) -> dict[str, Any]:
    """One run of the default preset."""
    run = Run(PRESETS[DEFAULT_PRESET].config.with_changes(seed=seed), live=False)
    run.start()
    run.wait()
    view = run.view
    run.close()
    run.join()
    assert view.frame is not None
    assert view.frame.exact is not None
    right, asked = view.frame.exact
    return {
        "seed": seed,
        "steps": view.step,
        "seconds": round(view.seconds, 1),
        "exact": right / asked,
        "mirror": round(view.frame.best[1], 3),
        "turned_at": view.turned_at[0] if view.turned_at else None,
        "heads_turned": sum(int((scores >= 0.5).sum()) for scores in view.frame.scores.values()),
    }


def main() -> int:
    """Print a row for each seed, then the spread; exit status 1 where the claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    arguments = parser.parse_args()
    write = sys.stdout.write
    write(f"Python {platform.python_version()} on {platform.machine()}, one training thread\n")
    write("seed  steps  seconds  exact  mirror  first head turned at  heads turned\n")
    rows = []
    for seed in range(arguments.seeds):
        row = measure(seed)
        rows.append(row)
        write(
            f"{row['seed']:4d}  {row['steps']:5d}  {row['seconds']:7.1f}  {row['exact']:.3f}  "
            f"{row['mirror']:.3f}  {row['turned_at'] or 'never':>20}  {row['heads_turned']:12d}\n"
        )
    for name in ("steps", "seconds", "exact", "mirror"):
        values = [row[name] for row in rows]
        write(f"{name}: min {min(values):g}, median {statistics.median(values):g}, max {max(values):g}\n")
    met = {
        "reaches_99_percent": sum(row["exact"] >= EXACT for row in rows) >= 0.9 * len(rows),
        "mirror_at_least_0.7": all(row["mirror"] >= MIRROR for row in rows),
    }
    if arguments.json:
        write(json.dumps({"rows": rows, "met": met}) + "\n")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
