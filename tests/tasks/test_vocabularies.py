"""The vocabularies of a run, counted by hand."""

from __future__ import annotations

import string

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.tasks.corpus import Pair
from transformer.tasks.pairs.store import intern_tokenizer
from transformer.tasks.vocabularies import tokenizers_of
from transformer.tasks.writing import LETTERS, Writing

WORDS = Writing()
SAMPLE = [
    Pair("the cat sees the dog", "le chat voit le chien"),
    Pair("the dog sees a cat", "le chien voit un chat"),
    Pair("a rat", "un rat"),
]
# Counts: the 3, a 2, cat 2, dog 2, sees 2, rat 1; le 3, chat 2, chien 2, un 2, voit 2, rat 1.
SRC = ["the", "a", "cat", "dog", "sees", "rat"]
TGT = ["le", "chat", "chien", "un", "voit", "rat"]


def made(sample=SAMPLE, src=WORDS, tgt=WORDS, *, separator=False, one=False, **settings):
    """Make the tokenizers of both sides and check their special tokens."""
    config = TrainConfig(**{"task": "en-fr", **settings})
    both = tokenizers_of(config, src, tgt, sample, separator=separator, one=one)
    for tokenizer in both:
        shown = tokenizer.tokens(range(tokenizer.size))
        assert shown[:4] == ("[PAD]", "[SOS]", "[EOS]", "[UNK]")
        assert len(set(shown)) == tokenizer.size
        assert (shown[-1] == "[SEP]") is separator
    return both


def shown(tokenizer):
    tokens = tokenizer.tokens(range(4, tokenizer.size))
    return list(tokens[:-1] if tokens[-1:] == ("[SEP]",) else tokens)


def test_each_side_has_its_own_words_with_the_most_frequent_first():
    src, tgt = made()
    assert (shown(src), shown(tgt)) == (SRC, TGT)


@pytest.mark.parametrize(("least", "n_src", "n_tgt"), [(1, 6, 6), (2, 5, 5), (3, 1, 1)])
def test_words_that_are_too_rare_are_unknown(least, n_src, n_tgt):
    src, tgt = made(min_frequency=least)
    assert (shown(src), shown(tgt)) == (SRC[:n_src], TGT[:n_tgt])
    (ids,) = src.encode(["the rat"])
    assert ids[1:-1] == [4, 3 if least > 1 else 9]


def test_a_limited_vocabulary_keeps_the_most_frequent_words_and_counts_special_tokens():
    many = [
        Pair(" ".join(string.ascii_lowercase[: n + 1]), "x y") for n in range(20)
    ]  # a 20 times, b 19, ...
    src, tgt = made(many, vocabulary=10)
    assert (src.size, tgt.size) == (10, 6)
    assert shown(src) == list("abcdef")
    src, _ = made(many, vocabulary=10, separator=True, one=True)
    assert src.size == 10
    assert len(shown(src)) == 5


@pytest.mark.parametrize("separator", [False, True])
def test_one_vocabulary_counts_the_words_of_both_sides_together(separator):
    src, tgt = made(one=True, separator=separator)
    assert shown(src) == shown(tgt)
    assert sorted(shown(src)) == sorted({*SRC, *TGT})
    assert src.encode(["le rat"]) == tgt.encode(["le rat"])
    assert src.sep_id == tgt.sep_id == (src.size - 1 if separator else -1)
    rare, _ = made(one=True, min_frequency=2)
    assert sorted(shown(rare)) == sorted({*SRC, *TGT}), "a word of both sides is twice as frequent"


def test_one_vocabulary_serves_sides_with_different_units():
    """The source is read in characters and the target written in words, with the same ids."""
    sample = [Pair("21", "twenty one"), Pair("1", "one")]
    src, tgt = made(sample, LETTERS, WORDS, one=True, task="dates")
    assert shown(src) == shown(tgt) == ["1", "one", "2", "twenty"]
    assert src.encode(["12"]) == [[1, 4, 6, 2]]
    assert tgt.encode(["twenty one"]) == [[1, 7, 5, 2]]
    assert tgt.text([7, 5, 2]) == ("twenty one", True)
    two, other = made(sample, LETTERS, WORDS, task="dates")
    assert (shown(two), shown(other)) == (["1", "2"], ["one", "twenty"])


def test_character_tokens_of_sentences_include_the_space():
    src, _ = made(tokenizer="characters")
    assert set(shown(src)) == {*"thecatseesthedogarat", "␣"}
    text = "the rat sees"
    assert src.text(src.encode([text])[0][1:]) == (text, True)
    assert len(src.encode([text])[0]) == len(text) + 2


@pytest.mark.parametrize("task", ["reverse", "copy", "sort", "caesar"])
@pytest.mark.parametrize("kind", ["auto", "characters", "words"])
def test_letter_tasks_have_the_tokens_a_to_z_whatever_the_settings(task, kind):
    settings = {"task": task, "tokenizer": kind, "vocabulary": 12, "min_frequency": 9}
    src, tgt = made((), LETTERS, LETTERS, separator=True, **settings)
    assert shown(src) == shown(tgt) == list(string.ascii_lowercase)
    assert src.sep_id == 30


def test_byte_pairs_are_learned_for_each_side_or_for_both_together():
    src, tgt = made(tokenizer="bpe", vocabulary=30)
    assert "é" not in "".join(shown(src) + shown(tgt))
    assert "v" in shown(tgt)
    assert "v" not in shown(src)
    one, other = made(tokenizer="bpe", vocabulary=30, one=True)
    assert one is other
    assert {"v", "g"} <= set(shown(one))
    assert one.text(one.encode(["le chat sees"])[0][1:]) == ("le chat sees", True)


def test_a_file_is_used_for_both_sides_each_with_the_tokens_that_it_needs():
    known = ["[UNK]", "the", "dog", "chat", "zebra", "le", "cat"]
    backend = Tokenizer(models.WordLevel({token: i for i, token in enumerate(known)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    held = intern_tokenizer(backend.to_str())
    settings = {"tokenizer": "file", "tokenizer_file": held.digest}
    src, tgt = made(**settings)
    assert (shown(src), shown(tgt)) == (["the", "cat", "dog"], ["le", "chat"])
    assert src.encode(["the zebra sees the dog"]) == [[1, 4, 3, 3, 4, 6, 2]]
    one, other = made(**settings, one=True, separator=True)
    assert shown(one) == shown(other) == ["the", "le", "cat", "dog", "chat"]


@pytest.mark.parametrize(("digest", "says"), [(None, "no tokenizer.json yet"), ("0123456789", "no longer")])
def test_a_missing_tokenizer_file_is_refused(digest, says):
    with pytest.raises(InputError, match=says) as refused:
        made(tokenizer="file", tokenizer_file=digest)
    assert refused.value.field == "tokenizer"


@pytest.mark.parametrize("kind", ["bpe", "file"])
def test_letter_tasks_refuse_tokenizers_that_join_letters(kind):
    with pytest.raises(InputError, match=f"a token for each letter, but {kind}") as refused:
        made((), LETTERS, LETTERS, task="sort", tokenizer=kind)
    assert refused.value.field == "tokenizer"


def test_a_minimum_frequency_that_no_word_reaches_is_refused_with_the_number():
    with pytest.raises(InputError, match="4 times among 12") as error:
        made(min_frequency=4)
    assert error.value.field == "min_frequency"
