"""Characters to ids and back."""

from __future__ import annotations

from tokenizers import Tokenizer

from transformer.tasks.tokenizer import CharacterTokenizer


def test_ids_are_specials_then_the_alphabet_between_sos_and_eos():
    tokenizer = CharacterTokenizer()
    assert tokenizer.encode(["cab", "z", "a"]) == [[1, 6, 4, 5, 2], [1, 29, 2], [1, 4, 2]]
    assert (tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, tokenizer.size) == (0, 1, 2, 30)


def test_a_separator_is_one_more_token_at_the_end_and_leaves_the_others_in_their_places():
    plain, separated = CharacterTokenizer("xyz"), CharacterTokenizer("xyz", separator=True)
    assert (plain.size, separated.size) == (7, 8)
    assert (plain.sep_id, separated.sep_id) == (-1, 7)
    assert separated.tokens(range(8)) == (*plain.tokens(range(7)), "[SEP]")
    assert separated.encode(["zx"]) == plain.encode(["zx"]) == [[1, 6, 4, 2]]
    assert separated.id_of("[SEP]") == 7
    assert separated.text([4, 7, 5]) == ("x[SEP]y", False)
    assert Tokenizer.from_str(separated.to_json()).token_to_id("[SEP]") == 7


def test_text_comes_back_whole():
    tokenizer = CharacterTokenizer()
    for ids, word in zip(tokenizer.encode(["zebra", "q", ""]), ["zebra", "q", ""], strict=True):
        assert tokenizer.text(ids[1:]) == (word, True)
        assert tokenizer.tokens(ids) == ("[SOS]", *word, "[EOS]")


def test_text_ends_at_the_first_eos_and_shows_what_should_not_be_there():
    tokenizer = CharacterTokenizer()
    assert tokenizer.text([6, 4, 2, 7, 2]) == ("ca", True)
    assert tokenizer.text([6, 0, 4]) == ("c[PAD]a", False)
    assert tokenizer.text([2]) == ("", True)


def test_a_character_outside_the_alphabet_is_unknown():
    assert CharacterTokenizer("xy").encode(["xay"]) == [[1, 4, 3, 5, 2]]


def test_its_json_is_a_tokenizer_for_the_tokenizers_package():
    tokenizer = CharacterTokenizer()
    loaded = Tokenizer.from_str(tokenizer.to_json())
    assert loaded.encode("headlight").ids == tokenizer.encode(["headlight"])[0]
    assert loaded.encode("fly").tokens == ["[SOS]", "f", "l", "y", "[EOS]"]
    assert loaded.get_vocab_size() == tokenizer.size
