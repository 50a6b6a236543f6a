"""A note names the process that writes a run's folder, so that a check need not take the lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import pytest
from filelock import Timeout

from transformer.storage.claim import LOCK, SILENT_SECONDS, WRITER, Claim, is_held

OTHER = """
import sys, time
from pathlib import Path
from transformer.storage.claim import Claim

claim = Claim(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_folder_is_held_from_claim_to_release(tmp_path):
    assert not is_held(tmp_path)
    claim = Claim(tmp_path)
    assert is_held(tmp_path)
    with pytest.raises(Timeout):
        Claim(tmp_path)
    claim.release()
    assert not is_held(tmp_path)


def test_another_process_holds_a_folder_until_it_ends_even_if_it_is_killed(tmp_path, other):
    assert is_held(tmp_path)
    other.kill()
    other.wait()
    assert (tmp_path / WRITER).exists()  # a killed process leaves its note
    assert not is_held(tmp_path)
    Claim(tmp_path).release()


def test_a_later_process_with_the_same_pid_is_not_mistaken_for_the_one_that_ended(tmp_path):
    claim = Claim(tmp_path)
    note = json.loads((tmp_path / WRITER).read_bytes())
    assert note["pid"] == os.getpid()
    (tmp_path / WRITER).write_text(json.dumps(note | {"started": note["started"] - 100}))
    assert not is_held(tmp_path)
    claim.release()


@pytest.mark.parametrize(("age", "held"), [(1.0, True), (SILENT_SECONDS + 5, False)])
def test_another_machine_holds_a_folder_as_long_as_it_writes(tmp_path, age, held):
    (tmp_path / LOCK).touch()
    note = {"host": "elsewhere", "pid": 1, "started": 0.0, "lock": (tmp_path / LOCK).stat().st_ino}
    (tmp_path / WRITER).write_text(json.dumps(note))
    for name in (LOCK, WRITER):
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    assert is_held(tmp_path) is held


def test_checking_a_folder_never_takes_the_lock(tmp_path):
    """Claiming a free folder never fails, however often other threads check it meanwhile."""
    ended = threading.Event()

    def look():
        while not ended.is_set():
            is_held(tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for thread in lookers:
        thread.start()
    try:
        for _ in range(300):
            Claim(tmp_path).release()
    finally:
        ended.set()
        for thread in lookers:
            thread.join()
    (tmp_path / LOCK).unlink()
    assert not is_held(tmp_path)
    assert not (tmp_path / LOCK).exists()
