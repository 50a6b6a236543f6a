"""The README's table of figures: these benchmarks one after the other, and what each of them has to say.

    python -m benchmarks [NAME ...]

Takes about half an hour; with names, these benchmarks alone. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from benchmarks._measuring import machine

NAMES = ("time_to_learn", "step_cost", "watch_tax", "tick_cost", "recording", "startup", "gpu")


def main() -> int:
    """Print the table; exit status 1 where a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all: " + ", ".join(NAMES))
    write, status = sys.stdout.write, 0
    lines, missed = [], []
    for name in parser.parse_args().names or NAMES:
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stdout)
        said = json.loads(done.stdout.splitlines()[-1])
        status |= done.returncode
        lines += [f"| {what} | {figure} | `{name}` |" for what, figure in said.get("figures", {}).items()]
        missed += [f"{name}: {limit}" for limit, met in said["met"].items() if not met]
    write(f"{machine()}.\n\n| what | measured | by |\n|---|---|---|\n" + "\n".join(lines) + "\n")
    if missed:
        write("\nNot met: " + "; ".join(missed) + ".\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
