"""Free memory, on a machine and in a container, and a run that is refused for lack of it."""

from __future__ import annotations

import psutil
import pytest

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.runs import machine
from transformer.runs.run import Run


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 5_000),
        ({"memory.max": "max\n", "memory.current": "1000\n"}, 5_000),
        ({"memory.max": "4000\n", "memory.current": "1000\n"}, 3_000),
        ({"memory.max": "90000\n", "memory.current": "1000\n"}, 5_000),
    ],
)
def test_a_container_may_have_less_memory_than_its_machine(monkeypatch, tmp_path, files, free):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 5_000}))
    monkeypatch.setattr(machine, "CONTAINER", tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert machine.free_memory() == free


def test_a_run_that_does_not_fit_is_refused_before_its_thread_begins(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 1_000_000)
    with pytest.raises(InputError, match="needs about .* GB to train; 0.0 GB of memory are free"):
        Run(RunConfig())
