"""Pairs to write into files: a sentence and its translation, all different."""

from __future__ import annotations

import pytest

from transformer.tasks.pairs.reading import Reading, read_pairs


@pytest.fixture(scope="session")
def some():
    """n pairs with accents and French signs."""

    def made(n=30):
        return [(f"Look at the {i} cats!", f"Regarde les {i} chats été !") for i in range(n)]

    return made


@pytest.fixture(scope="session")
def read():
    """Read files given as text or bytes, named a, b, ..."""

    def reading(*files):
        contents = [file.encode() if isinstance(file, str) else file for file in files]
        return read_pairs([(f"{'ab'[i]}.dat", content) for i, content in enumerate(contents)])

    return reading


@pytest.fixture(scope="session")
def found():
    """A Reading of these pairs, as if a file had held them."""

    def made(pairs):
        return Reading(tuple(pairs), "TSV, 2 columns")

    return made
