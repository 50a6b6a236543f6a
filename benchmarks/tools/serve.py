"""The process under measurement: Streamlit as `streamlit run` starts it, and a run controlled by requests.

    python -m benchmarks.tools.serve SCRIPT [options of streamlit]
    python -m benchmarks.tools.serve

Without a script there is no server: the training generator runs alone. Requests are lines of JSON on the
standard input, answers are lines of JSON on the standard output; see `Server` in `server.py`.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from transformer.config import RunConfig


class _Allocated(ctypes.Structure):
    """`struct mallinfo2` of the GNU C library, version 2.33 or later."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def heap_in_use() -> int:
    """Bytes that the program has allocated; the resident memory beyond it is free space between them."""
    asked = ctypes.CDLL(None).mallinfo2
    asked.restype = _Allocated
    information = asked()
    in_use: int = information.uordblks + information.hblkhd
    return in_use


class Served:
    """A run that is controlled by requests; it trains in its own thread, as in the app."""

    def begin(self, settings: dict[str, Any], words: list[str]) -> dict[str, Any]:
        """Start a new run of the default settings with these changes."""
        from transformer.runs.registry import REGISTRY

        self.run = REGISTRY.draft(RunConfig().with_changes(**settings), tuple(words) or None)
        self.run.ready.wait()
        REGISTRY.start(self.run)
        return {"run": self.run.id}

    def look(self) -> dict[str, Any]:
        """Return step and state of the run, and the clocks."""
        view, name = self.run.view, f"run-{self.run.id[:6]}"
        (thread,) = (thread for thread in threading.enumerate() if thread.name == name)
        return {"step": view.step, "state": view.state, **_clocks(thread)}

    def watch(self) -> dict[str, Any]:
        """Record from now on as if the run had a viewer."""
        threading.Thread(target=self._watch, daemon=True).start()
        return {}

    def _watch(self) -> None:
        while True:
            self.run.look()
            time.sleep(1.0)

    def ticket(self, run: str) -> dict[str, Any]:
        """Return the ticket with which a viewer can read a run."""
        from pages.stream.tickets import ticket

        return {"ticket": ticket(run)}

    def limit_caches(self, nbytes: int) -> None:
        """Let each cache of results hold this many bytes at most."""
        from transformer.asking.model import QUESTION_CACHE
        from transformer.runs import untrained

        QUESTION_CACHE.most_bytes = untrained._CACHE.most_bytes = nbytes

    def counts(self) -> dict[str, Any]:
        """Return the number of entries in the stores and caches of the app, and of objects by their class."""
        from streamlit.runtime import get_instance

        from pages.stream import news
        from transformer.asking.model import QUESTION_CACHE
        from transformer.runs import untrained
        from transformer.runs.registry import REGISTRY
        from transformer.tasks import _TASKS

        runtime, owners = get_instance(), REGISTRY.owners
        stored: Any = runtime._session_mgr
        media: Any = runtime.media_file_mgr
        return {
            "runs": len(REGISTRY._runs),
            "drafts": len(REGISTRY._drafts),
            "reserved": len(REGISTRY._reserved),
            "digests": len(owners._digests),
            "pages of owners": len(owners._pages),
            "positions": len(owners._shown) + len(owners._presentations),
            "queue": len(REGISTRY.queue._line),
            "upload bytes": sum(own.nbytes for own, _ in REGISTRY.uploads._held.values()),
            "broadcasters": len(news._broadcasters),
            "looking": len(news._looking),
            "news sockets": len(news._sockets),
            "question bytes": QUESTION_CACHE.nbytes,
            "untrained bytes": untrained._CACHE.nbytes,
            "tasks": len(_TASKS),
            "sessions": len(stored.list_sessions()),
            "media files": len(media._file_metadata),
            "deferred files": len(media._deferred_callables),
            "uploaded files": sum(map(len, runtime.uploaded_file_mgr.file_storage.values())),
            "heap megabytes": round(heap_in_use() / 1e6),
            "python blocks": sys.getallocatedblocks(),
            **{f"{name} objects": len(alive) for name, alive in self._alive.items()},
        }

    @cached_property
    def _alive(self) -> dict[str, weakref.WeakSet[object]]:
        """The objects of some classes that are made from now on, as long as they are in memory.

        The garbage collector's list is not used: it also holds tuples that other threads are still making.
        """
        from streamlit.runtime.app_session import AppSession

        from pages.stream.broadcaster import RunBroadcaster
        from transformer.runs.file_run import FileRun
        from transformer.runs.run import Run
        from transformer.runs.runner import Runner
        from transformer.storage.archive import Archive

        classes: tuple[Any, ...] = (AppSession, RunBroadcaster, FileRun, Run, Runner, Archive)
        return {one.__name__: _counted(one) for one in classes}

    def steps(self) -> dict[str, Any]:
        """Return the steps since the last request, each as (step, seconds since the epoch)."""
        if not hasattr(self, "_taken"):
            self._taken: list[tuple[int, float]] = []
            threading.Thread(target=self._note, daemon=True).start()
        taken, self._taken = self._taken, []
        return {"steps": taken}

    def _note(self) -> None:
        newest = self.run.view.step
        while True:
            step, now = self.run.view.step, time.time()
            self._taken += [(one, now) for one in range(newest + 1, step + 1)]
            newest = step
            time.sleep(0.02)

    def pause(self) -> dict[str, Any]:
        """Pause the run."""
        self.run.pause().result()
        return {}

    def resume(self) -> dict[str, Any]:
        """Resume the run."""
        self.run.resume().result()
        return {}

    def pace(self, pace: float | None) -> dict[str, Any]:
        """Set the pace in steps a second; None is full pace."""
        self.run.set_pace(pace).result()
        return {}


