"""Fixtures for pairs: making them, and reading them from files."""

from __future__ import annotations

import pytest

from transformer.tasks.pairs.reading import Reading, read_pairs


@pytest.fixture(scope="session")
def some():
    """Return n different pairs with accents and French punctuation."""

    def made(n=30):
        return [(f"Look at the {i} cats!", f"Regarde les {i} chats été !") for i in range(n)]

    return made


@pytest.fixture(scope="session")
def read():
    """Read files given as text or bytes and named a.dat and b.dat."""

    def reading(*files, heading=None):
        contents = [file.encode() if isinstance(file, str) else file for file in files]
        named = [(f"{'ab'[i]}.dat", content) for i, content in enumerate(contents)]
        return read_pairs(named, heading=heading)

    return reading


@pytest.fixture(scope="session")
def found():
    """Return a `Reading` of the given pairs, as if read from a file."""

    def made(pairs):
        return Reading(tuple(pairs), "TSV, 2 columns")

    return made
