"""The visitor's own pairs and own tokenizer, kept across a reload of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pages.runs import keyring
from pages.shared import ownership
from pages.shared.session import session
from transformer.runs.registry import REGISTRY
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


def use(**data: Any) -> None:
    """Use these pairs, or this tokenizer and its name, from now on, and keep them for a reload.

    Args:
        data: fields of `OwnData`.
    """
    now = replace(own_data(), **data)
    if now != session.own_data:
        session.own_data = now
        keyring.remember(now)
