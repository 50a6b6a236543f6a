"""How texts are cleaned, split into units and joined again."""

from __future__ import annotations

import random
import unicodedata

import pytest
from tokenizers import Regex, pre_tokenizers

from transformer.tasks.writing import LETTERS, WORDS, Writing

ENGLISH, FRENCH = Writing(), Writing(spaced_signs="?!;:")
WRITINGS = {"English": ENGLISH, "French": FRENCH, "capitals": Writing(lower=False), "letters": LETTERS}
ODD = [
    *"a b Z s S l É J\u030c e\u0301 İ ß Σ ς ﬁ \u0301 ñ ' ’ - – — ? ! ; : . , … ( ) [ ] { } % \" «".split(),
    *"1 23 ² ½ ３ _ $ [PAD] [UNK] <s> 😀 ❤\ufe0f \u200d".split(),
    *"我 中 か カ 人々 。 ！ ？ 、 हिन्दी ไทย สวัสดี عَرَبِيّ".split(),
    *(" ", " ", " ", "  ", "\t", "\n", "\u00a0", "\u202f", "\u2009"),
]


def odd_texts(n=4000):
    """Return unusual texts, the same on every call."""
    chance = random.Random(5)
    return ["".join(chance.choice(ODD) for _ in range(chance.randint(0, 9))) for _ in range(n)]


@pytest.mark.parametrize("writing", WRITINGS.values(), ids=WRITINGS)
def test_clean_text_is_unchanged_by_cleaning_and_by_splitting_and_joining(writing):
    for text in odd_texts():
        clean = writing.clean(text)
        assert writing.clean(clean) == clean, repr(text)
        assert writing.join(writing.units(clean)) == clean, repr(text)
        assert clean == unicodedata.normalize("NFC", clean.strip())
        assert not set(clean) & {"\t", "\n", "\u00a0", "\u202f", "\u2009", "’"}
        assert "  " not in clean or writing is LETTERS


def test_cleaning_loses_nothing_but_spaces_and_capitals():
    for text in odd_texts():
        kept = unicodedata.normalize("NFC", text.replace("’", "'"))
        for writing in (ENGLISH, FRENCH):
            found = writing.clean(text).replace(" ", "")
            lowered = "".join(kept.lower().split())
            assert unicodedata.normalize("NFD", found) == unicodedata.normalize("NFD", lowered), repr(text)


def test_python_and_the_tokenizers_package_find_the_same_units():
    split = pre_tokenizers.Split(Regex(WORDS), "removed", invert=True)
    for text in odd_texts():
        clean = ENGLISH.clean(text)
        theirs = split.pre_tokenize_str(clean)
        assert ENGLISH.units(clean) == tuple(part for part, _ in theirs), repr(clean)
        assert ENGLISH.spans(clean) == [span for _, span in theirs]


@pytest.mark.parametrize(
    ("writing", "typed", "clean", "units"),
    [
        (ENGLISH, "  The  cat\tSees. ", "the cat sees.", "the cat sees ."),
        (ENGLISH, "The boy’s dog", "the boy's dog", "the boy 's dog"),
        (ENGLISH, "The boy 's ball-s's", "the boy's ball-s's", "the boy 's ball-s 's"),
        (ENGLISH, "Who is it ?", "who is it?", "who is it ?"),
        (ENGLISH, "a well-known ( big ) hat, too", "a well-known (big) hat, too", None),
        (FRENCH, "Où est-il?", "où est-il ?", "où est-il ?"),
        (FRENCH, "Où est\u2011il\u00a0?", "où est \u2011 il ?", None),
        (FRENCH, "Oui\u202f! Non\u00a0; si:", "oui ! non ; si :", "oui ! non ; si :"),
        (FRENCH, "L’ homme qu’il voit.", "l'homme qu'il voit.", "l' homme qu' il voit ."),
        (FRENCH, "aujourd'hui , 10 %", "aujourd'hui, 10%", None),
        (ENGLISH, "cafe\u0301", "café", "café"),
        (ENGLISH, "我 有 3 只 cat 。", "我有3只cat。", "我 有 3 只 cat 。"),
        (ENGLISH, "纽约（New York）是", "纽约（new york）是", "纽 约 （ new york ） 是"),
        (ENGLISH, "m² हिन्दी भाषा", "m² हिन्दी भाषा", "m² हिन्दी भाषा"),
        (ENGLISH, "", "", ""),
    ],
)
def test_different_spellings_of_a_text_are_cleaned_to_one(writing, typed, clean, units):
    assert writing.clean(typed) == clean
    if units is not None:
        assert writing.units(clean) == tuple(units.split())
        assert [clean[begin:end] for begin, end in writing.spans(clean)] == units.split()


def test_combining_marks_are_composed_after_cleaning():
    """The marks combine only after lower-casing, or after the space between Japanese signs is removed."""
    assert ENGLISH.clean("J\u030c") == "\u01f0"
    assert ENGLISH.clean("か \u3099") == "が"


def test_capitals_are_kept_on_request():
    assert Writing(lower=False).clean(" The  Cat ") == "The Cat"


def test_letters_are_units_and_are_joined_without_spaces():
    assert LETTERS.clean(" CaB ") == "cab"
    assert LETTERS.units("a b") == ("a", " ", "b")
    assert LETTERS.join(["a", " ", "b", "?"]) == "a b?"
    assert Writing(separator="-").join(["a", "b", "."]) == "a-b-."


@pytest.mark.parametrize(
    ("sign", "english", "french"),
    [("?", "a?", "a ?"), (";", "a;", "a ;"), (".", "a.", "a."), (")", "a)", "a)"), ("-", "a -", "a -")],
)
def test_only_french_has_a_space_before_high_punctuation(sign, english, french):
    assert ENGLISH.join(["a", sign]) == english
    assert FRENCH.join(["a", sign]) == french
