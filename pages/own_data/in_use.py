"""The visitor's own pairs and own tokenizer, kept across a reload of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pages.runs import keyring
from pages.shared import ownership
from pages.shared.session import session
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.storage.own_data import OwnData


def own_data() -> OwnData:
    """Return the visitor's own data; missing parts come from the run on the screen, if they own it."""
    held = session.own_data or OwnData()
    run = REGISTRY.get(session.run)
    if run is not None and ownership.owns(run):
        held = replace(
            held, pairs=held.pairs or run.own_data.pairs, tokenizer=held.tokenizer or run.own_data.tokenizer
        )
    return held


def refuse_others(config: RunConfig, run: AnyRun | None = None) -> None:
    """Refuse settings that name another visitor's pairs or tokenizer: a link does not share them.

    Args:
        run: a run whose uploads are this visitor's, too, if they own it.

    Raises:
        InputError: this visitor has no such upload.
    """
    mine, train = own_data(), config.train
    of_run = run.own_data if isinstance(run, Run) and ownership.owns(run) else OwnData()
    for part, field, digest in (
        ("pairs", "task", train.pairs if train.task == "pairs" else None),
        ("tokenizer", "tokenizer", train.tokenizer_file if train.tokenizer == "file" else None),
    ):
        held = [getattr(data, part) for data in (mine, of_run)]
        if digest and digest not in [one.digest for one in held if one is not None]:
            raise InputError(
                f"Only the owner of this run can train on its {part}. Upload your own on Your data.",
                field,
            )


def use(**data: Any) -> None:
    """Use these pairs, or this tokenizer and its name, from now on, and keep them for a reload.

    Args:
        data: fields of `OwnData`.
    """
    now = replace(own_data(), **data)
    if now != session.own_data:
        session.own_data = now
        keyring.remember(now)
