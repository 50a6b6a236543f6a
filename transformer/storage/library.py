"""The folder of a server's runs, one file each, so that they are available again after a restart."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from transformer.errors import InputError
from transformer.recording.view import ENDED, PAUSED, RunView
from transformer.recording.weights import Weights
from transformer.storage.file import (
    OWNER,
    SUFFIX,
    Store,
    Taken,
    Writer,
    beside,
    may_write,
    raw_fact,
    reading,
    stamp_of,
    why,
    writer_of,
)
from transformer.storage.format import Mirror, RunFile, run_fact, write_run
from transformer.storage.log import LOG
from transformer.storage.saved import Saved, read_run
from transformer.storage.tokens import SHAPE, is_token_of, new_token
from transformer.tasks import task_of

FIELD = "run_open"
MOST_BYTES = 48 * 10**6
"""Maximum bytes of a file to take away, as far as leaving out weights allows."""
ENVIRONMENT = "HEADLIGHT_RUNS"
"""Environment variable with the path of the folder; if it is empty, nothing is kept on disk."""
ROOM_SECONDS = 5.0
"""Minimum seconds between two calculations of the size of all runs."""
LOOK_SECONDS = 1.0
"""Minimum seconds between two searches of named files for an unknown id, however many are requested."""
REMOVED = "removed"
"""Folder of the removed runs, in the folder of all runs."""
UNDO_SECONDS = 3600.0
"""Seconds in which a removed run can be restored, unless the disk limit needs its room before. Its file is
deleted when another run is removed after that."""
ROOM = 200_000_000
"""Bytes of disk that an opened file must leave free for the runs that train."""
FEW = (16, 4, 0)
"""To make room, a run keeps the weights of this many evenly chosen steps, and of the first, the last and the
moments; if that does not suffice, the next lower number applies."""


@dataclass(frozen=True)
class RunInMemory:
    """What the limit of the disk needs to know of a run in memory."""

    seen_at: float
    """When it was last viewed, in seconds since 1970."""
    busy: bool
    """Whether it trains or is about to; such runs are thinned last."""
    thin: Callable[[int], bool]
    """Thins its weights to this many steps, as `FEW` says; returns whether there were more."""


class Entry(NamedTuple):
    """What lists need of a run's file, read in one look."""

    stamp: tuple[int, int]
    """Times of the last change, as `stamp_of`: the entry holds as long as they are the same."""
    run: RunFile
    owner: str | None
    """The digest of the token that commands the run."""
    writer: Writer | None

    def as_now(self, path: Path) -> RunFile:
        """The run; paused if it has not ended and no process writes its file."""
        with suppress(OSError):
            if self.run.state in ENDED or may_write(self.writer, path):
                return self.run
        return replace(self.run, state=PAUSED)


