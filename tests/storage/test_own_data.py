"""Uploads of visitors are found again by their secret names, within limits of bytes and of time."""

from __future__ import annotations

import time

import pytest

from transformer.storage.own_data import OwnData, UploadCache
from transformer.tasks.pairs.store import TokenizerFile


def of(size: int) -> OwnData:
    return OwnData(tokenizer=TokenizerFile("x" * size, "a digest"))


def test_an_upload_is_found_by_its_name_and_a_newer_one_replaces_it():
    returning, first, second = UploadCache(), of(10), of(20)
    name = returning.keep(first)
    assert returning.get(name) is first
    assert returning.keep(second, name) == name
    assert returning.get(name) is second
    assert returning.get("another name") is None


def test_the_oldest_upload_is_dropped_when_all_together_are_too_large():
    returning = UploadCache(most_bytes=100)
    names = [returning.keep(of(40)) for _ in range(3)]
    assert [returning.get(name) is None for name in names] == [True, False, False]


@pytest.mark.parametrize(("later", "there"), [(59.0, True), (61.0, False)])
def test_an_upload_is_forgotten_after_its_time_limit(monkeypatch, later, there):
    returning = UploadCache(seconds=60.0)
    name, now = returning.keep(of(10)), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + later)
    assert (returning.get(name) is not None) is there
