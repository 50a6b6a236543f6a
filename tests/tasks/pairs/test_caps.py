"""Caps: each keeps the pairs that were counted by hand, and the kept pairs meet all caps."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzzing import profile
from transformer.errors import InputError
from transformer.tasks.pairs.caps import Candidate, Caps, frequent, frequent_few, select_pairs, suggested
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.text import plain
from transformer.tasks.pairs.units import cleaner, spaced_signs
from transformer.tasks.writing import Writing


def reading(*pairs):
    return Reading(pairs, "TSV, 2 columns")


def sentences(texts):
    """Make candidates in which every letter is a word."""
    return [Candidate((text, text), len(text), len(text), tuple(map(ord, text))) for text in texts]


def texts(candidates):
    return [candidate.pair[0] for candidate in candidates]


def rarest(made):
    """Return how often the rarest unit of each side occurs."""
    sides = zip(*made.pairs, strict=True)
    counts = [
        Counter(u for text in texts for u in w.units(text))
        for w, texts in zip((made.src, made.tgt), sides, strict=True)
    ]
    return tuple(min(count.values()) for count in counts)


def test_without_caps_all_pairs_are_kept_in_one_spelling_and_capitals_only_on_request():
    made = select_pairs(reading(("Go!", "Va !"), ("The  boy 's cat", "L’ami ?"), ("GO !", "va !")), Caps())
    assert set(made.pairs) == {("go!", "va !"), ("the boy's cat", "l'ami ?")}
    capitals = select_pairs(reading(("Go!", "Va !"), ("GO!", "va !")), Caps(lower=False))
    assert set(capitals.pairs) == {("Go!", "Va !"), ("GO!", "va !")}
    assert (capitals.src.lower, capitals.tgt.lower) == (False, False)


def test_a_side_has_a_space_before_high_punctuation_where_most_of_its_signs_have_one():
    french = [("Go?", "Va ?"), ("Go!", "Va !"), ("What?!", "Quoi!"), ("a ?", "b")]
    made = select_pairs(reading(*french), Caps())
    assert (made.src.spaced_signs, made.tgt.spaced_signs) == ("", "?!;:")
    assert ("what?!", "quoi !") in made.pairs
    swapped = select_pairs(reading(*french), Caps(swap=True))
    assert (swapped.src.spaced_signs, swapped.tgt.spaced_signs) == ("?!;:", "")
    assert ("quoi !", "what?!") in swapped.pairs
    assert spaced_signs([]) == spaced_signs(["no signs"]) == spaced_signs(["? a", "b ?", "c?"]) == ""


def test_length_caps_count_words_signs_and_chinese_characters_after_swapping():
    pairs = reading(("one two three.", "我们看。"), ("one two.", "他们昨天看书。"), ("one.", "看。"))
    assert set(select_pairs(pairs, Caps(longest_source=3)).pairs) == {
        ("one two.", "他们昨天看书。"),
        ("one.", "看。"),
    }
    assert set(select_pairs(pairs, Caps(longest_target=4)).pairs) == {
        ("one two three.", "我们看。"),
        ("one.", "看。"),
    }
    both = select_pairs(pairs, Caps(swap=True, longest_source=4, longest_target=3))
    assert both.pairs == (("看。", "one."),)


@pytest.mark.parametrize(("least", "left"), [(1, ["ab", "bc", "cd", "aa", "ee"]), (2, ["aa", "ee"]), (3, [])])
def test_removing_a_sentence_with_a_rare_word_may_make_further_words_rare(least, left):
    # d is rare; without "cd", c is rare; without "bc", b is rare; without "ab", a still occurs twice.
    assert texts(frequent(sentences(["ab", "bc", "cd", "aa", "ee"]), least)) == left


def test_a_word_is_counted_on_its_own_side_only():
    made = select_pairs(reading(("x go", "x"), ("x go", "y y"), ("go go", "y y")), Caps(min_frequency=2))
    # x is rare in the targets but not in the sources; without its pair it is rare in the sources too.
    assert made.pairs == (("go go", "y y"),)


def test_the_minimum_frequency_also_holds_under_a_cap_on_the_number_of_pairs():
    made_of = [
        (f"w{i % 40} v{i % 7} u{i}" if i % 9 == 0 else f"w{i % 40} v{i % 7}", f"t{i % 10}")
        for i in range(900)
    ]
    made_of.append(("W1 v1", "T1"))
    made = select_pairs(reading(*made_of), Caps(min_frequency=4, most_pairs=100))
    assert 0 < len(made.pairs) <= 100
    assert min(rarest(made)) >= 4


def test_pairs_are_shuffled_before_their_number_is_capped():
    sorted_by_length = [(" ".join(["go"] * (1 + i // 100)), f"va {i}") for i in range(2000)]
    made = select_pairs(reading(*sorted_by_length), Caps(most_pairs=500))
    lengths = Counter(len(source.split()) for source, _ in made.pairs)
    assert len(made.pairs) == 500
    assert set(lengths) == set(range(1, 21))
    assert max(lengths.values()) < 50, "25 of each are expected"
    assert made == select_pairs(reading(*sorted_by_length), Caps(most_pairs=500)), "the same each time"
    more = select_pairs(reading(*sorted_by_length), Caps(most_pairs=600))
    assert set(made.pairs) < set(more.pairs), "a smaller cap keeps a part of what a larger one keeps"


@pytest.mark.parametrize("name", ["longest_source", "longest_target", "min_frequency", "most_pairs"])
@pytest.mark.parametrize("value", [0, -3, 2.5, True, "7"])
def test_a_cap_that_is_not_a_positive_whole_number_is_refused(name, value):
    says = "is outside 1 to 1,000,000" if type(value) is int else "is not a whole number"
    with pytest.raises(InputError, match=f"^{name}={value!r} {says}") as refused:
        Caps(**{name: value})
    assert refused.value.field == name


WORD = st.text(alphabet="aAsSéİß'’-３Ａ々纽9", min_size=1, max_size=5)
SENTENCE = st.lists(WORD | st.sampled_from([",", "?", "!", "'s", "l'", ".", "_", "-"]), max_size=8).flatmap(
    lambda words: st.sampled_from(
        [" ".join(words), "".join(words), " ".join(words) + "?", ", ".join(words) + " !"]
    )
)


@example("a's-b c", "", True)
@example("Ａ Ｂ", "", True)
@example("J\u030c a", "", True)
@example("so ?", "", False)
@profile(300)
@given(
    SENTENCE | st.text(max_size=12) | st.text("as's-' ,b", max_size=12),
    st.sampled_from(["", "?!;:"]),
    st.booleans(),
)
def test_the_fast_cleaner_equals_the_clean_method_of_writing(text, spaced, lower):
    writing = Writing(spaced_signs=spaced, lower=lower)
    assert cleaner(writing)(plain(text)) == writing.clean(plain(text))


@profile(300)
@given(st.lists(st.text("abcdef", min_size=1, max_size=5), max_size=30), st.integers(1, 4))
def test_frequent_keeps_what_repeated_removal_of_sentences_with_rare_words_leaves(made, least):
    left = list(made)
    while True:
        count = Counter("".join(left))
        good = [sentence for sentence in left if all(count[word] >= least for word in sentence)]
        if len(good) == len(left):
            break
        left = good
    assert texts(frequent(sentences(made), least)) == left


@pytest.mark.parametrize(
    ("made", "most", "left"),
    [
        # To occur 5 times in 10 of 115 sentences, a word must occur 58 times in all.
        (["z", "y", "x"] * 5 + ["y", "x"] * 15 + ["x"] * 70, 10, ["x"] * 10),
        # In 105 of 115: 5.5 times in all, so z is left out.
        (["z", "y", "x"] * 5 + ["y", "x"] * 15 + ["x"] * 70, 105, ["y", "x"] * 20 + ["x"] * 65),
        # In the first 40, each letter occurs only 4 times: a smaller part with frequent words is kept.
        ([*"abcdefghij"] * 5 + ["xx"] * 4, 40, ["xx"] * 4),
        ([*"abcdefghij"] * 5 + ["xx"] * 4, 50, [*"abcdefghij"] * 5),
    ],
)
def test_a_small_selection_is_taken_from_sentences_with_more_frequent_words(made, most, left):
    assert texts(frequent_few(sentences(made), 5, most)) == left


def test_a_cap_far_below_the_number_of_pairs_is_nearly_reached():
    chance = random.Random(0)
    skewed = [int(1.006 ** chance.randrange(1000)) for _ in range(40_000)]
    made_of = [(f"w{a} w{b} v{i % 9}", f"x{b} x{a}") for i, (a, b) in enumerate(itertools.pairwise(skewed))]
    made = select_pairs(reading(*made_of), Caps(min_frequency=5, most_pairs=1000))
    assert 950 < len(made.pairs) <= 1000
    assert min(rarest(made)) >= 5


def skewed(n, words, lengths, *, numbered):
    """Return n pairs of random words, a few far more frequent than most, as in natural language."""
    chance = random.Random(0)

    def side(length, sign):
        return " ".join(f"{sign}{min(int(chance.paretovariate(0.9)), words)}" for _ in range(length))

    drawn = [(side(k, "a"), side(k, "b")) for k in (chance.randint(*lengths) for _ in range(n))]
    return reading(*((f"{s} {i}" if numbered else s, t) for i, (s, t) in enumerate(drawn)))


SHORT = {"longest_source": 8, "longest_target": 12}
ANY = {"longest_source": None, "longest_target": None}


@pytest.mark.parametrize(
    ("n", "words", "lengths", "numbered", "caps", "least", "most"),
    [
        # A number makes every source unique: numbers are never frequent, yet most pairs are kept.
        (60, 300, (3, 7), True, SHORT, 0.9, 1),
        (3000, 300, (3, 7), True, SHORT, 0.9, 1),
        (600, 200, (20, 40), True, ANY, 1, 1),
        (800, 60, (3, 13), False, SHORT, 0.4, 0.99),
        (12_000, 3000, (3, 20), False, SHORT | {"min_frequency": 5, "most_pairs": 5_000}, 2 / 12, 5 / 12),
    ],
)
def test_suggested_caps_keep_enough_short_sentences_of_frequent_words(
    n, words, lengths, numbered, caps, least, most
):
    found = skewed(n, words, lengths, numbered=numbered)
    chosen = suggested(found)
    assert {name: getattr(chosen, name) for name in caps} == caps
    assert least * n <= len(select_pairs(found, chosen).pairs) <= most * n


def test_suggested_caps_are_the_same_for_words_with_and_without_capitals():
    found = skewed(600, 1000, (3, 20), numbered=False)
    shouted = [
        (source.upper(), target) if i % 2 else (source, target)
        for i, (source, target) in enumerate(found.pairs)
    ]
    assert suggested(reading(*shouted)) == suggested(found)
