"""Kept pairs as text: a line with the caps, then a pair a line, so that a run's folder can keep them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from transformer.errors import InputError
from transformer.tasks.pairs.caps import Capped, Caps
from transformer.tasks.pairs.own import OwnPairs, written
from transformer.tasks.pairs.spelling import FRENCH
from transformer.tasks.pairs.text import FIELD
from transformer.tasks.writing import BETWEEN_SPACES, CHARACTERS, Writing

FORMAT = 1


def to_tsv(own: OwnPairs) -> str:
    """The pairs with all that makes them the same corpus again. A cleaned side has no tab and no line end."""
    capped = own.capped
    head = {
        "headlight_pairs": FORMAT,
        "digest": own.digest,
        "caps": asdict(capped.caps),
        "spaced": [written(capped.src), written(capped.tgt)],
    }
    lines = [json.dumps(head), *(f"{source}\t{target}" for source, target in capped.pairs)]
    return "\n".join(lines) + "\n"


def from_tsv(text: str) -> OwnPairs:
    """The pairs that `to_tsv` wrote: same digest, same split.

    Raises:
        InputError: the text is none that it wrote, or was changed since.
    """
    first, _, rest = text.partition("\n")
    try:
        head: Any = json.loads(first)
        if head["headlight_pairs"] != FORMAT:
            raise ValueError(f"format {head['headlight_pairs']!r}")
        caps = Caps(**head["caps"])
        src, tgt = (_writing(spaced, caps) for spaced in head["spaced"])
        pairs = tuple(_pair(line) for line in rest.removesuffix("\n").split("\n"))
        own = OwnPairs(Capped(pairs, caps, src, tgt))
        if own.digest != head["digest"]:
            raise ValueError("its digest differs")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"The saved pairs are damaged ({error!r:.100}); upload the pairs again.", FIELD
        ) from error
    return own


def _writing(spaced: object, caps: Caps) -> Writing:
    if spaced in (CHARACTERS, BETWEEN_SPACES):
        between = "" if spaced == CHARACTERS else " "
        return Writing(unit=str(spaced), between=between, lower=caps.lower)
    if spaced not in ("", FRENCH):
        raise ValueError(f"spaced={spaced!r}")
    return Writing(lower=caps.lower, spaced=str(spaced))


def _pair(line: str) -> tuple[str, str]:
    source, target = line.split("\t")
    return source, target
