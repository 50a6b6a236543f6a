"""The folder of a server's runs: what it has trained is there again after it has ended."""

from __future__ import annotations

import math
import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from transformer.errors import InputError
from transformer.recording.stored import write_whole
from transformer.runs.archive import Archive
from transformer.runs.claim import is_held
from transformer.runs.facts import FILE, read_facts
from transformer.runs.limits import Limits
from transformer.runs.log import LOG
from transformer.runs.parcel import FIELD, LARGER, check, pack, pack_view, settle, unpack
from transformer.runs.remote import Remote
from transformer.runs.run import Run
from transformer.runs.saved import saved_run
from transformer.runs.tokens import SHAPE, new_token
from transformer.runs.turn import Turn
from transformer.runs.view import ENDED, FAILED, PAUSED, RunView
from transformer.runs.watched import Watched

ENVIRONMENT = "HEADLIGHT_RUNS"
"""Names the folder; empty: nothing is kept on disk."""
OWNER = "owner.sha256"
LOOK_SECONDS = 1.0
"""For an unknown id the named folders are looked through this often at most, however many are asked for."""
ROOM = 200_000_000
"""Bytes of the disk that are left to the runs that train."""
OPENING, OPENING_SECONDS = ".opening-", 3600.0
"""Where a file is unpacked, and after how long nobody does so there any more."""


