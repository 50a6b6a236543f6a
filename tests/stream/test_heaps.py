"""Memory that threads of the server share."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from pages.stream.routes import N_HEAPS

THREADS = """
import asyncio, ctypes, re, sys, threading
from pages.stream.routes import lifespan

async def used():
    async with lifespan(None):
        threads = [threading.Thread(target=hold) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()

at_once = threading.Barrier(16)
def hold():
    at_once.wait()
    for _ in range(1000): ctypes.create_string_buffer(600)

asyncio.run(used())
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
out = libc.fdopen(1, b"w")
libc.malloc_info(0, ctypes.c_void_p(out))
libc.fflush(ctypes.c_void_p(out))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other heaps")
def test_all_threads_of_a_server_share_a_few_heaps():
    found = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    assert 1 <= found.stdout.count("<heap ") <= N_HEAPS
