"""Fixtures for the command-line tests: running a command, and a small configuration file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from transformer.__main__ import main
from transformer.config import RunConfig

Answered = tuple[int, list[str], str]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answered]:
    """Return a function that runs a command: (exit code, lines of standard output, standard error)."""

    def run(*arguments: object) -> Answered:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err

    return run


@pytest.fixture
def refused(command: Callable[..., Answered]) -> Callable[..., str]:
    """Return a function that runs an invalid command, checks exit code 2 and returns its one-line message."""

    def run(*arguments: object) -> str:
        code, lines, error = command(*arguments)
        assert (code, lines) == (2, [])
        return complaint(error)

    return run


def complaint(error: str) -> str:
    (line,) = error.splitlines()
    assert line.startswith("headlight: ")
    return line.removeprefix("headlight: ")


@pytest.fixture
def config_file(tiny: Callable[..., RunConfig], tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a tiny configuration with these changes to a file."""

    def write(**changes: object) -> Path:
        path = tmp_path / f"{'_'.join(changes) or 'tiny'}.json"
        path.write_text(tiny(**changes).to_json(), encoding="utf-8")
        return path

    return write
