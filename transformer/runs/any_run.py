"""A run as viewers receive it, trained in this process or in another, and its file on the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transformer.errors import InputError
from transformer.recording.view import FAILED
from transformer.runs.file_run import FileRun
from transformer.runs.queue import Lease
from transformer.runs.run import Run
from transformer.storage.archive import Archive
from transformer.storage.file import why
from transformer.storage.log import LOG
from transformer.storage.saved import read_run

AnyRun = Run | FileRun
"""A run that this process trains, or one that is watched through its file.

Commands need the token of the run: see `Registry.control`.
"""


def keep_in_file(run: Run, path: Path, owner: str, written: Callable[[], None]) -> None:
    """Keep a run on disk from now on; if that fails, the run stays in memory only, and its view says why.

    Args:
        owner: the digest of the token that commands it.
        written: called whenever the file has been brought up to date.
    """
    try:
        archive = Archive(path, owner=owner)
    except InputError as error:
        LOG.warning("%s is not kept on disk: %s", run.id[:6], error)
        reason = why(error.__cause__) if error.__cause__ else str(error)
        run.live_in_memory(f"This run is not saved on disk ({reason}). It is lost when the server stops.")
        return
    archive.written = written
    # A run that fails before, such as one whose model cannot be built, has nothing to keep.
    run.keep_in(archive).add_done_callback(lambda kept: archive.discard() if kept.cancelled() else None)


def reopened(path: Path, lease: Lease, written: Callable[[], None], *, claims: bool) -> AnyRun | None:
    """Open a kept run: as a `Run`, or as a `FileRun` if it can only be watched; None if it cannot be opened.

    Args:
        lease: its share of the server from now on.
        written: as for `keep_in_file`.
        claims: whether this process may claim the file, to train the run.
    """
    try:
        saved = read_run(path)
        if saved.view.own or not claims or (not saved.can_go_on and saved.view.state != FAILED):
            return FileRun(path, lease)  # it can be viewed, but not trained
        try:
            archive = Archive(path, resumed=True)
        except InputError:  # another process writes there, or it is read-only: the run can only be watched
            return FileRun(path, lease)
        archive.written = written
        try:
            return Run(saved.view.config, archive=archive, saved=saved, lease=lease)
        except InputError as error:  # such as too little memory, or no such device
            archive.close()  # otherwise the file would stay claimed by this process
            LOG.warning("%s can only be viewed: %s", path.name[:6], error)
            return FileRun(path, lease, refused=True)
    except InputError as error:
        LOG.warning("%s cannot be opened: %s", path.name[:6], error)
        return None
