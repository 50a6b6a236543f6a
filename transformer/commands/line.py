"""The output of a command: one clear line for a mistake, one line of JSON for an answer."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, NoReturn

from transformer.commands.launch import place


class OneLineParser(argparse.ArgumentParser):
    """Answers bad arguments with one clear line."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message} (see {self.prog} --help)")
        sys.exit(2)


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
