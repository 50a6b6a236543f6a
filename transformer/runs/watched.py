"""A run as viewers receive it, trained in this process or in another, and its folder on the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transformer.errors import InputError
from transformer.recording.view import FAILED
from transformer.runs.queue import Lease
from transformer.runs.remote import Remote
from transformer.runs.run import Run
from transformer.storage.archive import Archive
from transformer.storage.arrays import write_whole
from transformer.storage.format import OWNER
from transformer.storage.log import LOG
from transformer.storage.saved import read_run

Watched = Run | Remote
"""A run that this process trains, or one that is watched through its folder.

Commands need the token of the run: see `Registry.control`.
"""


def keep_in_folder(run: Run, folder: Path, owner: str, written: Callable[[], None]) -> None:
    """Keep a run on disk from now on; if that fails, the run stays in memory only, and its view says why.

    Args:
        owner: the digest of the token that commands it.
        written: called whenever the folder has been brought up to date.
    """
    try:
        archive = Archive(folder)
        write_whole(folder / OWNER, owner.encode())
    except (InputError, OSError) as error:
        LOG.warning("%s is not kept on disk: %s", run.id[:6], error)
        cause = error.__cause__ if isinstance(error, InputError) else error
        why = cause.strerror if isinstance(cause, OSError) else "its folder cannot be created"
        run.live_in_memory(f"This run is not saved on disk ({why}). It is lost when the server stops.")
        return
    archive.written = written
    run.keep_in(archive)


def reopened(folder: Path, lease: Lease, written: Callable[[], None]) -> Watched | None:
    """Open a kept run: as a `Run`, or as a `Remote` if it can only be watched; None if it cannot be opened.

    Args:
        lease: its share of the server from now on.
        written: as for `keep_in_folder`.
    """
    try:
        saved = read_run(folder)
        if saved.view.own or (not saved.can_go_on and saved.view.state != FAILED):
            return Remote(folder, lease)  # it can be viewed, but not trained
        try:
            archive = Archive(folder, resumed=True)
        except InputError:  # another process writes there, or it is read-only: the run can only be watched
            return Remote(folder, lease)
        archive.written = written
        return Run(saved.view.config, archive=archive, saved=saved, lease=lease)
    except InputError as error:
        LOG.warning("%s cannot be opened: %s", folder.name[:6], error)
        return None
