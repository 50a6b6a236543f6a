"""The training examples, batch by batch: an endless supply, or a finite set in epochs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.tasks.conftest import HELD_OUT, TRAINED, Sentences
from transformer.config import RunConfig
from transformer.tasks import task_of

FINITE = {"examples": 23, "batch_size": 5, "max_letters": 6}  # four batches of 5 and one of 3


def words(topology="encoder-decoder", **settings):
    """Return the task of reversing words."""
    return task_of(RunConfig().with_changes(topology=topology, **settings))


@pytest.mark.parametrize("topology", ["encoder-decoder", "decoder-only"])
def test_each_pair_of_a_finite_corpus_occurs_once_per_epoch(task, topology):
    made = task(topology, examples=3)  # the size of the corpus takes precedence
    assert (made.examples, made.steps_per_epoch) == (5, 3)
    epochs = []
    for epoch in range(4):
        parts = [made.pairs(7, 3 * epoch + part) for part in range(3)]
        assert list(map(len, parts)) == [2, 2, 1]
        epochs.append([pair for part in parts for pair in part])
    for pairs in epochs:
        assert Counter((pair.source, pair.target) for pair in pairs) == Counter(
            (pair.source, pair.target) for pair in TRAINED
        )
    assert len(set(map(tuple, epochs))) > 1


def test_a_batch_holds_its_words_with_their_answers(task):
    """If a question has two answers, both are trained on."""
    made, written = task(), set()
    for k in range(3):
        batch = made.batch(0, k)
        assert batch.words == tuple(made.words(0, k)) == tuple(pair.source for pair in made.pairs(0, k))
        for word, src, answer in zip(batch.words, batch.src, batch.answers, strict=True):
            assert made.src_tokenizer.text(src[1:].tolist()) == (word, True)
            written.add((word, made.tgt_tokenizer.text(answer.tolist())[0]))
    assert written == {(pair.source, pair.target) for pair in TRAINED}


def test_held_out_examples_are_never_trained_on_and_are_marked_as_held_out(task):
    made = task()
    assert made.held_out() == [pair.source for pair in HELD_OUT]
    trained = {text for k in range(12) for text in made.words(3, k)}
    assert not trained & set(made.held_out())
    assert all(made.question(text).held_out for text in made.held_out())
    assert not any(made.question(text).held_out for text in [*trained, "dog"])
    assert list(made.corpus.tracked_words()) == ["the cat", "cat"]


def test_an_endless_supply_depends_on_seed_and_batch_alone_and_may_be_limited_to_a_set(task):
    made, again = (task(corpus=Sentences(endless=True), batch_size=6) for _ in range(2))
    again.pairs(1, 5)
    state = np.random.get_state()[1].copy()
    assert [made.pairs(1, k) for k in range(9)] == [again.pairs(1, k) for k in range(9)]
    assert np.array_equal(np.random.get_state()[1], state)
    assert made.pairs(1, 0) != made.pairs(2, 0)
    assert made.examples is None
    finite = task(corpus=Sentences(endless=True), examples=7)
    assert (finite.examples, finite.steps_per_epoch) == (7, 4)
    assert sum(len(finite.pairs(0, k)) for k in range(4)) == 7


@pytest.mark.parametrize("topology", ["encoder-only", "decoder-only"])
def test_the_words_are_the_same_for_every_topology(topology):
    one, two = words(topology, max_letters=6, batch_size=9), words(max_letters=6, batch_size=9)
    assert [one.words(4, k) for k in range(3)] == [two.words(4, k) for k in range(3)]
    assert one.held_out() == two.held_out()


# A finite set from an endless supply.


def test_each_epoch_has_each_example_once_in_a_new_order_and_ends_with_the_remainder():
    finite = words(**FINITE)
    orders = []
    for epoch in range(4):
        batches = [finite.words(3, 5 * epoch + part) for part in range(5)]
        assert [len(batch) for batch in batches] == [5, 5, 5, 5, 3]
        orders.append(tuple(word for batch in batches for word in batch))
    assert len({tuple(sorted(order)) for order in orders}) == 1
    assert len(set(orders)) == 4


def test_a_batch_of_a_finite_set_depends_on_seed_and_batch_number_alone():
    late = words(**FINITE).words(2, 13)
    again = words(**FINITE)
    for seed, k in ((2, 0), (7, 13), (2, 40), (2, 12)):
        again.words(seed, k)
    assert again.words(2, 13) == late
    sets = [sorted(word for k in range(5) for word in again.words(seed, k)) for seed in (2, 7)]
    assert sets[0] != sets[1]


def test_a_finite_set_has_no_held_out_word_and_is_not_the_beginning_of_the_endless_supply():
    finite, endless = words(**FINITE | {"examples": 900}), words(**FINITE | {"examples": None})
    found = [word for k in range(180) for word in finite.words(0, k)]
    assert len(found) == 900
    assert not any(finite.question(word).held_out for word in found)
    assert set(map(len, found)) == {1, 2, 3, 4, 5, 6}
    assert [finite.words(0, k) for k in range(4)] != [endless.words(0, k) for k in range(4)]


def test_a_set_smaller_than_a_batch_forms_one_batch():
    small = words(examples=4, batch_size=50)
    batches = [small.words(1, k) for k in range(6)]
    assert {tuple(sorted(batch)) for batch in batches} == {tuple(sorted(batches[0]))}
    assert len(batches[0]) == 4
    assert len(set(map(tuple, batches))) > 1


def test_two_tasks_with_finite_sets_each_draw_their_set_once(monkeypatch):
    """Two runs on one server take their batches in turn; neither makes the other draw its set again."""
    one, other = words(**FINITE), words(**FINITE | {"max_letters": 4})
    drawn = []
    for made in (one, other):
        whole = made.corpus.drawn

        def counted(rng, count, made=made, whole=whole):
            drawn.append((made, count))
            return whole(rng, count)

        monkeypatch.setattr(made.corpus, "drawn", counted)
    for k in range(12):
        assert one.words(11, k) != other.words(11, k)
    assert drawn == [(one, 23), (other, 23)]
