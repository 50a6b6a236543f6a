"""Helpers of the benchmarks: train a run to its end, parse options, print the spread and the results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from transformer.config import RunConfig
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.runs.run import Run

Rows = Sequence[Mapping[str, Any]]


def finished(config: RunConfig) -> tuple[RunView, Frame, float]:
    """Train to the goal or to the end of the schedule.

    Returns:
        The run, its last frame, and the share of all held-out words that are exact.
    """
    run = Run(config, every_step=False)
    run.start()
    run.wait()
    view = run.view
    run.close()
    run.join()
    frame = view.frame
    assert frame is not None
    return view, frame, frame.evaluation.exact


def options(description: str | None, *, seeds: int, limit: float | None = None) -> argparse.Namespace:
    """Parse `--seeds N`, `--json` and, if a limit is given, `--limit SECONDS`, with these defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", type=int, default=seeds)
    if limit is not None:
        parser.add_argument("--limit", type=float, default=limit, help="seconds")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    return parser.parse_args()


def spread(rows: Rows, names: Sequence[str], form: str) -> None:
    """Print a line for each of these columns: lowest, median and highest value."""
    for name in names:
        values = [row[name] for row in rows]
        low, middle, high = (format(f(values), form) for f in (min, statistics.median, max))
        sys.stdout.write(f"{name}: min {low}, median {middle}, max {high}\n")


def machine() -> str:
    """Return a description of the machine."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if "model name" in line), name)
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{os.cpu_count()} cores ({name}), {memory:.0f} GiB, Python {platform.python_version()}, "
        f"torch {version('torch')}, streamlit {version('streamlit')}"
    )


def end(
    arguments: argparse.Namespace,
    rows: Rows,
    met: Mapping[str, bool] | None = None,
    figures: Mapping[str, str] | None = None,
) -> int:
    """Print the line of JSON if requested. Returns exit status 1 if a limit is not met.

    Args:
        figures: lines of the README's table, from the name of a figure to its value.
    """
    if arguments.json:
        facts = {"rows": rows, "met": met, "figures": figures}
        sys.stdout.write(json.dumps({k: v for k, v in facts.items() if v is not None}) + "\n")
    return 0 if met is None or all(met.values()) else 1
