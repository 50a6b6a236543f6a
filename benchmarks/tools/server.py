"""The app's server, started for a benchmark on a free local port."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
UP_WITHIN = 60.0
"""Seconds until a server answers."""


_RUNS = tempfile.TemporaryDirectory(prefix="headlight-runs-", ignore_cleanup_errors=True)


def clean_environment() -> dict[str, str]:
    """Return the environment without variables that change settings or the number of threads.

    Runs are saved as usual, in a temporary folder that is deleted when this process ends.
    """
    changing = ("STREAMLIT_", "HEADLIGHT_", "OMP_", "MKL_", "PYTHON")
    usual = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
    return usual | {"HEADLIGHT_RUNS": _RUNS.name}


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def healthy(address: str, path: str = "/_stcore/health") -> bool:
    """Return whether the server at this address answers; the path is Streamlit's by default."""
    try:
        with urllib.request.urlopen(f"{address}{path}", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def until_healthy(process: subprocess.Popen[Any], address: str, path: str = "/_stcore/health") -> None:
    """Wait for a server. Raises RuntimeError if it ends or takes too long."""
    began = time.perf_counter()
    while not healthy(address, path):
        if process.poll() is not None or time.perf_counter() - began > UP_WITHIN:
            process.kill()
            raise RuntimeError(f"the server did not come up within {UP_WITHIN:g} s")
        time.sleep(0.005)


class Server:
    """A process that trains and answers requests; with a script it also serves the script.

    Args:
        script: path of the Streamlit script in the repository; None runs the training generator alone.
        log: where its output is written; by default nowhere.
        variables: added to the environment.
    """

    def __init__(self, script: str | None, *, log: Path | None = None, **variables: str) -> None:
        command = [sys.executable, "-m", "benchmarks.tools.serve"]
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        if script is not None:
            command += [script, "--server.port", str(port)]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=clean_environment() | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if log is None else log.open("wb"),
            text=True,
        )
        self.pid = self._process.pid
        if script is not None:
            until_healthy(self._process, self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Let the process save its runs and end, as at the end of a service."""
        self._process.terminate()
        self._process.wait(UP_WITHIN)

    def _ask(self, name: str, **arguments: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server has ended and cannot answer {name}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def begin(self, words: Sequence[str] = (), **settings: object) -> str:
        """Train a new run of the default settings with these changes; returns its id."""
        run: str = self._ask("begin", settings=settings, words=list(words))["run"]
        return run

    def look(self) -> dict[str, Any]:
        """Return step, state, and seconds: `wall`, `process`; of the training thread `training`, `queued`."""
        return self._ask("look")

    def watch(self) -> None:
        """Record from now on as if the run had a viewer."""
        self._ask("watch")

    def ticket(self, run: str) -> str:
        """Return the ticket with which a viewer can read a run."""
        ticket: str = self._ask("ticket", run=run)["ticket"]
        return ticket

    def limit_caches(self, nbytes: int) -> None:
        """Let each cache of results hold this many bytes at most."""
        self._ask("limit_caches", nbytes=nbytes)

    def counts(self) -> dict[str, int]:
        """Return the number of entries in the stores and caches of the app.

        Also of the objects of some classes that were made since this was first asked.
        """
        return self._ask("counts")

    def steps(self) -> list[tuple[int, float]]:
        """Return the steps since the last request, with the time of each in seconds since the epoch."""
        return [(step, at) for step, at in self._ask("steps")["steps"]]

    def pause(self) -> None:
        """Pause the training."""
        self._ask("pause")

    def resume(self) -> None:
        """Resume the training."""
        self._ask("resume")

    def pace(self, pace: float | None) -> None:
        """Set the pace in steps a second; None is full pace."""
        self._ask("pace", pace=pace)

    def until_step(self, step: int, within: float = 600.0) -> None:
        """Wait until this step is reached."""
        began = time.perf_counter()
        while self.look()["step"] < step:
            if time.perf_counter() - began > within:
                raise RuntimeError(f"step {step} was not reached within {within:g} s")
            time.sleep(0.1)