def _counted(made: Any) -> weakref.WeakSet[object]:
    """The objects of a class that are made from now on, as long as they are in memory."""
    alive: weakref.WeakSet[object] = weakref.WeakSet()
    begin = made.__init__

    def noted(self: object, *arguments: Any, **named: Any) -> None:
        alive.add(self)
        begin(self, *arguments, **named)

    made.__init__ = noted
    return alive


class Plain:
    """The training generator alone, in its own thread."""

    def begin(self, settings: dict[str, Any], words: list[str]) -> dict[str, Any]:
        """Start training."""
        self._step, self._going = 0, threading.Event()
        self._going.set()
        config = RunConfig().with_changes(**settings)
        self._thread = threading.Thread(target=self._train, args=(config,), daemon=True)
        self._thread.start()
        while not self._step:
            time.sleep(0.05)
        return {"run": ""}

    def _train(self, config: RunConfig) -> None:
        import torch

        from transformer.training.loop import train
        from transformer.training.state import TrainState

        torch.set_num_threads(config.threads or 1)
        for report in train(TrainState.begin(config)):
            self._step = report.step
            self._going.wait()

    def look(self) -> dict[str, Any]:
        """Return the step and the clocks."""
        return {"step": self._step, "state": "training", **_clocks(self._thread)}

    def pause(self) -> dict[str, Any]:
        """Pause the training."""
        self._going.clear()
        return {}

    def resume(self) -> dict[str, Any]:
        """Resume the training."""
        self._going.set()
        return {}


def _clocks(training: threading.Thread) -> dict[str, float]:
    """Return seconds: wall time, processor time of this process and of its training thread, and the time that
    the latter has waited for a processor (0 if the system does not report it)."""
    assert training.ident is not None
    clock = time.pthread_getcpuclockid(training.ident)
    waits = Path(f"/proc/self/task/{training.native_id}/schedstat")
    return {
        "wall": time.perf_counter(),
        "process": time.process_time(),
        "training": time.clock_gettime(clock),
        "queued": int(waits.read_text().split()[1]) / 1e9 if waits.exists() else 0.0,
    }


def _answer(asked: Served | Plain, answers: TextIO) -> None:
    """Answer requests until standard input closes, when the process that sends them ends; then exit."""
    for line in sys.stdin:
        name, arguments = json.loads(line)
        answers.write(json.dumps(getattr(asked, name)(**arguments)) + "\n")
        answers.flush()
    os._exit(0)


def main() -> None:
    """Answer requests in a second thread; serve the app in the main thread."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps the output of Streamlit out of the answers
    asked = Served() if sys.argv[1:] else Plain()
    if not sys.argv[1:]:
        _answer(asked, answers)
    threading.Thread(target=_answer, args=(asked, answers), daemon=True).start()
    from streamlit.web.cli import main as streamlit

    sys.argv = ["streamlit", "run", *sys.argv[1:]]
    streamlit()


if __name__ == "__main__":
    main()
