"""The real app on a free port, started as the README says."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO

from benchmarks.tools.server import ROOT, free_port, until_healthy


def start_server(
    port: int | None = None,
    *options: str,
    path: str = "",
    output: IO[bytes] | int = subprocess.DEVNULL,
    **surroundings: str,
) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server; return its process and its address.

    Args:
        options: options of the command line.
        path: the base path that the options set.
        output: receives the server's standard output and errors.
    """
    port = port or free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", *options, "--server.port", str(port)],
        cwd=ROOT,
        env=os.environ | {"HEADLIGHT_TRAINING": "64"} | surroundings,  # leftover runs must not block a test
        stdout=output,
        stderr=output,
    )
    address = f"http://127.0.0.1:{port}{path}"
    until_healthy(server, address)
    return server, address
