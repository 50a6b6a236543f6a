"""One side of a pair as plain text, whatever stood around or inside it in the file."""

from __future__ import annotations

import re
import unicodedata

_NO_SIGNS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\ud800-\udfff\ufeff\ufffe\uffff]+")
"""Controls that are no spaces, halves of characters, and what has no width: nobody sees or types them."""


def plain(text: str) -> str:
    """Composed characters (NFC) and single plain spaces; U+00A0, U+202F and U+2028 are spaces too."""
    if not text.isascii() or not text.isprintable():
        # First, since two characters may compose once nothing stands between them.
        text = unicodedata.normalize("NFC", _NO_SIGNS.sub("", text))
    return " ".join(text.split())


def shortened(text: str, longest: int = 60) -> str:
    """The beginning of a text, as an example of it."""
    beginning = plain(text[: 4 * longest])
    if len(beginning) <= longest and len(text) <= 4 * longest:
        return beginning
    return beginning[: longest - 1] + "…"
