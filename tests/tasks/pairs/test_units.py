"""The units of own pairs are words or characters, chosen by measurements on the pairs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import pytest

from tests.tasks.pairs.lessons import LESSONS, MORSE, lesson
from transformer.config import RunConfig
from transformer.tasks import task_of
from transformer.tasks.pairs.caps import Caps, select_pairs, suggested
from transformer.tasks.pairs.own import OwnPairs, from_tsv, to_tsv
from transformer.tasks.pairs.store import intern_pairs

CHOSEN = {
    "reversed": ("characters", "characters"),
    "plurals": ("characters", "characters"),
    "numbers": ("characters", "words"),
    "morse": ("characters", "words"),
    "french": ("words", "words"),
    "chinese": ("words", "words"),
}


def units(pairs, found, **caps):
    made = select_pairs(found(pairs), Caps(**caps))
    return made.src.unit_name, made.tgt.unit_name


def tokens(name):
    """Return the displayed tokens of both sides of a lesson under the suggested caps."""
    own = intern_pairs(OwnPairs(select_pairs(lesson(name), suggested(lesson(name)))))
    task = task_of(RunConfig().with_changes(task="pairs", pairs=own.digest))
    return [set(one.tokens(range(4, one.size))) for one in (task.src_tokenizer, task.tgt_tokenizer)]


@pytest.mark.parametrize("name", CHOSEN)
def test_each_lesson_is_read_in_the_expected_units_and_nearly_all_pairs_are_kept(name):
    reading = lesson(name)
    made = select_pairs(reading, suggested(reading))
    assert (made.src.unit_name, made.tgt.unit_name) == CHOSEN[name]
    assert len(made.pairs) >= 0.9 * len(LESSONS[name])
    swapped = select_pairs(reading, Caps(swap=True))
    assert (swapped.src.unit_name, swapped.tgt.unit_name) == CHOSEN[name][::-1]


def test_the_auto_tokenizer_uses_the_chosen_units():
    assert tokens("reversed")[0] <= set("abcdefghijklmnopqrstuvwxyz")
    digits, said = tokens("numbers")
    assert digits == set("0123456789")
    assert {"hundred", "twenty", "forty-four"} <= said
    letters, signs = tokens("morse")
    assert {"a", "e"} <= letters
    assert signs <= set(MORSE.values())
    read, written = tokens("chinese")
    assert {"地", "图", "。"} <= read
    assert {"umbrellas", "."} <= written


def test_morse_code_keeps_the_spaces_between_its_letters():
    made = select_pairs(lesson("morse"), Caps())
    assert set(made.pairs) == set(LESSONS["morse"])
    _, task_tokens = tokens("morse")
    assert "." in task_tokens, "E is one token, and no full stop of the letter before it"


def test_answers_that_are_one_of_a_few_words_are_read_in_words(found):
    labels = [(word, "long" if len(word) > 5 else "short") for word, _ in LESSONS["reversed"]]
    assert units(labels, found) == ("characters", "words")


def test_a_script_without_spaces_is_read_in_characters(found):
    syllables = ["กิน", "ข้าว", "ปลา", "แมว", "เห็น", "หมา", "บ้าน"]
    pairs = [
        (f"{a}{b}{c}", f"x{i % 5} y{i % 3}")
        for i, (a, b, c) in enumerate((a, b, c) for a in syllables for b in syllables for c in syllables)
    ]
    assert units(pairs, found) == ("characters", "words")


def test_sentences_are_read_in_words_even_if_many_words_are_unknown(found):
    pairs = [(f"the {word} is here", f"{other} est là") for word, other in LESSONS["reversed"]]
    assert units(pairs, found) == ("words", "words")


@pytest.mark.parametrize(("n_words", "unit"), [(30, "words"), (400, "characters")])
def test_single_words_are_read_in_words_where_they_occur_in_training(found, n_words, unit):
    pairs = [(word, f"{i} a") for i, (word, _) in enumerate(LESSONS["reversed"][:n_words] * (900 // n_words))]
    assert units(pairs, found, swap=True)[1] == unit


def test_capitals_are_kept_on_request(found):
    pairs = [(word.capitalize(), other) for word, other in LESSONS["reversed"]]
    made = select_pairs(found(pairs), Caps(lower=False))
    assert set(made.pairs) == set(pairs)


def test_the_share_of_unknown_words_equals_a_count_by_hand():
    own = OwnPairs(select_pairs(lesson("numbers"), Caps()))
    trained = {word for pair in own.drawn(None, 0) for word in pair.target.split()}
    asked = [word for pair in own.held_out() for word in pair.target.split()]
    unknown = sum(word not in trained for word in asked) / len(asked)
    assert own.unknown_words == (1.0, pytest.approx(unknown))
    assert 0 <= unknown < 0.1


@pytest.mark.parametrize("name", ["reversed", "morse"])
def test_saved_pairs_are_read_in_the_same_units_again(name):
    own = OwnPairs(select_pairs(lesson(name), Caps()))
    again = from_tsv(to_tsv(own))
    assert (again.src, again.tgt, again.digest) == (own.src, own.tgt, own.digest)


def test_the_digest_of_pairs_in_words_stays_compatible_with_earlier_versions():
    own = OwnPairs(select_pairs(lesson("french"), Caps()))
    digest = hashlib.blake2b(json.dumps([asdict(Caps()), "", ""], sort_keys=True).encode(), digest_size=8)
    for source, target in own.capped.pairs:
        digest.update(f"\n{source}\t{target}".encode())
    assert own.digest == digest.hexdigest()


def test_with_the_words_tokenizer_words_are_tokens_and_a_held_out_word_is_unknown():
    own = intern_pairs(OwnPairs(select_pairs(lesson("reversed"), Caps())))
    task = task_of(RunConfig().with_changes(task="pairs", pairs=own.digest, tokenizer="words"))
    held_out, trained = task.held_out()[0], own.drawn(None, 0)[0].source
    assert task.src_tokenizer.tokens(task.src_tokenizer.encode([held_out])[0]) == ("[SOS]", "[UNK]", "[EOS]")
    assert task.src_tokenizer.tokens(task.src_tokenizer.encode([trained])[0]) == ("[SOS]", trained, "[EOS]")
