"""Numbers in three languages: how they are said, and which words and digits belong together."""

from __future__ import annotations

import re

import pytest
from tokenizers import Regex, pre_tokenizers

from transformer.tasks.numbers.corpus import LANGUAGES, Numbers

CODES = ("en", "fr", "de")
SOME = [*range(1300), *range(1300, 1_000_000, 997), *range(79_000, 102_000, 50), 999_999]

BY_HAND = {
    "en": """
        0 zero; 7 seven; 13 thirteen; 20 twenty; 34 thirty four; 97 ninety seven; 100 one hundred; 101 one
        hundred and one; 342 three hundred and forty two; 1001 one thousand and one; 1100 one thousand one
        hundred; 2345 two thousand three hundred and forty five; 80080 eighty thousand and eighty; 101101 one
        hundred and one thousand one hundred and one; 700013 seven hundred thousand and thirteen
    """,
    "fr": """
        0 zéro; 16 seize; 17 dix-sept; 21 vingt-et-un; 22 vingt-deux; 61 soixante-et-un; 70 soixante-dix; 71
        soixante-et-onze; 77 soixante-dix-sept; 80 quatre-vingts; 81 quatre-vingt-un; 91 quatre-vingt-onze;
        97 quatre-vingt-dix-sept; 100 cent; 121 cent-vingt-et-un; 180 cent-quatre-vingts; 200 deux-cents; 201
        deux-cent-un; 1000 mille; 1100 mille-cent; 2300 deux-mille-trois-cents; 21000 vingt-et-un-mille;
        80080 quatre-vingt-mille-quatre-vingts; 100000 cent-mille; 200200 deux-cent-mille-deux-cents
    """,
    "de": """
        0 null; 1 eins; 11 elf; 16 sechzehn; 17 siebzehn; 21 einundzwanzig; 30 dreißig; 34 vierunddreißig; 66
        sechsundsechzig; 100 einhundert; 101 einhunderteins; 121 einhunderteinundzwanzig; 616
        sechshundertsechzehn; 1001 eintausendeins; 1100 eintausendeinhundert; 16017 sechzehntausendsiebzehn;
        21000 einundzwanzigtausend; 101000 einhunderteintausend; 101001 einhunderteintausendeins
    """,
}


def by_hand(code):
    """The list above: number, words."""
    entries = [" ".join(entry.split()) for entry in BY_HAND[code].split(";")]
    return [(int(number), words) for number, words in (entry.split(" ", 1) for entry in entries)]


# What words are worth, to add them up without the rules that put them together.
WORDS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
    "vingt trente quarante cinquante soixante",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn "
    "sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig "
    "eins",
}
VALUES = {
    "en": [*range(20), *range(20, 100, 10)],
    "fr": [*range(17), *range(20, 70, 10)],
    "de": [*range(20), *range(20, 100, 10), 1],
}
WORTH = {code: dict(zip(WORDS[code].split(), VALUES[code], strict=True)) for code in CODES}
HUNDRED = {"en": "hundred", "fr": "cent", "de": "hundert"}
THOUSAND = {"en": "thousand", "fr": "mille", "de": "tausend"}
AND = {"en": "and", "fr": "et", "de": "und"}


def added_up(code, text):
    """The number that a text says, by adding and multiplying what its words are worth."""
    if code == "de":
        text = re.sub("hundert|tausend|und", r" \g<0> ", text)
    total = group = 0
    previous = ""
    for word in re.split("[ -]+", text.strip()):
        if word == THOUSAND[code]:
            total, group = total + 1000 * (group or 1), 0
        elif word.rstrip("s") == HUNDRED[code]:
            group = 100 * (group or 1)
        elif previous == "quatre" and word in ("vingt", "vingts"):
            group += 80 - 4
        elif word != AND[code]:
            group += WORTH[code][word]
        previous = word
    return total + group


# Words.


@pytest.mark.parametrize("code", CODES)
def test_numbers_are_said_as_in_a_list_written_by_hand(code):
    read, write = Numbers(code, 6, False), Numbers(code, 6, True)
    for number, words in by_hand(code):
        assert read.find(words).target == str(number)
        assert write.find(str(number)).target == words
        assert read.read(words) == words
        assert write.read(str(number)) == str(number)


