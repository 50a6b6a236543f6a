"""A run that was recorded before, to be shown where nobody has trained one yet; one ships with the app.

    python -m transformer.runs.demo

records that one anew, after the default settings or the format of a run have changed.
"""

from __future__ import annotations

import atexit
import os
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.view import RECORDED, RunView
from transformer.recording.weights import Weights
from transformer.runs.remote import Remote
from transformer.runs.run import Run
from transformer.runs.watched import Watched
from transformer.storage.bundle import pack_view, unpack
from transformer.storage.log import LOG

ENVIRONMENT = "HEADLIGHT_RECORDING"
"""Names the file of another recording; empty: none is shown."""
SHIPPED = Path(__file__).with_name("demo.zip")
ASKED = 6
"""Steps whose weights it has, beside the first, the last and its moments: what ships is to be small."""


class Demo(Remote):
    """A run in a folder that nobody writes any more: what was read first stays."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._recorded = replace(super().view, state=RECORDED, reason="")

    @property
    def view(self) -> RunView:
        """The run, as it was recorded."""
        return self._recorded


@cache
def demo_run() -> Watched | None:
    """The recording of this server, read once; None where there is none, or it cannot be read."""
    named = os.environ.get(ENVIRONMENT, str(SHIPPED))
    if not named:
        return None
    folder = Path(mkdtemp(prefix="headlight-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        unpack(Path(named).read_bytes(), folder)
        return Demo(folder)
    except (InputError, OSError) as error:
        LOG.warning("The recording %s cannot be shown: %s", named, error)
        return None


def record(config: RunConfig, path: Path) -> None:
    """Train, and keep every frame and some of the weights in a file; nothing trains on."""
    run = Run(config)
    run.start().result()
    run.wait()
    view = run.view
    weights = view.snapshots[-1].source
    assert isinstance(weights, Weights)
    weights.keep_few(ASKED, {moment.step for moment in view.moments})
    run.close()
    path.write_bytes(pack_view(view, run.task, run.words))


if __name__ == "__main__":
    from transformer.recipes import RECIPES

    record(RECIPES["default"].small, SHIPPED)
