"""`curves`: the numbers of every step of a saved run, as CSV or Parquet."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from transformer.errors import InputError


def add(commands: Any) -> None:
    curves = commands.add_parser(
        "curves", help="print the curves of a saved run", description="The numbers of every step of a run."
    )
    curves.add_argument("path", type=Path, metavar="FILE", help="a run written by `train --out`")
    curves.add_argument(
        "--out", type=Path, metavar="FILE", help="a .csv or .parquet file (default: CSV on standard output)"
    )
    curves.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the table and return 0.

    Raises:
        InputError: the run's file cannot be read, or `--out` cannot be written or has another suffix.
    """
    from transformer.exports.tables import curves_csv, curves_parquet
    from transformer.storage.file import found
    from transformer.storage.saved import read_run

    out = arguments.out
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"{out} is neither a .csv nor a .parquet file; choose one of these.")
    view = read_run(found(arguments.path)).view
    if out is None:
        sys.stdout.write(curves_csv(view))
        return 0
    try:
        out.write_bytes(curves_parquet(view) if out.suffix == ".parquet" else curves_csv(view).encode())
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error.strerror}).") from error
    return 0
