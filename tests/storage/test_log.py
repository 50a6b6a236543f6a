"""Where log lines about runs go: tested in fresh processes, since pytest captures logging itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def said(code):
    """Return the lines that a process with this code writes to the terminal."""
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


def test_each_line_goes_to_the_terminal_once_however_often_the_app_is_run():
    (line,) = said("log_to_terminal()\nlog_to_terminal()\nLOG.info('start abcdef')")
    assert line.endswith(" headlight.runs: start abcdef")


def test_importing_the_package_sends_no_lines_to_the_terminal():
    assert said("LOG.info('start abcdef')") == []


def test_an_existing_logging_configuration_is_left_unchanged():
    mine = "logging.basicConfig(format='mine: %(message)s', level=logging.WARNING)\nlog_to_terminal()\n"
    assert said(f"{mine}LOG.info('start abcdef')\nLOG.warning('look')") == ["mine: look"]
