"""A run's file: an SQLite database, written by one process and read by any; nothing in a file can run.

fact         by name, JSON: `run` (configuration, state, moments, words, results), `snapshots` (the steps
             whose weights are kept), `writer` (the process that writes), `pictures` (of an own model); as
             they are: `owner` (the digest of the token that controls the run), the tokenizers, the user's own
             pairs and tokenizer
step         one row for each training step: its numbers, float64 in the order of `Metrics.names` after `step`
map          chunks: the maps of a word from the step `first` to the step `last`, in 16 bits
weights      the weights of as many steps as fit, safetensors; one row for each step
measurement  scores, outputs and results on held-out words, of an own model the worth of its heads, JSON
training     all that the next step depends on, safetensors: weights, optimiser, random state; one row

A transaction writes all that is new, so that the file always holds the run as of one time. Numbers in `step`,
`map` and `weights` have a checksum, because SQLite has none.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from transformer.errors import InputError

T = TypeVar("T")
SUFFIX = ".headlight"
FORMAT, APPLICATION, PAGE = 1, 0x484C4454, 65_536
TABLES = (
    "CREATE TABLE fact(name TEXT PRIMARY KEY, value BLOB)",
    "CREATE TABLE step(step INTEGER PRIMARY KEY, numbers BLOB)",
    "CREATE TABLE map(word INTEGER, first INTEGER, last INTEGER, data BLOB, PRIMARY KEY (word, first))",
    "CREATE TABLE weights(step INTEGER PRIMARY KEY, data BLOB)",
    "CREATE TABLE measurement(step INTEGER PRIMARY KEY, data BLOB)",
    "CREATE TABLE training(one INTEGER PRIMARY KEY CHECK (one = 1), step INTEGER, data BLOB)",
)
SCHEMA = {sql.split("(")[0].split()[-1].encode(): sql.encode() for sql in TABLES} | {
    b"sqlite_autoindex_fact_1": None,
    b"sqlite_autoindex_map_1": None,
}
"""The SQL text of every object that a file contains, by name; None for an index that SQLite makes itself."""
PRAGMAS = ("trusted_schema = OFF", "cell_size_check = ON")
WAITING_SECONDS = 5.0
"""Longest wait for another connection to the same file."""
READING_SECONDS = 20.0
"""Longest processor time of one look, in seconds: pages of a forged file may form a circle."""
SILENT_SECONDS = 15.0
"""Seconds without a write after which a process that cannot be looked up counts as gone."""
NOW = (
    f"A run is now one file, NAME{SUFFIX}; the folders and ZIP files of earlier versions cannot be read. "
    "Train the run again."
)
RUN, OWNER, WRITER = "run", "owner", "writer"
NETWORKS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "fuse.sshfs")


class Taken(InputError):
    """The file holds a run already, or another process writes it."""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The process that writes a file."""

    host: str
    pid: int
    started: int
    """When it began: its pid may be used again later. 0 where the system does not say."""
    file: int
    """The inode of the file; a copy of the file has another."""


def path_of(named: Path) -> Path:
    """The path of a run's file; its suffix may be left out."""
    return named if named.suffix == SUFFIX or not named.name else named.with_name(named.name + SUFFIX)


def found(named: Path) -> Path:
    """The path of a run's file that should exist; its suffix may be left out, or the file may have none."""
    return path_of(named) if path_of(named).exists() or not named.exists() else named


def beside(path: Path) -> Path:
    """The file with the latest transactions; exists while a process writes, or if it was killed."""
    return path.with_name(f"{path.name}-wal")


def discard(path: Path) -> None:
    """Delete a file that no process has open, with those beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def stamp_of(path: Path) -> tuple[int, int]:
    """Times of the last change of the file and of its -wal file (0 if it has none), in ns. Raises OSError."""
    with suppress(OSError):
        return path.stat().st_mtime_ns, beside(path).stat().st_mtime_ns
    return path.stat().st_mtime_ns, 0


def why(error: BaseException) -> str:
    """The reason of a failed read or write, in words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) if isinstance(error, sqlite3.Error) else f"{type(error).__name__}: {error}"


def fact(database: sqlite3.Connection, name: str, kind: type[T]) -> T | None:
    """A fact as its type; None where it is missing. Raises ValueError."""
    value = raw_fact(database, name)
    return None if value is None else msgspec.json.decode(value, type=kind)


