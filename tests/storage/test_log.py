"""Where the lines about runs go: tried in fresh processes, for pytest listens to every line of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def said(code):
    """What a process with this code in it says on the terminal."""
    full = f"import logging\nfrom transformer.storage.log import LOG, log_to_terminal\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", full],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_lines_go_to_the_terminal_once_however_often_the_app_is_run():
    (line,) = said("log_to_terminal()\nlog_to_terminal()\nLOG.info('start abcdef')")
    assert line.endswith(" headlight.runs: start abcdef")


def test_importing_the_package_sends_no_line_anywhere():
    assert said("LOG.info('start abcdef')") == []


def test_who_has_decided_where_lines_go_and_which_is_left_alone():
    mine = "logging.basicConfig(format='mine: %(message)s', level=logging.WARNING)\nlog_to_terminal()\n"
    assert said(f"{mine}LOG.info('start abcdef')\nLOG.warning('look')") == ["mine: look"]
