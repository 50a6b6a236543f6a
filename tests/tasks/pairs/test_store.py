"""Uploads by digest: one shared object, available while referenced and removed with the last reference."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from transformer.errors import InputError
from transformer.tasks.pairs.caps import Caps, select_pairs
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.store import intern_pairs, intern_tokenizer, pairs_of, tokenizer_of
from transformer.tasks.tokenizer import characters


@pytest.fixture
def fresh(found):
    """Return a function that makes a new `OwnPairs` on each call, equal for equal words."""

    def made(word="cat"):
        return OwnPairs(select_pairs(found([(f"{word} {i}", f"x {i}") for i in range(200)]), Caps()))

    return made


def test_kept_pairs_are_found_by_digest_and_equal_pairs_share_one_object(fresh):
    first = intern_pairs(fresh())
    assert pairs_of(first.digest) is first
    assert intern_pairs(fresh()) is first
    other = intern_pairs(fresh("dog"))
    assert pairs_of(other.digest) is other is not first


def test_pairs_are_removed_with_their_last_reference(fresh):
    held = intern_pairs(fresh())
    digest, trace = held.digest, weakref.ref(held)
    del held
    gc.collect()
    assert trace() is None
    with pytest.raises(InputError, match="no longer on this server") as refused:
        pairs_of(digest)
    assert refused.value.field == "pairs_upload"


def test_threads_that_keep_equal_pairs_at_once_get_the_same_object(fresh):
    made, got = [fresh() for _ in range(8)], []
    gate = threading.Barrier(8)

    def work(own):
        gate.wait()
        got.append(intern_pairs(own))

    threads = [threading.Thread(target=work, args=(own,)) for own in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert len(set(map(id, got))) == 1


def test_a_tokenizer_file_is_removed_with_its_last_reference():
    content = characters("abc").to_json()
    one = intern_tokenizer(content)
    digest = one.digest
    other = intern_tokenizer(content)
    assert other is one
    del one
    gc.collect()
    assert tokenizer_of(digest) is other
    assert tokenizer_of(digest).content == content
    del other
    gc.collect()
    with pytest.raises(InputError, match="no longer on this server; upload it again") as refused:
        tokenizer_of(digest)
    assert refused.value.field == "tokenizer"


def test_different_contents_have_different_digests():
    one, other = (intern_tokenizer(characters(alphabet).to_json()) for alphabet in ("abc", "abd"))
    assert one.digest != other.digest
    assert tokenizer_of(one.digest).content != tokenizer_of(other.digest).content


def test_content_that_is_not_a_tokenizer_is_refused():
    with pytest.raises(InputError, match="^This is not a tokenizer.json of the tokenizers package "):
        intern_tokenizer("{}")
