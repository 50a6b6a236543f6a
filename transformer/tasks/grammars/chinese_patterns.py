"""Sentence patterns: each function builds the Chinese from first character to last, then the English."""

from __future__ import annotations

from collections.abc import Callable

from transformer.tasks.grammars.chinese_sentence import ALL_NOUNS, NOWHERE, THIS_OR_THAT, Sentence
from transformer.tasks.grammars.chinese_words import (
    AGE,
    ALIKE,
    CITIES,
    COUNTRIES,
    FAME,
    HANDLED,
    LOOKS,
    OTHERS,
    PLACE,
    PLACES,
    PRICE,
    SIZE,
    THINGS,
    VERBS,
    adjectives,
)

_ASKED = adjectives("大 小 漂亮 有名 古老 贵 便宜")
"""Adjectives for questions about any city or country."""
_OPINIONS = adjectives("漂亮 有名")
"""Adjectives that can compare any two cities or countries."""
_BIG, _SMALL, _EXPENSIVE, _CHEAP = adjectives("大 小 贵 便宜")
_NOT_COLOURS = (SIZE, AGE, PRICE, LOOKS, FAME)
_PLACED, _PLACES = tuple(PLACES), tuple(THINGS)


def _fact(to: Sentence) -> None:
    """纽约是一座城市."""
    name, subject = to.name()
    be = to.say("是")
    noun, a = to.one((name.kind,))
    to.fact(name, noun)
    to.write(subject, [("is", be)], a, to.noun(noun))


def _this(to: Sentence) -> None:
    """这是一本书."""
    which, this = to.this()
    be = to.say("是")
    noun, a = to.one(ALL_NOUNS)
    to.combine(which, noun.text)
    to.write(this, [("is", be)], a, to.noun(noun))


def _this_name(to: Sentence) -> None:
    """这是纽约."""
    (_, this), be = to.this(), to.say("是")
    _, name = to.name()
    to.write(this, [("is", be)], name)


def _such_a_fact(to: Sentence) -> None:
    """巴黎是一座漂亮的城市, 巴黎是一个漂亮的地方."""
    name, subject = to.name()
    be = to.say("是")
    noun, a = to.one((name.kind, PLACE))
    to.fact(name, noun)
    quality = to.such(name, noun, name.is_)
    to.write(subject, [("is", be)], a, quality, to.noun(noun))


def _such_a_thing(to: Sentence) -> None:
    """这是一把很贵的雨伞."""
    (_, this), be = to.this(), to.say("是")
    noun, a = to.one(ALL_NOUNS)
    _, quality = to.before(noun, noun.before)
    to.write(this, [("is", be)], a, quality, to.noun(noun))


def _no_fact(to: Sentence) -> None:
    """纽约不是一个国家, 伦敦不是一座小城市."""
    name, subject = to.name()
    no, be = to.say("不"), to.say("是")
    such = to.left > 0 and to.pick((False, True))[0]
    noun, a = to.one((name.kind if such else name.other,))
    to.fact(name, noun)
    quality = to.such(name, noun, name.is_not) if such else []
    to.write(subject, [("is", be), ("not", no)], a, quality, to.noun(noun))


def _not_this(to: Sentence) -> None:
    """这不是一本书."""
    which, this = to.this()
    no, be = to.say("不"), to.say("是")
    noun, a = to.one(ALL_NOUNS)
    to.combine(which, noun.text)
    to.write(this, [("is", be), ("not", no)], a, to.qualified(noun).words)


def _quality_denied(to: Sentence) -> None:
    """这三本书不贵."""
    subject, be, no, adjective = to.quality("不", lambda name: name.is_not)
    to.write(subject, [(be, NOWHERE), ("not", no)], adjective)


def _fact_asked(to: Sentence) -> None:
    """伦敦是一座城市吗？"""
    name, subject = to.name()
    be = to.say("是")
    noun, a = to.one((name.kind, name.other))
    to.fact(name, noun)
    thing = to.qualified(noun)
    for adjective in thing.adjectives:
        to.combine(adjective.text, name.text)
    to.write([("is", be)], subject, a, thing.words, to.asked())


def _this_asked(to: Sentence) -> None:
    """这是一本书吗？"""
    which, this = to.this()
    be = to.say("是")
    noun, a = to.one(ALL_NOUNS)
    to.combine(which, noun.text)
    thing = to.qualified(noun).words
    to.write([("is", be)], this, a, thing, to.asked())


def _quality_asked(to: Sentence) -> None:
    """这三本书贵吗？"""
    subject, be, _, adjective = to.quality("", lambda _: _ASKED)
    to.write([(be, NOWHERE)], subject, adjective, to.asked())


def _place_asked(to: Sentence) -> None:
    """猫在椅子下面吗？"""
    thing = to.known(_PLACED, (PRICE,))
    at = to.say("在")
    where, place = to.where(thing.noun)
    to.write([(thing.be, at)], thing.words, where, place, to.asked())


