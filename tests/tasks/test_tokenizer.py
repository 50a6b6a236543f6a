"""Text to ids and back: characters, words and byte pairs."""

from __future__ import annotations

from itertools import product

import pytest
from tokenizers import Tokenizer

from tests.tasks.conftest import TEXTS
from transformer.tasks.tokenizer import byte_pairs, characters, words
from transformer.tasks.writing import Writing

FRENCH = Writing(spaced_signs="?!;:")


def theirs(tokenizer):
    """Load the JSON of a tokenizer with the `tokenizers` package."""
    return Tokenizer.from_str(tokenizer.to_json())


# Characters.


def test_ids_number_special_tokens_before_the_alphabet_and_texts_are_between_sos_and_eos():
    tokenizer = characters()
    assert tokenizer.encode(["cab", "z", "a"]) == [[1, 6, 4, 5, 2], [1, 29, 2], [1, 4, 2]]
    assert (tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, tokenizer.size) == (0, 1, 2, 30)


def test_a_separator_is_added_as_the_last_token_and_leaves_other_ids_unchanged():
    plain, separated = characters("xyz"), characters("xyz", separator=True)
    assert (plain.size, separated.size) == (7, 8)
    assert (plain.sep_id, separated.sep_id) == (-1, 7)
    assert separated.tokens(range(8)) == (*plain.tokens(range(7)), "[SEP]")
    assert separated.encode(["zx"]) == plain.encode(["zx"]) == [[1, 6, 4, 2]]
    assert separated.id_of("[SEP]") == 7
    assert separated.text([4, 7, 5]) == ("x[SEP]y", False)
    assert theirs(separated).token_to_id("[SEP]") == 7


def test_decoding_restores_the_text_and_ends_at_the_first_eos():
    tokenizer = characters()
    for ids, word in zip(tokenizer.encode(["zebra", "q", ""]), ["zebra", "q", ""], strict=True):
        assert tokenizer.text(ids[1:]) == (word, True)
        assert tokenizer.tokens(ids) == ("[SOS]", *word, "[EOS]")
    assert tokenizer.text([6, 4, 2, 7, 2]) == ("ca", True)
    assert tokenizer.text([6, 0, 4]) == ("c[PAD]a", False)  # an unexpected special token is shown


def test_a_character_outside_the_alphabet_is_unknown():
    assert characters("xy").encode(["xay"]) == [[1, 4, 3, 5, 2]]
    assert characters("xy").id_of("a") == characters("xy").unk_id == 3


def test_a_space_is_a_token_and_is_displayed_as_a_visible_sign():
    tokenizer = characters("ab ")
    assert tokenizer.encode(["a b"]) == [[1, 4, 6, 5, 2]]
    assert tokenizer.tokens([4, 6, 5]) == ("a", "␣", "b")
    assert tokenizer.id_of("␣") == tokenizer.id_of(" ") == 6
    assert tokenizer.text([4, 6, 5, 2]) == ("a b", True)
    assert tokenizer.spans("a b") == [(0, 1), (1, 2), (2, 3)]


def test_any_characters_are_encoded_as_by_the_tokenizers_package():
    tokenizer = characters("abé 日")
    signs = ["a", "b", "é", " ", "日", "e\u0301", "😀", "\n", "\r\n", "\u2028", "\x00", "[PAD]", "z", "\t"]
    texts = ["".join(chosen) for chosen in product(signs, repeat=3)]
    assert tokenizer.encode(texts) == [found.ids for found in theirs(tokenizer).encode_batch(texts)]


# Words.


@pytest.mark.parametrize(
    ("writing", "text", "tokens"),
    [
        (Writing(), "the boy's dog, i see.", ["the", "boy", "'s", "dog", ",", "i", "see", "."]),
        (FRENCH, "l'homme qu'il voit est-il là ?", ["l'", "homme", "qu'", "il", "voit", "est-il", "là", "?"]),
        (Writing(), "我有3只cat。", ["我", "有", "3", "只", "cat", "。"]),
        (Writing(), "three", ["three"]),
    ],
    ids=["English", "French", "Chinese", "one"],
)
def test_a_word_is_a_token_and_the_pieces_joined_are_the_text(writing, text, tokens):
    tokenizer = words(sorted(set(tokens)), writing)
    (ids,) = tokenizer.encode([text])
    assert list(tokenizer.tokens(ids)) == ["[SOS]", *tokens, "[EOS]"]
    assert [text[begin:end] for begin, end in tokenizer.spans(text)] == tokens
    assert "".join(tokenizer.pieces(ids[1:-1])) == text
    assert tokenizer.text(ids[1:]) == (text, True)
    assert theirs(tokenizer).encode(text).ids == ids
    assert theirs(tokenizer).encode(text).tokens == ["[SOS]", *tokens, "[EOS]"]


def test_the_space_between_two_words_belongs_to_the_second_word():
    tokenizer = words(["l'", "homme", "voit", "."], FRENCH)
    assert tokenizer.pieces([6, 4, 5, 7]) == ("voit", " l'", "homme", ".")
    assert tokenizer.pieces([]) == ()


