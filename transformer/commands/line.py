"""What the commands share: one clear line for a mistake, one line of JSON for an answer, and the place of
this process among those that PyTorch's launcher, `torchrun`, has started."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, NamedTuple, NoReturn

from transformer.errors import InputError


class Place(NamedTuple):
    """The place of a process among those that were started together, on one machine or on several."""

    rank: int
    """From 0 up, over all machines."""
    n_processes: int
    local_rank: int
    """From 0 up, on this machine."""
    n_here: int
    """Processes on this machine."""


NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""In the environment of each process, in the order of `Place`."""


def place() -> Place | None:
    """The place of this process; None: it was started alone."""
    if not all(name in os.environ for name in NAMES):
        return None
    found = Place(*(int(os.environ[name]) for name in NAMES))
    return found if found.n_processes > 1 else None


class OneLineParser(argparse.ArgumentParser):
    """Answers bad arguments with one clear line."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message} (see {self.prog} --help)")
        sys.exit(2)


def obey(arguments: argparse.Namespace) -> int:
    """Run the command of these arguments. Returns its exit status; 2 where it refuses them."""
    try:
        code: int = arguments.run(arguments)
    except InputError as error:
        complain(str(error))
        return 2
    return code


def complain(message: str, *, alone: bool = False) -> None:
    """Say on standard error what is wrong.

    Args:
        alone: whether only this process has the problem. Otherwise, of processes started together, only the
            first on each machine reports it.
    """
    mine = place()
    if alone or mine is None or mine.local_rank == 0:
        start = "\n" if alone else ""  # another's progress bar may stand on the line
        sys.stderr.write(f"{start}headlight: {' '.join(message.split())}\n")


def answer(facts: dict[str, Any]) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n")
