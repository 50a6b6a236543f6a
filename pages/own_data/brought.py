"""The visitor's own pairs and own tokenizer, kept across a reload of the page."""

from __future__ import annotations

from dataclasses import replace

from pages.runs import keyring
from pages.shared.session import session
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.storage.brought import Brought
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.tokenizer_files import TokenizerFile


def brought() -> Brought:
    """Return the visitor's data. What is missing is taken from the run on the screen, if they own it."""
    held = session.brought or Brought()
    run = REGISTRY.get(session.run)
    if isinstance(run, Run) and REGISTRY.owners.is_owner(run.id, keyring.token_of(run.id)):
        held = replace(
            held, pairs=held.pairs or run.brought.pairs, tokenizer=held.tokenizer or run.brought.tokenizer
        )
    return held


def bring_pairs(pairs: OwnPairs) -> None:
    """Use these pairs from now on."""
    _hold(replace(brought(), pairs=pairs))


def bring_tokenizer(file: TokenizerFile, name: str) -> None:
    """Use this tokenizer from now on, and show it under this name."""
    _hold(replace(brought(), tokenizer=file, tokenizer_name=name))


def _hold(now: Brought) -> None:
    if now != session.brought:
        session.brought = now
        keyring.remember(now)
