"""The folder of a server's runs, so that they are available again after a restart."""

from __future__ import annotations

import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import Timeout

from transformer.errors import InputError
from transformer.recording.view import ENDED, PAUSED
from transformer.recording.weights import Weights
from transformer.storage.arrays import write_whole
from transformer.storage.bundle import FIELD, MAX_UNPACK_RATIO, settle, unpack
from transformer.storage.claim import Claim, is_held
from transformer.storage.format import OWNER, RUN, WEIGHTS, RunFile, read_run_file
from transformer.storage.log import LOG
from transformer.storage.saved import Saved, read_run
from transformer.storage.tokens import SHAPE, new_token

ENVIRONMENT = "HEADLIGHT_RUNS"
"""Environment variable with the path of the folder; if it is empty, nothing is kept on disk."""
ROOM_SECONDS = 5.0
"""Minimum seconds between two calculations of the size of all runs."""
LOOK_SECONDS = 1.0
"""Minimum seconds between two searches of named folders, however many unknown ids are requested."""
ROOM = 200_000_000
"""Bytes of disk that an opened file must leave free for the runs that train."""
OPENING, OPENING_SECONDS = ".opening-", 3600.0
"""Prefix of the folder in which a file is unpacked, and seconds after which unpacking has surely ended."""
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
    """Thins its weights to this many steps; returns whether there were more."""


