"""Free memory, on a machine and in a container, and a run that is refused for lack of it."""

from __future__ import annotations

import psutil
import pytest

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.runs import machine
from transformer.runs.run import Run


@pytest.mark.parametrize(
    ("limit", "cached", "free"),
    [
        (None, 0, 5_000),
        ("max", 0, 5_000),
        ("4000", 0, 1_000),
        ("4000", 600, 1_600),  # files that the system keeps in memory as long as there is room
        ("90000", 600, 5_000),
    ],
)
def test_a_container_may_have_less_memory_than_its_machine(monkeypatch, tmp_path, limit, cached, free):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 5_000}))
    monkeypatch.setattr(machine, "CONTAINER", tmp_path)
    if limit is not None:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text("3000\n")
        facts = f"anon {2900 - cached}\nfile {cached}\nshmem 0\nactive_file {cached // 3}\n"
        (tmp_path / "memory.stat").write_text(f"{facts}inactive_file {cached - cached // 3}\nslab 100\n")
    assert machine.free_memory() == free


def test_a_run_that_does_not_fit_is_refused_before_its_thread_begins(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 1_000_000)
    with pytest.raises(InputError, match="needs about .* GB to train; 0.0 GB of memory are free"):
        Run(RunConfig())
