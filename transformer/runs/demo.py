"""Recordings, shown where no run has been trained yet or in place of runs of a story; some ship with the app.

    python -m transformer.runs.demo

records them again, after the default settings or the format of a run have changed.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.view import RECORDED, RunView
from transformer.recording.weights import Weights
from transformer.runs.any_run import AnyRun
from transformer.runs.file_run import FileRun
from transformer.runs.run import Run
from transformer.storage.format import write_run
from transformer.storage.log import LOG

ENVIRONMENT = "HEADLIGHT_RECORDING"
"""Environment variable with the path of another recording; if it is empty, no recording is shown."""
SHIPPED = Path(__file__).with_name("demo.headlight")
OF_STORIES = {
    "reverse": SHIPPED,
    "no-causal-mask": SHIPPED.with_name("no-causal-mask.headlight"),
    "zh-en": SHIPPED.with_name("zh-en.headlight"),
}
"""The recordings of stories. All but the first hold the maps of a single word, and no weights."""
ASKED = 4
"""Number of evenly chosen steps, the first one included, whose weights `SHIPPED` keeps; it also has those of
the last step and of the moments."""


class Demo(FileRun):
    """A run in a file that no process writes any more, so it is read only once."""

    @cached_property
    def view(self) -> RunView:
        """The run, as it was recorded."""
        return replace(super().view, state=RECORDED, reason="")


_OPENED: dict[str, AnyRun] = {}


@cache
def demo_run() -> AnyRun | None:
    """The recording of this server, read once; None where there is none, or it cannot be read."""
    named = os.environ.get(ENVIRONMENT, str(SHIPPED))
    return recording(Path(named)) if named else None


@cache
def recording(path: Path) -> AnyRun | None:
    """A recording from its file, read once; None where it cannot be read."""
    try:
        demo = Demo(path)
        _OPENED[demo.id] = demo
        return demo
    except (InputError, OSError) as error:
        LOG.warning("The recording %s cannot be shown: %s", path, error)
        return None


def opened(id_: str) -> AnyRun | None:
    """The recording of this id, if it has been read."""
    return _OPENED.get(id_)


def record(config: RunConfig, path: Path, word: str = "") -> None:
    """Train a run, and write all its frames and some of its weights to a file; it cannot be continued.

    Args:
        word: the only word to record, without weights; by default the words of the task, with weights.
    """
    run = Run(config, words=(word,) if word else None)
    run.start().result()
    run.wait()
    view = run.view
    weights = view.snapshots[-1].source
    assert isinstance(weights, Weights)
    weights.keep_few(ASKED, {moment.step for moment in view.moments})
    run.close()
    path.unlink(missing_ok=True)
    write_run(path, view, run.words, task=run.task, weights=Weights() if word else weights)


if __name__ == "__main__":
    from transformer.config.recipes import RECIPES
    from transformer.config.tasks import with_task
    from transformer.recording import map_recorder

    map_recorder.KNOWN_SECONDS = math.inf  # every step is recorded, on a busy machine too

    default = RECIPES["default"].small
    unmasked = default.with_changes(causal_mask=False, goal=None, steps=300)
    record(default, SHIPPED)
    record(unmasked, OF_STORIES["no-causal-mask"], "playground")
    record(with_task(default, "zh-en"), OF_STORIES["zh-en"], "纽约是一座城市")
