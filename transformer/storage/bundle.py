"""A run as one portable file: the files of its folder in a ZIP archive. Nothing in it is executed."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import msgspec

from transformer.errors import InputError
from transformer.recording.records import content
from transformer.recording.view import ENDED, RunView
from transformer.recording.weights import Weights
from transformer.storage.arrays import as_bytes, read_arrays, read_facts, write_whole
from transformer.storage.format import (
    FRAMES,
    METRICS,
    RUN,
    TOKENIZERS,
    TRAINING,
    WEIGHTS,
    RunFile,
    as_json,
    as_parquet,
    read_run_file,
    run_file_of,
    to_record,
)
from transformer.storage.own_data import PAIRS, TOKENIZER, write_own_data
from transformer.storage.saved import read_training_facts
from transformer.storage.tokens import new_token
from transformer.tasks import Task

FIELD = "run_open"
MOST_BYTES = 48 * 10**6
"""Maximum bytes of the file, as far as leaving out weights allows."""
MOST_FACTS, MOST_NAMES = 4_000_000, 100_000
"""Largest sizes in bytes of `RUN` and of the list of files in the archive."""
MAX_UNPACK_RATIO = 6
"""Largest ratio of the unpacked to the packed size; that of a run is less than 2."""
_FIRST = (RUN, TRAINING)
"""Packed in this order, so that TRAINING is never older than RUN if the run trains on meanwhile."""
_FILES = (*_FIRST, METRICS, *TOKENIZERS, PAIRS, TOKENIZER, FRAMES)


def pack(folder: Path) -> bytes:
    """Pack the run in this folder into one file, with a new id and without references to other runs.

    Raises:
        InputError: the folder holds no run, or cannot be read.
    """
    id_, files = new_token(), {}
    try:
        run = read_run_file(folder)
        for name in _FILES:
            with suppress(FileNotFoundError):  # the run has no such file
                files[name] = _content(folder, name, lambda one: replace(one, id=id_, after=None))
        weights = Weights(folder / WEIGHTS)
        weights.follow(run.step)
    except OSError as error:
        raise InputError(f"This run cannot be packed into a file ({error.strerror}). Try again.") from error
    return _zipped(files, weights, run)


def pack_view(view: RunView, task: Task, words: tuple[str, ...]) -> bytes:
    """Pack a run that is only in memory, without TRAINING, which only the run's thread can copy."""
    run = run_file_of(replace(view, id=new_token(), after=None), words, 1)
    files = {
        RUN: as_json(run),
        METRICS: as_parquet(view.metrics),
        FRAMES: content(to_record(one) for one in view.frames.records),
    }
    for name, tokenizer in zip(TOKENIZERS, (task.src_tokenizer, task.tgt_tokenizer), strict=True):
        files[name] = tokenizer.to_json().encode()
    write_own_data(view.config.train, lambda name, text: files.update({name: text.encode()}))
    weights = view.snapshots[-1].source if view.snapshots else Weights()
    assert isinstance(weights, Weights)
    return _zipped(files, weights, run)


def _zipped(files: Mapping[str, bytes], weights: Weights, run: RunFile) -> bytes:
    """Zip the files, with the weights of as many steps as there is room for."""
    room = max(0, MOST_BYTES - sum(map(len, files.values())))
    chosen = content(weights.records(room, {moment.step for moment in run.moments}))
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as into:
        for name, data in {**files, WEIGHTS: chosen}.items():
            into.writestr(name, data)
    return packed.getvalue()


def _content(folder: Path, name: str, changed: Callable[[RunFile], RunFile]) -> bytes:
    """The bytes of a file in a run's folder, with its `RunFile` changed. Raises FileNotFoundError."""
    path = folder / name
    if name == RUN:
        return as_json(changed(read_run_file(folder)))
    if name == TRAINING and path.exists():
        run = changed(read_training_facts(folder, {"run": RunFile})["run"])
        others = msgspec.json.decode(read_facts(path), type=dict[str, msgspec.Raw])
        return as_bytes(read_arrays(path), msgspec.json.encode({**others, "run": run}).decode())
    return path.read_bytes()


def unpack(data: bytes, folder: Path) -> None:
    """Unpack a run into an existing folder; other files in the archive are ignored.

    Raises:
        InputError: the file is not a packed run, is damaged, or is too large when unpacked.
        OSError: the files cannot be written.
    """
    try:
        if _bytes_of_names(data) > MOST_NAMES:
            raise ValueError("it names too many files")
        with zipfile.ZipFile(BytesIO(data)) as packed:
            # Only exact names are accepted, so that no path leads out of the folder.
            ours = [one for one in packed.infolist() if one.filename in (*_FILES, WEIGHTS)]
            nbytes = sum(one.file_size for one in ours)
            if nbytes > MAX_UNPACK_RATIO * len(data):
                raise ValueError(f"it holds {nbytes:,} bytes, more than a run of its size can have")
            facts = [one for one in ours if one.filename == RUN]
            if not facts:
                raise ValueError(f"it holds no run: there is no {RUN} in it")
            if any(one.file_size > MOST_FACTS for one in facts):
                raise ValueError(f"{RUN} is too large")
            for one in ours:
                if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError(f"{one.filename} is packed in an unknown way")
                with packed.open(one) as file:
                    found = file.read(one.file_size + 1)  # one byte more than declared shows a wrong size
                if len(found) != one.file_size:
                    raise ValueError(f"{one.filename} does not have the size that it declares")
                (folder / one.filename).write_bytes(found)
    except OSError:
        raise
    except Exception as error:  # zipfile and zlib raise many types for a damaged file
        why = str(error)[:200] or type(error).__name__
        advice = "Choose a file of a whole run made by “Take it away”."
        raise InputError(f"This file cannot be read ({why}). {advice}", FIELD) from error


def settle(folder: Path, id_: str, processors: int) -> None:
    """Give the run in a folder this id, and a device and threads that this server has.

    Args:
        processors: the number of processors that this process may use.

    Raises:
        InputError: its files are damaged.
        OSError: the files cannot be written.
    """

    def settled(run: RunFile) -> RunFile:
        device = "cpu" if run.config.device == "cpu" else "auto"
        threads = run.config.threads and min(run.config.threads, processors)
        reason = run.reason if run.state in ENDED else f"Saved as a file at step {run.step:,}."
        return replace(
            run,
            id=id_,
            config=replace(run.config, device=device, threads=threads),
            threads=min(run.threads, processors),
            reason=reason,
        )

    for name in _FIRST:
        if (folder / name).exists():
            write_whole(folder / name, _content(folder, name, settled))


def _bytes_of_names(data: bytes) -> int:
    """Size of the file list of an archive, which zipfile reads whole; from the 22-byte record at the end."""
    at = data.rfind(b"PK\x05\x06", -(22 + 0xFFFF))
    return int.from_bytes(data[at + 12 : at + 16], "little") if at >= 0 else 0
