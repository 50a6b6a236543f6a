"""A grammar of Chinese sentences and their English, with the source of each English word.

A unit of Chinese is a character, a unit of English a word. An English word is linked to all characters that
carry its meaning: "New" and "York" each to 纽 and 约. In particular

    a, an                  to 一
    this, these            to 这; that, those to 那
    are, is                to what stands in their place: 是, 在 or 很; "there" and "are" both to 有
    bought                 to 买 and 了, or only to 买 where 的 follows; did to 了
    bigger                 to 大 and 比; more and than to 比
    that (of a relative)   to 的
    not                    to 不; what to 什 and 么
    ?                      to ？ and the 吗 before it

and to nothing, an empty link, where Chinese says nothing: "the" of a bare noun, "is" where an adjective is
denied, asked for or compared. Nothing comes from measure words, from 把, and from the 的 and 很 of an
adjective before its noun. A word that only agrees with another, as "are" and "books" do with 三, has no link
to it.

One combination in ten is held out, the same ones in all patterns: of adjective and noun or name, of verb and
object, of thing and place, of name and kind, of two names compared, of this or that and what it is, and where
什么 asks, of person and verb. Every sentence that says, denies or asks that New York is a city is held out
too.
"""

from __future__ import annotations

from collections.abc import Sequence

from transformer.tasks.grammars.chinese_patterns import ABOUT_AN_ADJECTIVE, WAYS
from transformer.tasks.grammars.chinese_sentence import Sentence
from transformer.tasks.grammars.chinese_words import PATTERNS, PROBES
from transformer.tasks.grammars.grammar import Grammar, checked
from transformer.tasks.grammars.telling import Telling
from transformer.tasks.writing import Writing

NEW_YORK_IS_A_CITY = "纽约是一座城市"
"""Always held out, while each of its characters is trained on elsewhere."""


class ChineseWriting(Writing):
    """Chinese, whose question mark may be typed as the Latin one."""

    def clean(self, text: str) -> str:
        """As `Writing.clean`, with the full-width question mark."""
        return super().clean(text.replace("?", "？"))


CHINESE = ChineseWriting(lower=False)
ENGLISH = Writing(lower=False)
N_PROBES = 5


def chinese(patterns: Sequence[str] | None = None, adjectives: int = 1) -> Grammar:
    """Sentences of these patterns.

    Args:
        patterns: in `PATTERNS`, drawn each as often; None: all of them.
        adjectives: most that a sentence has, at most two of them before a noun. Without any, descriptions,
            predicates, comparisons and relatives cannot be said.

    Raises:
        InputError: there is no such pattern, or it cannot be said without an adjective.
    """
    mute = [pattern for pattern, ways in WAYS.items() if set(ways) <= set(ABOUT_AN_ADJECTIVE)]
    chosen = checked(PATTERNS, patterns, adjectives, mute)
    possible = {
        pattern: tuple(way for way in WAYS[pattern] if adjectives or way not in ABOUT_AN_ADJECTIVE)
        for pattern in chosen
    }

    def tell(telling: Telling) -> None:
        telling.pattern, _ = telling.pick(chosen)
        way, _ = telling.pick(possible[telling.pattern])
        way(Sentence(telling, adjectives - (way in ABOUT_AN_ADJECTIVE)))

    probes = sorted(PROBES, key=lambda pattern: pattern not in chosen)[:N_PROBES]
    return Grammar(
        "zh-en",
        CHINESE,
        ENGLISH,
        tell,
        probes=[PROBES[pattern] for pattern in probes],
        always_held_out=(NEW_YORK_IS_A_CITY,),
    )
