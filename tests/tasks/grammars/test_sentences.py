"""Each language against sentences translated by hand and word sequences that must never occur."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from transformer.tasks import CORPORA, PATTERNS
from transformer.tasks.grammars.romance import FRENCH, ITALIAN

FILES = {"en-fr": "french", "en-it": "italian", "zh-en": "chinese"}
VOWEL = {"en-fr": "[aeiouhéêèîô]", "en-it": "[aeiou]"}
HEAVY = "(s[bcdfglmnpqrtvz]|z|gn|ps)"
"""The consonants before which Italian uses "lo" instead of "il"."""
PERSONS = "(man|men|woman|women|boys?|girls?|students?)"
COLOUR = "(red|green|yellow|blue|black|white)"
ADJECTIVE = "|".join({each.en for language in (FRENCH, ITALIAN) for each in language.lexicon.adjectives})
MEANS_ANOTHER_THING = {
    "my wife": rf"\b(my|his|her)( ({ADJECTIVE}))* {PERSONS}\b",
    "a bachelor": rf"\bold( ({ADJECTIVE}))* (boys?|girls?|students?)\b",
    "whose girl": rf"'s .*\b{PERSONS}\b",
    "a cat that nobody knows": r"\b(likes?|like) an? ((?!'s).)*$",  # "a boy's cat" is allowed
    "a red house is green": rf"\b{COLOUR} \w+ (is|are) {COLOUR}$",
    "to buy a person": rf"\b(hides?|buys?|wants?|carry|carries) ((?!of)\w+ ){{1,4}}{PERSONS}$",
}
"""Sentences with an unintended meaning, found by word sequences, independently of the rules."""
NEVER = {
    "en-fr": [
        rf"\b(le|la|ne|de|que|ce|ma|sa) {VOWEL['en-fr']}",
        rf"\b(un|le|du|ce|mon|son) (vieux|beau|nouveau) {VOWEL['en-fr']}",  # "trois vieux arbres" is right
        rf"\b(cet|vieil|bel|nouvel) (?!{VOWEL['en-fr']})",
        rf"'(?!{VOWEL['en-fr']})",
        r"\bde (le|les)\b",
    ],
    "en-it": [
        rf"\b(il|i|un|bel|bei|del|dei) {HEAVY}",
        rf"\b(il|lo|la|i|uno|una|questo|questa|bel|bello|bella|bei|del|dello|della|dei) {VOWEL['en-it']}",
        rf"\b(lo|gli|uno|bello|begli|dello|degli) (?!{HEAVY}|{VOWEL['en-it']})",
        rf"'(?!{VOWEL['en-it']})",
        r"\bdi (il|lo|la|i|gli|le) |\bdi l'",
    ],
    "zh-en": [r"\ba [aeiou]", r"\ban [^aeiou]"],
}
"""Word forms that are wrong before the word that follows."""


@cache
def grammar(task):
    return CORPORA[task][0](None, 2 if task == "zh-en" else 4)


@cache
def targets(task):
    """Drawn translations, without Italian clitic sentences, in which "lo" is a pronoun."""
    pairs = grammar(task).drawn(np.random.default_rng(6), 3000)
    return [pair.target for pair in pairs if (task, pair.pattern) != ("en-it", "clitic")]


def by_hand(task, what):
    """Return the rows of one kind from the file of a language; comments in the file explain them."""
    path = Path(__file__).parent / "sentences" / f"{FILES[task]}.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [row[1:] for row in rows if row[0] == what]


def linked(task, pair):
    """Return each target word with the source words or places that it is linked to, as in the files."""
    units = grammar(task).src.units(pair.source)
    found = []
    for word, places in zip(grammar(task).tgt.units(pair.target), pair.links, strict=True):
        read = "".join(units[place] for place in places) if task == "zh-en" else ",".join(map(str, places))
        found.append(f"{word}:{read}")
    return " ".join(found)


@pytest.mark.parametrize("task", FILES)
def test_translations_equal_those_made_by_hand(task):
    expected = dict(by_hand(task, "sentence"))
    found = {source: grammar(task).find(source) for source in expected}
    assert {source: pair and pair.target for source, pair in found.items()} == expected
    assert {pair.pattern for pair in found.values()} == set(PATTERNS[task])


@pytest.mark.parametrize("task", FILES)
def test_links_equal_those_made_by_hand(task):
    expected = dict(by_hand(task, "links"))
    found = {source: grammar(task).find(source) for source in expected}
    assert {source: pair and linked(task, pair) for source, pair in found.items()} == expected
    assert {pair.pattern for pair in found.values()} == set(PATTERNS[task])


def test_a_repeated_character_does_not_shift_the_links():
    pair = grammar("zh-en").find("我把这把椅子卖了")  # 0 我, 1 把, 2 这, 3 把, 4 椅, 5 子, 6 卖, 7 了
    assert pair.target == "I sold this chair"
    assert pair.links == ((0,), (6, 7), (2,), (4, 5))


@pytest.mark.parametrize("task", FILES)
def test_sentences_that_are_wrong_or_have_an_unintended_meaning_are_not_recognised(task):
    read = {source: grammar(task).read(source) for source, *_ in by_hand(task, "wrong")}
    assert [source for source in read if grammar(task).find(read[source])] == []


@pytest.mark.parametrize("task", ["en-fr", "en-it"])
def test_sentences_with_an_unintended_meaning_are_never_drawn(task):
    sources = [pair.source for pair in grammar(task).drawn(np.random.default_rng(5), 3000)]
    for meaning, wrong in MEANS_ANOTHER_THING.items():
        assert [source for source in sources if re.search(wrong, source)] == [], meaning


@pytest.mark.parametrize("task", FILES)
def test_every_word_form_fits_the_word_that_follows(task):
    for wrong in NEVER[task]:
        assert [target for target in targets(task) if re.search(wrong, target)] == [], wrong
