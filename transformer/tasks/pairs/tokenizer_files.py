"""Uploaded tokenizer files by digest, held only as long as a run or a page refers to them."""

from __future__ import annotations

import hashlib
import weakref
from dataclasses import dataclass

from transformer.errors import InputError
from transformer.tasks.tokenizer import backend_of


@dataclass(frozen=True, eq=False)
class TokenizerFile:
    """The content of one `tokenizer.json`; as long as this object lives, the server has it."""

    content: str
    digest: str


_HELD: weakref.WeakValueDictionary[str, TokenizerFile] = weakref.WeakValueDictionary()


def keep_tokenizer(content: str) -> TokenizerFile:
    """Check a `tokenizer.json` and hold it under its digest.

    Raises:
        InputError: the content is not a valid tokenizer.json.
    """
    backend_of(content)
    digest = hashlib.blake2b(content.encode(), digest_size=12).hexdigest()
    return _HELD.setdefault(digest, TokenizerFile(content, digest))


def kept(digest: str | None) -> TokenizerFile:
    """The uploaded file with this digest.

    Raises:
        InputError: the digest is None, or the file is no longer held.
    """
    if digest is None:
        raise InputError(
            "There is no tokenizer.json yet; upload one on the page Your data, or choose another kind of "
            "tokenizer.",
            "tokenizer",
        )
    held = _HELD.get(digest)
    if held is None:
        raise InputError(
            "The tokenizer.json of these settings is no longer on this server; upload it again on the page "
            "Your data, or choose another kind of tokenizer.",
            "tokenizer",
        )
    return held
