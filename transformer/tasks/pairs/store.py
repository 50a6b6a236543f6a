"""The user's own pairs and tokenizer files by digest, kept only while a reference to them exists."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from weakref import WeakValueDictionary

from transformer.errors import InputError
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.text import FIELD
from transformer.tasks.tokenizer import backend_of


@dataclass(frozen=True, eq=False)
class TokenizerFile:
    """The content of one `tokenizer.json`; `tokenizer_of` finds it as long as this object lives."""

    content: str
    digest: str


_PAIRS: WeakValueDictionary[str, OwnPairs] = WeakValueDictionary()
_TOKENIZERS: WeakValueDictionary[str, TokenizerFile] = WeakValueDictionary()
_LOCK = threading.Lock()  # two threads that keep the same upload get the same object


def intern_pairs(own: OwnPairs) -> OwnPairs:
    """Make pairs findable by their digest, for as long as the returned object lives.

    Returns:
        The stored object with the same digest if there is one, else `own`.
    """
    with _LOCK:
        return _PAIRS.setdefault(own.digest, own)


def pairs_of(digest: str) -> OwnPairs:
    """The pairs with this digest.

    Raises:
        InputError: the server no longer has them.
    """
    own = _PAIRS.get(digest)
    if own is None:
        raise InputError("The pairs of this run are no longer on this server; upload them again.", FIELD)
    return own


def intern_tokenizer(content: str) -> TokenizerFile:
    """Check a `tokenizer.json`, and make it findable by its digest, for as long as the returned object lives.

    Returns:
        The stored object with the same digest if there is one, else a new one.

    Raises:
        InputError: the content is not a valid tokenizer.json.
    """
    backend_of(content)
    digest = hashlib.blake2b(content.encode(), digest_size=12).hexdigest()
    with _LOCK:
        return _TOKENIZERS.setdefault(digest, TokenizerFile(content, digest))


def tokenizer_of(digest: str | None) -> TokenizerFile:
    """The uploaded file with this digest.

    Raises:
        InputError: the digest is None, or the file is no longer held.
    """
    held = None if digest is None else _TOKENIZERS.get(digest)
    if held is None:
        gone = (
            "There is no tokenizer.json yet; upload one"
            if digest is None
            else "The tokenizer.json of these settings is no longer on this server; upload it again"
        )
        raise InputError(f"{gone} on the page Your data, or choose another kind of tokenizer.", "tokenizer")
    return held
