"""How long a person waits for their own pairs: reading and capping files of growing size, in each format.

    python -m benchmarks.reading [--seeds N] [--json]

The sentences are made up: words of a skewed vocabulary, each with its translation, some with commas or
quotation marks. A row is the quickest of N passes, each over another file (`--seeds`), in seconds of one
core. Time must grow with the size and no faster: eight times the bytes may take twelve times as long, and the
largest file five seconds.
"""

from __future__ import annotations

import csv
import io
import json
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from benchmarks.tools.measuring import end, options
from transformer.tasks.pairs.caps import Caps, capped
from transformer.tasks.pairs.reading import read_pairs

SIZES = (0.625, 1.25, 2.5, 5.0)
"""In MB."""
CAPS = Caps(longest_source=8, longest_target=12, min_frequency=5, most_pairs=10_000)
LONGEST, MOST_GROWTH = 5.0, 12.0
"""Seconds for the largest file, and how much longer than for the smallest."""
N_WORDS = 5_000

Row = tuple[str, str]


def sentences(chance: random.Random) -> Iterator[Row]:
    """Pairs without end."""
    letters = "abcdefghijklmnopqrstuvwxyzéèç"
    words = [
        ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(N_WORDS)] for _ in range(2)
    ]
    weights = list(accumulate(1 / (rank + 3) for rank in range(N_WORDS)))
    while True:
        chosen = chance.choices(range(N_WORDS), cum_weights=weights, k=chance.randint(2, 9))
        said = [" ".join(side[i] for i in chosen).capitalize() for side in words]
        kind = chance.random()
        if kind < 0.1:
            yield f"Yes, {said[0]}!", f"Oui, {said[1]}\u202f!"
        elif kind < 0.15:
            yield f'"{said[0]}", he said.', f"« {said[1]} », dit-il."
        elif kind < 0.3:
            yield f"{said[0]}?", f"L'{said[1]}\u00a0?"
        else:
            yield f"{said[0]}.", f"{said[1]}."


def tsv(row: Row) -> str:
    """As ManyThings has it."""
    return f"{row[0]}\t{row[1]}\tCC-BY 2.0 (France) Attribution: tatoeba.org #1 (a) & #2 (b)\n"


def quoted(row: Row) -> str:
    """A line of CSV."""
    line = io.StringIO()
    csv.writer(line).writerow(row)
    return line.getvalue()


def json_line(row: Row) -> str:
    """An object on a line."""
    return json.dumps({"src": row[0], "tgt": row[1]}, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[Row], str]] = {"TSV": tsv, "CSV": quoted, "JSONL": json_line}


def content(written: Callable[[Row], str], megabytes: float, seed: int) -> bytes:
    """A file of this size, down to the last whole line."""
    lines, left = [], round(megabytes * 1e6)
    for row in sentences(random.Random(seed)):
        line = written(row).encode()
        left -= len(line)
        if left < 0:
            break
        lines.append(line)
    return b"".join(lines)


def measure(name: str, megabytes: float, seeds: Sequence[int]) -> dict[str, Any]:
    """The quickest reading and the quickest capping of a file of this format and size."""
    reading_times, capping_times = [], []
    for seed in seeds:
        data = content(FORMATS[name], megabytes, seed)
        began = time.process_time()
        reading = read_pairs([("made up", data)])
        read = time.process_time()
        kept = capped(reading, CAPS)
        capping_times.append(time.process_time() - read)
        reading_times.append(read - began)
    return {
        "format": name,
        "megabytes": megabytes,
        "pairs": reading.read,
        "kept": len(kept.pairs),
        "reading": round(min(reading_times), 4),
        "capping": round(min(capping_times), 4),
        "seconds": round(min(reading_times) + min(capping_times), 4),
    }


def main() -> int:
    """Print a row for each format and size; exit status 1 where a limit is not met."""
    arguments = options(__doc__, seeds=3)
    write = sys.stdout.write
    write(f"Python {platform.python_version()} on {platform.machine()}\n")
    write("format     MB    pairs    kept  reading  capping  seconds  for twice the bytes\n")
    rows: list[dict[str, Any]] = []
    for name in FORMATS:
        for megabytes in SIZES:
            row = measure(name, megabytes, range(arguments.seeds))
            growth = f"{row['seconds'] / rows[-1]['seconds']:.2f}" if megabytes > SIZES[0] else ""
            rows.append(row)
            write(
                f"{name:6s}  {megabytes:5.3f}  {row['pairs']:7,}  {row['kept']:6,}  {row['reading']:7.3f}  "
                f"{row['capping']:7.3f}  {row['seconds']:7.3f}  {growth:>19s}\n"
            )
            sys.stdout.flush()
    smallest, largest = ([row["seconds"] for row in rows if row["megabytes"] == size] for size in SIZES[::3])
    met = {
        "largest_within_5_seconds": max(largest) <= LONGEST,
        "time_grows_with_size_and_no_faster": all(
            much <= MOST_GROWTH * little for little, much in zip(smallest, largest, strict=True)
        ),
    }
    return end(arguments, rows, met)


if __name__ == "__main__":
    sys.exit(main())
