"""A grammar of Chinese sentences and their English, with the source of each English word.

A unit of Chinese is a character, a unit of English a word. An English word is linked to all characters that
carry its meaning: "New" and "York" each to 纽 and 约. In particular

    a, an                  to 一
    this, these            to 这; that, those to 那
    are, is                to what stands in their place: 是, 在 or 很; "there" and "are" both to 有
    bought, did            to 买 and 了, to 了; where 的 follows, bought to 买
    bigger                 to 大 and 比; more and than to 比
    that (of a relative)   to 的
    not, what              to 不, to 什 and 么
    ?                      to ？ and the 吗 before it

and to nothing, an empty link, where Chinese says nothing: "the" of a bare noun, "is" where an adjective is
denied, asked for or compared. Nothing comes from measure words, from 把, and from the 的 and 很 of an
adjective before its noun. A word that only agrees with another, as "are" and "books" do with 三, has no link
to it.

One combination in ten is held out, the same ones in all patterns: of adjective and noun or name, of verb and
object, of thing and place, of name and kind, of two names compared, of this or that and what it is, and where
什么 asks, of person and verb. All that calls New York a city, denies it or asks for it is held out besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from transformer.errors import InputError
from transformer.tasks.grammars.chinese_patterns import ABOUT_AN_ADJECTIVE, WAYS, Way
from transformer.tasks.grammars.chinese_sentence import Sentence
from transformer.tasks.grammars.grammar import Grammar
from transformer.tasks.grammars.telling import Telling
from transformer.tasks.writing import Writing

NEW_YORK_IS_A_CITY = "纽约是一座城市"
"""Always held out, while each of its characters is trained on elsewhere."""


class ChineseWriting(Writing):
    """Chinese, whose question mark may be typed as the Latin one."""

    def clean(self, text: str) -> str:
        """As every writing does, with the wide question mark."""
        return super().clean(text.replace("?", "？"))


CHINESE = ChineseWriting(lower=False)
ENGLISH = Writing(lower=False)

PATTERNS: dict[str, str] = {
    "identity": "Names of several characters become one word or two, and 座 becomes nothing.",
    "description": "The row of a or an looks ahead, at the word that comes after it.",
    "negation": "不是 becomes is not: the two rows cross.",
    "yes-no": "吗 at the very end decides the very first English word.",
    "existence": "The place comes first in Chinese and last in English; are and the plural come from 三.",
    "location": "下面 stands after the chair, under before it.",
    "past": "The time moves to the end, and 了 makes the verb past.",
    "predicate": "很 becomes is or are, and this or these depends on a number further on.",
    "comparison": "The adjective moves from the end to before than, which is 比.",
    "relative": "Everything before 的 moves behind the noun: the largest crossing of all.",
    "wh": "什么 moves from the end to the beginning, followed by did, which is 了.",
    "ba": "把 brings the object before the verb; English has it after.",
}
"""Each kind of sentence, with what to look for in the attention."""
PROBES = {
    "identity": NEW_YORK_IS_A_CITY,
    "relative": "老师买的书很新",
    "ba": "学生把雨伞丢了",
    "existence": "桌子上有三本书",
    "wh": "她丢了什么？",
    "comparison": "伦敦比巴黎大",
    "past": "我昨天买了两本书",
    "location": "猫在椅子下面",
    "yes-no": "伦敦是一座城市吗？",
    "negation": "纽约不是一个国家",
    "predicate": "这三本书很贵",
    "description": "巴黎是一座漂亮的城市",
}
"""A question of each pattern, the most telling first."""
N_PROBES = 5


@dataclass(frozen=True)
class ChineseRules:
    """The rules of some patterns.

    Args:
        patterns: in `PATTERNS`; each is as likely as any other.
        adjectives: most that a sentence has.
    """

    patterns: tuple[str, ...]
    adjectives: int

    def __call__(self, telling: Telling) -> None:
        """Tell a sentence."""
        pattern, _ = telling.pick(self.patterns)
        way, _ = telling.pick(ways_with(pattern, self.adjectives))
        telling.pattern = pattern
        way(Sentence(telling, self.adjectives - (way in ABOUT_AN_ADJECTIVE)))


@cache
def ways_with(pattern: str, adjectives: int) -> tuple[Way, ...]:
    """The sentences of a pattern that can be told with so many adjectives."""
    return tuple(way for way in WAYS[pattern] if adjectives or way not in ABOUT_AN_ADJECTIVE)


def chinese(patterns: Sequence[str] | None, adjectives: int) -> Grammar:
    """Sentences of these patterns.

    Args:
        patterns: in `PATTERNS`; None: all of them.
        adjectives: most that a sentence has, at most two of them before a noun. Without any, descriptions,
            predicates, comparisons and relatives cannot be said and are left out.

    Raises:
        InputError: there is no such pattern, or it cannot be said without an adjective.
    """
    chosen = tuple(dict.fromkeys(PATTERNS if patterns is None else patterns))
    unknown = [pattern for pattern in chosen if pattern not in PATTERNS]
    if unknown or not chosen:
        wrong = f"{', '.join(unknown)}: no pattern of Chinese sentences" if unknown else "There is no pattern"
        raise InputError(f"{wrong}; choose from {', '.join(PATTERNS)}.", "patterns")
    possible = tuple(pattern for pattern in chosen if ways_with(pattern, adjectives))
    if patterns is not None and possible != chosen:
        mute = ", ".join(pattern for pattern in chosen if pattern not in possible)
        raise InputError(
            f"{mute}: no such sentence without an adjective; allow at least 1, or choose other patterns.",
            "adjectives",
        )
    chosen = possible
    probes = sorted(PROBES, key=lambda pattern: pattern not in chosen)[:N_PROBES]
    return Grammar(
        "zh-en",
        CHINESE,
        ENGLISH,
        ChineseRules(chosen, adjectives),
        probes=[PROBES[pattern] for pattern in probes],
        always_held_out=(NEW_YORK_IS_A_CITY,),
    )