class Library:
    """Runs on disk by their id, one file per run.

    Args:
        folder: the folder of all runs; None to keep nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._entries: dict[Path, Entry] = {}
        self._names: dict[str, str] = {}  # names of files, by id of the run
        self._looked_at = -math.inf
        self._making_room, self._made_room_at = threading.Lock(), -math.inf
        self.thinned: set[str] = set()
        """Ids of runs whose weights this process has thinned to stay within the limit of the disk."""

    @classmethod
    def of_environment(cls) -> Library:
        """Runs in the folder that the environment names; by default `runs`, where the server was started."""
        named = os.environ.get(ENVIRONMENT, "runs")
        return cls(Path(named) if named else None)

    def path_of(self, id_: str) -> Path | None:
        """A run's file, which need not exist; None if nothing is kept, or the id is invalid."""
        if self.folder is None or not SHAPE.fullmatch(id_):
            return None
        if (path := self._path(id_)).exists():
            return path
        with self._lock:
            if id_ not in self._names and time.monotonic() - self._looked_at >= LOOK_SECONDS:
                self._look()
            return self._path(self._names.get(id_, id_))

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}{SUFFIX}"

    def facts_of_run(self, id_: str) -> RunFile | None:
        """The facts of a kept run for a list, without its recording; None where none can be read.

        A run that has not ended and whose file no process writes is returned as paused.
        """
        path = self.path_of(id_)
        entry = self._entry(path) if path else None
        return entry.as_now(path) if path and entry else None

    def owner(self, id_: str) -> str | None:
        """The digest of the token that commands a kept run; None if there is none."""
        path = self.path_of(id_)
        entry = self._entry(path) if path else None
        return entry.owner if entry else None

    def used_at(self, id_: str) -> float | None:
        """When the file of a kept run was last written, in seconds since 1970; None for a run not kept here.

        Training writes it, and so does opening it as a `Run`.
        """
        path = self.path_of(id_)
        return _written_at(path) or None if path else None

    def _entry(self, path: Path) -> Entry | None:
        """The entry of a file, which is read only after it has changed; None if it cannot be read."""
        try:
            stamp = stamp_of(path)
            entry = self._entries.get(path)
            if entry is None or entry.stamp != stamp:
                with reading(path) as database:
                    owner = (raw_fact(database, OWNER) or b"").decode("ascii") or None
                    entry = Entry(stamp, run_fact(database), owner, writer_of(database))
                self._entries[path] = entry
            return entry
        except (InputError, OSError):
            self._entries.pop(path, None)
            return None

    def published(self) -> dict[str, RunFile]:
        """Name to run, of runs kept here under a name, as with `--out`: every visitor sees them.

        The one written last comes first.
        """
        with self._lock:
            entries = sorted(self._look().items(), key=lambda one: max(one[1].stamp), reverse=True)
        return {path.stem: entry.as_now(path) for path, entry in entries}

    def _look(self) -> dict[Path, Entry]:
        """The entry of each named file; files of visitors are hidden from others."""
        self._looked_at, files = time.monotonic(), self._files()
        for gone in {*list(self._entries)}.difference(files):
            self._entries.pop(gone, None)
        named = {path: self._entry(path) for path in files if not SHAPE.fullmatch(path.stem)}
        entries = {path: entry for path, entry in named.items() if entry is not None}
        self._names = {entry.run.id: path.stem for path, entry in entries.items()}
        return entries

    # Removing a run, and its restoration.

    def remove(self, id_: str) -> None:
        """Put the file of a run aside, from where `restore` brings it back.

        Raises:
            InputError: there is no such file, a process writes it, or it cannot be moved.
        """
        path = self.path_of(id_)
        entry = self._entry(path) if path else None
        if path is None or entry is None:
            raise InputError("This run is no longer on this server.")
        try:
            if may_write(entry.writer, path):
                raise Taken("Another process trains this run; stop it there first.")
            if beside(path).exists():
                Store(path, new=False).close()  # puts its latest transactions into the file
            (path.parent / REMOVED).mkdir(exist_ok=True)
            path.rename(path.parent / REMOVED / f"{int(time.time())}.{id_}{SUFFIX}")
            for old, removed_at in self._removed_files().items():
                if time.time() - removed_at > UNDO_SECONDS:
                    old.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"The file of this run cannot be removed ({why(error)}).") from error

    def restore(self, id_: str, token: str) -> None:
        """Bring a removed run back.

        Raises:
            InputError: it is gone for good, this is not its token, or its file cannot be moved.
        """
        paths = [path for path in self._removed_files() if path.name.partition(".")[2] == id_ + SUFFIX]
        entry = self._entry(paths[-1]) if paths else None
        if entry is None or not is_token_of(token, entry.owner):
            raise InputError("A removed run can be restored for one hour; this one is gone.")
        try:
            paths[-1].rename(self._path(id_))
        except OSError as error:
            raise InputError(f"The file of this run cannot be restored ({why(error)}).") from error

    def _removed_files(self) -> dict[Path, float]:
        """The removed files, and when each was removed, in seconds since 1970; their names begin with it."""
        paths = () if self.folder is None else sorted(self.folder.glob(f"{REMOVED}/*.*{SUFFIX}"))
        return {path: float(at) for path in paths if (at := path.name.partition(".")[0]).isdecimal()}

    # The file of a stranger.

    def open_file(
        self,
        data: bytes,
        digest: str,
        processors: int,
        check: Callable[[Saved], None],
        most_bytes: int,
    ) -> str:
        """Copy the run of such a file, part by checked part, to a file of our own; return its id.

        Args:
            digest: the digest of the token that is to command it.
            processors: the number of processors that this process may use.
            check: refuses a run that could not be trained on this server. Raises InputError.
            most_bytes: the limit for all runs on disk.

        Raises:
            InputError: nothing is kept here, the file cannot be used, its run goes beyond the limits, or the
                disk or the limit of all runs has no room, or the run cannot be written.
        """
        if self.folder is None:
            raise InputError(
                f"This server saves no runs on disk, so it cannot open one. Start it with {ENVIRONMENT}=DIR.",
                FIELD,
            )
        id_ = new_token()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self.folder).free < ROOM + 3 * len(data):
                raise InputError("The disk of this server is nearly full; no run can be opened.", FIELD)
            if sum(map(_size, self._files())) + len(data) > most_bytes:
                raise InputError(
                    f"The runs on this server take the {most_bytes // 1_000_000:,} MB that it allows. Remove "
                    "some of yours first.",
                    FIELD,
                )
            with TemporaryDirectory(prefix="headlight-") as folder:
                strange = Path(folder) / "file"
                strange.write_bytes(data)
                try:
                    saved = read_run(strange, strange=True, training=True)
                    check(saved)
                    write_run(
                        self._path(id_),
                        _settled(saved, id_, processors),
                        saved.words,
                        task=None if saved.view.own else task_of(saved.view.config),
                        weights=saved.weights.chosen(len(data)),
                        training=saved.training,
                        owner=digest,
                    )
                except InputError as error:
                    text = str(error).replace(str(strange), "This file")
                    raise InputError(text.replace(f"The file {self._path(id_)}", "The run"), FIELD) from error
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"The run cannot be written to this server's disk ({why(error)}).", FIELD
            ) from error
        return id_

    # The limit of the disk.

    def make_room(self, most_bytes: int, in_memory: Mapping[str, RunInMemory]) -> None:
        """Delete removed runs and thin the weights of the others until all take at most `most_bytes`.

        Removed runs are deleted first; then runs that do not train are thinned, the least recently viewed
        before others; last, runs that train. Named files count, but are left as they are. Does nothing within
        `ROOM_SECONDS` of the last time.

        Args:
            in_memory: the runs in memory by id, whose files this process claims.
        """
        with self._making_room:  # a run that has just been written waits, so that its size counts
            if time.monotonic() - self._made_room_at < ROOM_SECONDS:
                return
            self._made_room_at = time.monotonic()
            removed = self._removed_files()
            sizes = {path: _size(path) for path in (*removed, *self._files())}
            # (whether it trains, minus the number of steps to keep, when it was viewed, file)
            turns = [(False, -max(FEW) - 1, removed_at, path) for path, removed_at in removed.items()]
            for path in sizes.keys() - removed.keys():
                if SHAPE.fullmatch(path.stem):  # a named file belongs to another program
                    here = in_memory.get(path.stem)
                    busy, seen_at = (here.busy, here.seen_at) if here else (False, _written_at(path))
                    turns += [(busy, -few, seen_at, path) for few in FEW]
            for _, minus, _, path in sorted(turns):
                if sum(sizes.values()) <= most_bytes:
                    return
                with suppress(OSError, InputError, sqlite3.Error):
                    if path in removed:
                        path.unlink()
                        del sizes[path]
                        continue
                    here = in_memory.get(path.stem)
                    if here.thin(-minus) if here is not None else _thin(path, -minus):
                        self.thinned.add(path.stem)
                        LOG.info("thin the weights of %s: the disk's limit is reached", path.stem[:6])
                    sizes[path] = _size(path)

    def _files(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob(f"*{SUFFIX}"))


