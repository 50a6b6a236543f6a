"""French numbers in the spelling of 1990, with hyphens throughout: quatre-vingt-dix-sept."""

from __future__ import annotations

from transformer.tasks.numbers.language import Language, Said
from transformer.tasks.writing import Writing

# Up to sixteen, each number has a word of its own; seventeen is dix-sept.
ONES = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
).split()
TENS = "- dix vingt trente quarante cinquante soixante".split()


def below_thousand(number: int, after_thousands: bool, how_many: bool) -> Said:
    """Cents and vingts have their s only as the last word of all: deux-cents, but deux-cent-mille."""
    if how_many and number == 1:
        return []  # mille
    hundreds, rest = divmod(number, 100)
    words: Said = [(ONES[hundreds], (2,))] if hundreds > 1 else []
    if hundreds:
        words.append(("cents" if hundreds > 1 and not rest and not how_many else "cent", (2,)))
    return words + _below_hundred(rest, last=not how_many)


def _below_hundred(number: int, last: bool) -> Said:
    if number == 0:
        return []
    if number <= 16:
        return [(ONES[number], (1, 0) if number >= 10 else (0,))]
    if number >= 80:
        twenties = "vingts" if number == 80 and last else "vingt"
        return [("quatre", (1,)), (twenties, (1,)), *_below_hundred(number - 80, last)]
    tens = min(number // 10, 6)  # seventy is soixante-dix
    rest = number - 10 * tens
    joint: Said = [("et", ())] if rest in (1, 11) else []
    return [(TENS[tens], (1,)), *joint, *_below_hundred(rest, last)]


FRENCH = Language(
    name="French",
    writing=Writing(unit=r"[^\W_]+", between="-"),
    below_thousand=below_thousand,
    zero="zéro",
    one="un",
    hundred="cent",
    thousand="mille",
    silent="et",
    alike={"cents": "cent", "vingts": "vingt", "zero": "zéro", "milles": "mille"},
)
