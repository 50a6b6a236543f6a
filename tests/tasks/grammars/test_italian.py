"""Italian, sentence by sentence as a grammar book has it, and which English word each word comes from."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from transformer.tasks.grammars.italian import LEXICON, PATTERNS, italian

# What the rules have to make of each sentence: written by hand, the rule that it shows above it.
SENTENCES = """
# il, lo, l', la; i, gli, le: by the next word
the dog sees the cat = il cane vede il gatto
the student sees the mirror = lo studente vede lo specchio
the students see the mirrors = gli studenti vedono gli specchi
the boy carries the backpack = il ragazzo porta lo zaino
the boys carry the backpacks = i ragazzi portano gli zaini
the man sees the island = l'uomo vede l'isola
the men see the islands = gli uomini vedono le isole
the women find the trees = le donne trovano gli alberi
the girl sees the old mirror = la ragazza vede il vecchio specchio
the girl sees the old mirrors = la ragazza vede i vecchi specchi
the small island is green = la piccola isola è verde
the birds watch the small trees = gli uccelli guardano i piccoli alberi
# un, uno, una, un'
a man buys a house = un uomo compra una casa
a student finds a mirror = uno studente trova uno specchio
a girl wants a backpack = una ragazza vuole uno zaino
a bird sees an island = un uccello vede un'isola
a cat watches a small mirror = un gatto guarda un piccolo specchio
an old woman buys a new island = una vecchia donna compra una nuova isola
a tired student sleeps = uno studente stanco dorme
# bel, bello, bell', bella, bei, begli, belle; behind the noun the whole word
the boy buys the beautiful book = il ragazzo compra il bel libro
the boy buys the beautiful mirror = il ragazzo compra il bello specchio
the boy draws a beautiful tree = il ragazzo disegna un bell'albero
the boy draws the beautiful island = il ragazzo disegna la bell'isola
the boy draws a beautiful star = il ragazzo disegna una bella stella
the boy buys the beautiful books = il ragazzo compra i bei libri
the boy watches these beautiful trees = il ragazzo guarda questi begli alberi
the boy draws the beautiful backpacks = il ragazzo disegna i begli zaini
the boy draws the beautiful islands = il ragazzo disegna le belle isole
the trees are beautiful = gli alberi sono belli
the mirror is beautiful = lo specchio è bello
the cities are beautiful = le città sono belle
# other adjectives: four endings, two, or one; spelling of plurals
the black horse runs = il cavallo nero corre
the small black horses run = i piccoli cavalli neri corrono
the white boats are new = le barche bianche sono nuove
the white books are old = i libri bianchi sono vecchi
the tired girls wait = le ragazze stanche aspettano
the tired dogs wait = i cani stanchi aspettano
the happy dogs sing = i cani felici cantano
the green keys are small = le chiavi verdi sono piccole
the red car is modern = la macchina rossa è moderna
the yellow backpack is new = lo zaino giallo è nuovo
the blue cars are beautiful = le macchine blu sono belle
the key is blue = la chiave è blu
the young women see the hotels = le giovani donne vedono gli alberghi
a young man sees the hotel = un giovane uomo vede l'albergo
the city is old = la città è vecchia
# this, these, three
this man finds this island = quest'uomo trova quest'isola
this old man finds this small island = questo vecchio uomo trova questa piccola isola
these men find these islands = questi uomini trovano queste isole
three cats watch three cities = tre gatti guardano tre città
# my, his, her, with an article
my cat sees my house = il mio gatto vede la mia casa
my cats see my cities = i miei gatti vedono le mie città
his bird sees her island = il suo uccello vede la sua isola
her dogs watch his stars = i suoi cani guardano le sue stelle
his dog carries my old backpacks = il suo cane porta i miei vecchi zaini
# negation
the dog does not find the key = il cane non trova la chiave
the dogs do not find a key = i cani non trovano una chiave
a student does not sleep = uno studente non dorme
# question
does the cat see the island? = il gatto vede l'isola?
do these birds sing? = questi uccelli cantano?
does a man draw my mirror? = un uomo disegna il mio specchio?
# lo, la, li, le before the verb
the girl finds the books and hides them = la ragazza trova i libri e li nasconde
the girl finds the keys and hides them = la ragazza trova le chiavi e le nasconde
the girl finds the book and hides it = la ragazza trova il libro e lo nasconde
the girl finds the key and hides it = la ragazza trova la chiave e la nasconde
the men see an island and want it = gli uomini vedono un'isola e la vogliono
# the owner, and "di" with the article
the girl sees the boy's old car = la ragazza vede la vecchia macchina del ragazzo
the girl sees the student's mirror = la ragazza vede lo specchio dello studente
the girl sees the man's island = la ragazza vede l'isola dell'uomo
the boy sees the woman's boat = il ragazzo vede la barca della donna
the girl sees the house of the boys = la ragazza vede la casa dei ragazzi
the girl sees the house of the students = la ragazza vede la casa degli studenti
the girl sees the trees of the men = la ragazza vede gli alberi degli uomini
the boy sees the keys of the girls = il ragazzo vede le chiavi delle ragazze
the girl sees the old man's books = la ragazza vede i libri del vecchio uomo
the girl sees the beautiful bird's tree = la ragazza vede l'albero del bell'uccello
the girl sees a student's backpack = la ragazza vede lo zaino di uno studente
the girl sees this man's backpack = la ragazza vede lo zaino di quest'uomo
the girl sees my dog's boat = la ragazza vede la barca del mio cane
the girl sees the houses of my dogs = la ragazza vede le case dei miei cani
# the pronoun is dropped
they see the cat = vedono il gatto
he sees the cat = vede il gatto
she wants my book = vuole il mio libro
i carry a white backpack = porto uno zaino bianco
we want the car = vogliamo la macchina
we sleep = dormiamo
they buy these hotels = comprano questi alberghi
"""
CASES = [line.split(" = ") for line in SENTENCES.strip().splitlines() if not line.startswith("#")]

# For each Italian word, the English words that it comes from, "-" for none. Words stand where they are read.
LINKS = {
    "svo": ("the black cat sees the old house", "il:0 gatto:2 nero:1 vede:3 la:4 vecchia:5 casa:6"),
    "determiners": ("my cat sees this island", "il:0 mio:0 gatto:1 vede:2 quest':3 isola:4"),
    "negation": ("the dog does not find the key", "il:0 cane:1 non:3 trova:4 la:5 chiave:6"),
    "question": ("does the cat see the island?", "il:1 gatto:2 vede:3 l':4 isola:5 ?:6"),
    "copula": ("the houses are white", "le:0 case:1 sono:2 bianche:3"),
    "clitic": (
        "the girl finds the books and hides them",
        "la:0 ragazza:1 trova:2 i:3 libri:4 e:5 li:7 nasconde:6",
    ),
    "possessive": (
        "the girl sees the boy's old car",
        "la:0 ragazza:1 vede:2 la:5 vecchia:6 macchina:7 del:3,5 ragazzo:4",
    ),
    "pronoun": ("they see the cat", "vedono:0,1 il:2 gatto:3"),
}
MORE_LINKS = [
    (
        "the girl sees my dog's boat",
        "la:0 ragazza:1 vede:2 la:5 barca:6 del:3,5 mio:3 cane:4",
    ),
    ("the girl sees a boy's boat", "la:0 ragazza:1 vede:2 la:5 barca:6 di:5 un:3 ragazzo:4"),
    ("the girl sees the trees of the men", "la:0 ragazza:1 vede:2 gli:3 alberi:4 degli:5,6 uomini:7"),
    ("we sleep", "dormiamo:0,1"),
]


@pytest.fixture(scope="module")
def grammar():
    return italian(None, 4)


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
        "my girl sleeps",  # la mia ragazza: my girlfriend
        "his student sleeps",
        "the old student sleeps",  # a former student
        "the man sees the boy's girl",
        "the old car is modern",
        "the girl sees the old modern car",
        "the yellow car is red",
        "they sees the cat",
        "he see the cat",
        "i sees the cat",
        "the girl finds the keys and hides it",
        "does the cats sleep?",
        "a house is red",
    ],
)
def test_what_would_be_wrong_or_mean_another_thing_is_no_sentence(grammar, english):
    assert grammar.find(grammar.read(english)) is None


def test_what_would_mean_another_thing_is_never_drawn(grammar):
    # Not by the rules again, but by their words: whatever stands between "my" and "girl".
    adjectives = "|".join(each.en for each in LEXICON.adjectives)
    persons = "(man|men|woman|women|boys?|girls?|students?)"
    wrong = [
        rf"\b(my|his|her)( ({adjectives}))* {persons}\b",
        rf"\bold( ({adjectives}))* (boys?|girls?|students?)\b",
        rf"'s .*\b{persons}\b",
        r"\b(red|green|yellow|blue|black|white) \w+ (is|are) (red|green|yellow|blue|black|white)$",
        rf"\b(hides?|buys?|wants?|carry|carries) ((?!of)\w+ ){{1,4}}{persons}$",
    ]
    sources = [pair.source for pair in grammar.drawn(np.random.default_rng(5), 3000)]
    assert [source for source in sources if re.search("|".join(wrong), source)] == []


def test_no_article_stands_before_a_word_that_needs_another(grammar):
    heavy, vowel = "(s[bcdfglmnpqrtvz]|z|gn|ps)", "[aeiou]"
    wrong = [
        rf"\b(il|i|un|bel|bei|del|dei) {heavy}",
        rf"\b(il|lo|la|i|uno|una|questo|questa|bel|bello|bella|bei|del|dello|della|dei) {vowel}",
        rf"\b(lo|gli|uno|bello|begli|dello|degli) (?!{heavy}|{vowel})",
        rf"'(?!{vowel})",
        r"\bdi (il|lo|la|i|gli|le) |\bdi l'",
    ]
    clauses = [pair for pair in grammar.drawn(np.random.default_rng(6), 3000) if pair.pattern != "clitic"]
    # "È bello" ends a sentence, "lo nasconde" is a pronoun: neither stands before a noun here.
    assert [pair.target for pair in clauses if re.search("|".join(wrong), pair.target)] == []
