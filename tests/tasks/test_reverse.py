"""Reversing words: what is trained on, what is held out, and what may be asked."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.tasks import make_task
from transformer.tasks.reverse import is_held_out


def task(**settings):
    return make_task(TrainConfig(**settings))


def held_out_by_hand(word):
    """The rule again, in other words: the 64-bit BLAKE2b of the word ends in 0 as a decimal number."""
    number = int(hashlib.blake2b(word.encode(), digest_size=8).hexdigest(), 16)
    return len(word) >= 3 and str(number)[-1] == "0"


@pytest.mark.parametrize("longest", [3, 5, 12])
def test_training_never_sees_a_held_out_word(longest):
    reverse = task(max_letters=longest, batch_size=256)
    seen = {word for k in range(60) for word in reverse.words(7, k)}
    assert not seen & set(reverse.held_out())
    assert not [word for word in seen if held_out_by_hand(word)]
    assert sum(len(word) >= 3 for word in seen) > 1000


def test_one_word_in_ten_of_three_letters_and_more_is_held_out_and_no_shorter_one():
    letters = "abcdefghijklmnopqrstuvwxyz"
    three = [a + b + c for a in letters for b in letters for c in letters]
    assert sum(map(is_held_out, three)) / len(three) == pytest.approx(0.1, abs=0.01)
    assert [word for word in three if is_held_out(word)] == [word for word in three if held_out_by_hand(word)]
    assert not any(is_held_out(word) for word in [*letters, *(w[:2] for w in three)])


def test_training_words_of_every_length_come_equally_often_and_use_every_letter():
    reverse = task(min_letters=2, max_letters=6, batch_size=500)
    words = [word for k in range(8) for word in reverse.words(1, k)]
    counts = Counter(map(len, words))
    assert set(counts) == {2, 3, 4, 5, 6}
    assert all(700 < n < 900 for n in counts.values())
    assert set("".join(words)) == set("abcdefghijklmnopqrstuvwxyz")
    assert all(len(word) == 1 for k in range(3) for word in task(max_letters=3).words(0, k) if len(word) < 2)
    assert {len(w) for w in task(max_letters=3).words(0, 0)} == {1, 2, 3}


def test_batch_k_depends_on_seed_and_k_alone():
    state = np.random.get_state()[1].copy()
    first = task(batch_size=4)
    late = first.batch(5, 9)
    fresh = task(batch_size=4)
    for k in range(9):
        fresh.batch(5, k)
    again = fresh.batch(5, 9)
    for side in ("src", "tgt_in", "tgt_out"):
        assert np.array_equal(getattr(late, side), getattr(again, side))
    assert first.words(5, 9) == fresh.words(5, 9)
    assert len({tuple(first.words(seed, k)) for seed in range(5) for k in range(5)}) == 25
    assert np.array_equal(np.random.get_state()[1], state)


def test_a_batch_reads_the_word_and_writes_it_backwards_one_token_later():
    batch = task().encode(["cab", "d"])
    assert batch.src.tolist() == [[1, 6, 4, 5, 2], [1, 7, 2, 0, 0]]
    assert batch.tgt_in.tolist() == [[1, 5, 4, 6], [1, 7, 0, 0]]
    assert batch.tgt_out.tolist() == [[5, 4, 6, 2], [7, 2, 0, 0]]


def test_training_batches_hold_the_words_they_say():
    reverse = task(batch_size=7, max_letters=6)
    words, batch = reverse.words(3, 4), reverse.batch(3, 4)
    tokens = reverse.src_tokenizer.tokens
    for i, word in enumerate(words):
        assert tokens(batch.src[i].tolist())[: len(word) + 2] == ("[SOS]", *word, "[EOS]")
        assert tokens(batch.tgt_in[i].tolist())[: len(word) + 1] == ("[SOS]", *reversed(word))
        assert tokens(batch.tgt_out[i].tolist())[: len(word) + 1] == (*reversed(word), "[EOS]")
        assert not batch.src[i, len(word) + 2 :].any()
        assert not batch.tgt_out[i, len(word) + 1 :].any()
    assert batch.src.shape == (7, max(map(len, words)) + 2)


def test_padding_may_be_fixed_so_that_shapes_stand_still():
    reverse = task(max_letters=5, pad_to=19, batch_size=4)
    shapes = {(b.src.shape, b.tgt_in.shape, b.tgt_out.shape) for b in (reverse.batch(0, k) for k in range(6))}
    assert shapes == {((4, 19), (4, 18), (4, 18))}
    assert reverse.max_tokens == 19
    loose = task(max_letters=5, batch_size=4)
    for k in range(6):
        narrow = loose.batch(0, k).src
        assert np.array_equal(reverse.batch(0, k).src[:, : narrow.shape[1]], narrow)
    assert loose.max_tokens == 12  # twice the letters, [SOS] and [EOS]


@pytest.mark.parametrize(("shortest", "longest"), [(1, 3), (1, 12), (5, 8)])
def test_a_thousand_different_words_are_held_out_and_are_the_same_for_every_run(shortest, longest):
    words = task(min_letters=shortest, max_letters=longest).held_out()
    assert len(words) == len(set(words)) == 1000
    assert all(map(held_out_by_hand, words))
    counts = Counter(map(len, words))
    lengths = range(max(3, shortest), longest + 1)
    assert set(counts) == set(lengths)
    expected = 1000 / len(lengths)
    assert all(0.7 * expected < n < 1.3 * expected for n in counts.values())
    assert words == task(min_letters=shortest, max_letters=longest, batch_size=3).held_out()
    assert len(set(map(len, words[:100]))) == len(lengths)  # in random order: the first are a fair sample


def test_everyday_words_are_within_the_trained_length():
    words = task(min_letters=4, max_letters=7).everyday()
    assert {len(word) for word in words} == {4, 5, 6, 7}
    assert {"bird", "banana"} <= set(words)
    assert all(word.isascii() and word.islower() and word.isalpha() for word in words)


def test_a_typed_word_is_cleaned_and_answered():
    question = task().question("  Banana\n")
    assert (question.text, question.answer) == ("banana", "ananab")
    assert question.held_out == held_out_by_hand("banana")
    assert not question.too_long


def test_words_up_to_twice_the_trained_length_may_be_asked_and_are_marked():
    reverse = task(max_letters=4)
    assert [reverse.question("abcdefgh"[:n]).too_long for n in (3, 4, 5, 8)] == [False, False, True, True]
    with pytest.raises(InputError) as refused:
        reverse.question("abcdefghi")
    assert str(refused.value) == (
        "9 letters is too long; this run learns up to 4 letters and can be asked up to 8. "
        "Type a shorter word."
    )


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("", "There is no word to ask; type one, such as banana."),
        (" \t ", "There is no word to ask; type one, such as banana."),
        ("Café", "Only the letters a to z are in the alphabet, not “é”. Try cafe."),
        ("naïve é", "Only the letters a to z are in the alphabet, not a space, “é”, “ï”. Try naivee."),
        ("abc123", "Only the letters a to z are in the alphabet, not “1”, “2”, “3”. Try abc."),
        (
            "2024",
            "Only the letters a to z are in the alphabet, not “0”, “2”, “4”. Type a word such as banana.",
        ),
        ("日本", "Only the letters a to z are in the alphabet, not “日”, “本”. Type a word such as banana."),
        ("two words", "Only the letters a to z are in the alphabet, not a space. Try twowords."),
        (
            50 * "a",
            "50 letters is too long; this run learns up to 12 letters and can be asked up to 24. "
            "Type a shorter word.",
        ),
    ],
)
def test_a_typed_word_that_cannot_be_asked_is_answered_with_what_to_do(typed, message):
    with pytest.raises(InputError) as refused:
        task().question(typed)
    assert str(refused.value) == message
    assert refused.value.field == "probe_words"
