"""Tokens that are numbers, as the tests of models write them."""

from __future__ import annotations


def id_of(token: str, side: str) -> int:
    return int(token)
