"""The pairs of the runs of this process, by digest: held only as long as a run or a page holds them."""

from __future__ import annotations

import threading
import weakref

from transformer.errors import InputError
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.text import FIELD

_KEPT: weakref.WeakValueDictionary[str, OwnPairs] = weakref.WeakValueDictionary()
_LOCK = threading.Lock()  # two threads that keep the same pairs get the same one


def keep(own: OwnPairs) -> OwnPairs:
    """Make pairs findable by their digest, for as long as the returned object lives.

    Returns:
        The equal ones that are held already, where there are some.
    """
    with _LOCK:
        return _KEPT.setdefault(own.digest, own)


def kept(digest: str) -> OwnPairs:
    """The pairs of a digest.

    Raises:
        InputError: the server no longer has them.
    """
    with _LOCK:
        own = _KEPT.get(digest)
    if own is None:
        raise InputError("The pairs of this run are no longer on this server; upload them again.", FIELD)
    return own
