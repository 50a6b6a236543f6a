"""Own pairs as a corpus: held-out pairs are never trained on, and saved pairs can be read again."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.tasks.pairs.caps import Caps, select_pairs
from transformer.tasks.pairs.own import OwnPairs, from_tsv, is_held_out, to_tsv

RNG = np.random.default_rng(0)


@pytest.fixture
def own(found):
    """Return a corpus of n sources with one to three targets each."""

    def made(n=400, **caps):
        pairs = [(f"The cat no {i}!", f"Le chat {k} du {i} !") for i in range(n) for k in range(1 + i % 3)]
        return OwnPairs(select_pairs(found(pairs), Caps(**caps)))

    return made


def held_out_by_hand(source):
    """Return whether a source is held out, by an independent implementation of the rule."""
    digest = hashlib.blake2b(f"pairs\n{source}".encode(), digest_size=8).hexdigest()
    return str(int(digest, 16))[-1] == "0"


def test_no_source_is_on_both_sides_of_the_split_and_none_is_lost(own):
    corpus = own()
    training, held_out = corpus.drawn(RNG, 3), corpus.held_out()
    trained, asked = {pair.source for pair in training}, [pair.source for pair in held_out]
    assert len(asked) == len(set(asked))
    assert not trained & set(asked)
    assert trained | set(asked) == {f"the cat no {i}!" for i in range(400)}
    assert [source for source in asked if not held_out_by_hand(source)] == []
    assert len(asked) == sum(held_out_by_hand(f"the cat no {i}!") for i in range(400))
    assert not any(pair.held_out for pair in training)
    assert all(pair.held_out and pair.links is None for pair in held_out)


def test_two_spellings_of_one_source_are_on_the_same_side_of_the_split(found):
    pairs = [
        (spelled, f"t{i} {k}")
        for i in range(300)
        for k, spelled in enumerate((f"A cat {i} !", f"a CAT {i}!"))
    ]
    corpus = OwnPairs(select_pairs(found(pairs), Caps()))
    trained = {pair.source for pair in corpus.drawn(RNG, 0)}
    assert not trained & {pair.source for pair in corpus.held_out()}
    assert corpus.size == 2 * len(trained)


def test_every_target_of_a_source_is_an_example_and_a_reference(own):
    corpus = own()
    training = corpus.drawn(RNG, 1)
    assert corpus.size == len(training) == len(set(training))
    assert training == own().drawn(np.random.default_rng(9), 10**6), "all, and always in the same order"
    for pair in [*training, *corpus.held_out()]:
        i = int(pair.source.split()[-1][:-1])
        assert set(corpus.references(pair.source)) == {f"le chat {k} du {i} !" for k in range(1 + i % 3)}
        assert pair.target in corpus.references(pair.source)
        known = corpus.find(pair.source)
        assert known.target == corpus.references(pair.source)[0]
        assert known.held_out == pair.held_out
    assert corpus.references("the cat no 400!") == ()
    assert corpus.find("the cat no 400!") is None


def test_at_most_1000_sources_are_held_out_and_the_excess_is_not_trained_on(found):
    sources = [f"cat {i}" for i in range(12_000)]
    corpus = OwnPairs(select_pairs(found([(source, "chat") for source in sources]), Caps()))
    assert len(corpus.held_out()) == 1000
    unseen = sum(map(held_out_by_hand, sources))
    assert unseen > 1100
    assert corpus.size == 12_000 - unseen


def test_probes_are_five_held_out_sources_of_usual_length_and_known_words(found):
    words = [f"w{i}" for i in range(12)]
    pairs = [(f"{a} {b} {c}", f"x {a}") for a in words for b in words for c in words]
    odd = [(f"{source} so very much longer {i}", "y") for i, source in enumerate(words * 20)]
    odd += [(f"odd{i} odder{i} oddest{i}", "y") for i in range(3000)]
    corpus = OwnPairs(select_pairs(found(pairs + odd), Caps()))
    tracked_words = corpus.tracked_words()
    assert len(set(tracked_words)) == 5
    assert all(held_out_by_hand(word) and len(word.split()) == 3 for word in tracked_words)
    assert not any(word.startswith("odd") for word in tracked_words)
    assert corpus.everyday() == ()


def test_typed_text_is_normalised_like_the_sources(own):
    assert own().read("  THE\u00a0Cat no\t7 !\u200b") == "the cat no 7!"
    assert own(lower=False).read("The cat no 7!") == "The cat no 7!"


@pytest.mark.parametrize("text", ["", " \u00a0\n", "\ufeff"])
def test_an_empty_question_is_refused_with_an_example(own, text):
    corpus = own()
    with pytest.raises(InputError, match="sentence is empty") as refused:
        corpus.read(text)
    assert refused.value.suggestion == corpus.tracked_words()[0]


def test_a_question_may_be_twice_as_long_as_the_longest_source(own):
    corpus = own()
    assert (corpus.longest_source, corpus.longest_target) == (5, 6)
    assert corpus.read("cat " * 10) == " ".join(["cat"] * 10)
    with pytest.raises(InputError, match="^The sentence has 11 words.* at most 10"):
        corpus.read("cat " * 11)


def test_too_few_sources_to_hold_some_out_are_refused_with_the_numbers(found):
    sources = [f"s {i}" for i in range(2000)]
    unseen = [source for source in sources if is_held_out(source)]
    seen = [source for source in sources if not is_held_out(source)][:30]
    pairs = [(source, f"t {k}") for source in [*seen, *unseen[:4]] for k in (0, 1)]
    with pytest.raises(InputError, match="^Of 68 pairs with 34 different sources, .* about 100 ") as refused:
        OwnPairs(select_pairs(found(pairs), Caps()))
    assert refused.value.field == "pairs_upload"
    assert len(OwnPairs(select_pairs(found([*pairs, (unseen[4], "t")]), Caps())).held_out()) == 5
    for hopeless in ([], [(source, "t") for source in unseen]):
        with pytest.raises(InputError, match="at least 5 are needed"):
            OwnPairs(select_pairs(found(hopeless), Caps()))


def test_checking_whether_a_source_is_held_out_does_not_cache_it():
    from transformer.tasks.corpus import held_out_by_hash

    before = held_out_by_hash.cache_info().currsize
    is_held_out("a secret")
    assert held_out_by_hash.cache_info().currsize == before


def test_the_digest_depends_on_pairs_caps_and_spelling(own, found):
    same, others = own(), [own(399), own(lower=False), own(swap=True), own(most_pairs=10**6)]
    assert same.digest == own().digest
    assert len({same.digest, *(other.digest for other in others)}) == 5
    assert len(same.digest) == 16
    assert int(same.digest, 16) > 0


@pytest.mark.parametrize(
    "caps", [{}, {"swap": True, "lower": False}, {"min_frequency": 2, "most_pairs": 300}]
)
def test_pairs_written_as_text_and_read_again_are_the_same_corpus(own, caps):
    corpus = own(**caps)
    again = from_tsv(to_tsv(corpus))
    assert again.digest == corpus.digest
    assert again.capped.caps == corpus.capped.caps == Caps(**caps)
    assert (again.src, again.tgt) == (corpus.src, corpus.tgt)
    assert again.drawn(RNG, 0) == corpus.drawn(RNG, 0)
    assert again.held_out() == corpus.held_out()
    assert again.tracked_words() == corpus.tracked_words()
    assert again.references("the cat no 2!") == corpus.references("the cat no 2!")


def without(key):
    def changed(text):
        first, rest = text.split("\n", 1)
        head = json.loads(first)
        del head[key]
        return json.dumps(head) + "\n" + rest

    return changed


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text.split("\n", 1)[1],
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("chat 1 du 7 !", "chat 1 du 8 !"),
        lambda text: text + "\n",
        lambda text: text.replace("\t", " ", 1),
        lambda text: text.replace('"headlight_pairs": 1', '"headlight_pairs": 2'),
        lambda text: text.replace('"lower": true', '"lower": false'),
        lambda text: text.replace('"lower"', '"upper"'),
        lambda text: text.replace('["", "?!;:"]', '["", "abc"]'),
        lambda text: text.replace('["", "?!;:"]', "[[], {}]"),
        lambda text: text.replace('"most_pairs": null', '"most_pairs": -1'),
        lambda text: "[" * 10_000 + text,
        lambda text: "[1]\n" + text,
        lambda text: text + "\ud800\tx\n",
        *map(without, ("headlight_pairs", "digest", "caps", "spaced")),
    ],
)
def test_saved_pairs_that_were_changed_are_refused(own, damage):
    text = to_tsv(own())
    assert damage(text) != text
    with pytest.raises(InputError, match="^The saved pairs are damaged") as refused:
        from_tsv(damage(text))
    assert refused.value.field == "pairs_upload"
