"""Grammars that make parallel sentences with their alignment; the words are tables in `words/`."""
