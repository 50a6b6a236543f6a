"""Numbers in three languages: their words, their digits, and which of them belong together."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import numpy as np
import pytest
from tokenizers import Regex, pre_tokenizers

from transformer.errors import InputError
from transformer.tasks.numbers.corpus import LANGUAGES, Numbers, is_held_out

CODES = ("en", "fr", "de")
SOME = [*range(1300), *range(1300, 1_000_000, 997), *range(79_000, 102_000, 50), 999_999]

BY_HAND = {
    "en": """
        0 zero; 1 one; 2 two; 3 three; 4 four; 5 five; 6 six; 7 seven; 8 eight; 9 nine; 10 ten; 11 eleven;
        12 twelve; 13 thirteen; 14 fourteen; 15 fifteen; 16 sixteen; 17 seventeen; 18 eighteen; 19
        nineteen; 20 twenty; 21 twenty one; 30 thirty; 34 thirty four; 40 forty; 50 fifty; 60 sixty; 70
        seventy; 80 eighty; 90 ninety; 97 ninety seven; 100 one hundred; 101 one hundred and one; 110 one
        hundred and ten; 200 two hundred; 342 three hundred and forty two; 999 nine hundred and ninety
        nine; 1000 one thousand; 1001 one thousand and one; 1100 one thousand one hundred; 5006 five
        thousand and six; 2345 two thousand three hundred and forty five; 10000 ten thousand; 12012 twelve
        thousand and twelve; 80080 eighty thousand and eighty; 100000 one hundred thousand; 101101 one
        hundred and one thousand one hundred and one; 700013 seven hundred thousand and thirteen; 999999
        nine hundred and ninety nine thousand nine hundred and ninety nine
    """,
    "fr": """
        0 zéro; 1 un; 2 deux; 3 trois; 4 quatre; 5 cinq; 6 six; 7 sept; 8 huit; 9 neuf; 10 dix; 11 onze;
        12 douze; 13 treize; 14 quatorze; 15 quinze; 16 seize; 17 dix-sept; 18 dix-huit; 19 dix-neuf; 20
        vingt; 21 vingt-et-un; 22 vingt-deux; 30 trente; 31 trente-et-un; 40 quarante; 50 cinquante; 60
        soixante; 61 soixante-et-un; 69 soixante-neuf; 70 soixante-dix; 71 soixante-et-onze; 72
        soixante-douze; 76 soixante-seize; 77 soixante-dix-sept; 79 soixante-dix-neuf; 80 quatre-vingts;
        81 quatre-vingt-un; 84 quatre-vingt-quatre; 90 quatre-vingt-dix; 91 quatre-vingt-onze; 97
        quatre-vingt-dix-sept; 99 quatre-vingt-dix-neuf; 100 cent; 101 cent-un; 121 cent-vingt-et-un; 180
        cent-quatre-vingts; 200 deux-cents; 201 deux-cent-un; 280 deux-cent-quatre-vingts; 342
        trois-cent-quarante-deux; 1000 mille; 1001 mille-un; 1100 mille-cent; 1999
        mille-neuf-cent-quatre-vingt-dix-neuf; 2000 deux-mille; 2300 deux-mille-trois-cents; 5006
        cinq-mille-six; 21000 vingt-et-un-mille; 80000 quatre-vingt-mille; 80080
        quatre-vingt-mille-quatre-vingts; 100000 cent-mille; 200000 deux-cent-mille; 101000 cent-un-mille;
        200200 deux-cent-mille-deux-cents; 999999
        neuf-cent-quatre-vingt-dix-neuf-mille-neuf-cent-quatre-vingt-dix-neuf
    """,
    "de": """
        0 null; 1 eins; 2 zwei; 3 drei; 4 vier; 5 fünf; 6 sechs; 7 sieben; 8 acht; 9 neun; 10 zehn; 11
        elf; 12 zwölf; 13 dreizehn; 14 vierzehn; 15 fünfzehn; 16 sechzehn; 17 siebzehn; 18 achtzehn; 19
        neunzehn; 20 zwanzig; 21 einundzwanzig; 22 zweiundzwanzig; 30 dreißig; 34 vierunddreißig; 40
        vierzig; 50 fünfzig; 60 sechzig; 66 sechsundsechzig; 70 siebzig; 77 siebenundsiebzig; 80 achtzig;
        88 achtundachtzig; 90 neunzig; 100 einhundert; 101 einhunderteins; 111 einhundertelf; 121
        einhunderteinundzwanzig; 200 zweihundert; 334 dreihundertvierunddreißig; 616 sechshundertsechzehn;
        1000 eintausend; 1001 eintausendeins; 1100 eintausendeinhundert; 5006 fünftausendsechs; 10000
        zehntausend; 16017 sechzehntausendsiebzehn; 21000 einundzwanzigtausend; 101000
        einhunderteintausend; 101001 einhunderteintausendeins; 30030 dreißigtausenddreißig; 999999
        neunhundertneunundneunzigtausendneunhundertneunundneunzig
    """,
}


def by_hand(code):
    """The list above: number, words."""
    entries = [" ".join(entry.split()) for entry in BY_HAND[code].split(";")]
    return [(int(number), words) for number, words in (entry.split(" ", 1) for entry in entries)]


# What words are worth, to add them up without the rules that put them together.


def worth(words, *values):
    return dict(zip(words.split(), [n for some in values for n in some], strict=True))


WORTH = {
    "en": worth(
        """
        zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
        """,
        range(20),
        range(20, 100, 10),
    ),
    "fr": worth(
        """
        zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize
        vingt trente quarante cinquante soixante
        """,
        range(17),
        range(20, 70, 10),
    ),
    "de": worth(
        """
        null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn
        siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig eins
        """,
        range(20),
        range(20, 100, 10),
        [1],
    ),
}
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
    assert len(by_hand(code)) >= 40
    read, write = Numbers(code, 6, False), Numbers(code, 6, True)
    for number, words in by_hand(code):
        assert read.find(words).target == str(number)
        assert write.find(str(number)).target == words
        assert read.read(words) == words
        assert write.read(str(number)) == str(number)


@pytest.mark.parametrize("code", CODES)
def test_the_words_of_a_number_add_up_to_it(code):
    write = Numbers(code, 6, True)
    for number in SOME:
        assert added_up(code, write.find(str(number)).target) == number


@pytest.mark.parametrize("code", CODES)
def test_no_two_numbers_are_said_alike_and_each_is_understood(code):
    read, write = Numbers(code, 6, False), Numbers(code, 6, True)
    texts = [write.find(str(number)).target for number in SOME]
    assert len(set(texts)) == len(set(SOME))
    assert [read.find(text).target for text in texts] == list(map(str, SOME))


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


def told(code, number):
    """For each digit, the words that it comes from."""
    pair = Numbers(code, 6, True).find(str(number))
    pair = Numbers(code, 6, False).find(pair.target)
    units = LANGUAGES[code].writing.units(pair.source)
    return [" ".join(units[place] for place in places) for places in pair.links]


def test_digits_come_from_the_words_that_tell_them_by_hand():
    assert told("en", 342) == ["three hundred", "forty", "two"]
    assert told("en", 5006) == ["five thousand", "", "", "six"]
    assert told("en", 20) == ["twenty", ""]
    assert told("en", 10) == ["ten", "ten"]
    assert told("en", 17) == ["seventeen", "seventeen"]
    assert told("en", 0) == ["zero"]
    assert told("en", 480_993) == ["four hundred", "eighty thousand", "", "nine hundred", "ninety", "three"]
    assert told("en", 11_000) == ["eleven", "eleven thousand", "", "", ""]
    assert told("de", 34) == ["dreißig", "vier"]
    assert told("de", 334_001) == ["drei hundert", "dreißig", "vier tausend", "", "", "eins"]
    assert told("fr", 97) == ["quatre vingt dix", "sept"]
    assert told("fr", 80) == ["quatre vingts", ""]
    assert told("fr", 71) == ["soixante onze", "onze"]
    assert told("fr", 70) == ["soixante dix", "dix"]
    assert told("fr", 21) == ["vingt", "un"]
    assert told("fr", 1100) == ["mille", "cent", "", ""]
    assert told("fr", 200_080) == ["deux cent mille", "", "", "", "quatre vingts", ""]


def test_words_come_from_the_digits_that_they_tell_by_hand():
    assert Numbers("en", 4, True).find("342").links == ((0,), (0,), (), (1,), (2,))
    assert Numbers("de", 4, True).find("334").links == ((0,), (0,), (2,), (), (1,))
    assert Numbers("fr", 4, True).find("97").links == ((0,), (0,), (0,), (1,))
    assert Numbers("en", 4, True).find("5013").links == ((0,), (0,), (), (2, 3))
    assert Numbers("en", 4, True).find("0").links == ((0,),)


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


@pytest.mark.parametrize("code", ["en", "de"])
def test_a_word_tells_the_digits_that_it_is_worth(code):
    write = Numbers(code, 6, True)
    for number in SOME:
        pair = write.find(str(number))
        for word, places in zip(LANGUAGES[code].writing.units(pair.target), pair.links, strict=True):
            value = WORTH[code].get(word)
            if value is not None:
                digits = "".join(pair.source[place] for place in places)
                assert digits == str(value if value < 20 else value // 10)


# What is trained on, and what is held out.


@pytest.mark.parametrize("to_words", [False, True])
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("digits", [1, 2, 3, 6])
def test_training_never_sees_a_held_out_number_but_every_word(code, digits, to_words):
    corpus = Numbers(code, digits, to_words)
    pairs = corpus.drawn(np.random.default_rng(digits), 4000)
    held_out = corpus.held_out()
    assert not {pair.source for pair in pairs} & {pair.source for pair in held_out}
    assert not any(pair.held_out for pair in pairs)
    assert all(pair.held_out for pair in held_out)
    units = LANGUAGES[code].writing.units
    seen, needed = (
        {word for pair in some for word in units(pair.target if to_words else pair.source)}
        for some in (pairs, held_out)
    )
    assert needed <= seen
    for pair in pairs[:500]:
        assert corpus.find(pair.source) == pair
        assert corpus.references(pair.source) == (pair.target,)


def test_numbers_of_every_length_are_drawn_equally_often():
    pairs = Numbers("en", 5, False).drawn(np.random.default_rng(0), 5000)
    lengths = Counter(len(pair.target) for pair in pairs)
    assert set(lengths) == {1, 2, 3, 4, 5}
    assert all(900 < n < 1100 for n in lengths.values())
    assert {pair.target for pair in pairs if len(pair.target) == 1} == set("0123456789")


def test_one_number_in_ten_is_held_out_unless_others_are_made_of_it():
    def by_rule(number):
        digest = hashlib.blake2b(str(number).encode(), digest_size=8).hexdigest()
        return str(int(digest, 16))[-1] == "0"

    blocks = {*range(21), *range(20, 100, 10)}
    assert not any(map(is_held_out, blocks))
    others = [number for number in range(20_000) if number not in blocks]
    assert list(filter(is_held_out, others)) == list(filter(by_rule, others))
    assert sum(map(is_held_out, others)) / len(others) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5, 6])
def test_up_to_a_thousand_different_numbers_are_held_out_of_every_length_alike(digits):
    pairs = Numbers("en", digits, False).held_out()
    numbers = [int(pair.target) for pair in pairs]
    there_are = [n for n in range(min(10**digits, 10_000)) if is_held_out(n)]
    assert len(numbers) == len(set(numbers)) == (len(there_are) if digits <= 4 else 1000)
    assert max(numbers, default=0) < 10**digits
    if digits <= 4:
        assert sorted(numbers) == there_are
    else:
        of = Counter(len(str(number)) for number in numbers)
        assert len({n for length, n in of.items() if length > 3}) <= 2
        assert max(of.values()) - of[digits] <= 1
        assert [n for n in sorted(numbers) if n < 1000] == [n for n in there_are if n < 1000]
        assert len({len(str(number)) for number in numbers[:40]}) >= 3  # in random order
    assert numbers == [int(pair.source) for pair in Numbers("de", digits, True).held_out()]


def test_batches_depend_on_their_random_numbers_alone():
    state = np.random.get_state()[1].copy()
    corpus = Numbers("fr", 6, True)
    first, again, other = (corpus.drawn(np.random.default_rng([seed, 2]), 20) for seed in (0, 0, 1))
    assert first == again != other
    assert np.array_equal(np.random.get_state()[1], state)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5, 6])
def test_probes_are_numbers_that_fit(code, digits):
    for to_words in (False, True):
        corpus = Numbers(code, digits, to_words)
        assert 2 <= len(corpus.probes()) <= 5
        assert [corpus.read(text) for text in corpus.probes()] == list(corpus.probes())


# What a person types.


@pytest.mark.parametrize(
    ("code", "typed", "read"),
    [
        ("en", " Three Hundred and Forty-Two ", "three hundred and forty two"),
        ("en", "three hundred forty two", "three hundred and forty two"),
        ("en", "five thousand, six", "five thousand and six"),
        ("en", "a hundred and one", "one hundred and one"),
        ("en", "thousand", "one thousand"),
        ("en", "a hundred thousand", "one hundred thousand"),
        ("en", "fourty", "forty"),
        ("fr", "Quatre vingt dix sept", "quatre-vingt-dix-sept"),
        ("fr", "vingt un", "vingt-et-un"),
        ("fr", "deux cent", "deux-cents"),
        ("fr", "deux-cents-mille", "deux-cent-mille"),
        ("fr", "quatre-vingt", "quatre-vingts"),
        ("fr", "un mille", "mille"),
        ("fr", "ze\u0301ro", "zéro"),
        ("fr", "zero", "zéro"),
        ("de", "Drei hundert vier und dreissig", "dreihundertvierunddreißig"),
        ("de", "hundert", "einhundert"),
        ("de", "tausendundeins", "eintausendeins"),
        ("de", "hundertfuenfundfuenfzig", "einhundertfünfundfünfzig"),
        ("de", "ZWOELF", "zwölf"),
        ("de", "EINHUNDERTTAUSEND", "einhunderttausend"),
        ("de", "ein", "eins"),
    ],
)
def test_typed_words_are_put_as_they_are_trained_on(code, typed, read):
    assert Numbers(code, 6, False).read(typed) == read


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("342", "342"),
        (" 007\n", "7"),
        ("0", "0"),
        ("000000342", "342"),
        ("12,345", "12345"),
        ("12 345", "12345"),
    ],
)
def test_typed_digits_are_cleaned(typed, read):
    assert Numbers("en", 5, True).read(typed) == read


@pytest.mark.parametrize(
    ("code", "typed", "message", "offer"),
    [
        ("en", "", "There is no number to ask; type one, such as three hundred and forty two.", None),
        ("en", " - ", "There is no number to ask; type one, such as three hundred and forty two.", None),
        (
            "en",
            "two million",
            "“million” is not a word of English numbers up to 9999. "
            "Type one such as three hundred and forty two.",
            None,
        ),
        (
            "fr",
            "quarente-deux",
            "“quarente” is not a word of French numbers up to 9999. "
            "Type one such as trois-cent-quarante-deux.",
            None,
        ),
        (
            "de",
            "hallozwei",
            "“hallo” is not a word of German numbers up to 9999. Type one such as dreihundertzweiundvierzig.",
            None,
        ),
        (
            "en",
            "342",
            "This run reads numbers in words. Try three hundred and forty two.",
            "three hundred and forty two",
        ),
        ("de", "34", "This run reads numbers in words. Try vierunddreißig.", "vierunddreißig"),
        (
            "en",
            "ten thousand and six",
            "10006 is too large; this run learns numbers up to 9999. Type a smaller one.",
            None,
        ),
        ("en", "12345", "12345 is too large; this run learns numbers up to 9999. Type a smaller one.", None),
        *(
            (
                "en",
                text,
                f"“{text}” does not say a number in English. Type one such as three hundred and forty two.",
                None,
            )
            for text in (
                "two two",
                "twenty eleven",
                "two thousand three thousand",
                "zero thousand",
                "two thousand zero",
                "two twenty",
                "twelve hundred",
                "and",
            )
        ),
    ],
)
def test_typed_words_that_cannot_be_asked_are_answered_with_what_to_do(code, typed, message, offer):
    with pytest.raises(InputError) as refused:
        Numbers(code, 4, False).read(typed)
    assert str(refused.value) == message
    assert (refused.value.field, refused.value.offer) == ("probe_words", offer)


@pytest.mark.parametrize(
    ("typed", "message", "offer"),
    [
        (" ", "There is no number to ask; type one, such as 342.", None),
        ("-5", "Only the digits 0 to 9 are in the alphabet, not “-”. Type a number such as 342.", None),
        ("1 2", "Only the digits 0 to 9 are in the alphabet, not a space. Type a number such as 342.", None),
        ("3.14", "Only the digits 0 to 9 are in the alphabet, not “.”. Type a number such as 342.", None),
        ("Forty-two", "This run reads digits. Try 42.", "42"),
        ("12345", "12345 is too large; this run learns numbers up to 9999. Type a smaller one.", None),
        (
            6000 * "9",
            "A number of 6000 digits is too large; this run learns numbers up to 9999. Type a smaller one.",
            None,
        ),
    ],
)
def test_typed_digits_that_cannot_be_asked_are_answered_with_what_to_do(typed, message, offer):
    with pytest.raises(InputError) as refused:
        Numbers("en", 4, True).read(typed)
    assert str(refused.value) == message
    assert (refused.value.field, refused.value.offer) == ("probe_words", offer)


def test_an_example_in_a_message_is_never_too_large():
    for to_words in (False, True):
        with pytest.raises(InputError, match="such as (9|nine)\\."):
            Numbers("en", 1, to_words).read("")


def test_what_is_not_written_as_trained_on_has_no_answer():
    read, write = Numbers("en", 4, False), Numbers("en", 4, True)
    for text in ("", "banana", "two two", "three hundred forty two", "forty-two"):
        assert read.find(text) is None
        assert read.references(text) == ()
    assert [write.find(text) for text in ("", "007", "x", "1000000", "12\n")] == 5 * [None]


def test_numbers_say_what_kind_of_task_they_are():
    read, write = Numbers("de", 3, False), Numbers("de", 3, True)
    assert (read.name, read.same_length, read.translates, read.size) == ("numbers", False, False, None)
    assert read.everyday() == write.everyday() == ()
    assert read.src == write.tgt != read.tgt == write.src
    assert read.tgt.units("342") == ("3", "4", "2")
