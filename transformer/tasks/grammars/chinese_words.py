"""The words of the Chinese grammar, their English, and which adjective and verb goes with which noun.

Lists of words are written as Chinese text would list them, with spaces. They leave out what is correct but
nobody would say, and what is another word once it stands together: 大学校 (university), 小汽车 (car),
小山 (hill), 马上 (at once).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SIZE, AGE, PRICE, LOOKS, FAME, COLOUR = "size", "age", "price", "looks", "fame", "colour"


@dataclass(frozen=True, eq=False)
class Adjective:
    """A quality of a thing; a colour is only said before its noun."""

    text: str
    """The characters that carry the meaning."""
    before: str
    """As it is said before a noun, with 的 (and 很) where it takes them."""
    english: str
    comparative: str
    kind: str
    """Of two adjectives of one thing, no two are of one kind: nothing is big and small, or red and black."""


def _adjective(text: str, kind: str, english: str, comparative: str, before: str = "") -> Adjective:
    return Adjective(text, before or text, english, comparative, kind)


ADJECTIVES = {
    adjective.text: adjective
    for adjective in (
        _adjective("大", SIZE, "big", "bigger"),
        _adjective("小", SIZE, "small", "smaller"),
        _adjective("新", AGE, "new", "newer"),
        _adjective("旧", AGE, "old", "older"),  # worn by use
        _adjective("古老", AGE, "old", "older", "古老的"),  # since long ago: towns, trees, bridges
        _adjective("贵", PRICE, "expensive", "more expensive", "很贵的"),
        _adjective("便宜", PRICE, "cheap", "cheaper", "便宜的"),
        _adjective("漂亮", LOOKS, "beautiful", "more beautiful", "漂亮的"),
        _adjective("有名", FAME, "famous", "more famous", "有名的"),
        _adjective("红色", COLOUR, "red", "", "红色的"),
        _adjective("黑色", COLOUR, "black", "", "黑色的"),
        _adjective("白色", COLOUR, "white", "", "白色的"),
        _adjective("蓝色", COLOUR, "blue", "", "蓝色的"),
    )
}
_COLOURS = "红色 黑色 白色 蓝色"


def adjectives(listed: str) -> tuple[Adjective, ...]:
    """The adjectives in a list."""
    return tuple(ADJECTIVES[text] for text in listed.split())


@dataclass(frozen=True, eq=False)
class Noun:
    """A thing, with its measure word."""

    text: str
    measure: str
    one: str
    many: str
    before: tuple[Adjective, ...]
    """Adjectives that are said before it."""
    after: tuple[Adjective, ...]
    """Adjectives that are said of it."""


def _noun(text: str, measure: str, one: str, many: str, both: str, after: str = "") -> Noun:
    """Adjectives that go with it, before it and after; and those that only go after it."""
    before = adjectives(both)
    plain = tuple(adjective for adjective in before if adjective.kind != COLOUR)
    return Noun(text, measure, one, many, before, plain + adjectives(after))


NOUNS = {
    noun.text: noun
    for noun in (
        _noun("书", "本", "book", "books", f"大 小 新 旧 贵 便宜 有名 {_COLOURS}"),
        _noun("词典", "本", "dictionary", "dictionaries", f"大 小 新 旧 贵 便宜 {_COLOURS}"),
        _noun("地图", "张", "map", "maps", "大 小 新 旧 贵 便宜 漂亮"),
        _noun("照片", "张", "photo", "photos", "大 小 新 旧 漂亮 有名"),
        _noun("桌子", "张", "table", "tables", f"大 小 新 旧 贵 便宜 漂亮 {_COLOURS}"),
        _noun("椅子", "把", "chair", "chairs", f"大 小 新 旧 贵 便宜 漂亮 {_COLOURS}"),
        _noun("雨伞", "把", "umbrella", "umbrellas", f"大 小 新 旧 贵 便宜 漂亮 {_COLOURS}"),
        _noun("钥匙", "把", "key", "keys", "大 小 新 旧"),
        _noun("汽车", "辆", "car", "cars", f"新 旧 贵 便宜 漂亮 {_COLOURS}", "大 小"),
        _noun("自行车", "辆", "bicycle", "bicycles", f"小 新 旧 贵 便宜 漂亮 {_COLOURS}", "大"),
        _noun("猫", "只", "cat", "cats", "大 小 漂亮 黑色 白色"),
        _noun("狗", "只", "dog", "dogs", "大 小 漂亮 黑色 白色", "贵"),
        _noun("鸟", "只", "bird", "birds", f"大 小 漂亮 {_COLOURS}"),
        _noun("马", "匹", "horse", "horses", "大 小 漂亮 贵 黑色 白色"),
        _noun("树", "棵", "tree", "trees", "大 小 漂亮 古老"),
        _noun("花", "朵", "flower", "flowers", "大 小 漂亮 红色 白色 蓝色"),
        _noun("苹果", "个", "apple", "apples", "大 小 贵 便宜 红色"),
        _noun("盒子", "个", "box", "boxes", f"大 小 新 旧 便宜 漂亮 {_COLOURS}"),
        _noun("学校", "所", "school", "schools", "新 古老 漂亮 有名", "大 小 贵"),
        _noun("商店", "家", "shop", "shops", "大 小 新 便宜 漂亮 有名", "贵"),
        _noun("桥", "座", "bridge", "bridges", "大 小 新 古老 漂亮 有名 红色 黑色 白色"),
        _noun("山", "座", "mountain", "mountains", "大 漂亮 有名"),
        _noun("城市", "座", "city", "cities", "大 小 古老 便宜 漂亮 有名", "贵"),
        _noun("国家", "个", "country", "countries", "大 小 古老 漂亮 有名", "贵 便宜"),
    )
}
PLACE = _noun("地方", "个", "place", "places", "古老 漂亮 有名")
"""What both a city and a country are."""


def nouns(listed: str) -> tuple[Noun, ...]:
    """The nouns in a list."""
    return tuple(NOUNS[text] for text in listed.split())


@dataclass(frozen=True, eq=False)
class Name:
    """A city or a country, and what is so, and what is not so, of it."""

    text: str
    english: str
    kind: Noun
    other: Noun
    """The kind that it is not."""
    is_: tuple[Adjective, ...]
    is_not: tuple[Adjective, ...]


def _names(kind: str, other: str, rows: Sequence[tuple[str, str, str, str]]) -> tuple[Name, ...]:
    return tuple(
        Name(text, english, NOUNS[kind], NOUNS[other], adjectives(is_), adjectives(is_not))
        for text, english, is_, is_not in rows
    )


# The largest first, cities by their own inhabitants and countries by area: no comparison of sizes is wrong.
CITIES = _names(
    "城市",
    "国家",
    (
        ("上海", "Shanghai", "大 漂亮 有名 贵", "小 便宜"),
        ("北京", "Beijing", "大 漂亮 有名 古老", "小"),
        ("东京", "Tokyo", "大 漂亮 有名 贵", "小 便宜"),
        ("伦敦", "London", "大 漂亮 有名 古老 贵", "小 便宜"),
        ("纽约", "New York", "大 漂亮 有名 贵", "小 便宜 古老"),
        ("柏林", "Berlin", "大 漂亮 有名", "小"),
        ("罗马", "Rome", "大 漂亮 有名 古老", "小"),
        ("巴黎", "Paris", "大 漂亮 有名 古老 贵", "小 便宜"),
    ),
)
COUNTRIES = _names(
    "国家",
    "城市",
    (
        ("中国", "China", "大 漂亮 有名 古老", "小"),
        ("埃及", "Egypt", "大 漂亮 有名 古老", "小 贵"),
        ("法国", "France", "漂亮 有名 古老", "小 便宜"),
        ("日本", "Japan", "漂亮 有名 古老", "大 便宜"),
        ("德国", "Germany", "漂亮 有名", "小 便宜"),
        ("意大利", "Italy", "漂亮 有名 古老", "大 便宜"),
    ),
)
NAMES = CITIES + COUNTRIES
NEW_YORK = CITIES[4]


@dataclass(frozen=True, eq=False)
class Person:
    """Who does something."""

    text: str
    english: str
    definite: bool = False
    """Whether the English takes "the"."""


SPEAKERS = (Person("我", "I"), Person("我们", "we"))
OTHERS = (
    Person("你", "you"),
    Person("他", "he"),
    Person("她", "she"),
    Person("他们", "they"),
    Person("老师", "teacher", definite=True),
    Person("学生", "student", definite=True),
    Person("女孩", "girl", definite=True),
    Person("男孩", "boy", definite=True),
)
PERSONS = SPEAKERS + OTHERS


@dataclass(frozen=True, eq=False)
class Verb:
    """What a person does, and to what."""

    text: str
    english: str
    past: str
    objects: tuple[Noun, ...]
    without: tuple[str, ...] = ()
    """Kinds of adjectives that its object does not take: what is drawn has no price."""


_GOODS = "书 词典 地图 照片 桌子 椅子 雨伞 汽车 自行车 猫 狗 鸟 马 花 苹果 盒子"
_DRAWN = "树 花 鸟 猫 狗 马 苹果 桥 山 城市 学校 商店 汽车 自行车 桌子 椅子 雨伞 地图 盒子"
_FOUND = "书 词典 地图 照片 桌子 椅子 雨伞 钥匙 汽车 自行车 猫 狗 鸟 马 花 苹果 盒子 学校 商店 桥"
_LOST = "书 词典 地图 照片 雨伞 钥匙 汽车 自行车 猫 狗 鸟 马 盒子"
BUY = Verb("买", "buy", "bought", nouns(_GOODS))
SELL = Verb("卖", "sell", "sold", nouns(_GOODS))
DRAW = Verb("画", "draw", "drew", nouns(_DRAWN), (PRICE, AGE))
SEE = Verb("看见", "see", "saw", tuple(noun for noun in NOUNS.values() if noun.text != "国家"))
FIND = Verb("找到", "find", "found", nouns(_FOUND))
LOSE = Verb("丢", "lose", "lost", nouns(_LOST))
VERBS = (BUY, SELL, DRAW, SEE, FIND, LOSE)
DISPOSED = (SELL, FIND, LOSE)
"""Verbs that 把 goes with: they do something to a thing that is already there."""
IN_RELATIVES = (BUY, DRAW, SEE, FIND, LOSE)
"""Verbs that are past without 了 where they tell which; 老师卖的书 is rather what the teacher sells."""
HANDLED = nouns(_GOODS + " 钥匙")
"""What is disposed of."""

TIMES: Mapping[str, str] = {"昨天": "yesterday", "今天": "today", "上周": "last week", "去年": "last year"}
NUMBERS: Mapping[str, str] = {"一": "a", "两": "two", "三": "three", "四": "four", "五": "five"}
POSTPOSITIONS: Mapping[str, str] = {"上": "on", "下面": "under", "旁边": "next to"}
