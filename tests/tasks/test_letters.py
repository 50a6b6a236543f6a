"""Random words: what every letter task draws, holds out and accepts as a question."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.tasks.caesar import Caesar
from transformer.tasks.copying import Copy
from transformer.tasks.corpus import held_out_by_hash
from transformer.tasks.letters import is_held_out
from transformer.tasks.sorting import Sort


def words(pairs):
    return [pair.source for pair in pairs]


def drawn(corpus, seed, k, count=64):
    return words(corpus.drawn(np.random.default_rng([seed, k]), count))


def held_out_by_hand(word):
    """The held-out rule, reimplemented: 3 letters or more, and a decimal 64-bit BLAKE2b hash ending in 0."""
    number = int(hashlib.blake2b(word.encode(), digest_size=8).hexdigest(), 16)
    return len(word) >= 3 and str(number)[-1] == "0"


def test_random_words_are_not_cached():
    before = held_out_by_hash.cache_info()
    drawn(Copy(1, 12), 5, 0)
    assert held_out_by_hash.cache_info() == before


def test_words_are_drawn_as_in_all_recorded_runs():
    first = drawn(Copy(1, 12), 0, 0)
    assert first[:6] == ["hucxiqdjcnz", "bynjrogi", "tkixgfs", "kuig", "wlxu", "y"]
    assert drawn(Copy(1, 12), 7, 3)[-5:] == ["cvonlg", "fhyicjy", "nm", "zuqujrg", "bniybmzx"]
    long = drawn(Copy(5, 8), 0, 0, 256)
    assert long[:3] == ["dduhupwo", "xonjopa", "mvvqsyq"]
    assert long[-5:] == ["zzisy", "bpccz", "oardjvzr", "hzatr", "gatuf"]  # after about 25 replaced words


def test_held_out_words_are_those_of_all_recorded_runs():
    held_out = words(Copy(1, 12).held_out())
    assert held_out[:5] == ["aevu", "lmuewimkuvr", "zstjmprvk", "cyrszkxeheri", "nmfrft"]
    assert held_out[-3:] == ["ulgfiloicr", "zqimsv", "beymrntqv"]
    assert words(Copy(5, 8).held_out())[:3] == ["cunswnhh", "ctaxr", "nhuavj"]
    assert Copy(5, 8).words_of_length(2, 4) == ["qw", "na", "wp", "um"]
    assert Copy(5, 8).words_of_length(9, 3) == ["bvxeyntht", "vjghjuahm", "komvvaurc"]


@pytest.mark.parametrize("other", [Sort(2, 7), Caesar(2, 7, 9)], ids=lambda corpus: corpus.name)
def test_every_letter_task_has_the_same_words(other):
    copy = Copy(2, 7)
    assert drawn(other, 3, 4) == drawn(copy, 3, 4)
    assert words(other.held_out()) == words(copy.held_out())
    assert other.everyday() == copy.everyday()
    assert other.tracked_words() == copy.tracked_words()


@pytest.mark.parametrize("longest", [3, 5, 12])
def test_training_never_sees_a_held_out_word(longest):
    copy = Copy(1, longest)
    pairs = copy.drawn(np.random.default_rng(7), 15_000)
    seen = set(words(pairs))
    assert not seen & set(words(copy.held_out()))
    assert not [word for word in seen if held_out_by_hand(word)]
    assert not any(pair.held_out for pair in pairs)
    assert sum(len(word) >= 3 for word in seen) > 1000


def test_one_in_ten_words_of_three_or_more_letters_is_held_out_and_no_shorter_word():
    letters = "abcdefghijklmnopqrstuvwxyz"
    three = [a + b + c for a in letters for b in letters for c in letters]
    assert sum(map(is_held_out, three)) / len(three) == pytest.approx(0.1, abs=0.01)
    assert [word for word in three if is_held_out(word)] == [word for word in three if held_out_by_hand(word)]
    assert not any(is_held_out(word) for word in [*letters, *(w[:2] for w in three)])


def test_training_words_of_every_length_are_equally_frequent_and_use_every_letter():
    found = drawn(Copy(2, 6), 1, 0, 4000)
    counts = Counter(map(len, found))
    assert set(counts) == {2, 3, 4, 5, 6}
    assert all(700 < n < 900 for n in counts.values())
    assert set("".join(found)) == set("abcdefghijklmnopqrstuvwxyz")


def test_drawing_does_not_affect_the_global_random_state():
    state = np.random.get_state()[1].copy()
    copy = Copy(1, 8)
    first = drawn(copy, 5, 9)
    drawn(copy, 5, 8)
    assert drawn(copy, 5, 9) == first
    assert len({tuple(drawn(copy, seed, k)) for seed in range(5) for k in range(5)}) == 25
    assert np.array_equal(np.random.get_state()[1], state)


@pytest.mark.parametrize(("shortest", "longest"), [(1, 3), (1, 12), (5, 8)])
def test_a_thousand_different_words_are_held_out_and_are_the_same_for_every_run(shortest, longest):
    pairs = Copy(shortest, longest).held_out()
    found = words(pairs)
    assert len(found) == len(set(found)) == 1000
    assert all(map(held_out_by_hand, found))
    assert all(pair.held_out for pair in pairs)
    counts = Counter(map(len, found))
    lengths = range(max(3, shortest), longest + 1)
    assert set(counts) == set(lengths)
    expected = 1000 / len(lengths)
    assert all(0.7 * expected < n < 1.3 * expected for n in counts.values())
    assert pairs == Copy(shortest, longest).held_out()
    assert len(set(map(len, found[:100]))) == len(lengths)  # in random order: the first are a fair sample


def test_everyday_words_are_within_the_trained_length():
    found = Copy(4, 7).everyday()
    assert {len(word) for word in found} == {4, 5, 6, 7}
    assert {"bird", "banana"} <= set(found)
    assert all(word.isascii() and word.islower() and word.isalpha() for word in found)
    assert [Copy(4, 7).find(word).held_out for word in found] == list(map(held_out_by_hand, found))


def test_probes_are_everyday_words_of_a_trained_length_or_else_held_out_words():
    assert Copy(1, 12).tracked_words() == ("playground", "banana", "strawberry", "kayak", "cat")
    assert Copy(1, 5).tracked_words() == ("kayak", "cat")
    assert Copy(6, 9).tracked_words() == ("banana",)
    assert list(Copy(7, 9).tracked_words()) == words(Copy(7, 9).held_out())[:3]


def test_accuracy_is_reported_up_to_a_third_and_at_least_two_letters_beyond_the_longest_word():
    assert Copy(1, 12).report_lengths() == tuple(range(1, 17))
    assert Copy(3, 3).report_lengths() == (3, 4, 5)


def test_words_of_one_length_are_held_out_words_where_that_length_has_any():
    assert all(map(held_out_by_hand, Copy(1, 5).words_of_length(6, 50)))
    assert {len(word) for word in Copy(1, 5).words_of_length(6, 50)} == {6}
    assert len(Copy(1, 5).words_of_length(1, 30)) == 30


def test_any_lower_case_word_is_found_and_no_other_text():
    copy = Copy(2, 4)
    for word in ("q", "cat", "refrigerator"):
        pair = copy.find(word)
        assert (pair.source, pair.target, pair.held_out) == (word, word, held_out_by_hand(word))
        assert copy.references(word) == (word,)
    assert [copy.find(text) for text in ("", "two words", "Cat", "café", "cat\n")] == 5 * [None]


def test_a_typed_word_is_cleaned_and_may_be_twice_as_long_as_the_longest_training_word():
    assert Copy(1, 12).read("  Banana\n") == "banana"
    assert Copy(1, 4).read("abcdefgh") == "abcdefgh"


@pytest.mark.parametrize(
    ("typed", "says", "offer"),
    [
        ("", "word is empty", None),
        (" \t ", "word is empty", None),
        ("Café", "“é”", "cafe"),
        ("naïve é", "a space, “é”, “ï”", "naivee"),
        ("Straße", "“ß”", "strasse"),
        ("Smørrebrød", "“ø”", "smorrebrod"),
        ("abc123", "“1”, “2”, “3”", "abc"),
        ("2024", "“0”, “2”, “4”. Type a word", None),
        ("日本", "“日”, “本”. Type a word", None),
        (25 * "a", "25 letters.* up to 12 .* up to 24", None),
    ],
)
def test_an_unusable_typed_word_is_refused_with_a_hint(typed, says, offer):
    with pytest.raises(InputError, match=says) as refused:
        Copy(1, 12).read(typed)
    assert (refused.value.field, refused.value.suggestion) == ("probe_words", offer)
