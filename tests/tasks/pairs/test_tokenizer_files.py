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
    assert keep_tokenizer(characters("abd").to_json()).digest != digest
    del other
    gc.collect()
    with pytest.raises(InputError, match="no longer on this server; upload it again") as refused:
        kept(digest)
    assert refused.value.field == "tokenizer"
