"""The default preset over several seeds: does it learn, how fast, and how clean is the picture?

    python -m benchmarks.seeds [--seeds N] [--json]

Each seed is one run to its goal (99 % of 1,000 held-out words exactly right) or to the end of its schedule.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

from benchmarks._measuring import end, finished, options, spread
from pages.parts.presets import DEFAULT_PRESET, PRESETS

EXACT, MIRROR = 0.99, 0.7


def measure(seed: int) -> dict[str, Any]:
    """One run of the default preset."""
    view, frame, exact = finished(PRESETS[DEFAULT_PRESET].config.with_changes(seed=seed))
    return {
        "seed": seed,
        "steps": view.step,
        "seconds": round(view.seconds, 1),
        "exact": exact,
        "mirror": round(frame.best[1], 3),
        "turned_at": view.turned_at[0] if view.turned_at else None,
        "heads_turned": sum(int((scores >= 0.5).sum()) for scores in frame.scores.values()),
    }


def main() -> int:
    """Print a row for each seed, then the spread; exit status 1 where the claim does not hold."""
    arguments = options(__doc__, seeds=10)
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
    spread(rows, ("steps", "seconds", "exact", "mirror"), "g")
    met = {
        "reaches_99_percent": sum(row["exact"] >= EXACT for row in rows) >= 0.9 * len(rows),
        "mirror_at_least_0.7": all(row["mirror"] >= MIRROR for row in rows),
    }
    return end(arguments, rows, met)


if __name__ == "__main__":
    sys.exit(main())
