"""A run as one file to bring along: the files of its folder in a ZIP archive. Nothing in it is executed."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from transformer.errors import InputError
from transformer.recording.stored import Stored, as_bytes, stored_facts, write_whole
from transformer.recording.timeline import MEMORY_LIMIT
from transformer.runs.archive import FRAMES, METRICS, SNAPSHOTS, TRAINING, Archive
from transformer.runs.brought import PAIRS, TOKENIZER
from transformer.runs.facts import FILE, Facts, as_json, read_facts
from transformer.runs.frames import read_fields
from transformer.runs.limits import Limits
from transformer.runs.machine import processors
from transformer.runs.saved import Saved
from transformer.runs.tokens import new_token
from transformer.runs.view import ENDED, MAX_WORDS, RunView
from transformer.tasks import Task, completed, task_of

FIELD = "run_open"
MOST_FILES = 5_000
MOST_FACTS, MOST_NAMES = 4_000_000, 1_000_000
"""Bytes of what a run says of itself, and of the names of all files."""
LARGER = 6
"""So many times larger than the file its contents may be; those of a run are less than twice as large."""
_FIRST = (FILE, TRAINING)
"""In this order: the training is never the older of the two, so a run may train on while it is packed."""
_OTHERS = (METRICS, "src_tokenizer.json", "tgt_tokenizer.json", PAIRS, TOKENIZER)
_STEPS = re.compile(rf"({FRAMES}|{SNAPSHOTS})/\d{{6,12}}\.safetensors", re.ASCII)


def pack(folder: Path) -> bytes:
    """The file of a run that is kept in this folder, with another id and nothing that leads to other runs.

    Raises:
        InputError: it holds no run, or cannot be read.
    """
    packed, id_ = BytesIO(), new_token()

    def alone(facts: Facts) -> Facts:
        return replace(facts, id=id_, after=None)

    try:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as into:
            for name in _names(folder):
                try:
                    into.writestr(name, _content(folder, name, alone))
                except FileNotFoundError:  # none of this kind, or thinned out meanwhile
                    if name == FILE:
                        raise
    except OSError as error:
        raise InputError(f"This run cannot be packed into a file ({error.strerror}). Try again.") from error
    return packed.getvalue()


def _content(folder: Path, name: str, changed: Callable[[Facts], Facts]) -> bytes:
    """A file of a run's folder, with what it says of the run changed. Raises FileNotFoundError."""
    path = folder / name
    if name == FILE:
        return as_json(changed(read_facts(folder)))
    if name == TRAINING and path.exists():
        facts = changed(read_fields(path, {"run": Facts})["run"])
        others = msgspec.json.decode(stored_facts(path), type=dict[str, msgspec.Raw])
        return as_bytes(Stored(path).whole(), msgspec.json.encode({**others, "run": facts}).decode())
    return path.read_bytes()


def _names(folder: Path) -> Iterator[str]:
    """What there may be; the steps are looked for when the training has been read."""
    yield from (*_FIRST, *_OTHERS)
    steps = sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*.safetensors"))
    yield from filter(_STEPS.fullmatch, steps)


def pack_view(view: RunView, task: Task, words: tuple[str, ...]) -> bytes:
    """The same of a run that is in memory alone; without its training, which only its thread may touch.

    Raises:
        InputError: the disk does not let it be written.
    """
    with TemporaryDirectory(prefix="headlight-") as empty:
        archive = Archive(Path(empty))
        archive.begin(view, task, lambda: words)
        archive.hand(view, None)
        archive.close()
        if archive.problem:
            raise InputError(f"This run cannot be packed into a file. {archive.problem}")
        return pack(Path(empty))


def unpack(data: bytes, folder: Path) -> None:
    """Write the files of a run into a folder that is there; what else the file holds is passed over.

    Raises:
        InputError: not such a file, a damaged one, or one that is too large inside.
        OSError: the disk does not take it.
    """
    try:
        if _bytes_of_names(data) > MOST_NAMES:
            raise ValueError("it names too many files")
        with zipfile.ZipFile(BytesIO(data)) as packed:
            ours = [one for one in packed.infolist() if _is_ours(one.filename)]
            if len(ours) > MOST_FILES or sum(one.file_size for one in ours) > LARGER * len(data):
                raise InputError(
                    f"This file holds {len(ours):,} files of {sum(one.file_size for one in ours):,} bytes in "
                    f"all, more than a run of its size can have. {_ADVICE}",
                    FIELD,
                )
            if FILE not in (one.filename for one in ours):
                raise InputError(f"This file holds no run: there is no {FILE} in it. {_ADVICE}", FIELD)
            if any(one.filename == FILE and one.file_size > MOST_FACTS for one in ours):
                raise ValueError(f"{FILE} is too large")
            for one in ours:
                if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError(f"{one.filename} is packed in another way than ours")
                with packed.open(one) as file:
                    found = file.read(one.file_size + 1)  # no more than was counted, whatever it holds
                if len(found) != one.file_size:
                    raise ValueError(f"{one.filename} is not as large as it says")
                (folder / one.filename).parent.mkdir(exist_ok=True)
                (folder / one.filename).write_bytes(found)
    except (InputError, OSError):
        raise
    except Exception as error:  # zipfile and zlib have many names for what is wrong with a file
        raise InputError(
            f"This file cannot be read ({str(error)[:200] or type(error).__name__}). {_ADVICE}", FIELD
        ) from error


def settle(folder: Path, id_: str) -> None:
    """Let the run in a folder be one of this server's, of this id: it trains on with what is here.

    Raises:
        InputError: its files are damaged.
        OSError: they cannot be written.
    """

    def settled(facts: Facts) -> Facts:
        config = dict(facts.config)
        config["device"] = "cpu" if config.get("device") == "cpu" else "auto"
        if isinstance(config.get("threads"), int):
            config["threads"] = min(config["threads"], processors())
        threads, reason = min(facts.threads, processors()), facts.reason
        if facts.state not in ENDED:
            reason = f"Taken away as a file at step {facts.step:,}."
        return replace(facts, id=id_, config=config, threads=threads, reason=reason)

    for name in _FIRST:
        if (folder / name).exists():
            write_whole(folder / name, _content(folder, name, settled))


def check(saved: Saved, limits: Limits) -> None:
    """Refuse a run that this server would not have let anybody train, or cannot show.

    Raises:
        InputError: what it is, and the limit.
    """
    view = saved.view
    limits.check(completed(view.config))
    limits.check_steps(view.planned)
    task = task_of(view.config)
    if len([task.question(word) for word in saved.words]) > MAX_WORDS:
        raise InputError(f"This file asks {len(saved.words):,} words; a run asks at most {MAX_WORDS}.", FIELD)
    if sum(frame.nbytes for frame in view.frames) > 2 * MEMORY_LIMIT:
        raise InputError("This file holds more frames than a run keeps.", FIELD)


def _bytes_of_names(data: bytes) -> int:
    """Of the list at the end of an archive, which is read whole, by the record of 22 bytes behind it."""
    at = data.rfind(b"PK\x05\x06", -(22 + 0xFFFF))
    return int.from_bytes(data[at + 12 : at + 16], "little") if at >= 0 else 0


def _is_ours(name: str) -> bool:
    """Names are compared and never mended: no path leads out of the folder."""
    return name in (*_FIRST, *_OTHERS) or _STEPS.fullmatch(name) is not None


_ADVICE = "Choose one that “Take it away” has made of a whole run."