def _past_asked(to: Sentence) -> None:
    """他昨天买了一本书吗？"""
    (_, who), when = to.person(OTHERS), to.time()
    verb, at = to.verb(VERBS)
    did = to.say("了")
    what = to.counted(verb.objects, verb.without)
    to.combine(what.noun.text, verb.text)
    to.write([("did", did)], who, [(verb.english, at)], what.words, when, to.asked())


def _existence(to: Sentence) -> None:
    """桌子上有三本书."""
    place = to.bare(_PLACES, (PRICE,))
    by_postposition = THINGS[place.noun]
    postposition, where = to.postposition(tuple(by_postposition))
    there = to.say("有")
    thing = to.counted(by_postposition[postposition])
    to.combine(thing.noun.text, place.noun.text)
    to.write([("there", there), (thing.be, there)], thing.words, where, place.words)


def _location(to: Sentence) -> None:
    """猫在椅子下面."""
    thing = to.known(_PLACED, (PRICE,))
    at = to.say("在")
    where, place = to.where(thing.noun)
    to.write(thing.words, [(thing.be, at)], where, place)


def _past(to: Sentence) -> None:
    """我昨天买了两本书."""
    (_, who), when = to.person(), to.time()
    verb, at = to.verb(VERBS)
    did = to.say("了")
    what = to.counted(verb.objects, verb.without)
    to.combine(what.noun.text, verb.text)
    to.write(who, [(verb.past, at + did)], what.words, when)


def _predicate(to: Sentence) -> None:
    """这三本书很贵."""
    subject, be, very, adjective = to.quality("很", lambda name: name.is_)
    to.write(subject, [(be, very)], adjective)


def _names_compared(to: Sentence) -> None:
    """伦敦比巴黎大."""
    name, first = to.name()
    than = to.say("比")
    names = CITIES if name in CITIES else COUNTRIES
    other, second = to.name([other_name for other_name in names if other_name is not name])
    to.combine(name.text, "比", other.text)
    options = [*_OPINIONS, _BIG if names.index(name) < names.index(other) else _SMALL]
    dear = [_EXPENSIVE in compared.is_ for compared in (name, other)]
    if dear[0] != dear[1]:
        options.append(_EXPENSIVE if dear[0] else _CHEAP)
    _, more = to.compared(options, than)
    to.write(first, [("is", NOWHERE)], more, second)


def _things_compared(to: Sentence) -> None:
    """这本书比那本书贵."""
    alike, _ = to.pick(ALIKE)
    which, first = to.pointed(alike, _NOT_COLOURS)
    than = to.say("比")
    _, second = to.pointed(alike, _NOT_COLOURS, [other for other in THIS_OR_THAT if other != which])
    both = [adjective for adjective in first.noun.after if adjective in second.noun.after]
    adjective, more = to.compared(both, than)
    for noun in (first.noun, second.noun):
        to.combine(adjective.text, noun.text)
    to.write(first.words, [("is", NOWHERE)], more, second.words)


def _relative(to: Sentence) -> None:
    """老师买的书很新."""
    (_, who), when = to.person(), to.time()
    verb, at = to.verb([verb for verb in VERBS if "relative" in verb.uses])
    that = to.say("的")
    thing = to.bare(verb.objects, (*verb.without, SIZE))  # a size stays free as the predicate
    to.combine(thing.noun.text, verb.text)
    very = to.say("很")
    adjective = to.after(thing.noun.text, thing.after(verb.without))
    to.write(thing.words, [("that", that)], who, [(verb.past, at)], when, [("is", very)], adjective)


def _what(to: Sentence) -> None:
    """她丢了什么？"""
    (person, who), when = to.person(), to.time()
    verb, at = to.verb(VERBS)
    to.combine(person.text, verb.text, "什么")
    did, what, mark = to.say("了"), to.say("什么"), to.say("？")
    to.write([("what", what), ("did", did)], who, [(verb.english, at)], when, [("?", mark)])


def _object_first(to: Sentence) -> None:
    """学生把雨伞丢了."""
    (_, who), when = to.person(), to.time()
    to.say("把")
    thing = to.known(HANDLED)
    verb, at = to.verb([verb for verb in VERBS if "ba" in verb.uses and thing.noun in verb.objects])
    did = to.say("了")
    to.combine(thing.noun.text, verb.text)
    to.write(who, [(verb.past, at + did)], thing.words, when)


Way = Callable[[Sentence], None]
WAYS: dict[str, tuple[Way, ...]] = {
    "identity": (_fact, _this, _this_name),
    "description": (_such_a_fact, _such_a_thing),
    "negation": (_no_fact, _not_this, _quality_denied),
    "yes-no": (_fact_asked, _this_asked, _quality_asked, _place_asked, _past_asked),
    "existence": (_existence,),
    "location": (_location,),
    "past": (_past,),
    "predicate": (_predicate,),
    "comparison": (_names_compared, _things_compared),
    "relative": (_relative,),
    "wh": (_what,),
    "ba": (_object_first,),
}
"""The functions that build the sentences of each pattern; those that are possible are drawn equally often."""
ABOUT_AN_ADJECTIVE = (
    *(_such_a_fact, _such_a_thing, _quality_denied, _quality_asked, _predicate),
    *(_names_compared, _things_compared, _relative),
)
"""Functions whose sentences always have an adjective."""
