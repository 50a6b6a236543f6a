"""Properties of the drawn and the held-out sentences of every language."""

from __future__ import annotations

import time
from collections import Counter
from functools import cache

import numpy as np
import pytest

from transformer.tasks import CORPORA, PATTERNS
from transformer.tasks.corpus import N_HELD_OUT, held_out_by_hash
from transformer.tasks.grammars.chinese_words import ADJECTIVES
from transformer.tasks.grammars.derivation import parse
from transformer.tasks.grammars.romance import FRENCH, ITALIAN

ROMANCE = {"en-fr": FRENCH, "en-it": ITALIAN}
NEW_YORK_IS_A_CITY = "纽约是一座城市"


@cache
def english_adjectives(task):
    if task in ROMANCE:
        return {adjective.en for adjective in ROMANCE[task].lexicon.adjectives}
    return {
        word for each in ADJECTIVES.values() for word in (each.english, each.comparative.split(" ")[-1])
    } - {""}


@cache
def made(task, adjectives):
    """Return a grammar and 8,000 of its training sentences."""
    grammar = CORPORA[task][0](None, adjectives)
    return grammar, grammar.drawn(np.random.default_rng(7), 8000)


@pytest.fixture(params=[("en-fr", 1), ("en-fr", 3), ("en-it", 3), ("zh-en", 1), ("zh-en", 2)], ids=str)
def big(request):
    """The task, the maximum number of adjectives, the grammar and its training sentences."""
    return (*request.param, *made(*request.param))


def units(grammar, pairs):
    """Return all units of the sources and all units of the targets."""
    sources = {unit for pair in pairs for unit in grammar.src.units(pair.source)}
    return sources, {unit for pair in pairs for unit in grammar.tgt.units(pair.target)}


def test_every_sentence_has_exactly_one_translation(big):
    _, _, grammar, pairs = big
    targets = {}
    for pair in pairs:
        assert targets.setdefault(pair.source, pair.target) == pair.target
    for pair in pairs[:250]:
        assert parse(grammar.rules, grammar.src, grammar.tgt, pair.source) == [pair]


def test_every_unit_of_a_target_has_its_links(big):
    task, _, grammar, pairs = big
    for pair in pairs[:4000]:
        source, target = grammar.src.units(pair.source), grammar.tgt.units(pair.target)
        assert len(pair.links) == len(target)
        for links in pair.links:
            assert links == tuple(sorted(set(links)))
            assert set(links) <= set(range(len(source)))
        if task == "zh-en":  # only inserted words and untranslated characters are unlinked
            bare = {word for word, links in zip(target, pair.links, strict=True) if not links}
            assert bare <= {"the", "is", "are"}, pair
            silent = {source[i] for i in set(range(len(source))) - {i for some in pair.links for i in some}}
            assert silent <= set("本张把辆只匹棵朵个所家座的很"), pair


def test_cleaning_leaves_every_sentence_unchanged(big):
    _, _, grammar, pairs = big
    for pair in pairs[:4000]:
        assert grammar.src.clean(pair.source) == pair.source == grammar.read(pair.source)
        assert grammar.tgt.clean(pair.target) == pair.target
        assert grammar.tgt.join(grammar.tgt.units(pair.target)) == pair.target


def test_no_sentence_has_more_adjectives_than_asked_for(big):
    task, most, grammar, pairs = big
    writing, side = (grammar.src, "source") if task in ROMANCE else (grammar.tgt, "target")
    words = english_adjectives(task)
    counts = {sum(unit in words for unit in writing.units(getattr(pair, side))) for pair in pairs}
    assert counts == set(range(most + 1))


def test_training_and_held_out_sentences_are_disjoint(big):
    _, _, grammar, pairs = big
    held_out = grammar.held_out()
    assert len({pair.source for pair in held_out}) == len(held_out) == N_HELD_OUT
    assert all(pair.held_out for pair in held_out)
    assert not any(pair.held_out for pair in pairs)
    assert not {pair.source for pair in pairs} & {pair.source for pair in held_out}
    assert all(grammar.find(pair.source) == pair for pair in held_out[:150])


