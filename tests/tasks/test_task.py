"""A corpus in tokens: its layout, its answers, and the questions that a user may ask."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tasks.conftest import HELD_OUT, Sentences
from transformer import tasks
from transformer.config import GRAMMARS, LETTER_TASKS, RunConfig
from transformer.errors import InputError
from transformer.tasks import resolved, task_of
from transformer.tasks.corpus import Pair
from transformer.tasks.task import Question


def shown(tokenizer, ids):
    return " ".join(tokenizer.tokens(ids))


# Layout.


def test_each_side_is_padded_to_its_own_longest_text(task):
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


def test_an_encoder_alone_is_refused_where_answers_may_differ_in_length_from_questions(task):
    with pytest.raises(InputError, match="choose encoder-decoder or decoder-only") as refused:
        task("encoder-only")
    assert refused.value.field == "topology"


@pytest.mark.parametrize(("topology", "most"), [("encoder-decoder", 12), ("decoder-only", 21)])
def test_there_are_positions_for_questions_and_answers_twice_as_long_as_the_longest(task, topology, most):
    """Sources have up to 5 words, targets up to 3: 10 + 2 positions, or 10 + 6 + 2 + 3 in one sequence."""
    made = task(topology)
    assert (made.longest, made.max_question_tokens, made.max_tokens) == (5, 10, most)
    config = resolved(RunConfig().with_changes(task="en-fr", topology=topology))
    assert config.model.max_len == most
    assert config.model.src_vocab_size == made.src_tokenizer.size
    assert config.model.tgt_vocab_size == made.tgt_tokenizer.size


def test_examples_may_be_padded_to_the_lengths_of_training(task):
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
    one = resolved(run.with_changes(embedding_tables="one"))
    assert one.model.src_vocab_size == one.model.tgt_vocab_size == 4 + 10
    both = task_of(one)
    assert both.src_tokenizer.encode(["cat chat"]) == both.tgt_tokenizer.encode(["cat chat"])


@pytest.mark.parametrize(("topology", "most"), [("encoder-decoder", 14), ("decoder-only", 26)])
def test_held_out_examples_longer_than_any_training_example_have_positions_too(task, topology, most):
    long = Pair(" ".join(12 * ["cat"]), " ".join(9 * ["chat"]), held_out=True)
    made = task(topology, corpus=Sentences(kept=[*HELD_OUT, long]))
    assert (made.longest, made.max_question_tokens, made.max_tokens) == (5, 12, most)
    batch = made.encode(made.held_out())
    assert max(batch.src.shape[1], batch.tgt_in.shape[1]) <= most
    assert made.question(long.source) == Question(long.source, long.target, True, True)
    with pytest.raises(InputError, match="13 tokens.* up to 12"):
        made.question(f"{long.source} cat")


def test_padding_in_one_sequence_never_exceeds_the_positions(task):
    """A long question with a short answer is not padded as if both were long."""
    made = task("decoder-only")
    long = " ".join(10 * ["cat"])
    own = made.tgt_tokenizer.encode(["le chat voit le chat voit le"])[0][1:-1]
    batch = made.encode([long, "cat"], filled=True, own=[own, []])
    assert batch.src.shape[1] == made.max_tokens == 21
    plain = made.encode([long, "cat"], own=[own, []])
    np.testing.assert_array_equal(batch.src[:, : plain.src.shape[1]], plain.src)
    assert made.encode(["cat"], filled=True).src.shape[1] == 12


# Answers.


def test_a_question_without_a_known_answer_gets_an_empty_or_a_given_one(task):
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
        "chat [EOS] [PAD] [PAD]",  # known: the given answer is ignored
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


def test_an_endless_corpus_is_searched_once_for_each_question_that_is_not_held_out(task):
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


def test_the_tokens_of_a_question_are_counted_without_special_tokens(task):
    assert [task().n_tokens(text) for text in ("cat", "a dog sees", "")] == [1, 3, 0]


# Questions.


def test_a_question_is_cleaned_and_returned_with_its_properties(task):
    made = task()
    assert made.question("  The  CAT ") == Question("the cat", "le chat", True, False)
    assert made.question("a dog sees") == Question("a dog sees", "voit", False, False)
    assert made.question("dog") == Question("dog", None, False, False)
    assert made.question("the dog sees the cat cat") == Question(
        "the dog sees the cat cat", None, False, True
    )
    with pytest.raises(InputError, match="nothing to ask"):
        made.question(" ")


def test_a_question_may_have_twice_as_many_tokens_as_the_longest_training_example(task):
    made = task()
    assert made.question(" ".join(10 * ["cat"])).too_long
    with pytest.raises(InputError, match="11 tokens.* up to 5 .* up to 10") as refused:
        made.question(" ".join(11 * ["cat"]))
    assert refused.value.field == "probe_words"
    spelled = task(tokenizer="characters")
    assert spelled.longest == len("the cat sees the dog")
    with pytest.raises(InputError, match="41 tokens.* up to 20"):
        spelled.question(41 * "a")


def test_a_word_shorter_or_longer_than_any_training_word_is_marked():
    words = task_of(RunConfig().with_changes(min_letters=5, max_letters=7))
    questions = [words.question(word) for word in ("ox", "zebra", "elephant")]
    assert [question.too_short for question in questions] == [True, False, False]
    assert [question.too_long for question in questions] == [False, False, True]


def test_lengths_are_counted_in_words_from_the_shortest_to_the_longest_held_out_question(task):
    for made in (task(), task(tokenizer="characters")):
        assert made.corpus.length("a cat sees the dog") == 5
        assert made.corpus.report_lengths() == (2, 3, 4, 5)
        assert made.corpus.words_of_length(2, 9) == ["the cat", "a cat"]
        assert made.corpus.words_of_length(2, 1) == ["the cat"]
        assert made.corpus.words_of_length(3, 9) == []


def test_the_hardest_questions_are_the_shortest_held_out_questions(task):
    assert task().corpus.hardest(["cat"]) == ["the cat", "a cat", "a cat sees the dog"]


def test_the_hardest_words_repeat_one_letter():
    words = task_of(RunConfig().with_changes(min_letters=2, max_letters=4))
    assert words.corpus.hardest(["b", "[SOS]"]) == ["bb", "bbb", "bbbb"]
    assert words.corpus.hardest([]) == ["aa", "aaa", "aaaa"]


# The alignment.


def test_links_are_columns_of_the_question_and_exist_where_the_answer_is_known(task):
    made = task()
    assert made.links("a cat sees the dog") == ((1,), (2,), (3,))
    assert made.links("dog") is None
    spelled = task(tokenizer="characters")
    assert spelled.links("a cat") == ((1,), (1,), (), (3, 4, 5), (3, 4, 5), (3, 4, 5), (3, 4, 5))


def test_the_score_that_heads_are_judged_by_depends_on_the_task_and_its_links(task):
    assert task_of(RunConfig()).target_score == "mirror"
    assert task_of(RunConfig().with_changes(task="sort")).target_score == "gold"
    assert task().target_score == "gold"
    assert task(corpus=Sentences(kept=[Pair("a cat", "un chat", held_out=True)])).target_score == "focus"


@pytest.mark.parametrize("name", [*LETTER_TASKS, "dates", "en-fr"])
def test_batches_of_every_task_fit_the_positions_of_its_model(name):
    made, one = (
        task_of(RunConfig().with_changes(task=name, batch_size=17, topology=topology))
        for topology in ("encoder-decoder", "decoder-only")
    )
    corpus = made.corpus
    assert (corpus.same_length, corpus.translates) == (
        name in LETTER_TASKS and name != "repeat",
        name in GRAMMARS,
    )
    assert made.name == name
    held_out, state = made.held_out(), np.random.get_state()[1].copy()
    trained = [made.words(5, k) for k in range(20)]
    assert not {text for texts in trained for text in texts} & set(held_out)
    assert trained[3:5] == [one.words(5, 3), one.words(5, 4)]  # regardless of earlier draws
    assert np.array_equal(np.random.get_state()[1], state)
    for task in (made, one):
        for batch in (task.batch(1, 2), task.encode(held_out[:50]), task.encode(held_out[:9], filled=True)):
            assert max(batch.src.shape[1], batch.tgt_in.shape[1]) <= task.max_tokens
    question = made.question(corpus.tracked_words()[0])
    assert made.accepts(question.text, question.answer)


def test_the_pairs_task_without_pairs_is_refused():
    with pytest.raises(InputError, match="no pairs yet"):
        task_of(RunConfig().with_changes(task="pairs"))


def test_a_token_has_the_id_of_the_vocabulary_of_its_side():
    task = task_of(RunConfig().with_changes(task="en-fr"))
    assert task.tgt_tokenizer.tokens([task.token_id("le", "tgt")]) == ("le",)
    assert task.src_tokenizer.tokens([task.token_id("the", "src")]) == ("the",)
    assert task.token_id("le", "src") == task.src_tokenizer.unk_id
    alone = task_of(RunConfig().with_changes(task="en-fr", topology="decoder-only"))
    assert alone.src_tokenizer.tokens([alone.token_id("the", "seq")]) == ("the",)
