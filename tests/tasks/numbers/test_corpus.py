"""Numbers as a corpus: what is trained on, what is held out, and what a person may type."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.tasks.numbers.corpus import LANGUAGES, Numbers, is_held_out

CODES = tuple(LANGUAGES)


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


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_of_short_numbers_all_that_may_be_are_held_out(digits):
    numbers = [int(pair.target) for pair in Numbers("en", digits, False).held_out()]
    assert sorted(numbers) == [n for n in range(10**digits) if is_held_out(n)]


@pytest.mark.parametrize("digits", [5, 6])
def test_a_thousand_different_long_numbers_are_held_out_of_every_length_alike(digits):
    numbers = [int(pair.target) for pair in Numbers("en", digits, False).held_out()]
    assert len(numbers) == len(set(numbers)) == 1000
    assert max(numbers) < 10**digits
    lengths = Counter(len(str(number)) for number in numbers)
    assert max(lengths.values()) - min(n for length, n in lengths.items() if length > 3) <= 1
    assert [n for n in sorted(numbers) if n < 1000] == [n for n in range(1000) if is_held_out(n)]
    assert len({len(str(number)) for number in numbers[:40]}) >= 3  # in random order
    assert numbers == [int(pair.source) for pair in Numbers("de", digits, True).held_out()]


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
    ("code", "typed", "says", "offer"),
    [
        ("en", "", "no number to ask", None),
        ("en", " - ", "no number to ask", None),
        ("en", "two million", "“million” .* English numbers up to 9999", None),
        ("fr", "quarente-deux", "“quarente” .* French", None),
        ("de", "hallozwei", "“hallo” .* German", None),
        ("en", "342", "in words", "three hundred and forty two"),
        ("de", "34", "in words", "vierunddreißig"),
        ("en", "ten thousand and six", "10006 is too large", None),
        ("en", "12345", "12345 is too large", None),
        ("en", "two two", "“two two” is not a number", None),
        ("en", "twenty eleven", "is not a number", None),
        ("en", "two thousand three thousand", "is not a number", None),
        ("en", "zero thousand", "is not a number", None),
        ("en", "two thousand zero", "is not a number", None),
        ("en", "twelve hundred", "is not a number", None),
        ("en", "and", "is not a number", None),
    ],
)
def test_typed_words_that_cannot_be_asked_are_answered_with_what_to_do(code, typed, says, offer):
    with pytest.raises(InputError, match=says) as refused:
        Numbers(code, 4, False).read(typed)
    assert (refused.value.field, refused.value.offer) == ("probe_words", offer)


@pytest.mark.parametrize(
    ("typed", "says", "offer"),
    [
        (" ", "no number to ask", None),
        ("-5", "“-”", None),
        ("1 2", "a space", None),
        ("3.14", "“.”", None),
        ("Forty-two", "reads digits", "42"),
        ("12345", "12345 is too large", None),
        (6000 * "9", "6000 digits is too large", None),
    ],
)
def test_typed_digits_that_cannot_be_asked_are_answered_with_what_to_do(typed, says, offer):
    with pytest.raises(InputError, match=says) as refused:
        Numbers("en", 4, True).read(typed)
    assert (refused.value.field, refused.value.offer) == ("probe_words", offer)


@pytest.mark.parametrize(("to_words", "example"), [(True, "9"), (False, "nine")])
def test_an_example_in_a_message_is_never_too_large(to_words, example):
    with pytest.raises(InputError, match=rf"such as {example}\."):
        Numbers("en", 1, to_words).read("")


def test_what_is_not_written_as_trained_on_has_no_answer():
    read, write = Numbers("en", 4, False), Numbers("en", 4, True)
    for text in ("", "banana", "two two", "three hundred forty two", "forty-two"):
        assert read.find(text) is None
        assert read.references(text) == ()
    assert [write.find(text) for text in ("", "007", "x", "1000000", "12\n")] == 5 * [None]
