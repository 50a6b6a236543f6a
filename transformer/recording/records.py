"""An append-only file of records, each a line of JSON with numbers behind it, read by position.

A record is a fixed head, the JSON and the body. The head has the lengths of both and their checksums, so that
a reader of a truncated or damaged file gets everything before the damage, and nothing wrong.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from transformer.errors import InputError

_HEAD = struct.Struct("<4sIQII")
_MAGIC = b"HLR1"
MOST_FACTS = 16 * 2**20
"""Maximum bytes of the JSON of one record; a larger length means that the file is damaged."""


@dataclass(frozen=True)
class Record:
    """A record to append: facts as JSON, and numbers."""

    facts: bytes
    body: bytes = b""


@dataclass(frozen=True)
class Entry:
    """The place of a record in a file; its facts have been read."""

    facts: bytes
    at: int
    """Position of the body."""
    nbytes: int
    """Length of the body."""
    checksum: int

    @property
    def start(self) -> int:
        """Position of the record."""
        return self.at - len(self.facts) - _HEAD.size

    @property
    def end(self) -> int:
        """Position behind the record."""
        return self.at + self.nbytes


def content(records: Iterable[Record]) -> bytes:
    """Records as the bytes of a file."""
    return b"".join(part for one in records for part in (_head(one), one.facts, one.body))


def append(path: Path, records: Sequence[Record], *, at: int) -> list[Entry]:
    """Write records at a position, replacing everything from there on; not yet synced to the disk.

    Raises:
        OSError: the disk is full, or the file cannot be written.
    """
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.seek(at)
        file.truncate()
        return _written(file, records, at)


def _written(file: BinaryIO, records: Sequence[Record], at: int) -> list[Entry]:
    """Write records at the current position of a file, which is `at`."""
    entries: list[Entry] = []
    for record in records:
        head = _head(record)
        at += len(head) + len(record.facts)
        file.writelines((head, record.facts, record.body))
        entries.append(Entry(record.facts, at, len(record.body), zlib.crc32(record.body)))
        at += len(record.body)
    return entries


@contextmanager
def replacement(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces another once it is completely written; a reader sees the old or the new one.

    Raises:
        OSError: the disk is full, or the file cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def rewrite(path: Path, records: Sequence[Record]) -> list[Entry]:
    """Replace a file by one with these records. Raises OSError."""
    with replacement(path) as file:
        return _written(file, records, 0)


def compact(path: Path, entries: Sequence[Entry]) -> list[Entry]:
    """Keep only these records of a file, in this order. Raises OSError."""
    kept, at = [], 0
    with path.open("rb") as source, replacement(path) as target:
        for entry in entries:
            source.seek(entry.start)
            record = source.read(entry.end - entry.start)
            if len(record) != entry.end - entry.start:
                raise OSError("the file is shorter than it was")
            target.write(record)
            kept.append(replace(entry, at=at + entry.at - entry.start))
            at += len(record)
    return kept


def scan(path: Path, start: int = 0) -> Iterator[Entry]:
    """Yield the records from a position on, up to the end or the first truncated or damaged record; bodies
    are not read.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(start)
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            magic, n_facts, n_body, facts_checksum, checksum = _HEAD.unpack(head)
            at = file.tell() + n_facts
            if magic != _MAGIC or n_facts > MOST_FACTS or at + n_body > size:
                return
            facts = file.read(n_facts)
            if zlib.crc32(facts) != facts_checksum:
                return
            yield Entry(facts, at, n_body, checksum)
            file.seek(at + n_body)


def body_of(path: Path, entry: Entry) -> bytes:
    """The numbers of a record. Raises InputError."""
    try:
        with path.open("rb") as file:
            file.seek(entry.at)
            body = file.read(entry.nbytes)
    except OSError as error:
        raise InputError(f"{path.name} cannot be read ({error.strerror}).") from error
    if len(body) != entry.nbytes or zlib.crc32(body) != entry.checksum:
        raise InputError(f"{path.name} is damaged at byte {entry.at:,}.")
    return body


def stands(path: Path, entry: Entry) -> bool:
    """Whether a record is still at its position; the file may have been overwritten or replaced since."""
    return next(scan(path, entry.start), None) == entry


def sync(path: Path) -> None:
    """Flush a file to the disk. Raises OSError."""
    if path.exists():
        with path.open("r+b") as file:
            os.fsync(file.fileno())


def _head(record: Record) -> bytes:
    sizes = len(record.facts), len(record.body)
    return _HEAD.pack(_MAGIC, *sizes, zlib.crc32(record.facts), zlib.crc32(record.body))
