"""The visitor's own pairs and own tokenizer, kept across a reload of the page."""

from __future__ import annotations

from dataclasses import replace

from pages.runs import keyring
from pages.shared.session import session
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.storage.own_data import OwnData
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.store import TokenizerFile


def own_data() -> OwnData:
    """Return the visitor's data. What is missing is taken from the run on the screen, if they own it."""
    held = session.own_data or OwnData()
    run = REGISTRY.get(session.run)
    if isinstance(run, Run) and REGISTRY.owners.is_owner(run.id, keyring.token_of(run.id)):
        held = replace(
            held, pairs=held.pairs or run.own_data.pairs, tokenizer=held.tokenizer or run.own_data.tokenizer
        )
    return held


def use_pairs(pairs: OwnPairs) -> None:
    """Use these pairs from now on."""
    _hold(replace(own_data(), pairs=pairs))


def use_tokenizer(file: TokenizerFile, name: str) -> None:
    """Use this tokenizer from now on, and show it under this name."""
    _hold(replace(own_data(), tokenizer=file, tokenizer_name=name))


def _hold(now: OwnData) -> None:
    if now != session.own_data:
        session.own_data = now
        keyring.remember(now)
