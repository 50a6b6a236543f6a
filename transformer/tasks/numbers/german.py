"""German numbers, ones before tens and all in one word: dreihundertvierunddreißig."""

from __future__ import annotations

from transformer.tasks.numbers.language import Language, Said
from transformer.tasks.writing import Writing

# Below twenty, each number has a word of its own.
ONES = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn"
).split()
TENS = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
ALIKE = {
    "eins": "ein",
    "zwo": "zwei",
    "fuenf": "fünf",
    "zwoelf": "zwölf",
    "fuenfzehn": "fünfzehn",
    "dreissig": "dreißig",
    "fuenfzig": "fünfzig",
}


def below_thousand(number: int, after_thousands: bool, how_many: bool) -> Said:
    """Ein before other words, eins at the end."""
    hundreds, rest = divmod(number, 100)
    words: Said = [(ONES[hundreds], (2,)), ("hundert", (2,))] if hundreds else []
    words += _below_hundred(rest)
    if rest == 1 and not how_many:
        words[-1] = ("eins", (0,))
    return words


def _below_hundred(number: int) -> Said:
    tens, ones = divmod(number, 10)
    if tens == 1:
        return [(ONES[number], (1, 0))]
    words: Said = [(ONES[ones], (0,))] if ones else []
    if ones and tens:
        words.append(("und", ()))
    return [*words, (TENS[tens], (1,))] if tens else words


# Longer words first, so that sechzehn is not read as an unknown word and zehn; letters that are no word of a
# number stay together, so that they can be named.
_WORDS = "|".join(
    sorted({*ONES, *TENS[2:], *ALIKE, "und", "hundert", "tausend"}, key=lambda word: (-len(word), word))
)

GERMAN = Language(
    name="German",
    writing=Writing(unit=rf"{_WORDS}|(?:(?!{_WORDS})[^\W_])+", between=""),
    below_thousand=below_thousand,
    zero="null",
    one="ein",
    hundred="hundert",
    thousand="tausend",
    silent="und",
    alike=ALIKE,
)
