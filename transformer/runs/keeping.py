"""What a run's thread hands to its folder, and whether the folder holds the run as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from transformer.runs.archive import Archive, Training
from transformer.runs.published import Published
from transformer.runs.view import RunView


class Keeping:
    """The folder as the run's thread knows it; where there is none, nothing is due and nothing handed over.

    Args:
        published: what is kept.
        archive: the folder.
        kept: what it holds, where a saved run goes on in it.
    """

    def __init__(self, published: Published, archive: Archive | None, kept: RunView | None) -> None:
        self._published, self._archive = published, archive
        self._kept = kept  # what the folder holds, or soon will
        if archive is not None:
            archive.told = self._tell

    def move_to(self, archive: Archive) -> None:
        """Keep the run in this folder from now on."""
        self._archive, self._kept = archive, None
        archive.told = self._tell

    @property
    def lacks(self) -> bool:
        """Whether there is a folder, to which something new has not been handed yet."""
        return self._archive is not None and self._kept is not self._published.view

    @property
    def due(self) -> bool:
        """Whether it is time to hand over what is new while the run trains."""
        return self._archive is not None and self._archive.due

    @property
    def whole(self) -> bool:
        """Whether the folder holds the run as it is now."""
        return self._archive is not None and not self.lacks and self._archive.whole

    def hand(self, pack: Callable[[], Training] | None) -> None:
        """Let the folder hold the run as it is now, without waiting for it.

        Args:
            pack: copies the training; None where there is nothing to go on from: what was kept stays.
        """
        if self._archive is not None:
            view = self._published.view
            self._archive.hand(view, pack)
            self._kept = view

    def close(self) -> None:
        """Wait until the folder holds what it was handed, or the disk has refused it."""
        if self._archive is not None:
            self._archive.close()

    def _tell(self, problem: str) -> None:
        def told(now: RunView) -> RunView:
            view = replace(now, unsaved=problem)
            if self._kept is now:
                self._kept = view  # the folder says nothing of it
            return view

        self._published.change(told)
