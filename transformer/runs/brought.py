"""What a person brought to a run, kept in its folder: their own pairs, their own tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transformer.config import RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.tasks.files import keep_tokenizer, kept_tokenizer
from transformer.tasks.pairs.store import keep, kept
from transformer.tasks.pairs.tsv import from_tsv, to_tsv

PAIRS, TOKENIZER = "pairs.tsv", "tokenizer.json"


def write_brought(config: TrainConfig, write: Callable[[str, str], None]) -> None:
    """Write what a configuration names by digest alone.

    Args:
        write: takes the name of a file and its text.
    """
    if config.task == "pairs":
        write(PAIRS, to_tsv(kept(config.pairs or "")))
    if config.tokenizer == "file":
        write(TOKENIZER, kept_tokenizer(config.tokenizer_file))


def saved_data(folder: Path, config: RunConfig) -> tuple[object, ...]:
    """Read it again; the run's task can be made for as long as what is returned is held.

    Raises:
        InputError: it is not there, or not what the run was trained on.
    """
    train = config.train
    held: list[object] = []
    try:
        if train.task == "pairs":
            own = keep(from_tsv((folder / PAIRS).read_text(encoding="utf-8")))
            if own.digest != train.pairs:
                raise InputError(f"{folder / PAIRS} holds other pairs than those of this run.")
            held.append(own)
        if train.tokenizer == "file":
            file = keep_tokenizer((folder / TOKENIZER).read_text(encoding="utf-8"))
            if file.digest != train.tokenizer_file:
                raise InputError(f"{folder / TOKENIZER} is another tokenizer than that of this run.")
            held.append(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{folder} does not hold what its run was trained on ({error}).") from error
    return tuple(held)
