"""What a run's thread remembers beside what everybody may see, kept in its folder and found there again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.storage.arrays import read_arrays
from transformer.storage.format import TRAINING, RunFile
from transformer.storage.saved import read_training_facts
from transformer.training.checkpoint import Progress, unpacked

if TYPE_CHECKING:
    from transformer.training.state import TrainState


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What the next steps of a watched run depend on, beside the training itself."""

    moments: tuple[list[tuple[str, int]], int, bool]
    """What the finder of moments remembers."""


def unpack(folder: Path, config: RunConfig) -> tuple[TrainState, Memory]:
    """The training of a saved run, and what its thread remembered.

    Raises:
        InputError: the file is damaged, or of another model; or the device is not there.
    """
    facts = read_training_facts(folder, {"run": RunFile, "progress": Progress, "memory": Memory})
    run, progress = facts["run"], facts["progress"]
    if (run.step, run.planned) != (progress.step, progress.stretch.last):
        raise InputError(f"{folder.name}/{TRAINING} is of two different steps or plans.")
    return unpacked(config, read_arrays(folder / TRAINING), progress), facts["memory"]
