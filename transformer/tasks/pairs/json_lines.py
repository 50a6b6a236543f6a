"""JSON lines: an object a line, with the sentence and its translation under two names."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from transformer.tasks.pairs.limits import READABLE, named, refused
from transformer.tasks.pairs.names import sides_of
from transformer.tasks.pairs.record import Layout, Record, unread
from transformer.tasks.pairs.sides import shortened

SAMPLE = 1_000
"""Objects by which the two names are chosen, for the whole file."""
WANTED = 'an object such as {"src": "Go.", "tgt": "Va !"} on each line'
_DOCUMENT = re.compile(r"\s*(\[\s*([\[{\"]|\])|\{\s*[\"}])")


def seems_json_lines(lines: Sequence[str]) -> bool:
    """Whether most lines at the beginning are in braces; that a document in JSON has several such is rare."""
    sample = list(islice((line.strip() for line in lines if line.strip()), 50))
    in_braces = sum(line.startswith("{") and line.rstrip(",").endswith("}") for line in sample)
    return len(sample) > 1 and 2 * in_braces > len(sample)


def seems_document(lines: Sequence[str]) -> bool:
    """Whether the lines together are one value in JSON."""
    first = next(line for line in lines if line.strip())
    last = next(line for line in reversed(lines) if line.strip())
    beginning = "\n".join(lines[:20])[:2_000]
    return _DOCUMENT.match(beginning) is not None and first.lstrip()[0] + last.rstrip()[-1] in ("{}", "[]")


def layout_of(name: str, lines: Sequence[str]) -> Layout:
    """The objects with their two names chosen.

    Raises:
        InputError: too few lines are objects, or it is not clear which two of their texts are meant.
    """
    faults = [unread(line) for line in lines]
    objects = [None if fault else _strings(line) for line, fault in zip(lines, faults, strict=True)]
    looked_into = faults.count("")
    choices = Counter(filter(None, map(_names, islice(filter(None, objects), SAMPLE))))
    if not choices:
        shown = next((line for line, fault in zip(lines, faults, strict=True) if not fault), "")
        raise refused(
            f"{named(name)} is JSON, but it is not clear which two texts of a line belong together: "
            f"“{shortened(shown)}”. Expected is {WANTED}."
        )
    source, target = choices.most_common(1)[0][0]
    wrong = f"no JSON object with “{shortened(source)}” and “{shortened(target)}”"
    records = []
    for at, (line, fault, strings) in enumerate(zip(lines, faults, objects, strict=True), 1):
        if strings is not None and source in strings and target in strings:
            records.append(Record(at, line, (strings[source], strings[target])))
        else:
            records.append(Record(at, line, None, fault or wrong))
    read = sum(record.sides is not None for record in records)
    if read < READABLE * looked_into:
        bad = next(record for record in records if record.fault == wrong)
        raise refused(
            f"Only {read:,} of {looked_into:,} lines of {named(name)} are JSON objects with "
            f"“{shortened(source)}” and “{shortened(target)}”; line {bad.line:,} is “{shortened(bad.raw)}”. "
            f"Expected is {WANTED}."
        )
    return Layout("JSON lines", records)


def _strings(line: str) -> Mapping[str, str] | None:
    """The texts of the object on a line, by name; those of {"translation": {...}} are inside."""
    try:
        found: Any = json.loads(line.strip().rstrip(","))
    except (ValueError, RecursionError):  # the second where brackets stand in brackets, a thousand deep
        return None
    if not isinstance(found, dict):
        return None
    inner = [value for value in found.values() if isinstance(value, dict)]
    if isinstance(found.get("translation"), dict):
        found = found["translation"]
    elif len(inner) == 1 and len(found) == 1:
        found = inner[0]
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _names(strings: Mapping[str, str]) -> tuple[str, str] | None:
    names = list(strings)
    places = sides_of(names)
    if places is not None:
        return names[places[0]], names[places[1]]
    return (names[0], names[1]) if len(names) == 2 else None
