"""How a command speaks: one clear line for a mistake, one line of JSON for an answer."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, NoReturn


class OneLineParser(argparse.ArgumentParser):
    """Answers bad arguments with one clear line."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message} (see {self.prog} --help)")
        sys.exit(2)


def complain(message: str) -> None:
    """Say on standard error what is wrong."""
    sys.stderr.write(f"headlight: {' '.join(message.split())}\n")


def answer(facts: dict[str, Any]) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n")
