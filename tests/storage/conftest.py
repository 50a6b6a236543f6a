"""What the tests of storage share: a finished run as a file."""

from __future__ import annotations

import pytest

from transformer.config import RunConfig
from transformer.runs.run import Run
from transformer.storage.archive import Archive
from transformer.storage.bundle import pack, pack_view


@pytest.fixture(scope="module")
def bundles(tiny_run: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A finished run as its folder has it, and as memory has it."""
    folder = tmp_path_factory.mktemp("bundles") / "run"
    run = Run(tiny_run, words=("frog",), archive=Archive(folder))
    run.start()
    assert run.wait(60)
    run.close()
    run.join()
    return pack(folder), pack_view(run.view, run.task, ("frog",))