def raw_fact(database: sqlite3.Connection, name: str) -> bytes | None:
    """A fact as it is stored; None where it is missing. Raises ValueError."""
    row = database.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
    return None if row is None else blob(row[0])


def put(database: sqlite3.Connection, name: str, value: bytes) -> None:
    database.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))


def blob(value: object) -> bytes:
    """A value that should be a BLOB; a file can hold anything. Raises ValueError."""
    if not isinstance(value, bytes):
        raise ValueError(f"a value is {type(value).__name__} and not bytes")
    return value


@contextmanager
def reading(path: Path, *, strange: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a file for one look: all that is read inside is of the same time. Text is given as bytes.

    Args:
        strange: whether the file is of a stranger; it is then checked whole, and no file beside it is read.

    Raises:
        InputError: it does not exist, is no run of this version, is held by another program, or is damaged;
            also in place of a ValueError, OSError or SQLite error that is raised inside the block.
    """
    alone = not beside(path).exists() and not os.access(path.parent, os.W_OK)
    query = "mode=ro&immutable=1" if strange or alone else "mode=ro"
    try:
        uri = f"{path.absolute().as_uri()}?{query}"
        database = sqlite3.connect(uri, uri=True, timeout=WAITING_SECONDS, isolation_level=None)
        try:
            end = time.thread_time() + READING_SECONDS
            database.set_progress_handler(lambda: time.thread_time() > end, 1_000_000)
            if strange:
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(100_000, path.stat().st_size))
            database.text_factory = bytes
            for pragma in (*PRAGMAS, "query_only = ON"):
                database.execute(f"PRAGMA {pragma}")
            database.execute("BEGIN")
            _check(database, path)
            if strange and database.execute("PRAGMA quick_check(1)").fetchall() != [(b"ok",)]:
                raise ValueError("its pages do not fit each other")
            yield database
        finally:
            database.close()
    except InputError:
        raise
    except (sqlite3.Error, OSError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: Exception) -> InputError:
    """Why a file cannot be read."""
    text = f"{path} is damaged or no run of Headlight ({why(error)})."
    if path.is_dir():
        text = f"{path} is a folder. {NOW}"
    elif not path.exists():
        text = f"{path} is no run of Headlight: there is no such file."
    elif getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        text = f"{path} is held by another program. Close it there, then try again."
    elif "not a database" in str(error) and path.read_bytes()[:2] == b"PK":
        text = f"{path} is a ZIP file. {NOW}"
    return InputError(text)


def _check(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that has not exactly our tables, or anything besides. Raises InputError."""
    schema = database.execute("SELECT name, sql FROM sqlite_schema LIMIT 99").fetchall()
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise InputError(f"{path} is a database, but no run of Headlight.")
    if version != FORMAT:
        raise InputError(
            f"{path} has format {version}; this version reads format {FORMAT}. Open it with the version that "
            "made it, or train it again."
        )
    if len(schema) != len(SCHEMA) or dict(schema) != SCHEMA:
        raise InputError(f"{path} is no run of Headlight: it has other tables than a run.")


def _refuse_taken(database: sqlite3.Connection, path: Path, *, new: bool) -> None:
    """Refuse a file that a process writes, or that holds a run although it should be new. Raises Taken."""
    if new and raw_fact(database, RUN) is not None:
        raise Taken(f"The file {path} exists; choose a new one.", "out")
    if may_write(writer_of(database), path):
        raise Taken(f"Another process is training the run in {path}; watch it or stop it.")


class Store:
    """The one connection that writes a run's file. Safe to use from any thread.

    Args:
        path: of the file; it is created if it does not exist.
        new: whether it must hold no run yet.

    Raises:
        Taken: it holds a run although it should be new, or a process writes it already.
        InputError: it cannot be written, or is not a run's file.
    """

    def __init__(self, path: Path, *, new: bool) -> None:
        self.path, self.lock = path, threading.RLock()
        began = not path.exists()
        if not began and path.stat().st_size:  # anything else is left as it is
            with reading(path) as database:
                _refuse_taken(database, path, new=new)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if began:  # never opened if it exists: closing it would release SQLite's locks in this process
                path.touch(exist_ok=False)  # says better than SQLite why a file cannot be created
            elif not os.access(path, os.W_OK):
                raise PermissionError(13, "Permission denied")
            self._database = sqlite3.connect(
                path, timeout=WAITING_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._claim(new=new)
            except BaseException as error:
                self._database.close()
                if began and isinstance(error, sqlite3.Error):  # such as a full disk
                    discard(path)
                raise
        except InputError:
            raise
        except (OSError, sqlite3.Error, ValueError) as error:
            raise InputError(f"The file {path} cannot be written ({why(error)}).", "out") from error

    def _claim(self, *, new: bool) -> None:
        database = self._database
        database.text_factory = bytes
        # WAL needs memory that processes share; without it, readers and the writer wait for each other.
        journal = "DELETE" if on_network(self.path) else "WAL"
        for pragma in (
            f"page_size = {PAGE}",
            "auto_vacuum = INCREMENTAL",
            *PRAGMAS,
            "synchronous = NORMAL",
            "wal_autocheckpoint = 256",
            f"journal_size_limit = {256 * PAGE}",
            f"journal_mode = {journal}",
        ):
            database.execute(f"PRAGMA {pragma}").fetchall()
        database.execute("BEGIN IMMEDIATE")
        if database.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            for sql in (*TABLES, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {FORMAT}"):
                database.execute(sql)
        _check(database, self.path)
        _refuse_taken(database, self.path, new=new)
        self._inode, pid = self.path.stat().st_ino, os.getpid()
        ours = Writer(host=socket.gethostname(), pid=pid, started=_start_of(pid) or 0, file=self._inode)
        self._writer = msgspec.json.encode(ours)
        put(database, WRITER, self._writer)
        database.execute("COMMIT")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write what the block writes, or nothing of it.

        Raises:
            Taken: another process writes the file now.
            sqlite3.Error, OSError: the disk is full, or the file is gone or cannot be written.
        """
        with self.lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                claimed = raw_fact(self._database, WRITER) == self._writer
                if not claimed or self.path.stat().st_ino != self._inode:
                    raise Taken("another process writes this file now")
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def give_back(self) -> None:
        """Give the pages of what was deleted back to the disk. Raises as `transaction`."""
        with self.transaction() as database:
            database.execute("PRAGMA incremental_vacuum").fetchall()
        with self.lock:
            with suppress(sqlite3.Error):  # small rows leave pages half empty; this needs room for a copy
                self._database.execute("VACUUM")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Release the file, and merge its -wal file into it unless another process reads it."""
        with self.lock:
            with suppress(sqlite3.Error, OSError, Taken):
                with self.transaction() as database:
                    database.execute("PRAGMA incremental_vacuum").fetchall()
                    database.execute("DELETE FROM fact WHERE name = ?", (WRITER,))
                self._database.execute("PRAGMA journal_mode = DELETE").fetchall()
            self._database.close()


def is_held(path: Path) -> bool:
    """Whether a process, this one included, writes this file now; False if the file cannot be read."""
    with suppress(InputError, OSError), reading(path) as database:
        return may_write(writer_of(database), path)
    return False


def writer_of(database: sqlite3.Connection) -> Writer | None:
    """The process that is named as the writer; None where there is none, or it cannot be read."""
    with suppress(ValueError):
        return fact(database, WRITER, Writer)
    return None


def may_write(writer: Writer | None, path: Path) -> bool:
    """Whether the process that is named as the writer of a file may still write. Raises OSError."""
    if writer is None or writer.file != path.stat().st_ino:
        return False
    started = _start_of(writer.pid) if writer.host == socket.gethostname() else None
    if started is None or not writer.started:
        return time.time() - max(stamp_of(path)) / 1e9 < SILENT_SECONDS
    return started == writer.started


def _start_of(pid: int) -> int | None:
    """When a process of this machine began, in ticks; 0 if there is none, None if the system does not say."""
    if not Path("/proc/self/stat").exists():
        return None
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def on_network(path: Path) -> bool:
    """Whether a file lies on another machine, as far as the system says."""
    place, nearest = path.resolve(), ("", "")
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            fields, _, kind = line.partition(" - ")
            mount = fields.split()[4]
            if place.is_relative_to(mount) and len(mount) >= len(nearest[0]):
                nearest = mount, kind.split()[0]
    return nearest[1] in NETWORKS
