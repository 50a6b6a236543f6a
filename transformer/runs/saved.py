"""A saved run, read again from its folder; nothing in it is executed."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path

import numpy as np

from transformer.config import FORMAT, RunConfig
from transformer.errors import InputError
from transformer.interventions import NOTHING, Interventions
from transformer.recording.shelf import Array, Shelved
from transformer.recording.snapshot import Snapshot
from transformer.runs.archive import INTERVENTIONS

UNREADABLE = (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged file of arrays may raise."""


class _Saved(Shelved):
    """Weights in a file that anyone may have damaged."""

    def __getitem__(self, name: str) -> Array:
        try:
            return super().__getitem__(name)
        except UNREADABLE as error:
            raise InputError(f"The weights in {self._path} cannot be read ({error}).") from error


def saved_config(folder: Path) -> RunConfig:
    """The configuration of a saved run.

    Raises:
        InputError: not a folder that `--out` has written, or one of another version.
    """
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        version, config = facts["format"], facts["config"]
    except OSError as error:
        raise InputError(f"{folder} is no saved run: run.json cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} is no saved run: run.json is damaged ({error}).") from error
    if version != FORMAT:
        raise InputError(f"{folder} has format {version!r}; this version reads format {FORMAT}.")
    return RunConfig.from_json(json.dumps(config))


def saved_snapshots(folder: Path) -> tuple[Snapshot, ...]:
    """The weights that a saved run has kept, oldest first; each file is read when its weights are asked for.

    Raises:
        InputError: there are none.
    """
    found = [path for path in (folder / "snapshots").glob("*.npz") if path.stem.isdecimal()]
    paths = sorted(found, key=lambda path: int(path.stem))
    if not paths:
        raise InputError(f"{folder} holds no weights: there is no file in its folder snapshots.")
    return tuple(_snapshot(path) for path in paths)


def _snapshot(path: Path) -> Snapshot:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            names = tuple(name for name in file.files if name != INTERVENTIONS)
            taken = NOTHING
            if INTERVENTIONS in file.files:
                taken = Interventions.from_dict(json.loads(file[INTERVENTIONS].tobytes()))
    except (*UNREADABLE, KeyError) as error:
        raise InputError(f"The weights in {path} cannot be read ({error}).") from error
    return Snapshot(step=int(path.stem), weights=_Saved(path, names), interventions=taken)
