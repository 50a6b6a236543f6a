"""The user's own pairs and tokenizer: in a run's file, and for a reload."""

from __future__ import annotations

import sqlite3
import threading
import time
from dataclasses import dataclass

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.storage.file import put, raw_fact
from transformer.storage.tokens import new_token
from transformer.tasks.pairs.own import OwnPairs, from_tsv, to_tsv
from transformer.tasks.pairs.store import (
    TokenizerFile,
    intern_pairs,
    intern_tokenizer,
    pairs_of,
    tokenizer_of,
)

PAIRS, TOKENIZER = "pairs", "tokenizer"
RELOAD_BYTES, RELOAD_SECONDS = 64_000_000, 3_600.0
"""Limits of the uploads that are held for a reload: bytes in all, and seconds."""


@dataclass(frozen=True, kw_only=True)
class OwnData:
    """The uploads of one user. They stay on the server as long as this object exists."""

    pairs: OwnPairs | None = None
    tokenizer: TokenizerFile | None = None
    tokenizer_name: str = ""

    @property
    def nbytes(self) -> int:
        """Approximate bytes in memory."""
        text = "" if self.tokenizer is None else self.tokenizer.content
        return len(text) + (0 if self.pairs is None else self.pairs.nbytes)


def own_data_of(config: TrainConfig) -> OwnData:
    """The data that a configuration names by digest.

    Raises:
        InputError: the data is not on this server any more.
    """
    return OwnData(
        pairs=pairs_of(config.pairs or "") if config.task == "pairs" else None,
        tokenizer=tokenizer_of(config.tokenizer_file) if config.tokenizer == "file" else None,
    )


class UploadCache:
    """Holds the uploads of visitors, so that a reloaded page has them again. Safe to use from any thread.

    Only the visitor's session and browser keep the secret name, and no link contains it, so no other visitor
    sees the uploads.
    """

    def __init__(self, most_bytes: int = RELOAD_BYTES, seconds: float = RELOAD_SECONDS) -> None:
        self._most_bytes, self._seconds = most_bytes, seconds
        self._lock = threading.Lock()
        self._held: dict[str, tuple[OwnData, float]] = {}  # by secret name, the oldest first

    def keep(self, own: OwnData, name: str = "") -> str:
        """Hold uploads under a name, in place of earlier ones; return the name."""
        name = name or new_token()
        with self._lock:
            self._held.pop(name, None)
            self._held[name] = own, time.monotonic()
            self._forget()
        return name

    def get(self, name: str) -> OwnData | None:
        """The uploads under this name; None if they are no longer held."""
        with self._lock:
            self._forget()
            held, _ = self._held.get(name, (None, 0.0))
            return held

    def _forget(self) -> None:
        now = time.monotonic()
        total = sum(own.nbytes for own, _ in self._held.values())
        for name, (own, at) in list(self._held.items()):
            if total <= self._most_bytes and now - at <= self._seconds:
                break
            total -= own.nbytes
            del self._held[name]


def write_own_data(database: sqlite3.Connection, config: TrainConfig) -> None:
    """Write the uploads that a configuration contains only as digests."""
    if config.task == "pairs":
        put(database, PAIRS, to_tsv(pairs_of(config.pairs or "")).encode())
    if config.tokenizer == "file":
        put(database, TOKENIZER, tokenizer_of(config.tokenizer_file).content.encode())


def saved_data(database: sqlite3.Connection, config: TrainConfig) -> OwnData:
    """Read the own data of a run from its file; its task can be made as long as the returned object exists.

    Raises:
        InputError: the data is missing, or is not what the run was trained on.
        ValueError: it is damaged.
    """
    own, file = None, None
    if config.task == "pairs":
        own = intern_pairs(from_tsv((raw_fact(database, PAIRS) or b"").decode()))
        if own.digest != config.pairs:
            raise InputError("The file does not hold the pairs of its run.")
    if config.tokenizer == "file":
        file = intern_tokenizer((raw_fact(database, TOKENIZER) or b"").decode())
        if file.digest != config.tokenizer_file:
            raise InputError("The file does not hold the tokenizer of its run.")
    return OwnData(pairs=own, tokenizer=file)
