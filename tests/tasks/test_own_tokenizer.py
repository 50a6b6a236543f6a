"""A user's own tokenizer.json, from a file or by its name on the Hugging Face Hub."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tests.tasks.conftest import TEXTS
from transformer.errors import InputError
from transformer.tasks.tokenizer import from_file, from_hub


def trained_backend(kind):
    """Train a tokenizer with the `tokenizers` package, with many tokens that no text here uses."""
    texts = [*TEXTS, "zebras quack", "quick zebras"] * 3
    if kind == "word-level":
        backend = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        backend.pre_tokenizer = pre_tokenizers.Whitespace()
        backend.decoder = decoders.Fuse()
        trainer = trainers.WordLevelTrainer(special_tokens=["[UNK]", "[CLS]", "[PAD]"])
    elif kind == "bytes":
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=340, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        trainer.show_progress = False
    else:
        backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        backend.normalizer = normalizers.Lowercase()
        backend.pre_tokenizer = pre_tokenizers.Whitespace()
        backend.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(
            vocab_size=80, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False
        )
    backend.train_from_iterator(texts, trainer)
    backend.enable_padding(length=30)
    backend.enable_truncation(3)
    return backend


@pytest.mark.parametrize("separator", [False, True])
@pytest.mark.parametrize("kind", ["word-level", "bytes", "word-pieces"])
def test_a_file_keeps_its_way_of_splitting_and_only_the_tokens_that_are_used(kind, separator):
    backend = trained_backend(kind)
    tokenizer = from_file(backend.to_str(), TEXTS, separator=separator)
    backend.no_padding()
    backend.no_truncation()
    used = {i for text in TEXTS for i in backend.encode(text, add_special_tokens=False).ids}
    unknown = {backend.token_to_id("[UNK]")} & used
    assert tokenizer.size == 4 + len(used - unknown) + separator < backend.get_vocab_size()
    assert tokenizer.sep_id == (tokenizer.size - 1 if separator else -1)
    for ids, text in zip(tokenizer.encode(TEXTS), TEXTS, strict=True):
        split = backend.encode(text, add_special_tokens=False)
        assert (ids[0], ids[-1]) == (1, 2)
        assert tokenizer.tokens(ids[1:-1]) == tuple(split.tokens)
        assert all(i >= 4 for i in ids[1:-1])
        assert tokenizer.spans(text) == split.offsets
        assert tokenizer.text(ids[1:])[0] == backend.decode(split.ids)
        assert "".join(tokenizer.pieces(ids[1:-1])) == backend.decode(split.ids)
        if kind == "bytes" and text.isascii():  # one letter is one byte, written as itself but for the space
            written = tuple(token.replace("Ġ", " ") for token in split.tokens)
            assert tokenizer.pieces(ids[1:-1]) == written


def test_a_byte_level_file_restores_text_even_if_a_letter_is_several_tokens():
    tokenizer = from_file(trained_backend("bytes").to_str(), ["é tu, brute?", "naïve"])
    for text in ("é tu, brute?", "naïve"):
        (ids,) = tokenizer.encode([text])
        assert tokenizer.text(ids[1:]) == (text, True)
        assert tokenizer.text([*ids[1:-1], 0, 2]) == (f"{text}[PAD]", True)


def test_the_most_frequent_tokens_of_a_file_are_kept_and_the_others_are_unknown():
    texts = ["the cat sees the dog", "the cat", "the hat"]
    tokenizer = from_file(trained_backend("word-level").to_str(), texts, 4 + 2)
    assert tokenizer.tokens(range(6)) == ("[PAD]", "[SOS]", "[EOS]", "[UNK]", "the", "cat")
    assert tokenizer.encode(["the dog", "cat"]) == [[1, 4, 3, 2], [1, 5, 2]]
    separated = from_file(trained_backend("word-level").to_str(), texts, 7, separator=True)
    assert separated.tokens(range(7)) == (*tokenizer.tokens(range(6)), "[SEP]")


def test_special_tokens_of_a_file_are_not_confused_with_ours():
    """Here "[PAD]" has an id other than 0 and occurs in a text; an unknown word becomes "[UNK]"."""
    backend = trained_backend("word-level")
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = from_file(backend.to_str(), ["the [PAD] cat", "quokka the"])
    (ids,) = tokenizer.encode(["the [PAD] quokka cat"])
    assert ids[0] == 1
    assert ids[3] == tokenizer.unk_id == 3
    assert 0 not in ids
    assert tokenizer.tokens(ids) == ("[SOS]", "the", "[PAD]′", "[UNK]", "cat", "[EOS]")
    assert len(set(tokenizer.tokens(range(tokenizer.size)))) == tokenizer.size


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", "no json", json.dumps({"model": {"type": "Magic"}})])
def test_content_that_is_not_a_tokenizer_is_refused_with_a_hint(content):
    with pytest.raises(InputError, match="not a tokenizer.json .* choose another kind") as refused:
        from_file(content, TEXTS)
    assert refused.value.field == "tokenizer"


def test_a_file_without_any_token_of_the_texts_is_refused():
    with pytest.raises(InputError, match="has no token"):
        from_file(trained_backend("word-level").to_str(), ["日本", "中国"])


@pytest.mark.parametrize(
    ("error", "why"),
    [(ConnectionError("no route to host"), "no route to host"), (TimeoutError(), "TimeoutError")],
)
def test_a_tokenizer_that_cannot_be_downloaded_is_refused_with_a_hint(monkeypatch, error, why):
    def offline(name):
        raise error

    monkeypatch.setattr(Tokenizer, "from_pretrained", offline)
    with pytest.raises(InputError, match=rf"bert-base.*\({why}\).* upload") as refused:
        from_hub("bert-base-uncased")
    assert refused.value.field == "tokenizer"


def test_a_downloaded_tokenizer_is_used_like_a_file(monkeypatch, tmp_path):
    path = tmp_path / "tokenizer.json"
    trained_backend("word-pieces").save(str(path))
    monkeypatch.setattr(Tokenizer, "from_pretrained", lambda name: Tokenizer.from_file(str(tmp_path / name)))
    content = from_hub("tokenizer.json")
    assert json.loads(content) == json.loads(path.read_text())
    assert from_file(content, TEXTS).encode(TEXTS) == from_file(path.read_text(), TEXTS).encode(TEXTS)
