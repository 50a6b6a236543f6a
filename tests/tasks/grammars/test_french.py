"""French, sentence by sentence as a grammar book has it, and which English word each word comes from."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.tasks.grammars.french import LEXICON, PATTERNS, french

# What the rules have to make of each sentence: written by hand, the rule that it shows above it.
SENTENCES = """
# gender and number of articles and adjectives; which adjectives cross their noun
the black cat sees the old house = le chat noir voit la vieille maison
the small black cat sees the old house = le petit chat noir voit la vieille maison
the cats see the houses = les chats voient les maisons
a woman watches a garden = une femme regarde un jardin
the horses run = les chevaux courent
the woman draws the red star = la femme dessine l'étoile rouge
the white stars are beautiful = les étoiles blanches sont belles
the boy draws the green apples = le garçon dessine les pommes vertes
the girls buy the blue boats = les filles achètent les bateaux bleus
a happy woman sings = une femme heureuse chante
the happy women sing = les femmes heureuses chantent
the happy dogs sleep = les chiens heureux dorment
the strange man waits = l'homme étrange attend
the woman buys the expensive cars = la femme achète les voitures chères
a young dog finds the new keys = un jeune chien trouve les nouvelles clés
# forms before a vowel
an old bird sleeps = un vieil oiseau dort
the old birds sleep = les vieux oiseaux dorment
the man sees a beautiful tree = l'homme voit un bel arbre
the man sees the beautiful trees = l'homme voit les beaux arbres
the woman wants a new hotel = la femme veut un nouvel hôtel
the woman wants the new hotels = la femme veut les nouveaux hôtels
the boy sees an old man = le garçon voit un vieil homme
the boy sees the old island = le garçon voit la vieille île
the young bird sings = le jeune oiseau chante
# this, these, my, his, her, three
this cat likes this tree = ce chat aime cet arbre
this woman sees these trees = cette femme voit ces arbres
this old bird waits = ce vieil oiseau attend
this horse watches this small bird = ce cheval regarde ce petit oiseau
my cat watches my house = mon chat regarde ma maison
my bird likes my school = mon oiseau aime mon école
my dogs like my old school = mes chiens aiment ma vieille école
his horse sees her star = son cheval voit son étoile
her dog hides his keys = son chien cache ses clés
her cat wants his small apple = son chat veut sa petite pomme
three girls find three islands = trois filles trouvent trois îles
# negation, with "de" for "a"
the bird does not like the garden = l'oiseau n'aime pas le jardin
the birds do not like the garden = les oiseaux n'aiment pas le jardin
the dog does not see a tree = le chien ne voit pas d'arbre
the dogs do not see a cat = les chiens ne voient pas de chat
the man does not buy an expensive car = l'homme n'achète pas de voiture chère
the boy does not draw an old tree = le garçon ne dessine pas de vieil arbre
a cat does not sleep = un chat ne dort pas
the horse does not wait = le cheval n'attend pas
the girl does not see three birds = la fille ne voit pas trois oiseaux
# question
does the girl watch the boat? = est-ce que la fille regarde le bateau ?
do the girls watch the boats? = est-ce que les filles regardent les bateaux ?
does a bird sing? = est-ce qu'un oiseau chante ?
does an old woman wait? = est-ce qu'une vieille femme attend ?
does the bird see a cat? = est-ce que l'oiseau voit un chat ?
do these men buy my house? = est-ce que ces hommes achètent ma maison ?
# is and are
the new boats are green = les nouveaux bateaux sont verts
the house is white = la maison est blanche
the tree is old = l'arbre est vieux
the hotel is new = l'hôtel est nouveau
this school is beautiful = cette école est belle
the cars are expensive = les voitures sont chères
my keys are small = mes clés sont petites
these boys are young = ces garçons sont jeunes
# it and them before the verb
the girl finds the key and hides it = la fille trouve la clé et la cache
the girl finds the book and hides it = la fille trouve le livre et le cache
the girl finds the keys and hides them = la fille trouve les clés et les cache
the man sees the house and buys it = l'homme voit la maison et l'achète
the men see the boat and like it = les hommes voient le bateau et l'aiment
the woman sees the boats and buys them = la femme voit les bateaux et les achète
a boy wants an apple and draws it = un garçon veut une pomme et la dessine
# the owner, and "de" with the article
the man sees the boy's small house = l'homme voit la petite maison du garçon
the man sees the woman's book = l'homme voit le livre de la femme
the woman sees the man's book = la femme voit le livre de l'homme
the cat sees the bird's tree = le chat voit l'arbre de l'oiseau
the cat sees the house of the girls = le chat voit la maison des filles
the cat hides the keys of the small boys = le chat cache les clés des petits garçons
the dog finds the old man's book = le chien trouve le livre du vieil homme
the dog wants the old woman's cats = le chien veut les chats de la vieille femme
the dog likes a bird's garden = le chien aime le jardin d'un oiseau
the dog likes this man's car = le chien aime la voiture de cet homme
the girl buys the boat of these men = la fille achète le bateau de ces hommes
the girl sees my horse's apples = la fille voit les pommes de mon cheval
the dog likes the islands of three women = le chien aime les îles de trois femmes
"""
CASES = [line.split(" = ") for line in SENTENCES.strip().splitlines() if not line.startswith("#")]

# For each French word, the English words that it comes from, "-" for none. Words stand where they are read.
LINKS = {
    "svo": ("the black cat sees the old house", "le:0 chat:2 noir:1 voit:3 la:4 vieille:5 maison:6"),
    "determiners": ("my bird likes this tree", "mon:0 oiseau:1 aime:2 cet:3 arbre:4"),
    "negation": (
        "the bird does not like the garden",
        "l':0 oiseau:1 n':3 aime:4 pas:3 le:5 jardin:6",
    ),
    "question": ("does a bird sing?", "est-ce:0 qu':0 un:1 oiseau:2 chante:3 ?:4"),
    "copula": ("the boats are green", "les:0 bateaux:1 sont:2 verts:3"),
    "clitic": (
        "the girl finds the key and hides it",
        "la:0 fille:1 trouve:2 la:3 clé:4 et:5 la:7 cache:6",
    ),
    "possessive": (
        "the man sees the boy's small house",
        "l':0 homme:1 voit:2 la:5 petite:6 maison:7 du:3,5 garçon:4",
    ),
}
MORE_LINKS = [
    ("the dog does not see an apple", "le:0 chien:1 ne:3 voit:4 pas:3 de:5 pomme:6"),
    ("the man sees the woman's book", "l':0 homme:1 voit:2 le:5 livre:6 de:5 la:3 femme:4"),
    ("the cat sees the house of the girls", "le:0 chat:1 voit:2 la:3 maison:4 des:5,6 filles:7"),
    ("the man sees the house and buys it", "l':0 homme:1 voit:2 la:3 maison:4 et:5 l':7 achète:6"),
]


@pytest.fixture(scope="module")
def grammar():
    return french(None, 4)


@pytest.mark.parametrize(("english", "expected"), CASES, ids=[english for english, _ in CASES])
def test_a_sentence_has_the_translation_of_the_grammar_book(grammar, english, expected):
    pair = grammar.find(english)
    assert pair, "not recognised"
    assert pair.target == expected
    assert grammar.references(english) == (expected,)


def test_there_are_enough_sentences_and_they_have_every_word(grammar):
    assert len(CASES) >= 60
    said = set(itertools.chain.from_iterable(grammar.tgt.units(expected) for _, expected in CASES))
    for noun in LEXICON.nouns:
        assert said & {noun.one, noun.many}, noun.en
    for adjective in LEXICON.adjectives:
        assert said & set(adjective.forms), adjective.en
    for verb in LEXICON.verbs:
        assert said & set(verb.forms), verb.en


@pytest.mark.parametrize(("english", "links"), [*LINKS.values(), *MORE_LINKS])
def test_each_word_comes_from_the_english_words_that_determine_it(grammar, english, links):
    pair = grammar.find(english)
    by_hand = [each.rsplit(":", 1) for each in links.split()]
    assert grammar.tgt.units(pair.target) == tuple(word for word, _ in by_hand)
    assert pair.links == tuple(
        () if places == "-" else tuple(map(int, places.split(","))) for _, places in by_hand
    )


def test_there_are_links_by_hand_for_every_pattern(grammar):
    assert LINKS.keys() == PATTERNS.keys()
    for pattern, (english, _) in LINKS.items():
        assert grammar.find(english).pattern == pattern


@pytest.mark.parametrize(
    "english",
    [
        "my woman sleeps",  # ma femme: my wife
        "the man sees the boy's girl",
        "an old boy sings",  # a bachelor
        "the old girls sing",
        "the red house is green",
        "the old house is new",
        "the girl finds the key and finds it",
        "the happy house sees the cat",
        "the cat buys the house",
        "the man buys the woman",
        "the cat likes a bird",
        "the cat sees the cat",
        "a house is red",
        "the cat see the house",
        "the cats sees the house",
        "a old bird sleeps",
        "an bird sleeps",
        "these cat sleeps",
        "the girl finds the key and hides them",
        "the girl finds the keys and hides it",
        "does the cats sleep?",
        "the cat black sleeps",
        "cat",
    ],
)
def test_what_would_be_wrong_or_mean_another_thing_is_no_sentence(grammar, english):
    assert grammar.find(grammar.read(english)) is None


def test_french_keeps_its_pronouns_and_has_no_pattern_for_them(grammar):
    with pytest.raises(InputError, match='"they": not among the 97 words'):
        grammar.read("they see the cat")


def test_what_would_mean_another_thing_is_never_drawn(grammar):
    # Not by the rules again, but by their words: whatever stands between "my" and "woman".
    adjectives = "|".join(each.en for each in LEXICON.adjectives)
    wrong = [
        rf"\b(my|his|her)( ({adjectives}))* (man|men|woman|women|boys?|girls?)\b",
        rf"\bold( ({adjectives}))* (boys?|girls?)\b",
        r"'s .*\b(man|men|woman|women|boys?|girls?)\b",
        r"\b(likes?|like) an? ((?!'s).)*$",  # of an owner, "a" is no less known
        r"\b(red|green|blue|black|white) \w+ (is|are) (red|green|blue|black|white)$",
        r"\b(hides?|buys?|wants?) ((?!of)\w+ ){1,4}(man|men|woman|women|boys?|girls?)$",
    ]
    sources = [pair.source for pair in grammar.drawn(np.random.default_rng(5), 3000)]
    assert [source for source in sources if re.search("|".join(wrong), source)] == []


def test_a_vowel_is_never_left_beside_a_word_that_elides(grammar):
    targets = [pair.target for pair in grammar.drawn(np.random.default_rng(6), 3000)]
    vowel = "[aeiouhéêèîô]"
    wrong = [
        rf"\b(le|la|ne|de|que|ce|ma|sa) {vowel}",
        rf"\b(un|le|du|ce|mon|son) (vieux|beau|nouveau) {vowel}",  # not so "trois vieux arbres"
        rf"\b(cet|vieil|bel|nouvel) (?!{vowel})",
        rf"'(?!{vowel})",
        r"\bde (le|les)\b",
    ]
    assert [target for target in targets if re.search("|".join(wrong), target)] == []


def test_patterns_that_do_not_exist_are_refused_with_those_that_do():
    with pytest.raises(
        InputError, match="The pattern pronoun, verse does not exist; choose from: svo, "
    ) as e:
        french(("svo", "pronoun", "verse"))
    assert e.value.field == "patterns"
    with pytest.raises(InputError, match="There is no pattern to draw; choose from: svo, "):
        french(())


def test_what_something_is_said_to_be_is_an_adjective_too():
    with pytest.raises(InputError, match="0 adjectives are allowed; allow at least 1") as error:
        french(("copula",), 0)
    assert error.value.field == "patterns"
    assert "copula" not in {pair.pattern for pair in french(None, 0).drawn(np.random.default_rng(0), 300)}
    with pytest.raises(
        InputError, match="5 adjectives in a sentence are not possible; choose 0 to 4"
    ) as error:
        french(None, 5)
    assert error.value.field == "adjectives"


def test_other_patterns_have_this_and_my_only_if_determiners_are_chosen():
    more = {"this", "these", "my", "his", "her", "three"}
    grammar = french(("svo", "negation"))
    for pair in grammar.drawn(np.random.default_rng(0), 500):
        assert not more & set(grammar.src.units(pair.source))
    grammar = french(("determiners", "negation"))
    pairs = grammar.drawn(np.random.default_rng(0), 500)
    with_more = [pair.pattern for pair in pairs if more & set(grammar.src.units(pair.source))]
    assert set(with_more) == {"determiners", "negation"}
    assert with_more.count("determiners") == sum(pair.pattern == "determiners" for pair in pairs)
