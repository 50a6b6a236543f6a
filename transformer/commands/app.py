"""`app` starts the web app; `open` starts it on a run's file."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformer.commands.line import print_message
from transformer.storage.file import found
from transformer.storage.format import read_run_file
from transformer.storage.library import ENVIRONMENT

_PACKAGE = Path(__file__).parents[1]
SCRIPT = next(path for path in (_PACKAGE / "_app" / "app.py", _PACKAGE.parent / "app.py") if path.exists())
"""The app's script, in an installed package or a checkout."""


def add(commands: Any) -> None:
    app = commands.add_parser("app", help="start the web app", description="Start the web app.")
    opens = commands.add_parser(
        "open", help="start the web app on a run", description="Start the web app on a run's file."
    )
    opens.add_argument("path", type=Path, metavar="FILE", help="the run's file, such as runs/mine.headlight")
    for command in (app, opens):
        command.add_argument("--port", type=int, default=8501, help="of the server (default: 8501)")
        command.set_defaults(run=run, path=None)


def run(arguments: argparse.Namespace) -> int:
    """Replace this process with the app's server; return 2 if Streamlit is not installed.

    Raises:
        InputError: the run's file cannot be read.
    """
    if find_spec("streamlit") is None:
        print_message("The app needs more packages. Install them: pip install 'headlight-attention[app]'")
        return 2
    surroundings = dict(os.environ)
    if arguments.path is not None:
        path = found(arguments.path).resolve()
        id_ = read_run_file(path).id
        surroundings[ENVIRONMENT] = str(path.parent)
        sys.stdout.write(f"The run: http://localhost:{arguments.port}/?run={id_}\n")
        sys.stdout.flush()
    command = [sys.executable, "-m", "streamlit", "run", str(SCRIPT), "--server.port", str(arguments.port)]
    os.execve(sys.executable, command, surroundings)  # so signals to this process reach the server
