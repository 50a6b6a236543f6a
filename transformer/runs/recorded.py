"""A run that was recorded before, to be shown where nobody has trained one yet; one ships with the app.

    python -m transformer.runs.recorded

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
from transformer.runs.log import LOG
from transformer.runs.parcel import pack_view, unpack
from transformer.runs.remote import Remote
from transformer.runs.run import Run
from transformer.runs.view import ENDED, RECORDED, RunView
from transformer.runs.watched import Watched

ENVIRONMENT = "HEADLIGHT_RECORDING"
"""Names the file of another recording; empty: none is shown."""
SHIPPED = Path(__file__).with_name("recorded.zip")
SHOWN = (0, 1, 2, 3, 5, 8, *range(10, 1000, 5))
"""Steps of which it has frames, beside its moments and the last; a file that ships is to be small."""
ASKED = (0, 50, 100, 125, 150)
"""Steps of which it has the weights, beside the last."""


class Recording(Remote):
    """A run in a folder that nobody writes any more: what was read first stays."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._recorded = replace(super().view, state=RECORDED, reason="")

    @property
    def view(self) -> RunView:
        """The run, as it was recorded."""
        return self._recorded


@cache
def recorded() -> Watched | None:
    """The recording of this server, read once; None where there is none, or it cannot be read."""
    named = os.environ.get(ENVIRONMENT, str(SHIPPED))
    if not named:
        return None
    folder = Path(mkdtemp(prefix="headlight-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        unpack(Path(named).read_bytes(), folder)
        return Recording(folder)
    except (InputError, OSError) as error:
        LOG.warning("The recording %s cannot be shown: %s", named, error)
        return None


def record(config: RunConfig, path: Path) -> None:
    """Train, step by step so that each is a frame, and keep what is shown in a file; nothing trains on."""
    run = Run(config)
    run.ready.wait()
    while run.view.state not in ENDED:
        run.advance().wait()
        run.wait()
    view = run.view
    frames, asked = {*SHOWN, view.step, *(one.step for one in view.moments)}, {*ASKED, view.step}
    view = replace(
        view,
        frames=tuple(one for one in view.frames if one.step in frames),
        snapshots=tuple(one for one in view.snapshots if one.step in asked),
    )
    run.close()
    path.write_bytes(pack_view(view, run.task, tuple(one.text for one in run.questions)))


if __name__ == "__main__":
    from transformer.recipes import RECIPES

    record(RECIPES["default"].small, SHIPPED)
