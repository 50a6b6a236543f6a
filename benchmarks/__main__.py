"""Run the benchmarks one after the other and print their figures as the table of the README.

    python -m benchmarks [--keep DIR] [NAME ...]

Takes about four hours, two thirds of them for `soak` and `page_memory`; with names, runs only these
benchmarks. Do not use the machine meanwhile. With `--keep`, each result is stored in DIR/NAME.json, and a
benchmark with a stored result is not run again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.tools.measuring import machine

NAMES = (
    "time_to_learn",
    "step_cost",
    "recording",
    "player",
    "picture",
    "stream",
    "followers",
    "own_model",
    "startup",
    "crowd",
    "soak",
    "page_memory",
    "long_list",
    "slow_network",
    "gpu",
)


def results_of(name: str, folder: Path | None) -> dict[str, Any]:
    """Return the results of a benchmark, from its stored file or from a new run."""
    kept = None if folder is None else folder / f"{name}.json"
    if kept is not None and kept.exists():
        line = kept.read_text(encoding="utf-8")
    else:
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stdout)
        line = done.stdout.splitlines()[-1]
    facts: dict[str, Any] = json.loads(line)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(line, encoding="utf-8")
    return facts


def main() -> int:
    """Print the table; exit status 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all: " + ", ".join(NAMES))
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where each is kept, to be run once only")
    arguments = parser.parse_args()
    lines, missed = [], []
    for name in arguments.names or NAMES:
        facts = results_of(name, arguments.keep)
        lines += [f"| {what} | {figure} | `{name}` |" for what, figure in facts.get("figures", {}).items()]
        missed += [f"{name}: {limit}" for limit, met in facts["met"].items() if not met]
    table = "\n".join(["| what | measured | by |", "|---|---|---|", *lines])
    sys.stdout.write(f"{machine()}.\n\n{table}\n")
    if missed:
        sys.stdout.write("\nNot met: " + "; ".join(missed) + ".\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