class Library:
    """Runs on disk, a folder each, by their id.

    Args:
        folder: None where nothing is to be kept.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._named: dict[str, tuple[int, RunView]] = {}  # name of a folder to what it says, and since when
        self._names: dict[str, str] = {}  # id of a run to the name of its folder
        self._looked_at = -math.inf

    @classmethod
    def of_environment(cls) -> Library:
        """The folder that the environment names; by default `runs`, where the server was started."""
        named = os.environ.get(ENVIRONMENT, "runs")
        return cls(Path(named) if named else None)

    def keep(self, run: Run, digest: str) -> None:
        """Keep a run from now on; where the disk refuses, it says so and lives in memory alone."""
        folder = self._of(run.id)
        if folder is None:
            return
        try:
            archive = Archive(folder)
            write_whole(folder / OWNER, digest.encode())
        except (InputError, OSError) as error:
            LOG.warning("%s is not kept on disk: %s", run.id[:6], error)
            cause = error.__cause__ if isinstance(error, InputError) else error
            why = cause.strerror if isinstance(cause, OSError) else "its folder cannot be made"
            run.live_in_memory(f"This run is not kept on disk ({why}). It lives as long as the server runs.")
            return
        run.keep_in(archive)

    def reopen(self, id_: str, turn: Turn) -> Run | Remote | None:
        """A run that was kept, as it last was, or as another process trains it; None where there is none.

        Args:
            turn: what it may take of this server.
        """
        folder = self._of(id_)
        if folder is None or not folder.exists():
            return None
        try:
            saved = saved_run(folder)
            if not saved.can_go_on and saved.view.state != FAILED:
                return Remote(folder, turn)  # a replay: everything but training
            try:
                archive = Archive(folder, saved.view)
            except InputError:  # another process writes there, or nobody may: it can only be watched
                return Remote(folder, turn)
            return Run(saved.view.config, archive=archive, saved=saved, turn=turn)
        except InputError as error:
            LOG.warning("%s cannot be opened: %s", id_[:6], error)
            return None

    def file_of(self, run: Watched) -> bytes:
        """A run as one file: as its folder has it, or without its training where it is kept in memory alone.

        Raises:
            InputError: the disk does not let it be read, or written.
        """
        folder = self._of(run.id)
        if folder is not None and (folder / FILE).exists() and not run.view.unsaved:
            return pack(folder)
        return pack_view(run.view, run.task, tuple(one.text for one in run.questions))

    def open_file(self, data: bytes, digest: str, limits: Limits) -> str:
        """Keep the run of such a file as a new one; returns its id.

        Args:
            digest: of the token that is to command it.
            limits: of what visitors may take.

        Raises:
            InputError: nothing is kept here, the file cannot be used, or its run goes beyond the limits.
        """
        if self.folder is None:
            raise InputError(
                f"This server keeps no runs on disk, and so can open none. Start it with {ENVIRONMENT}=DIR.",
                FIELD,
            )
        id_ = new_token()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._clear()
            if shutil.disk_usage(self.folder).free < ROOM + LARGER * len(data):
                raise InputError("The disk of this server is nearly full: no run is opened on it.", FIELD)
            with TemporaryDirectory(prefix=OPENING, dir=self.folder) as opening:
                folder = Path(opening) / id_
                folder.mkdir()
                unpack(data, folder)
                self._take_in(folder, id_, limits)
                write_whole(folder / OWNER, digest.encode())
                folder.rename(self.folder / id_)
        except OSError as error:
            raise InputError(
                f"This server's disk does not take the run ({error.strerror}).", FIELD
            ) from error
        return id_

    def _clear(self) -> None:
        """Remove what a server left that was killed while it opened a file."""
        assert self.folder is not None
        for left in self.folder.glob(f"{OPENING}*"):
            with suppress(FileNotFoundError):  # another one, who is just through
                if time.time() - left.stat().st_mtime > OPENING_SECONDS:
                    shutil.rmtree(left, ignore_errors=True)

    def _take_in(self, folder: Path, id_: str, limits: Limits) -> None:
        """Make it one of ours; where that cannot be, the reason names no place on this server."""
        try:
            settle(folder, id_)
            check(saved_run(folder), limits)
        except InputError as error:
            why = str(error).replace(str(folder), "This file").replace(f"{folder.name}/", "")
            raise InputError(why, FIELD) from error

    def glimpse(self, id_: str) -> RunView | None:
        """What a list says of a kept run, without its frames; None where there is none that can be read.

        Nobody moves it if no process writes there: then it is paused.
        """
        folder = self._of(id_)
        try:
            return None if folder is None else _as_now(read_facts(folder).view(), folder)
        except InputError:
            return None

    def owner(self, id_: str) -> str | None:
        """The digest of the token that commands a kept run."""
        folder = self._of(id_)
        try:
            return None if folder is None else (folder / OWNER).read_text(encoding="ascii")
        except (OSError, ValueError):
            return None

    def published(self) -> dict[str, RunView]:
        """Runs that somebody keeps here under a name, as with `--out`: whoever may enter sees them."""
        if self.folder is None:
            return {}
        with self._lock:
            self._look()
            return {name: _as_now(view, self.folder / name) for name, (_, view) in self._named.items()}

    def _look(self) -> None:
        """Read again what the named folders say of their runs, where that has changed."""
        assert self.folder is not None
        self._looked_at = time.monotonic()
        known, self._named = self._named, {}
        names = sorted(os.listdir(self.folder)) if self.folder.is_dir() else []
        for name in names:
            if SHAPE.fullmatch(name):
                continue  # a visitor's, whom nobody else sees
            with suppress(InputError, OSError):
                stamp = (self.folder / name / FILE).stat().st_mtime_ns
                found = known.get(name)
                if found is None or found[0] != stamp:
                    found = stamp, read_facts(self.folder / name).view()
                self._named[name] = found
        self._names = {view.id: name for name, (_, view) in self._named.items()}

    def _of(self, id_: str) -> Path | None:
        """A run's folder; None for what is no id, whoever sends it."""
        if self.folder is None or not SHAPE.fullmatch(id_):
            return None
        if (self.folder / id_).exists():
            return self.folder / id_
        with self._lock:
            if id_ not in self._names and time.monotonic() - self._looked_at >= LOOK_SECONDS:
                self._look()
            return self.folder / self._names.get(id_, id_)


def _as_now(view: RunView, folder: Path) -> RunView:
    """A run that has not ended stands still where no process writes in its folder."""
    return view if view.state in ENDED or is_held(folder) else replace(view, state=PAUSED)
