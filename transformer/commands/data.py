"""`data`: show examples of a task with their alignment, or count the pairs in the user's own files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transformer.commands.line import print_json
from transformer.config import TASKS, TrainConfig
from transformer.errors import InputError

MAX_EXAMPLES = 100_000


def add(commands: Any) -> None:
    data = commands.add_parser(
        "data",
        help="show examples, or read pairs",
        description="Show generated examples with their alignment, or count your own pairs.",
    )
    what = data.add_mutually_exclusive_group(required=True)
    what.add_argument("--task", choices=TASKS[:-1], help="the task to draw examples from")
    what.add_argument(
        "--pairs", type=Path, nargs="+", metavar="FILE", help="one file of pairs, or two aligned ones"
    )
    data.add_argument("--n", type=int, default=10, help="how many examples (default: 10)")
    data.add_argument("--seed", type=int, default=0, help="seed of the examples (default: 0)")
    data.add_argument("--held-out", action="store_true", help="held-out examples only")
    data.add_argument(
        "--adjectives", type=int, default=1, help="maximum adjectives in a sentence (default: 1)"
    )
    data.add_argument(
        "--json", action="store_true", help="a line of JSON for each example, or one for the pairs"
    )
    add_heading(data)
    data.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return 0. Raises InputError if an argument or a file cannot be used."""
    if arguments.pairs:
        return _pairs(arguments)
    if arguments.heading is not None:
        raise InputError("--heading and --no-heading are about pairs; give --pairs FILE.")
    return _examples(arguments)


def _examples(arguments: argparse.Namespace) -> int:
    from transformer.tasks import corpus_of

    if not 1 <= arguments.n <= MAX_EXAMPLES:
        raise InputError(f"{arguments.n} examples cannot be drawn; choose from 1 to {MAX_EXAMPLES:,}.")
    if not 0 <= arguments.seed < 2**32:
        raise InputError(f"seed={arguments.seed} cannot be used; choose from 0 to {2**32 - 1:,}.")
    corpus = corpus_of(TrainConfig(task=arguments.task, adjectives=arguments.adjectives))
    if arguments.held_out:
        pairs = list(corpus.held_out())[: arguments.n]
    else:
        pairs = corpus.drawn(np.random.default_rng([arguments.seed, 0]), arguments.n)
    for pair in pairs:
        source, target = corpus.src.units(pair.source), corpus.tgt.units(pair.target)
        if arguments.json:
            print_json(
                {
                    "source": pair.source,
                    "target": pair.target,
                    "source_units": source,
                    "target_units": target,
                    "links": pair.links,
                    "pattern": pair.pattern,
                    "held_out": pair.held_out,
                }
            )
            continue
        sys.stdout.write(f"{pair.source}  →  {pair.target}\n")
        linked = zip(target, pair.links or (), strict=False)
        words = (f"{unit} ← {' '.join(source[i] for i in places) or '–'}" for unit, places in linked)
        sys.stdout.write(f"    {' · '.join(words)}\n")
    return 0


def add_heading(parser: argparse.ArgumentParser) -> None:
    """Add the option that says whether files of pairs have a heading."""
    parser.add_argument(
        "--heading",
        action=argparse.BooleanOptionalAction,
        help="pairs: the first line is a heading, or is none (default: it is if it names languages or sides)",
    )


def read_files(paths: list[Path], heading: bool | None) -> Any:
    """Read these files of pairs.

    Args:
        heading: whether the first line is a heading; None: if it looks like one.

    Raises:
        InputError: a file cannot be read, or `read_pairs` refuses the files.
    """
    from transformer.tasks.pairs.reading import read_pairs

    files = []
    for path in paths:
        try:
            files.append((path.name, path.read_bytes()))
        except OSError as error:
            raise InputError(f"The file {path} cannot be read ({error.strerror}).") from error
    return read_pairs(files, heading=heading)


def _pairs(arguments: argparse.Namespace) -> int:
    from transformer.tasks.pairs.reading import remarks

    reading = read_files(arguments.pairs, arguments.heading)
    if arguments.json:
        print_json(
            {
                "format": reading.format,
                "pairs_read": reading.read,
                "pairs_skipped": dict(reading.skipped),
                "heading": reading.heading,
                "line_breaks": reading.line_breaks,
                "windows_1252": reading.western,
            }
        )
        return 0
    sys.stdout.write(f"{reading.format}: {reading.read:,} pairs read\n")
    sys.stdout.writelines(f"{remark}\n" for remark in remarks(reading))
    return 0