@pytest.mark.parametrize("code", CODES)
def test_the_words_of_a_number_add_up_to_it_and_are_understood(code):
    read, write = Numbers(code, 6, False), Numbers(code, 6, True)
    for number in SOME:
        text = write.find(str(number)).target
        assert added_up(code, text) == number
        assert read.find(text).target == str(number)


@pytest.mark.parametrize("code", CODES)
def test_a_number_and_its_words_are_written_in_one_way_only(code):
    """Also by the `tokenizers` package, which splits texts by the same expression."""
    writing = LANGUAGES[code].writing
    theirs = pre_tokenizers.Split(Regex(writing.unit), "removed", invert=True)
    for number in SOME:
        text = LANGUAGES[code].text(number)
        units = writing.units(text)
        assert units == tuple(word for word, _ in LANGUAGES[code].said(number))
        assert writing.clean(text) == writing.joined(units) == text
        assert tuple(word for word, _ in theirs.pre_tokenize_str(text)) == units


def test_numbers_are_put_together_from_their_words():
    units = {code: LANGUAGES[code].writing.units for code in CODES}
    assert units["en"]("three hundred and forty two") == ("three", "hundred", "and", "forty", "two")
    assert units["fr"]("quatre-vingt-dix-sept") == ("quatre", "vingt", "dix", "sept")
    assert units["de"]("dreihundertvierunddreißig") == ("drei", "hundert", "vier", "und", "dreißig")
    assert units["de"]("sechzehntausendsiebzehn") == ("sechzehn", "tausend", "siebzehn")


# Which words and digits belong together.


@pytest.mark.parametrize(
    ("code", "number", "words"),
    [
        ("en", 342, ["three hundred", "forty", "two"]),
        ("en", 5006, ["five thousand", "", "", "six"]),
        ("en", 20, ["twenty", ""]),
        ("en", 17, ["seventeen", "seventeen"]),
        ("en", 0, ["zero"]),
        ("en", 480_993, ["four hundred", "eighty thousand", "", "nine hundred", "ninety", "three"]),
        ("en", 11_000, ["eleven", "eleven thousand", "", "", ""]),
        ("de", 334_001, ["drei hundert", "dreißig", "vier tausend", "", "", "eins"]),
        ("fr", 97, ["quatre vingt dix", "sept"]),
        ("fr", 80, ["quatre vingts", ""]),
        ("fr", 71, ["soixante onze", "onze"]),
        ("fr", 21, ["vingt", "un"]),
        ("fr", 1100, ["mille", "cent", "", ""]),
        ("fr", 200_080, ["deux cent mille", "", "", "", "quatre vingts", ""]),
    ],
)
def test_digits_come_from_the_words_that_tell_them_by_hand(code, number, words):
    pair = Numbers(code, 6, False).find(LANGUAGES[code].text(number))
    units = LANGUAGES[code].writing.units(pair.source)
    assert [" ".join(units[place] for place in places) for places in pair.links] == words


@pytest.mark.parametrize("code", CODES)
def test_only_unsaid_zeros_and_the_word_for_and_come_from_nowhere(code):
    read, write = Numbers(code, 6, False), Numbers(code, 6, True)
    units = LANGUAGES[code].writing.units
    for number in SOME:
        there = write.find(str(number))
        back = read.find(there.target)
        words = units(there.target)
        assert len(there.links) == len(words)
        assert len(back.links) == len(back.target)
        for word, places in zip(words, there.links, strict=True):
            assert (places == ()) == (word == AND[code])
            assert set(places) <= set(range(len(there.source)))
        for digit, places in zip(back.target, back.links, strict=True):
            assert places or digit == "0"
            assert set(places) <= set(range(len(words)))
        # The same belong together, whichever side is read.
        assert {(word, digit) for digit, some in enumerate(back.links) for word in some} == {
            (word, digit) for word, some in enumerate(there.links) for digit in some
        }
