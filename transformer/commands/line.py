"""Shared by the commands: one-line error messages, answers as one line of JSON, and the ranks of this
process among those that PyTorch's launcher, `torchrun`, has started."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, NamedTuple, NoReturn

from transformer.errors import InputError


class ProcessRanks(NamedTuple):
    """The ranks of a process among those that were started together, on one machine or on several."""

    rank: int
    """Rank among all processes, from 0."""
    n_processes: int
    local_rank: int
    """Rank on this machine, from 0."""
    n_here: int
    """Number of processes on this machine."""


NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""Environment variables of each process, in the order of `ProcessRanks`."""


def place() -> ProcessRanks | None:
    """The ranks of this process; None if it was started alone."""
    if not all(name in os.environ for name in NAMES):
        return None
    ranks = ProcessRanks(*(int(os.environ[name]) for name in NAMES))
    return ranks if ranks.n_processes > 1 else None


class OneLineParser(argparse.ArgumentParser):
    """Reports bad arguments in one clear line."""

    def error(self, message: str) -> NoReturn:
        print_message(f"{message} (see {self.prog} --help)")
        sys.exit(2)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the command of these arguments. Returns its exit status; 2 if the command refuses them."""
    try:
        code: int = arguments.run(arguments)
    except InputError as error:
        print_message(str(error))
        return 2
    return code


def print_message(message: str, *, alone: bool = False) -> None:
    """Print a one-line message on standard error.

    Args:
        alone: whether only this process has the problem. Otherwise, of processes started together, only the
            first on each machine reports it.
    """
    mine = place()
    if alone or mine is None or mine.local_rank == 0:
        start = "\n" if alone else ""  # the line may hold another process's progress bar
        sys.stderr.write(f"{start}headlight: {' '.join(message.split())}\n")


def print_json(facts: dict[str, Any]) -> None:
    """Print one line of JSON on standard output."""
    sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n")
