"""Which things of the Chinese grammar may be where, and which are compared."""

from __future__ import annotations

from transformer.tasks.grammars.chinese_words import Noun, nouns

# What may be where: by place and postposition.
_SCENES = (
    ("桌子", "上", "书 词典 地图 照片 雨伞 钥匙 花 苹果 盒子 猫 鸟"),
    ("椅子", "上", "书 词典 地图 照片 雨伞 钥匙 苹果 盒子 猫 鸟"),
    ("盒子", "上", "书 词典 地图 照片 钥匙 花 苹果 猫 鸟"),
    ("书 词典", "上", "照片 钥匙 花 苹果"),
    ("桥", "上", "汽车 自行车 马 狗 猫 鸟"),
    ("山", "上", "树 花 马 鸟 学校 商店"),
    ("地图", "上", "城市 国家 山 桥 学校 商店"),
    ("桌子", "下面", "书 盒子 椅子 雨伞 钥匙 猫 狗 苹果"),
    ("椅子", "下面", "书 盒子 雨伞 钥匙 猫 狗 苹果"),
    ("盒子 书 词典", "下面", "钥匙 照片 地图"),
    ("汽车", "下面", "猫 狗 鸟 钥匙 苹果 盒子"),
    ("树", "下面", "桌子 椅子 汽车 自行车 猫 狗 马 花 苹果 盒子 书"),
    ("桥", "下面", "汽车 自行车 猫 狗 马 树 花"),
    ("雨伞", "下面", "猫 狗 书 花 椅子"),
    ("学校 商店", "旁边", "学校 商店 桥 树 汽车 自行车 马 狗"),
    ("桥", "旁边", "学校 商店 树 花 汽车 自行车 马"),
    ("山", "旁边", "城市 学校 商店 桥 树"),
    ("城市", "旁边", "山 桥"),
    ("树", "旁边", "桌子 椅子 汽车 自行车 猫 狗 鸟 马 花 学校 商店 桥"),
    ("桌子 椅子", "旁边", "桌子 椅子 盒子 雨伞 猫 狗 花 自行车"),
    ("盒子", "旁边", "书 词典 照片 钥匙 苹果 雨伞 猫 狗 花"),
    ("书 词典", "旁边", "书 词典 地图 照片 钥匙 苹果 花 盒子"),
    ("汽车 自行车", "旁边", "汽车 自行车 树 马 狗 猫 盒子 雨伞"),
    ("马 狗", "旁边", "猫 狗 鸟 马 花 盒子"),
    ("猫 鸟", "旁边", "猫 狗 鸟 花 盒子 苹果"),
    ("雨伞", "旁边", "书 钥匙 盒子 猫 狗"),
)


def _things() -> dict[Noun, dict[str, tuple[Noun, ...]]]:
    """By place and postposition, what may be there; a thing is not beside its like, which needs "another"."""
    things: dict[Noun, dict[str, tuple[Noun, ...]]] = {}
    for places, postposition, listed in _SCENES:
        for place in nouns(places):
            there = tuple(noun for noun in nouns(listed) if noun is not place)
            things.setdefault(place, {})[postposition] = there
    return things


def _places() -> dict[Noun, dict[Noun, tuple[str, ...]]]:
    """By thing and place, the postpositions; what is drawn on a map is only told of with 有."""
    places: dict[Noun, dict[Noun, tuple[str, ...]]] = {}
    for place, by_postposition in THINGS.items():
        for postposition, there in by_postposition.items():
            for thing in there if place.text != "地图" else ():
                at = places.setdefault(thing, {})
                at[place] = (*at.get(place, ()), postposition)
    return places


THINGS = _things()
PLACES = _places()

# What is compared with what.
ALIKE = tuple(
    map(
        nouns,
        (
            "书 词典",
            "地图 照片",
            "桌子 椅子 盒子",
            "雨伞",
            "汽车 自行车",
            "猫 狗 鸟 马",
            "树",
            "花",
            "苹果",
            "学校 商店",
            "桥",
            "山",
            "城市",
            "国家",
        ),
    )
)
