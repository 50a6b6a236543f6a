"""Names and descriptions of the tasks, wherever they are shown."""

from __future__ import annotations

from typing import NamedTuple


class About(NamedTuple):
    """A task in words."""

    name: str
    what: str
    """What it reads and writes."""


ABOUT = {
    "reverse": About("Reverse words", "random letters, written backwards"),
    "copy": About("Copy words", "random letters, written as they are"),
    "sort": About("Sort letters", "random letters, in alphabetical order"),
    "caesar": About("Caesar's cipher", "random letters, each shifted in the alphabet"),
    "repeat": About(
        "Repeat what came before", "random letters; those from the last letter's earlier place on"
    ),
    "dates": About("Dates", "English dates, written as 2021-03-12"),
    "en-fr": About("English to French", "English sentences, in French"),
    "en-it": About("English to Italian", "English sentences, in Italian"),
    "zh-en": About("Chinese to English", "Chinese sentences, in English"),
    "pairs": About("Your own pairs", "your own pairs of sentences"),
}
