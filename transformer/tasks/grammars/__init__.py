"""Grammars that make parallel sentences with their alignment: one file a language, words and rules."""
