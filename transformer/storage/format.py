"""The format of a run's folder: its files, and what `run.json` says.

run.json                version, id, state, configuration, results
src_tokenizer.json      readable by the `tokenizers` package
tgt_tokenizer.json
pairs.tsv               the user's own pairs, where these are learned
tokenizer.json          and the uploaded tokenizer, if there is one
metrics.parquet         one row a step
tensorboard/            the same for TensorBoard, where it was asked for
frames.bin              everything recorded, appended in the order in which it was made (`recording.records`)
weights.bin             the weights of as many steps as fit, with the interventions on the model
training.safetensors    all that the next step depends on: weights, optimiser, random state
run.lock                held by the process that writes here
writer.json             which process that is
owner.sha256            the digest of the token that controls the run
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.evaluation import Evaluation
from transformer.recording.chunk import Chunk, as_record, facts_of, from_record
from transformer.recording.frame import Array, Measurement, Outputs
from transformer.recording.frames import Recorded
from transformer.recording.metrics import Metrics
from transformer.recording.records import Record
from transformer.recording.view import OwnModel, RunFacts, RunView

FORMAT = 3
"""Version of a run's folder, and of a run as one file."""
RUN, METRICS, FRAMES, WEIGHTS = "run.json", "metrics.parquet", "frames.bin", "weights.bin"
TRAINING, OWNER = "training.safetensors", "owner.sha256"
REMOVED_SETTINGS = ("language", "digits", "to_words", "pad_to")
"""Training settings of earlier versions that no longer exist."""
NUMBERS = OwnModel(
    name="numbers in words",
    problem="This run learned numbers in words, a task that Headlight no longer has. Its maps and curves can "
    "be seen; it can be neither asked nor continued.",
)
TOKENIZERS = ("src_tokenizer.json", "tgt_tokenizer.json")


@dataclass(frozen=True, kw_only=True)
class RunFile(RunFacts):
    """The content of `run.json`."""

    format: int = FORMAT
    kept: int = 0
    """Number of updates of the folder so far; the higher, the newer."""
    words: tuple[str, ...]
    """The tracked words, in order."""


def run_file_of(view: RunView, words: tuple[str, ...], kept: int) -> RunFile:
    """The part of a view that is kept beside its recording."""
    return RunFile(**facts_of(RunFacts, view), words=words, kept=kept)


def as_json(run: RunFile) -> bytes:
    """Encode `run.json`, indented for human readers; `read_run_file` reads it."""
    return msgspec.json.format(msgspec.json.encode(run), indent=2)


def read_run_file(folder: Path) -> RunFile:
    """Read `run.json`.

    Raises:
        InputError: the folder holds no run, is damaged, or has the format of another version.
    """
    try:
        text = (folder / RUN).read_bytes()
    except OSError as error:
        raise InputError(f"{folder} is not a saved run: {RUN} cannot be read ({error.strerror}).") from error
    try:
        version = bytes(msgspec.json.decode(text, type=dict[str, msgspec.Raw])["format"])
        run = None
        if version == str(FORMAT).encode():
            said = _of_now(msgspec.json.decode(text))
            run = msgspec.convert(said, RunFile)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{folder} is not a saved run: {RUN} is damaged ({error}).") from error
    if run is None:
        raise InputError(
            f"{folder} has format {version.decode(errors='replace')[:40]}; this version reads format "
            f"{FORMAT}. Open it with the version that made it, or train it again."
        )
    # Raises InputError for a setting that does not exist.
    RunConfig.from_dict(said["config"])
    return run


def _of_now(said: dict[str, Any]) -> dict[str, Any]:
    """Convert the facts of an earlier version: remove the settings and the task that no longer exist."""
    config = said["config"]
    train = config.get("train") if isinstance(config, dict) else None
    if isinstance(train, dict):
        for name in REMOVED_SETTINGS:
            train.pop(name, None)
        if train.get("task") == "numbers":
            said |= {"config": RunConfig().to_dict(), "own": msgspec.to_builtins(NUMBERS)}
    return said


def as_parquet(metrics: Metrics) -> bytes:
    """Encode the table of all steps as Parquet, for `pandas.read_parquet` and others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps megabytes per ended thread
    columns = dict(zip(metrics.names, metrics.columns(*metrics.names), strict=True))
    columns["step"] = columns["step"].astype(np.int64)
    file = BytesIO()
    pq.write_table(pa.table(columns), file, write_page_checksum=True)
    return file.getvalue()


# Parts of the recording as records of a file.


_MEASURED: tuple[type[Measurement | Outputs | Evaluation], ...] = (Measurement, Outputs, Evaluation)
_KINDS = {kind.__name__.lower(): kind for kind in _MEASURED}


def to_record(recorded: Recorded) -> Record:
    """A part of the recording as a record to append."""
    if isinstance(recorded, Chunk):
        return as_record(recorded)
    said = {"kind": type(recorded).__name__.lower(), "of": recorded}
    return Record(msgspec.json.encode(said, enc_hook=lambda array: array.tolist()))


def of_record(facts: bytes, body: bytes) -> Recorded:
    """Decode a record made by `to_record`.

    Raises:
        ValueError: its parts do not fit each other.
    """
    said = msgspec.json.decode(facts, type=dict[str, msgspec.Raw])
    kind = msgspec.json.decode(said.get("kind", b'""'), type=str)
    if kind == "chunk":
        return from_record(facts, body)
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is not a kind of record")
    recorded = msgspec.json.decode(said.get("of", b""), type=_KINDS[kind], dec_hook=_array)
    if isinstance(recorded, Evaluation) and not _counts(recorded):
        raise ValueError("it counts more right than asked")
    if isinstance(recorded, Measurement) and not _fits(recorded):
        raise ValueError("its sites and heads do not fit each other")
    return recorded


def _array(kind: type, values: object) -> Array:
    return np.array(msgspec.convert(values, tuple[float, ...]))


def _counts(evaluation: Evaluation) -> bool:
    counted = [*evaluation.by_length.values(), (evaluation.right, evaluation.total), evaluation.counted]
    return evaluation.step >= 0 and all(0 <= right <= asked and asked > 0 for right, asked in counted)


def _fits(measured: Measurement) -> bool:
    """Whether every site has as many heads as every other, and the clearest head is one of them."""
    site, head = measured.clearest
    n_heads = {len(values) for of in measured.head_scores.values() for values in of.values()}
    complete = all("entropy" in of for of in measured.head_scores.values())
    return len(n_heads) == 1 and complete and site in measured.head_scores and 0 <= head < min(n_heads)
