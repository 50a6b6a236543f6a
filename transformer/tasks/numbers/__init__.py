"""Numbers in words and in digits: a corpus, and one file a language with its words and rules."""

from __future__ import annotations

from transformer.tasks.numbers.corpus import Numbers

__all__ = ["Numbers"]