class Library:
    """Runs on disk by their id, one folder per run.

    Args:
        folder: the folder of all runs; None to keep nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._named: dict[str, tuple[int, RunFile]] = {}  # folder name to (time of change, facts of its run)
        self._names: dict[str, str] = {}  # id of a run to the name of its folder
        self._looked_at = -math.inf
        self._making_room, self._made_room_at = threading.Lock(), -math.inf
        self.thinned: set[str] = set()
        """Ids of runs whose weights this process has thinned to stay within the limit of the disk."""

    @classmethod
    def of_environment(cls) -> Library:
        """The folder that the environment names; by default `runs`, where the server was started."""
        named = os.environ.get(ENVIRONMENT, "runs")
        return cls(Path(named) if named else None)

    def folder_of(self, id_: str) -> Path | None:
        """A run's folder, which need not exist; None for an invalid id, since a visitor can send anything."""
        if self.folder is None or not SHAPE.fullmatch(id_):
            return None
        if (self.folder / id_).exists():
            return self.folder / id_
        with self._lock:
            if id_ not in self._names and time.monotonic() - self._looked_at >= LOOK_SECONDS:
                self._look()
            return self.folder / self._names.get(id_, id_)

    def facts_of_run(self, id_: str) -> RunFile | None:
        """The facts of a kept run for a list, without its recording; None where none can be read.

        A run that has not ended and whose folder no process writes is returned as paused.
        """
        folder = self.folder_of(id_)
        try:
            return None if folder is None else _as_now(read_run_file(folder), folder)
        except InputError:
            return None

    def owner(self, id_: str) -> str | None:
        """The digest of the token that commands a kept run."""
        folder = self.folder_of(id_)
        try:
            return None if folder is None else (folder / OWNER).read_text(encoding="ascii")
        except (OSError, ValueError):
            return None

    def published(self) -> dict[str, RunFile]:
        """Runs kept here under a name, as with `--out`: every visitor sees them."""
        if self.folder is None:
            return {}
        with self._lock:
            self._look()
            return {name: _as_now(run, self.folder / name) for name, (_, run) in self._named.items()}

    def _look(self) -> None:
        """Read the facts of the runs in named folders again, where they have changed."""
        assert self.folder is not None
        self._looked_at = time.monotonic()
        known, self._named = self._named, {}
        names = sorted(os.listdir(self.folder)) if self.folder.is_dir() else []
        for name in names:
            if SHAPE.fullmatch(name):
                continue  # a visitor's, hidden from others
            with suppress(InputError, OSError):
                stamp = (self.folder / name / RUN).stat().st_mtime_ns
                found = known.get(name)
                if found is None or found[0] != stamp:
                    found = stamp, read_run_file(self.folder / name)
                self._named[name] = found
        self._names = {run.id: name for name, (_, run) in self._named.items()}

    # A run as one file.

    def open_file(self, data: bytes, digest: str, processors: int, check: Callable[[Saved], None]) -> str:
        """Keep the run of such a file as a new run; return its id.

        Args:
            digest: the digest of the token that is to command it.
            processors: the number of processors that this process may use.
            check: refuses a run that could not be trained on this server. Raises InputError.

        Raises:
            InputError: nothing is kept here, the file cannot be used, or its run goes beyond the limits.
        """
        if self.folder is None:
            raise InputError(
                f"This server saves no runs on disk, so it cannot open one. Start it with {ENVIRONMENT}=DIR.",
                FIELD,
            )
        id_ = new_token()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._clear()
            if shutil.disk_usage(self.folder).free < ROOM + MAX_UNPACK_RATIO * len(data):
                raise InputError("The disk of this server is nearly full; no run can be opened.", FIELD)
            with TemporaryDirectory(prefix=OPENING, dir=self.folder) as opening:
                folder = Path(opening) / id_
                folder.mkdir()
                unpack(data, folder)
                _take_in(folder, id_, processors, check)
                write_whole(folder / OWNER, digest.encode())
                folder.rename(self.folder / id_)
        except OSError as error:
            raise InputError(
                f"The run cannot be written to this server's disk ({error.strerror}).", FIELD
            ) from error
        return id_

    def _clear(self) -> None:
        """Remove the folders left by a server that was killed while opening a file."""
        assert self.folder is not None
        for left in self.folder.glob(f"{OPENING}*"):
            with suppress(FileNotFoundError):  # another thread has just removed it
                if time.time() - left.stat().st_mtime > OPENING_SECONDS:
                    shutil.rmtree(left, ignore_errors=True)

    # The limit of the disk.

    def make_room(self, most_bytes: int, in_memory: Mapping[str, RunInMemory]) -> None:
        """Thin the weights of runs until all runs take at most `most_bytes`; nothing else is removed.

        Runs that do not train are thinned first, the least recently viewed before others. Does nothing
        within `ROOM_SECONDS` of the last time.

        Args:
            in_memory: id to each run in memory, whose folder this process claims.
        """
        if not self._making_room.acquire(blocking=False):
            return  # another thread is making room
        try:
            if time.monotonic() - self._made_room_at < ROOM_SECONDS:
                return
            self._made_room_at = time.monotonic()
            sizes = {folder: _size(folder) for folder in self._folders()}
            turns = []  # (whether it trains, minus the number of steps to keep, when it was viewed, folder)
            for folder in sizes:
                if SHAPE.fullmatch(folder.name):  # a named folder belongs to another program
                    here = in_memory.get(folder.name)
                    busy, seen_at = (here.busy, here.seen_at) if here else (False, _written_at(folder))
                    turns += [(busy, -few, seen_at, folder) for few in FEW]
            for _, minus, _, folder in sorted(turns):
                if sum(sizes.values()) <= most_bytes:
                    return
                with suppress(OSError, InputError, Timeout):
                    here = in_memory.get(folder.name)
                    if here.thin(-minus) if here is not None else _thin(folder, -minus):
                        self.thinned.add(folder.name)
                        LOG.info("thin the weights of %s: the disk's limit is reached", folder.name[:6])
                    sizes[folder] = _size(folder)
        finally:
            self._making_room.release()

    def _folders(self) -> list[Path]:
        if self.folder is None or not self.folder.is_dir():
            return []
        return [path for path in self.folder.iterdir() if (path / RUN).exists()]


def _thin(folder: Path, few: int) -> bool:
    """Thin a run's weights as `Run.thin_weights` does. Raises Timeout where a process writes there."""
    run = read_run_file(folder)
    claim = Claim(folder)
    try:
        weights = Weights(folder / WEIGHTS)
        weights.follow(run.step)
        return weights.keep_few(few, {moment.step for moment in run.moments})
    finally:
        claim.release()


def _take_in(folder: Path, id_: str, processors: int, check: Callable[[Saved], None]) -> None:
    """Adopt an unpacked run; if that fails, the reason given names no path of this server."""
    try:
        settle(folder, id_, processors)
        check(read_run(folder))
    except InputError as error:
        why = str(error).replace(str(folder), "This file").replace(f"{folder.name}/", "")
        raise InputError(why, FIELD) from error


def _as_now(run: RunFile, folder: Path) -> RunFile:
    """The run; paused if it has not ended and no process writes to its folder."""
    return run if run.state in ENDED or is_held(folder) else replace(run, state=PAUSED)


def _size(folder: Path) -> int:
    with suppress(OSError):
        return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return 0


def _written_at(folder: Path) -> float:
    with suppress(OSError):
        return (folder / RUN).stat().st_mtime
    return 0.0
