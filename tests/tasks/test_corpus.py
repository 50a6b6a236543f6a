"""The gold alignment of tokens, derived from a hand-written alignment of words."""

from __future__ import annotations

from transformer.tasks.corpus import Pair, token_links
from transformer.tasks.tokenizer import byte_pairs, characters, words
from transformer.tasks.writing import LETTERS, Writing

WORDS, FRENCH = Writing(), Writing(spaced_signs="?")
# the 0, black 1, cat 2, sees 3, him 4; a determiner is also linked to its noun; "." has no link.
PAIR = Pair(
    "the black cat sees him",
    "le chat noir l'a vu.",
    ((0, 2), (2,), (1,), (4,), (3,), (3,), ()),
)
SRC = words(PAIR.source.split(), WORDS)
TGT = words(["le", "chat", "noir", "l'", "a", "vu", "."], FRENCH)


def tokens_of(tokenizer, text):
    return tokenizer.tokens(tokenizer.encode([text])[0])


def told(pair, src, tgt, writings=(WORDS, FRENCH)):
    """Return each token of the answer with the displayed source tokens that it is linked to."""
    links = token_links(pair, (writings[0], src), (writings[1], tgt))
    read, written = tokens_of(src, pair.source), tokens_of(tgt, pair.target)[1:-1]
    assert len(links) == len(written)
    assert all(tuple(sorted(set(columns))) == columns for columns in links)
    return list(zip(written, [[read[column] for column in columns] for columns in links], strict=True))


def test_links_of_word_tokens_are_those_of_the_words_shifted_by_sos():
    links = token_links(PAIR, (WORDS, SRC), (FRENCH, TGT))
    assert links == ((1, 3), (3,), (2,), (5,), (4,), (4,), ())
    assert tokens_of(SRC, PAIR.source)[0] == "[SOS]"


def test_each_character_has_the_links_of_its_word():
    spelled = characters(sorted(set(PAIR.source + PAIR.target)))
    both = told(PAIR, SRC, spelled)
    assert both[:8] == [
        *[("l", ["the", "cat"]), ("e", ["the", "cat"]), ("␣", [])],
        *[("c", ["cat"]), ("h", ["cat"]), ("a", ["cat"]), ("t", ["cat"]), ("␣", [])],
    ]
    assert both[-1] == (".", [])
    other = told(PAIR, spelled, TGT)
    assert other[1] == ("chat", [*"cat"])
    assert other[0] == ("le", [*"the", *"cat"])
    links = token_links(PAIR, (WORDS, spelled), (FRENCH, TGT))
    assert links[1] == tuple(1 + PAIR.source.index("cat") + i for i in range(3))


def test_letters_are_both_units_and_tokens():
    letters = characters()
    pair = Pair("abc", "cba", ((2,), (1,), (0,)))
    assert token_links(pair, (LETTERS, letters), (LETTERS, letters)) == ((3,), (2,), (1,))


def test_every_tokenizer_gives_the_same_alignment():
    """A target token and a source token are linked if and only if any of their words are."""
    sides = {
        "src": [SRC, characters(sorted(set(PAIR.source))), byte_pairs([PAIR.source], 28)],
        "tgt": [
            TGT,
            characters(sorted(set(PAIR.target))),
            *(byte_pairs([PAIR.target] * 3, n) for n in (30, 90)),
        ],
    }
    for src in sides["src"]:
        for tgt in sides["tgt"]:
            links = token_links(PAIR, (WORDS, src), (FRENCH, tgt))
            for row, written in enumerate(tgt.spans(PAIR.target)):
                of_row = words_at(FRENCH, PAIR.target, written)
                needed = {place for unit in of_row for place in PAIR.links[unit]}
                for column, read in enumerate(src.spans(PAIR.source), start=1):
                    linked = bool(needed & words_at(WORDS, PAIR.source, read))
                    assert (column in links[row]) == linked


def words_at(writing, text, span):
    """Return the words that a span overlaps, found character by character."""
    places = {}
    for unit, (begin, end) in enumerate(writing.spans(text)):
        places |= dict.fromkeys(range(begin, end), unit)
    return {places[i] for i in range(*span) if i in places}


def test_a_pair_without_an_alignment_has_no_links():
    pair = Pair(PAIR.source, PAIR.target)
    assert token_links(pair, (WORDS, SRC), (FRENCH, TGT)) is None
    nothing = Pair("the cat", "le chat", ((), ()))
    assert token_links(nothing, (WORDS, SRC), (FRENCH, TGT)) == ((), ())
