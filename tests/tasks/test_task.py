"""A corpus in tokens: how it is laid out, what its answers are, and what a person may ask."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tasks.conftest import HELD_OUT, Sentences
from transformer import tasks
from transformer.config import GRAMMARS, LETTER_TASKS, RunConfig
from transformer.errors import InputError
from transformer.tasks import completed, task_of
from transformer.tasks.corpus import Pair
from transformer.tasks.task import Question


def shown(tokenizer, ids):
    return " ".join(tokenizer.tokens(ids))


# Layout.


def test_both_sides_are_padded_to_their_own_longest(task):
    batch = task().encode(["the cat sees the dog", "cat"])
    assert batch.src.shape == (2, 7)
    assert batch.tgt_in.shape == batch.tgt_out.shape == batch.answers.shape == (2, 4)
    made = task()
    assert shown(made.src_tokenizer, batch.src[1]) == "[SOS] cat [EOS] [PAD] [PAD] [PAD] [PAD]"
    assert shown(made.tgt_tokenizer, batch.tgt_in[0]) == "[SOS] le chat voit"
    assert shown(made.tgt_tokenizer, batch.tgt_out[0]) == "le chat voit [EOS]"
    assert shown(made.tgt_tokenizer, batch.tgt_out[1]) == "chat [EOS] [PAD] [PAD]"
    assert batch.words == ("the cat sees the dog", "cat")


def test_one_sequence_holds_question_and_answer_and_both_sides_have_the_same_tokens(task):
    made = task("decoder-only")
    assert made.src_tokenizer.tokens(range(made.src_tokenizer.size)) == made.tgt_tokenizer.tokens(
        range(made.tgt_tokenizer.size)
    )
    batch = made.encode(["a dog sees", "cat"])
    assert shown(made.tgt_tokenizer, batch.tgt_in[0]) == "[SOS] a dog sees [SEP] voit"
    assert shown(made.tgt_tokenizer, batch.tgt_out[0]) == "[PAD] [PAD] [PAD] [PAD] voit [EOS]"
    assert shown(made.tgt_tokenizer, batch.prompt[1]) == "[SOS] cat [SEP] [PAD] [PAD]"


def test_an_encoder_alone_is_refused_where_answers_have_another_length(task):
    with pytest.raises(InputError, match="choose encoder-decoder or decoder-only") as refused:
        task("encoder-only")
    assert refused.value.field == "topology"


@pytest.mark.parametrize(("topology", "most"), [("encoder-decoder", 12), ("decoder-only", 21)])
def test_there_are_positions_for_a_question_and_an_answer_twice_as_long_as_any(task, topology, most):
    """Sources have five words and targets three: with [SOS] and [EOS] 12; in one sequence 10 + 6 + 2 + 3."""
    made = task(topology)
    assert (made.longest, made.limit, made.max_tokens) == (5, 10, most)
    config = completed(RunConfig().with_changes(task="en-fr", topology=topology))
    assert config.model.max_len == most
    assert config.model.src_vocab_size == made.src_tokenizer.size
    assert config.model.tgt_vocab_size == made.tgt_tokenizer.size


def test_examples_may_be_filled_up_as_those_of_training_are(task):
    made = task()
    filled, plain = made.encode(["cat", "a dog"], filled=True), made.encode(["cat", "a dog"])
    assert (plain.src.shape, plain.tgt_in.shape) == ((2, 4), (2, 2))
    assert (filled.src.shape, filled.tgt_in.shape) == ((2, 7), (2, 6))
    np.testing.assert_array_equal(filled.src[:, :4], plain.src)
    assert not filled.src[:, 4:].any()
    assert made.encode(["the dog sees a dog sees a cat"], filled=True).src.shape == (1, 10)


def test_one_table_for_two_stacks_has_one_vocabulary(monkeypatch):
    monkeypatch.setattr(tasks, "corpus_of", lambda config: Sentences())
    run = RunConfig().with_changes(task="en-fr")
    two = task_of(run)
    assert two.src_tokenizer.size == 4 + 5
    assert two.tgt_tokenizer.size == 4 + 5
    assert two.src_tokenizer.encode(["cat"]) != two.src_tokenizer.encode(["chat"]) == [[1, 3, 2]]
    one = completed(run.with_changes(embedding_tables="one"))
    assert one.model.src_vocab_size == one.model.tgt_vocab_size == 4 + 10
    both = task_of(one)
    assert both.src_tokenizer.encode(["cat chat"]) == both.tgt_tokenizer.encode(["cat chat"])


@pytest.mark.parametrize(("topology", "most"), [("encoder-decoder", 14), ("decoder-only", 26)])
def test_held_out_examples_longer_than_any_that_are_trained_on_have_positions_too(task, topology, most):
    long = Pair(" ".join(12 * ["cat"]), " ".join(9 * ["chat"]), held_out=True)
    made = task(topology, corpus=Sentences(kept=[*HELD_OUT, long]))
    assert (made.longest, made.limit, made.max_tokens) == (5, 12, most)
    batch = made.encode(made.held_out())
    assert max(batch.src.shape[1], batch.tgt_in.shape[1]) <= most
    assert made.question(long.source) == Question(long.source, long.target, True, True)
    with pytest.raises(InputError, match="13 tokens.* up to 12"):
        made.question(f"{long.source} cat")


def test_in_one_sequence_whatever_is_filled_up_has_positions(task):
    """Where padding is seen a long question with a short answer is not filled up as if both were long."""
    made = task("decoder-only")
    long = " ".join(10 * ["cat"])
    own = made.tgt_tokenizer.encode(["le chat voit le chat voit le"])[0][1:-1]
    batch = made.encode([long, "cat"], filled=True, own=[own, []])
    assert batch.src.shape[1] == made.max_tokens == 21
    plain = made.encode([long, "cat"], own=[own, []])
    np.testing.assert_array_equal(batch.src[:, : plain.src.shape[1]], plain.src)
    assert made.encode(["cat"], filled=True).src.shape[1] == 12


# Answers.


def test_what_is_not_known_has_an_empty_answer_or_one_that_is_given(task):
    made = task()
    words = ["a dog sees the cat", "cat", "dog"]
    batch = made.encode(words)
    assert [shown(made.tgt_tokenizer, row) for row in batch.answers] == [
        "[EOS] [PAD]",
        "chat [EOS]",
        "[EOS] [PAD]",
    ]
    own = made.tgt_tokenizer.encode(["le chat voit", "le chien", "un"])
    given = made.encode(words, own=[ids[1:-1] for ids in own])
    assert [shown(made.tgt_tokenizer, row) for row in given.answers] == [
        "le chat voit [EOS]",
        "chat [EOS] [PAD] [PAD]",  # known: nothing stands for it
        "un [EOS] [PAD] [PAD]",
    ]
    assert shown(made.tgt_tokenizer, given.tgt_in[0]) == "[SOS] le chat voit"
    np.testing.assert_array_equal(given.src, batch.src)


def test_any_reference_is_accepted_however_it_is_typed(task):
    made = task()
    assert made.answer("a dog sees") == "voit"
    assert made.references("a dog sees") == ("voit", "un chat")
    assert [made.accepts("a dog sees", text) for text in ("voit", "un chat", " Un  CHAT")] == [True] * 3
    assert not made.accepts("a dog sees", "un")
    assert not made.accepts("a dog sees", "")
    assert made.answer("dog") is None
    assert not made.accepts("dog", "chien")
    assert made.references("the cat") == ("le chat",)


def test_an_endless_corpus_is_asked_once_for_what_is_not_held_out(task):
    corpus = Sentences(endless=True)
    made = task(corpus=corpus)
    for _ in range(3):
        assert [made.answer(text) for text in made.held_out()] == [pair.target for pair in HELD_OUT]
        assert made.references("the cat") == ("le chat",)
        assert made.accepts("the dog", "le  Chien")
        assert made.references("the dog") == ("le chien",)
        assert made.links("the dog") is not None
        assert made.references("the bird") == ()
        made.encode(["the dog", "the bird"])
    assert corpus.asked == ["the dog", "the bird"]


def test_the_tokens_of_a_question_are_counted_without_the_special_ones(task):
    assert [task().n_tokens(text) for text in ("cat", "a dog sees", "")] == [1, 3, 0]


# Questions.


def test_a_question_is_cleaned_and_told_with_what_is_true_of_it(task):
    made = task()
    assert made.question("  The  CAT ") == Question("the cat", "le chat", True, False)
    assert made.question("a dog sees") == Question("a dog sees", "voit", False, False)
    assert made.question("dog") == Question("dog", None, False, False)
    assert made.question("the dog sees the cat cat") == Question(
        "the dog sees the cat cat", None, False, True
    )
    with pytest.raises(InputError, match="nothing to ask"):
        made.question(" ")


def test_a_question_may_have_twice_as_many_tokens_as_any_that_is_learned(task):
    made = task()
    assert made.question(" ".join(10 * ["cat"])).too_long
    with pytest.raises(InputError, match="11 tokens.* up to 5 .* up to 10") as refused:
        made.question(" ".join(11 * ["cat"]))
    assert refused.value.field == "probe_words"
    spelled = task(tokenizer="characters")
    assert spelled.longest == len("the cat sees the dog")
    with pytest.raises(InputError, match="41 tokens.* up to 20"):
        spelled.question(41 * "a")


def test_a_word_shorter_or_longer_than_anything_trained_on_says_so():
    words = task_of(RunConfig().with_changes(min_letters=5, max_letters=7))
    questions = [words.question(word) for word in ("ox", "zebra", "elephant")]
    assert [question.too_short for question in questions] == [True, False, False]
    assert [question.too_long for question in questions] == [False, False, True]


def test_lengths_are_in_words_from_the_shortest_held_out_question_to_the_longest(task):
    for made in (task(), task(tokenizer="characters")):
        assert made.corpus.length("a cat sees the dog") == 5
        assert made.corpus.report_lengths() == (2, 3, 4, 5)
        assert made.corpus.words_of_length(2, 9) == ["the cat", "a cat"]
        assert made.corpus.words_of_length(2, 1) == ["the cat"]
        assert made.corpus.words_of_length(3, 9) == []


def test_the_hardest_questions_are_the_shortest_held_out_ones(task):
    assert task().corpus.hardest(["cat"]) == ["the cat", "a cat", "a cat sees the dog"]


def test_the_hardest_words_hold_one_letter_only():
    words = task_of(RunConfig().with_changes(min_letters=2, max_letters=4))
    assert words.corpus.hardest(["b", "[SOS]"]) == ["bb", "bbb", "bbbb"]
    assert words.corpus.hardest([]) == ["aa", "aaa", "aaaa"]


# The alignment.


def test_links_are_columns_of_the_question_and_known_where_the_answer_is(task):
    made = task()
    assert made.links("a cat sees the dog") == ((1,), (2,), (3,))
    assert made.links("dog") is None
    spelled = task(tokenizer="characters")
    assert spelled.links("a cat") == ((1,), (1,), (), (3, 4, 5), (3, 4, 5), (3, 4, 5), (3, 4, 5))


def test_what_a_head_is_to_find_depends_on_what_is_known(task):
    assert task_of(RunConfig()).aim == "mirror"
    assert task_of(RunConfig().with_changes(task="sort")).aim == "gold"
    assert task().aim == "gold"
    assert task(corpus=Sentences(kept=[Pair("a cat", "un chat", held_out=True)])).aim == "focus"


@pytest.mark.parametrize("name", [*LETTER_TASKS, "dates", "en-fr"])
def test_tasks_of_every_name_have_batches_that_their_model_has_positions_for(name):
    made, one = (
        task_of(RunConfig().with_changes(task=name, batch_size=17, topology=topology))
        for topology in ("encoder-decoder", "decoder-only")
    )
    corpus = made.corpus
    assert (corpus.same_length, corpus.translates) == (name in LETTER_TASKS, name in GRAMMARS)
    assert made.name == name
    held_out, state = made.held_out(), np.random.get_state()[1].copy()
    trained = [made.words(5, k) for k in range(20)]
    assert not {text for texts in trained for text in texts} & set(held_out)
    assert trained[3:5] == [one.words(5, 3), one.words(5, 4)]  # whatever was drawn before
    assert np.array_equal(np.random.get_state()[1], state)
    for task in (made, one):
        for batch in (task.batch(1, 2), task.encode(held_out[:50]), task.encode(held_out[:9], filled=True)):
            assert max(batch.src.shape[1], batch.tgt_in.shape[1]) <= task.max_tokens
    question = made.question(corpus.probes()[0])
    assert made.accepts(question.text, question.answer)


def test_pairs_must_be_there():
    with pytest.raises(InputError, match="no pairs yet"):
        task_of(RunConfig().with_changes(task="pairs"))
