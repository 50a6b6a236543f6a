"""What the benchmarks share: a run to its end, their options, a spread, and how they end."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from transformer.config import RunConfig
from transformer.recording.frame import Frame
from transformer.runs.run import Run
from transformer.runs.view import RunView

Rows = Sequence[Mapping[str, Any]]


def finished(config: RunConfig) -> tuple[RunView, Frame, float]:
    """Train to the goal or to the end of the schedule.

    Returns:
        The run, its last frame, and the share of all held-out words that are exact.
    """
    run = Run(config, live=False)
    run.start()
    run.wait()
    view = run.view
    run.close()
    run.join()
    frame = view.frame
    assert frame is not None
    assert frame.exact is not None
    right, asked = frame.exact
    return view, frame, right / asked


def options(description: str | None, *, seeds: int) -> argparse.Namespace:
    """`--seeds N`, with this many by default, and `--json`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    return parser.parse_args()


def spread(rows: Rows, names: Sequence[str], form: str) -> None:
    """A line for each of these columns: lowest, median and highest."""
    for name in names:
        values = [row[name] for row in rows]
        low, middle, high = (format(f(values), form) for f in (min, statistics.median, max))
        sys.stdout.write(f"{name}: min {low}, median {middle}, max {high}\n")


def end(arguments: argparse.Namespace, rows: Rows, met: Mapping[str, bool] | None = None) -> int:
    """The line of JSON where it is asked for; exit status 1 where a limit is not met."""
    if arguments.json:
        facts = {"rows": rows} if met is None else {"rows": rows, "met": met}
        sys.stdout.write(json.dumps(facts) + "\n")
    return 0 if met is None or all(met.values()) else 1
