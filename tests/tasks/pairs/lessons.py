"""Pairs as a teacher would bring them, by small rules: six files of them."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import transformer
from transformer.tasks.pairs.reading import Reading

WORDS = (Path(transformer.__file__).parent / "tasks" / "everyday.txt").read_text(encoding="utf-8").split()
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
SIGNS = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- "
    "-.-- --.."
).split()
MORSE = {chr(ord("a") + i): sign for i, sign in enumerate(SIGNS)}
MASCULINE = {"cat": "chat", "dog": "chien", "book": "livre", "garden": "jardin"}
FEMININE = {"house": "maison", "car": "voiture", "table": "table", "key": "clé"}
COLOURS = {"black": "noir noire", "white": "blanc blanche", "green": "vert verte", "red": "rouge rouge"}
SEES = {"sees": "voit", "likes": "aime", "finds": "trouve", "wants": "veut"}
WHO = {"he": "il", "she": "elle", "the man": "l'homme", "the woman": "la femme", "my son": "mon fils"}
PERSONS = {"我": "I", "你": "you", "他们": "they", "老师": "the teacher", "学生": "the student"}
DONE = {"买": "bought", "卖": "sold", "画": "drew", "看见": "saw", "找到": "found"}
NUMBERS = {"两": "two", "三": "three", "四": "four"}
THINGS = {"本书": "books", "张地图": "maps", "把雨伞": "umbrellas", "辆汽车": "cars", "只狗": "dogs"}


def words(count):
    return random.Random(7).sample([*dict.fromkeys(WORDS)], count)


def plural(word):
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    return word[:-1] + "ies" if word[-1] == "y" and word[-2] not in "aeiou" else word + "s"


def said(number):
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")
    return f"{ONES[number // 100]} hundred" + (f" {said(number % 100)}" if number % 100 else "")


def in_french(who, verb, colour, noun):
    masculine, feminine = COLOURS[colour].split()
    phrase = f"le {MASCULINE[noun]} {masculine}" if noun in MASCULINE else f"la {FEMININE[noun]} {feminine}"
    return (
        f"{who} {verb} the {colour} {noun}.".capitalize(),
        f"{WHO[who]} {SEES[verb]} {phrase}.".capitalize(),
    )


def in_english(who, when, verb, number, thing):
    later = " yesterday" if when else ""
    return f"{who}{when}{verb}了{number}{thing}。", (
        f"{PERSONS[who]} {DONE[verb]} {NUMBERS[number]} {THINGS[thing]}{later}."
    )


def some(sentences, count):
    return random.Random(7).sample(sentences, count)


LESSONS = {
    "reversed": [(word, word[::-1]) for word in words(400)],
    "plurals": [(word, plural(word)) for word in words(300)],
    "numbers": [(str(number), said(number)) for number in range(500)],
    "morse": [(word, " ".join(map(MORSE.__getitem__, word))) for word in words(300)],
    "french": some([in_french(*of) for of in product(WHO, SEES, COLOURS, MASCULINE | FEMININE)], 200),
    "chinese": some([in_english(*of) for of in product(PERSONS, ("", "昨天"), DONE, NUMBERS, THINGS)], 200),
}


def lesson(name):
    """What is read of one of the files."""
    return Reading(tuple(LESSONS[name]), "TSV, 2 columns")