def packed(view: RunView, words: tuple[str, ...], saved: Saved | None) -> bytes:
    """A run as one file to take away, with a new id and without its owner or references to other runs.

    Args:
        view: the run.
        words: its tracked words.
        saved: the run as it was read from its file, with its training; None where it is only in memory.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with TemporaryDirectory(prefix="headlight-") as folder:
            path = Path(folder) / f"run{SUFFIX}"
            reason = view.reason if view.state in ENDED else f"Saved as a file at step {view.step:,}."
            portable = replace(view, id=new_token(), after=None, reason=reason)
            weights = view.snapshots[-1].source if view.snapshots else Weights()
            assert isinstance(weights, Weights)
            room = MOST_BYTES - view.frames.nbytes - len((saved and saved.training) or b"")
            write_run(
                path,
                portable,
                words,
                task=None if view.own else task_of(view.config),
                weights=weights.chosen(max(0, room), {moment.step for moment in view.moments}),
                training=None if saved is None else saved.training,
            )
            return path.read_bytes()
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"This run cannot be written to a file ({why(error)}). Try again.") from error


def _settled(saved: Saved, id_: str, processors: int) -> RunView:
    """The view of a stranger's run with this id, and with a device and threads that this server has. It
    writes no event files: a file from elsewhere makes the server write nothing but the run."""
    view = saved.view
    device = "cpu" if view.config.device == "cpu" else "auto"
    threads = view.config.threads and min(view.config.threads, processors)
    config = view.config.with_changes(device=device, threads=threads, tensorboard=False)
    return replace(view, id=id_, config=config, threads=min(view.threads, processors))


def _thin(path: Path, few: int) -> bool:
    """Thin a run's weights as `Run.thin_weights` does. Raises Taken where a process writes there."""
    store = Store(path, new=False)
    try:
        saved = read_run(path)
        mirror = Mirror(None, saved.weights, saved=saved.view)
        thinner = saved.weights.keep_few(few, {moment.step for moment in saved.view.moments})
        if thinner:
            mirror.thin(store)
        return thinner
    finally:
        store.close()


def _size(path: Path) -> int:
    """Bytes on disk of a run's file, with its latest transactions."""
    size = 0
    for one in (path, beside(path)):
        with suppress(OSError):
            size += one.stat().st_size
    return size


def _written_at(path: Path) -> float:
    with suppress(OSError):
        return max(stamp_of(path)) / 1e9
    return 0.0
