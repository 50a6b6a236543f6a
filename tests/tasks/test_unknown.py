"""The share of unknown held-out tokens, counted by hand, and tokenizer settings that reduce it."""

from __future__ import annotations

import pytest

from tests.tasks.pairs.lessons import LESSONS, lesson
from transformer.config import RunConfig
from transformer.tasks import task_of
from transformer.tasks.pairs.caps import Caps, select_pairs
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.store import intern_pairs
from transformer.tasks.unknown import mostly_known, remedy, unknown_tokens

ALL = {"vocabulary": None, "min_frequency": 1}


@pytest.fixture
def of_pairs():
    """Return a configuration for the given pairs, which are kept until the test ends."""
    held = []

    def made(pairs, **settings):
        reading = pairs if isinstance(pairs, Reading) else Reading(tuple(pairs), "TSV, 2 columns")
        held.append(intern_pairs(OwnPairs(select_pairs(reading, Caps()))))
        return RunConfig().with_changes(task="pairs", pairs=held[-1].digest, **settings)

    return made


def sentences(n=300):
    """Make n sentences of three words; the last word is unique, but made of shared syllables."""
    syllables = ["ba", "ko", "li", "mu", "ne", "ta", "so", "wi"]
    rare = ["".join(syllables[(i // 8**k) % 8] for k in range(3)) for i in range(n)]
    return [(f"see the {word}", f"voir le {word}") for word in rare]


def test_tokens_that_occur_only_in_held_out_pairs_are_counted_as_unknown(of_pairs):
    assert unknown_tokens(task_of(of_pairs(sentences()))) == pytest.approx((1 / 3, 1 / 3))
    assert unknown_tokens(task_of(of_pairs(lesson("reversed"), tokenizer="words"))) == (1.0, 1.0)
    assert unknown_tokens(task_of(of_pairs(lesson("reversed")))) == (0.0, 0.0)
    labels = [(word, "long" if len(word) > 5 else "short") for word, _ in LESSONS["reversed"]]
    assert unknown_tokens(task_of(of_pairs(labels, tokenizer="words"))) == (1.0, 0.0)


def test_examples_with_more_than_a_tenth_of_unknown_tokens_are_left_out(of_pairs):
    pairs = [(f"a{i % 5} b{i % 7} c{i % 3}", f"x{i % 5}") for i in range(105)] + sentences(100)
    task = task_of(of_pairs(pairs))
    known = mostly_known(task, task.held_out(), 1000)
    assert known == [word for word in task.held_out() if not word.startswith("see")]
    assert mostly_known(task, task.held_out(), 3) == known[:3]
    assert mostly_known(task_of(of_pairs(sentences())), ["see the bakoli"], 9) in ([], ["see the bakoli"])


@pytest.mark.parametrize(
    ("pairs", "settings", "kind"),
    [
        (lesson("reversed"), {"tokenizer": "words"}, "auto"),
        (lesson("french"), {"min_frequency": 50}, "auto"),
        (lesson("french"), {"vocabulary": 10}, "auto"),
        (sentences(), {}, "bpe"),
    ],
)
def test_the_remedy_is_the_first_tokenizer_that_knows_90_percent_of_tokens(of_pairs, pairs, settings, kind):
    config = of_pairs(pairs, **settings)
    assert max(unknown_tokens(task_of(config))) > 0.1
    found = remedy(config)
    assert found == {"tokenizer": kind, **ALL}
    assert max(unknown_tokens(task_of(config.with_changes(**found)))) <= 0.1


def test_where_every_held_out_character_is_new_there_is_no_remedy(of_pairs):
    signs = [chr(code) for code in range(0x4E00, 0x4E00 + 400)]
    assert remedy(of_pairs([(f"{sign}", f"x{i}") for i, sign in enumerate(signs)])) is None
