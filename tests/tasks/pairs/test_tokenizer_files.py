"""A person's tokenizer file is on the server only as long as somebody needs it."""

from __future__ import annotations

import gc

import pytest

from transformer.errors import InputError
from transformer.tasks.pairs.tokenizer_files import keep_tokenizer, kept
from transformer.tasks.tokenizer import characters


def test_a_file_lives_only_as_long_as_someone_holds_it():
    content = characters("abc").to_json()
    one = keep_tokenizer(content)
    digest = one.digest
    other = keep_tokenizer(content)
    assert other is one
    del one
    gc.collect()
    assert kept(digest) is other
    assert kept(digest).content == content
    del other
    gc.collect()
    with pytest.raises(InputError, match="no longer on this server; upload it again") as refused:
        kept(digest)
    assert refused.value.field == "tokenizer"


def test_other_contents_are_other_files():
    one, other = (keep_tokenizer(characters(alphabet).to_json()) for alphabet in ("abc", "abd"))
    assert one.digest != other.digest
    assert kept(one.digest).content != kept(other.digest).content


def test_what_is_no_tokenizer_is_refused():
    with pytest.raises(InputError, match="^This is not a tokenizer.json of the tokenizers package "):
        keep_tokenizer("{}")
