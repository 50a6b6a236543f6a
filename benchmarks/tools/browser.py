"""A headless Chromium for benchmarks of the app."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZE = {"width": 1280, "height": 720}


@contextmanager
def chromium(*options: str) -> Iterator[Browser]:
    """Start a Chromium without open pages, with further options of its command line.

    Raises:
        RuntimeError: none is installed.
    """
    path = shutil.which("chromium")
    if path is None:
        raise RuntimeError("there is no chromium on the PATH; install Debian's package")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*QUIET, *options])
        yield browser
        browser.close()
