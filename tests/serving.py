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
    """A fresh server; returns it and its address.

    Args:
        options: as on the command line.
        path: under which the options say that the app is served.
        output: where what it writes goes, to the terminal as it were.
    """
    port = port or free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", *options, "--server.port", str(port)],
        cwd=ROOT,
        env=os.environ | {"HEADLIGHT_TRAINING": "64"} | surroundings,  # what a test leaves keeps none waiting
        stdout=output,
        stderr=output,
    )
    address = f"http://127.0.0.1:{port}{path}"
    until_healthy(server, address)
    return server, address
