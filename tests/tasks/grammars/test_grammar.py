"""The operations of every grammar, tested on one with nine words: draw, recognise, hold out, read."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.tasks import corpus as corpus_module
from transformer.tasks.corpus import held_out_by_hash
from transformer.tasks.grammars.derivation import Drawing, drawn, parse, source_vocabulary
from transformer.tasks.grammars.grammar import Grammar, checked
from transformer.tasks.writing import Writing

PLAIN = Writing()
COLOURS = {"red": "rouge", "blue": "bleue", "green": "verte"}
THINGS = ("car", "key", "star", "house", "apple", "school")


def colours(derivation):
    """Sentences such as "car" and "red car": an optional colour and a thing."""
    derivation.pattern, _ = derivation.pick(("plain", "coloured", "coloured"))
    if derivation.pattern == "plain":
        thing, at = derivation.pick(THINGS, str)
        derivation.write(f"la {thing}", at)
        return
    colour, colour_at = derivation.pick(tuple(COLOURS), str)
    thing, thing_at = derivation.pick(THINGS, str)
    derivation.combine(colour, thing)
    derivation.write("la", ())
    derivation.write(thing, thing_at)
    derivation.write(COLOURS[colour], colour_at)


def twice(derivation):
    """One word with two translations: an ambiguous grammar."""
    sense, _ = derivation.pick(("banque", "rive"))
    derivation.write(sense, derivation.say("bank"))


def small(rules=colours, tracked_words=("red car",), **settings):
    return Grammar("small", PLAIN, PLAIN, rules, tracked_words=tracked_words, **settings)


HELD_OUT = {f"{colour} {thing}" for colour in COLOURS for thing in THINGS if held_out_by_hash(colour, thing)}


# Drawing and recognising.


def test_the_words_of_a_translation_are_linked_to_those_of_its_source():
    pair = parse(colours, PLAIN, PLAIN, "red car")[0]
    assert (pair.source, pair.target, pair.links) == ("red car", "la car rouge", ((), (1,), (0,)))
    assert parse(colours, PLAIN, PLAIN, "car")[0].links == ((0,), (0,))


def test_every_drawn_sentence_is_recognised_as_the_same_pair():
    chance = random.Random(0)
    for _ in range(100):
        pair = drawn(colours, PLAIN, PLAIN, chance)
        assert parse(colours, PLAIN, PLAIN, pair.source) == [pair]


@pytest.mark.parametrize("source", ["", "red", "red car car", "car red", "red red car", "dog", "redcar"])
def test_a_source_that_the_rules_cannot_make_is_not_recognised(source):
    assert parse(colours, PLAIN, PLAIN, source) == []


def test_a_source_with_two_meanings_is_recognised_twice():
    assert [pair.target for pair in parse(twice, PLAIN, PLAIN, "bank")] == ["banque", "rive"]


def test_an_option_that_is_listed_twice_is_drawn_twice_as_often():
    chance = random.Random(0)
    patterns = Counter(drawn(colours, PLAIN, PLAIN, chance).pattern for _ in range(3000))
    assert patterns["coloured"] / patterns["plain"] == pytest.approx(2, rel=0.1)


def test_places_of_several_choices_are_merged_in_order():
    derivation = Drawing(PLAIN, random.Random(0))
    first, second = derivation.say("the boy"), derivation.say("'s")
    derivation.write("du", second, first[:1])
    derivation.write("du chien", second + first[:1])
    assert derivation.target == [("du", (0, 2))] * 2 + [("chien", (0, 2))]


def test_heard_returns_every_source_word_of_the_grammar():
    assert source_vocabulary(colours, PLAIN) == {*COLOURS, *THINGS}


# The corpus.


def test_all_sentences_with_a_held_out_combination_are_held_out():
    assert HELD_OUT, "the hash holds nothing out; take other words"
    pairs = small().held_out()
    assert {pair.source for pair in pairs} == HELD_OUT
    assert len(pairs) == len(HELD_OUT)


def test_training_draws_exactly_the_sentences_that_are_not_held_out():
    sources = {pair.source for pair in small().drawn(np.random.default_rng(0), 2000)}
    everything = {*THINGS, *(f"{colour} {thing}" for colour in COLOURS for thing in THINGS)}
    assert sources == everything - HELD_OUT


def test_sentences_that_are_always_held_out_come_first_and_are_never_drawn():
    grammar = small(always_held_out=("Car", "the red car", "key"))  # the rules cannot make "the red car"
    assert [pair.source for pair in grammar.held_out()][:2] == ["car", "key"]
    assert all(pair.held_out for pair in grammar.held_out())
    assert grammar.find("car").held_out
    assert not grammar.find("star").held_out
    assert not {"car", "key"} & {pair.source for pair in grammar.drawn(np.random.default_rng(0), 2000)}


def test_probes_that_the_rules_cannot_make_are_replaced_by_held_out_sentences():
    held_out = small().held_out()[0].source
    assert small(tracked_words=("the red car", "blue key")).tracked_words() == ("blue key", held_out)
    assert small(tracked_words=("red car", "blue key")).tracked_words() == ("red car", "blue key")


def test_reading_cleans_the_text_and_accepts_known_words_in_any_order():
    grammar = small()
    assert grammar.read("  Red   CAR. ") == "red car"
    assert grammar.read("car red") == "car red"
    assert grammar.find("car red") is None
    assert grammar.references("car red") == ()
    assert grammar.references("red car") == ("la car rouge",)


@pytest.mark.parametrize(
    ("typed", "message", "offer"),
    [
        ("redd hous", '"red" for "redd", "house" for "hous"', "red house"),
        ("redd xylophone", '"red" for "redd"', None),  # one word has no near match: nothing to offer
        ("xylophone", "for example: red car", None),
        ("", "type at least one", "red car"),
        (" . ", "type at least one", "red car"),
    ],
)
def test_unknown_words_are_named_and_the_nearest_known_words_offered(typed, message, offer):
    with pytest.raises(InputError, match=message) as refused:
        small().read(typed)
    assert (refused.value.field, refused.value.suggestion) == ("probe_words", offer)


def test_a_grammar_is_endless_and_translates():
    grammar = small()
    assert (grammar.same_length, grammar.translates, grammar.size) == (False, True, None)
    assert grammar.everyday() == ()


def test_a_grammar_without_held_out_sentences_stops_searching(monkeypatch):
    monkeypatch.setattr(corpus_module, "PATIENCE", 100)
    assert small(rules=twice, tracked_words=("bank",)).held_out() == ()


def test_patterns_are_checked_against_the_grammar_and_the_number_of_adjectives():
    known = {"plain": "", "coloured": "", "dark": ""}
    assert checked(known, None, 1, ["coloured"]) == ("plain", "coloured", "dark")
    assert checked(known, None, 0, ["coloured"]) == ("plain", "dark")
    assert checked(known, ["dark", "plain", "dark"], 0, ["coloured"]) == ("dark", "plain")
    with pytest.raises(InputError, match="verse, rhyme .* choose from: plain, coloured, dark") as refused:
        checked(known, ["plain", "verse", "rhyme"], 1, ())
    assert refused.value.field == "patterns"
    with pytest.raises(InputError, match="coloured .* allow at least 1") as refused:
        checked(known, ["coloured", "plain"], 0, ["coloured"])
    assert refused.value.field == "patterns"