def test_an_unknown_word_is_encoded_and_displayed_as_unk():
    tokenizer = words(["the", "cat"], Writing(), separator=True)
    (ids,) = tokenizer.encode(["the big cat"])
    assert ids == [1, 4, 3, 5, 2]
    assert tokenizer.text(ids[1:]) == ("the [UNK] cat", True)
    assert theirs(tokenizer).encode("the big cat").ids == ids
    assert (tokenizer.sep_id, tokenizer.size) == (6, 7)


def test_the_names_of_special_tokens_in_a_text_are_read_as_plain_signs():
    tokenizer = words(["[", "]", "pad"], Writing())
    assert tokenizer.encode(["[ pad ]", "[pad]"]) == [[1, 4, 6, 5, 2]] * 2
    assert words(["a"], Writing()).encode(["[PAD]"]) == [[1, 3, 3, 3, 2]]


def test_a_sentence_without_words_is_empty():
    assert words(["a"], Writing()).encode(["", "  "]) == [[1, 2], [1, 2]]


# Byte pairs.


@pytest.mark.parametrize("separator", [False, True])
def test_byte_pairs_restore_every_text_that_they_were_learned_from(separator):
    tokenizer = byte_pairs(TEXTS, 60, separator=separator)
    assert tokenizer.size <= 60
    for ids, text in zip(tokenizer.encode(TEXTS), TEXTS, strict=True):
        assert (ids[0], ids[-1]) == (1, 2)
        assert 3 not in ids
        assert tokenizer.text(ids[1:]) == (text, True)
        assert "".join(tokenizer.pieces(ids[1:-1])) == text
        assert len(tokenizer.pieces(ids[1:-1])) == len(ids) - 2
        assert theirs(tokenizer).encode(text).ids == ids
    assert max(map(len, tokenizer.encode(["the"]))) == 3, "what is frequent is one token"


def test_byte_pairs_are_learned_from_the_given_texts_alone():
    tokenizer = byte_pairs(["aab aab aab", "ab"], 50)
    shown = tokenizer.tokens(range(tokenizer.size))
    assert shown[:4] == ("[PAD]", "[SOS]", "[EOS]", "[UNK]")
    assert set("".join(shown[4:])) == {"a", "b", "␣"}
    assert tokenizer.encode(["abz"])[0][-2] == tokenizer.unk_id
    assert byte_pairs(["aab aab aab", "ab"], 50).to_json() == tokenizer.to_json()


def test_a_vocabulary_of_byte_pairs_has_the_requested_size_but_at_least_all_its_signs():
    signs = len({*"".join(TEXTS)} - {" "}) + 1  # and the space
    for size in (40, 50):
        for separator in (False, True):
            tokenizer = byte_pairs(TEXTS, size, separator=separator)
            assert tokenizer.size == size
            assert tokenizer.sep_id == (size - 1 if separator else -1)
            assert theirs(tokenizer).get_vocab_size() == size
    assert 4 + signs <= byte_pairs(TEXTS, 10).size <= 4 + signs + 2
    assert byte_pairs(TEXTS, 10).encode(["the dog"])[0].count(3) == 0


def test_a_text_may_contain_the_name_of_a_special_token():
    texts = ["[PAD] is [EOS]", "a [PAD]", "[SEP]"]
    for separator in (False, True):
        tokenizer = byte_pairs(texts, 40, separator=separator)
        for ids, text in zip(tokenizer.encode(texts), texts, strict=True):
            assert not {0, 1, 2, 3} & set(ids[1:-1])
            assert tokenizer.sep_id not in ids
            assert tokenizer.text(ids[1:]) == (text, True)


def test_the_space_before_a_word_is_displayed_and_looked_up_as_part_of_its_token():
    tokenizer = byte_pairs(TEXTS, 60)
    token = tokenizer.tokens([tokenizer.encode(["the"])[0][1]])[0]
    assert token == "␣the"
    assert tokenizer.tokens([tokenizer.id_of("␣the")]) == ("␣the",)
    assert tokenizer.pieces([tokenizer.id_of("␣the")] * 2) == ("the", " the")
    assert tokenizer.text([tokenizer.id_of("␣the"), 0, 2]) == ("the[PAD]", True)


def test_spans_of_byte_pairs_cover_the_text_from_left_to_right():
    tokenizer = byte_pairs(TEXTS, 45)
    for text in TEXTS:
        spans = tokenizer.spans(text)
        assert len(spans) == len(tokenizer.encode([text])[0]) - 2
        assert spans == sorted(spans)
        letters = {place for begin, end in spans for place in range(begin, end) if text[place] != " "}
        assert letters == {place for place, sign in enumerate(text) if sign != " "}
        marks = sum(token == "␣" for token in tokenizer.tokens(tokenizer.encode([text])[0]))
        assert sum(end - begin for begin, end in spans) <= len(text) + marks, "no letter is told twice"
