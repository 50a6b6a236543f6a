"""Reversing words: what is trained on, what is held out, and what may be asked."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.tasks import make_task
from transformer.tasks.letters import is_held_out


def task(topology="encoder-decoder", **settings):
    return make_task(TrainConfig(**settings), topology)


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
    for side in ("src", "tgt_in", "tgt_out", "answers", "prompt"):
        assert np.array_equal(getattr(late, side), getattr(again, side))
    assert first.words(5, 9) == fresh.words(5, 9)
    assert len({tuple(first.words(seed, k)) for seed in range(5) for k in range(5)}) == 25
    assert np.array_equal(np.random.get_state()[1], state)


def test_a_batch_reads_the_word_and_writes_it_backwards_one_token_later():
    batch = task().encode(["cab", "d"])
    assert batch.src.tolist() == [[1, 6, 4, 5, 2], [1, 7, 2, 0, 0]]
    assert batch.tgt_in.tolist() == [[1, 5, 4, 6], [1, 7, 0, 0]]
    assert batch.tgt_out.tolist() == batch.answers.tolist() == [[5, 4, 6, 2], [7, 2, 0, 0]]
    assert batch.prompt.tolist() == [[1], [1]]
    assert batch.words == ("cab", "d")


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


@pytest.mark.parametrize("topology", ["encoder-decoder", "encoder-only"])
def test_words_may_be_filled_up_as_in_training_and_a_longer_one_makes_room_for_itself(topology):
    task = make_task(TrainConfig(max_letters=6, batch_size=3), topology)
    filled = task.encode(["cat", "ox"], filled=True)
    assert filled.src.shape == (2, 8)
    batch = task.encode(["cat", "ox"])
    assert batch.src.shape == (2, 5)
    np.testing.assert_array_equal(filled.src[:, :5], batch.src)
    assert not filled.src[:, 5:].any()
    assert task.encode(["cat", "elephants"], filled=True).src.shape == (2, 11)


def test_words_of_twice_the_length_and_three_letters_too_many_have_positions_in_one_sequence():
    """[SOS], 10 letters, [SEP], 10 letters back and three more: the last one is read, what follows is not."""
    loose, fixed = (task("decoder-only", max_letters=5, pad_to=pad_to) for pad_to in (None, 19))
    assert loose.max_tokens == 1 + 10 + 1 + 10 + 3
    assert fixed.batch(0, 0).src.shape[1] == 1 + 17 + 1 + 17 <= fixed.max_tokens
    assert task("encoder-only", max_letters=5).max_tokens == 12


@pytest.mark.parametrize("topology", ["encoder-decoder", "encoder-only", "decoder-only"])
def test_the_words_are_the_same_for_every_topology_and_only_their_layout_differs(topology):
    reverse, two = task(topology, max_letters=6, batch_size=9), task(max_letters=6, batch_size=9)
    assert reverse.topology == topology
    for k in range(3):
        batch = reverse.batch(4, k)
        assert batch.words == tuple(two.words(4, k))
        assert np.array_equal(batch.answers, two.batch(4, k).answers)
    assert reverse.held_out() == two.held_out()


# A finite set.

FINITE = {"examples": 23, "batch_size": 5, "max_letters": 6}  # four batches of 5 and one of 3


def epoch_of(reverse, seed, epoch):
    return [reverse.words(seed, 5 * epoch + part) for part in range(5)]


def test_each_epoch_sees_each_example_once_and_its_last_batch_is_what_is_left():
    reverse = task(**FINITE)
    epochs = [epoch_of(reverse, 3, epoch) for epoch in range(4)]
    for batches in epochs:
        assert [len(words) for words in batches] == [5, 5, 5, 5, 3]
    orders = [[word for words in batches for word in words] for batches in epochs]
    assert len({tuple(sorted(order)) for order in orders}) == 1
    assert len({tuple(order) for order in orders}) == 4
    assert reverse.batch(3, 4).src.shape[0] == reverse.batch(3, 9).src.shape[0] == 3


def test_a_batch_of_a_finite_set_depends_on_seed_and_k_alone():
    state = np.random.get_state()[1].copy()
    late = task(**FINITE).words(2, 13)
    reverse = task(**FINITE)
    for seed, k in ((2, 0), (7, 13), (2, 40), (2, 12)):
        reverse.words(seed, k)
    assert reverse.words(2, 13) == late
    assert sorted(w for b in epoch_of(reverse, 2, 0) for w in b) != sorted(
        w for b in epoch_of(reverse, 7, 0) for w in b
    )
    assert np.array_equal(np.random.get_state()[1], state)


def test_a_finite_set_holds_no_held_out_word_and_is_not_the_beginning_of_the_endless_supply():
    reverse, endless = task(**FINITE | {"examples": 900}), task(**FINITE | {"examples": None})
    words = [word for k in range(180) for word in reverse.words(0, k)]
    assert len(words) == 900
    assert not [word for word in words if held_out_by_hand(word)]
    assert set(map(len, words)) == {1, 2, 3, 4, 5, 6}
    assert [reverse.words(0, k) for k in range(4)] != [endless.words(0, k) for k in range(4)]


def test_a_set_smaller_than_a_batch_is_a_batch_of_all_in_ever_other_orders():
    reverse = task(examples=4, batch_size=50)
    batches = [reverse.words(1, k) for k in range(6)]
    assert {tuple(sorted(words)) for words in batches} == {tuple(sorted(batches[0]))}
    assert len(batches[0]) == 4
    assert len(set(map(tuple, batches))) > 1


def test_two_tasks_with_finite_sets_draw_each_its_own_once(monkeypatch):
    """Two runs on one server take their batches in turn; neither makes the other draw its set again."""
    one, other = task(**FINITE), task(**FINITE | {"max_letters": 4})
    drawn = []
    for reverse in (one, other):
        whole = reverse.corpus.drawn

        def counted(rng, count, reverse=reverse, whole=whole):
            drawn.append((reverse, count))
            return whole(rng, count)

        monkeypatch.setattr(reverse.corpus, "drawn", counted)
    for k in range(12):
        assert one.words(0, k) != other.words(0, k)
    assert drawn == [(one, 23), (other, 23)]


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


def test_a_word_shorter_than_anything_trained_on_says_so():
    task = make_task(TrainConfig(min_letters=5, max_letters=7), "encoder-decoder")
    assert [task.question(word).too_short for word in ("ox", "zebra", "elephant")] == [True, False, False]
    assert [task.question(word).too_long for word in ("ox", "zebra", "elephant")] == [False, False, True]
