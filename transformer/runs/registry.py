"""Every run of this process, by its unguessable id."""

from __future__ import annotations

import sys
import threading
import time

from transformer.config import RunConfig
from transformer.runs.run import Run
from transformer.runs.view import ENDED

MAX_RUNS = 24
"""Started runs that are kept; beyond it the oldest ended one is forgotten."""
DRAFT_SECONDS = 900.0
"""An untrained model that nobody has looked at for this long is forgotten."""


class Registry:
    """Holds drafts (models that nobody has started yet) and runs. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._drafts: dict[str, tuple[Run, float]] = {}

    def draft(self, config: RunConfig, words: tuple[str, ...] | None = None) -> Run:
        """An untrained run, to look at before it is started; forgotten when nobody does.

        Raises:
            InputError: a probe that cannot be asked.
        """
        run = Run(config, words=words)
        now = time.monotonic()
        with self._lock:
            for id_, (old, seen) in list(self._drafts.items()):
                if now - seen > DRAFT_SECONDS:
                    del self._drafts[id_]
                    old.close()
            self._drafts[run.id] = run, now
        return run

    def discard(self, run: Run) -> None:
        """Forget a draft that has been replaced."""
        with self._lock:
            if self._drafts.pop(run.id, None) is not None:
                run.close()

    def adopt(self, run: Run) -> None:
        """Turn a draft into a run that is kept; the oldest ended run makes room if there are too many."""
        with self._lock:
            self._drafts.pop(run.id, None)
            self._runs[run.id] = run
            ended = [old for old in self._runs.values() if old.view.state in ENDED]
            for old in ended[: max(0, len(self._runs) - MAX_RUNS)]:
                self._runs.pop(old.id).close()

    def start(self, run: Run, *, after: str | None = None) -> None:
        """Keep a draft and let it train."""
        self.adopt(run)
        run.start(after=after)

    def get(self, id_: str | None) -> Run | None:
        """The run or draft of this id, if there is one."""
        if not id_:
            return None
        with self._lock:
            if id_ in self._drafts:
                run, _ = self._drafts[id_]
                self._drafts[id_] = run, time.monotonic()
                return run
            return self._runs.get(id_)

    def listed(self) -> list[Run]:
        """Started runs, the newest first."""
        with self._lock:
            return list(self._runs.values())[::-1]


# Anchored outside the module, so that a reload of the source in development does not fork it.
REGISTRY: Registry = sys.__dict__.setdefault("_headlight_registry", Registry())
