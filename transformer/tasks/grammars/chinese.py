"""A grammar of Chinese sentences and their English, with the source of each English word.

A unit of Chinese is a character, a unit of English a word or a sign. An English word is linked to all
characters that carry its meaning: "New" and "York" each to 纽 and 约. In particular

    a, an                  to 一
    this, these            to 这; that, those to 那
    are, is                to what stands in their place: 是, 在 or 很; "there" and its "are" to 有
    bought                 to 买 and 了, or only to 买 where 的 follows; did to 了
    bigger                 to 大 and 比; more and than to 比
    that (of a relative)   to 的
    not                    to 不; what to 什 and 么
    ?                      to ？, and to 吗 if it stands before it

and has an empty link where Chinese has no word for it: "the" of a bare noun or a person, "is" or "are" where
an adjective is denied, asked for or compared. No English word is linked to measure words, to 把, or to the 的
and 很 of an adjective before its noun. A word that only agrees with another, as "are" and "books" do with 三,
has no link to it.

One combination in ten is held out, the same in all patterns. A combination is an adjective and its noun or
name; a verb and its object; a thing and its place; a name and the noun that says what it is; two compared
names; in sentences such as 这是一本书, but not in the pattern description, this or that and the noun; in
questions with 什么, a person and a verb. Every sentence that states, denies or asks that New York is a city
is held out too.
"""

from __future__ import annotations

from collections.abc import Sequence

from transformer.tasks.grammars.chinese_patterns import ABOUT_AN_ADJECTIVE, WAYS
from transformer.tasks.grammars.chinese_sentence import Sentence
from transformer.tasks.grammars.chinese_words import PATTERNS, TRACKED_WORDS
from transformer.tasks.grammars.derivation import Derivation
from transformer.tasks.grammars.grammar import Grammar, checked
from transformer.tasks.writing import Writing

NEW_YORK_IS_A_CITY = "纽约是一座城市"
"""Always held out; with all patterns, each of its characters occurs in training sentences."""


class ChineseWriting(Writing):
    """The writing of Chinese; a Latin question mark is accepted too."""

    def clean(self, text: str) -> str:
        """Replace ? by the full-width question mark, then clean as `Writing.clean` does."""
        return super().clean(text.replace("?", "？"))


CHINESE = ChineseWriting(lower=False)
ENGLISH = Writing(lower=False)
N_TRACKED_WORDS = 5


def chinese(patterns: Sequence[str] | None = None, adjectives: int = 1) -> Grammar:
    """The grammar of these patterns.

    Args:
        patterns: names in `PATTERNS`, each drawn equally often; None: all that are possible.
        adjectives: maximum per sentence, at most two of them before a noun. With 0, the patterns
            description, predicate, comparison and relative are not possible.

    Raises:
        InputError: a pattern does not exist, or needs an adjective and `adjectives` is 0.
    """
    mute = [pattern for pattern, ways in WAYS.items() if set(ways) <= set(ABOUT_AN_ADJECTIVE)]
    chosen = checked(PATTERNS, patterns, adjectives, mute)
    possible = {
        pattern: tuple(way for way in WAYS[pattern] if adjectives or way not in ABOUT_AN_ADJECTIVE)
        for pattern in chosen
    }

    def derive(derivation: Derivation) -> None:
        derivation.pattern, _ = derivation.pick(chosen)
        way, _ = derivation.pick(possible[derivation.pattern])
        way(Sentence(derivation, adjectives - (way in ABOUT_AN_ADJECTIVE)))

    shown = sorted(TRACKED_WORDS, key=lambda pattern: pattern not in chosen)[:N_TRACKED_WORDS]
    return Grammar(
        "zh-en",
        CHINESE,
        ENGLISH,
        derive,
        tracked_words=[TRACKED_WORDS[pattern] for pattern in shown],
        always_held_out=(NEW_YORK_IS_A_CITY,),
    )