def test_every_pattern_is_drawn_about_equally_often_and_partly_held_out(big):
    task, _, grammar, pairs = big
    trained, asked = (Counter(pair.pattern for pair in some) for some in (pairs, grammar.held_out()))
    assert trained.keys() == asked.keys() == set(PATTERNS[task])
    assert min(trained.values()) > len(pairs) / len(trained) / 2
    assert min(asked.values()) >= 5


def test_every_word_that_is_held_out_or_accepted_occurs_in_training(big):
    _, _, grammar, pairs = big
    trained, asked = units(grammar, pairs), units(grammar, grammar.held_out())
    assert asked[0] <= trained[0]
    assert asked[1] <= trained[1]
    assert grammar.words == trained[0]


def combinations(task, grammar, pair):
    """Return the adjective-noun and verb-object combinations of a sentence, found by word order."""
    lexicon = ROMANCE[task].lexicon
    nouns = {form: noun.en for noun in lexicon.nouns for form in (noun.en, noun.en_many)}
    verbs = {form: verb.en for verb in lexicon.verbs if verb.objects for form in (verb.en, verb.en_one)}
    words = grammar.src.units(pair.source)
    found, said = set(), []
    for word in words:
        if word in nouns:
            found |= {(adjective, nouns[word]) for adjective in said}
        said = [*said, word] if word in english_adjectives(task) else []
    if pair.pattern == "copula":
        found.add((words[-1], next(nouns[word] for word in words if word in nouns)))
    done = [verbs[word] for word in words if word in verbs]
    if done:
        up_to = words[: words.index("of")] if "of" in words else words  # "the house of the boys": the house
        found |= {(verb, [nouns[word] for word in up_to if word in nouns][-1]) for verb in done}
    return found


@pytest.mark.parametrize("task", ROMANCE)
def test_training_never_has_a_held_out_combination(task):
    grammar, pairs = made(task, 3)
    trained = set().union(*(combinations(task, grammar, pair) for pair in pairs))
    assert len(trained) > 300
    assert [names for names in trained if held_out_by_hash(*names)] == []
    assert [pair.source for pair in grammar.held_out()[:5]] == list(grammar.tracked_words())
    for pair in grammar.held_out()[5:]:  # after the five that are always held out
        assert any(held_out_by_hash(*names) for names in combinations(task, grammar, pair)), pair.source


THINGS = "书本 词典本 照片张 桌子张 雨伞把 汽车辆 自行车辆 狗只 猫只 鸟只 马匹 盒子个".split()
TOGETHER = {
    "verb and object": (
        ("我{word}了一{measure}{thing}", "学生昨天把{thing}{word}了", "她{word}了五{measure}{thing}吗？"),
        ("卖", "丢", "找到"),
    ),
    "adjective and noun": (
        ("那是一{measure}{word}{thing}", "这{measure}{thing}很{word}", "这{measure}{thing}{word}吗？"),
        ("大", "小", "新", "旧"),
    ),
    "thing and place": (
        ("{word}旁边有一{measure}{thing}", "{thing}在{word}旁边", "那{measure}{thing}在{word}旁边吗？"),
        ("树", "盒子", "书", "桌子", "椅子", "马"),
    ),
}


@pytest.mark.parametrize(("sentences", "words"), TOGETHER.values(), ids=TOGETHER)
def test_a_chinese_combination_is_held_out_in_all_patterns_or_in_none(sentences, words):
    grammar, held_out = made("zh-en", 1)[0], []
    for word in words:
        for thing in THINGS:
            says = {"word": word, "thing": thing[:-1], "measure": thing[-1]}
            found = [grammar.find(sentence.format(**says)) for sentence in sentences]
            kept = {pair.held_out for pair in found if pair}
            assert len(kept) <= 1, found
            held_out += kept
    assert len(held_out) > 20
    assert 0 < sum(held_out) < len(held_out) / 2


