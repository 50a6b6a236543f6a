"""The user's own pairs and tokenizer files by digest: held only as long as a run or a page holds them."""

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
    """The content of one `tokenizer.json`; as long as this object lives, the server has it."""

    content: str
    digest: str


_PAIRS: WeakValueDictionary[str, OwnPairs] = WeakValueDictionary()
_TOKENIZERS: WeakValueDictionary[str, TokenizerFile] = WeakValueDictionary()
_LOCK = threading.Lock()  # two threads that keep the same upload get the same object


def keep(own: OwnPairs) -> OwnPairs:
    """Make pairs findable by their digest, for as long as the returned object lives.

    Returns:
        The equal ones that are held already, where there are some.
    """
    with _LOCK:
        return _PAIRS.setdefault(own.digest, own)


def kept(digest: str) -> OwnPairs:
    """The pairs of a digest.

    Raises:
        InputError: the server no longer has them.
    """
    own = _PAIRS.get(digest)
    if own is None:
        raise InputError("The pairs of this run are no longer on this server; upload them again.", FIELD)
    return own


def keep_tokenizer(content: str) -> TokenizerFile:
    """Check a `tokenizer.json` and hold it under its digest.

    Raises:
        InputError: the content is not a valid tokenizer.json.
    """
    backend_of(content)
    digest = hashlib.blake2b(content.encode(), digest_size=12).hexdigest()
    with _LOCK:
        return _TOKENIZERS.setdefault(digest, TokenizerFile(content, digest))


def kept_tokenizer(digest: str | None) -> TokenizerFile:
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