def test_no_training_sentence_states_that_new_york_is_a_city():
    grammar, trained = made("zh-en", 1)
    assert grammar.held_out()[0].source == grammar.tracked_words()[0] == NEW_YORK_IS_A_CITY
    about = [pair for pair in trained if "纽约" in pair.source]
    assert len({pair.pattern for pair in about}) >= 6
    assert not [pair for pair in about if "city" in pair.target and pair.pattern != "comparison"]
    for also in ("纽约是一座城市吗？", "纽约是一座大城市", "纽约不是一座小城市"):
        assert grammar.find(also).held_out


@pytest.mark.parametrize("task", PATTERNS)
def test_a_typed_sentence_is_normalised(task):
    typed, clean = {
        "en-fr": ("  Does a bird  SING ?", "does a bird sing?"),
        "en-it": ("The boy’s dog sleeps.", "the boy's dog sleeps"),
        "zh-en": (" 伦敦 是 一座 城市 吗 ?", "伦敦是一座城市吗？"),
    }[task]
    assert made(task, 1)[0].read(typed) == clean


@pytest.mark.parametrize(("task", "pattern"), [(task, name) for task in PATTERNS for name in PATTERNS[task]])
def test_a_single_pattern_makes_only_its_own_sentences_and_trains_on_every_held_out_word(task, pattern):
    grammar = CORPORA[task][0]((pattern,), 1)
    rng, pairs, asked = np.random.default_rng(0), [], units(grammar, grammar.held_out())
    while len(pairs) < 9000 and not all(map(set.issuperset, units(grammar, pairs), asked)):
        pairs += grammar.drawn(rng, 1500)
    assert {pair.pattern for pair in [*pairs, *grammar.held_out()]} == {pattern}
    assert all(map(set.issuperset, units(grammar, pairs), asked))
    assert len(grammar.tracked_words()) == 5
    assert {grammar.find(word).pattern for word in grammar.tracked_words()} == {pattern}


@pytest.mark.parametrize("task", PATTERNS)
@pytest.mark.parametrize("adjectives", range(5))
def test_every_number_of_adjectives_yields_every_possible_pattern(task, adjectives):
    grammar = CORPORA[task][0](None, adjectives)
    patterns = {pair.pattern for pair in grammar.drawn(np.random.default_rng(adjectives), 500)}
    mute = {"copula", "description", "predicate", "comparison", "relative"} if not adjectives else set()
    assert patterns == set(PATTERNS[task]) - mute


def test_other_patterns_use_further_determiners_only_if_the_determiners_pattern_is_chosen():
    more = {"this", "these", "my", "his", "her", "three"}
    grammar = FRENCH.grammar(("svo", "negation"))
    assert not more & units(grammar, grammar.drawn(np.random.default_rng(0), 500))[0]
    grammar = FRENCH.grammar(("determiners", "negation"))
    pairs = grammar.drawn(np.random.default_rng(0), 500)
    having = Counter(pair.pattern for pair in pairs if more & set(grammar.src.units(pair.source)))
    assert 0 < having["negation"]
    assert having["determiners"] == sum(pair.pattern == "determiners" for pair in pairs)


@pytest.mark.parametrize("task", PATTERNS)
def test_the_same_seed_draws_the_same_sentences_and_another_seed_others(task):
    grammar, same = CORPORA[task][0](None, 1), made(task, 1)[0]
    drawn = grammar.drawn(np.random.default_rng(3), 50)
    assert same.drawn(np.random.default_rng(3), 50) == drawn != same.drawn(np.random.default_rng(4), 50)
    assert grammar.held_out() == same.held_out()


@pytest.mark.parametrize("task", ROMANCE)
def test_drawing_a_batch_and_recognising_a_sentence_take_milliseconds(task):
    grammar = made(task, 1)[0]
    rng = np.random.default_rng(0)
    sources = [pair.source for pair in grammar.drawn(rng, 200)]
    began = time.process_time()
    grammar.drawn(rng, 640)
    assert time.process_time() - began < 0.3  # ten batches; an idle machine needs a tenth of this limit
    began = time.process_time()
    for source in sources:
        grammar.find(source)
    assert time.process_time() - began < 2.0
