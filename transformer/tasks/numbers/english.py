"""English numbers, as the British say them: three hundred and forty two."""

from __future__ import annotations

from transformer.tasks.numbers.language import Language, Said
from transformer.tasks.writing import Writing

# Below twenty, each number has a word of its own.
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()


def below_thousand(number: int, after_thousands: bool, how_many: bool) -> Said:
    """Three hundred and forty two; five thousand and six."""
    hundreds, rest = divmod(number, 100)
    words: Said = [(ONES[hundreds], (2,)), ("hundred", (2,))] if hundreds else []
    if rest and (hundreds or after_thousands):
        words.append(("and", ()))
    return words + _below_hundred(rest)


def _below_hundred(number: int) -> Said:
    tens, ones = divmod(number, 10)
    if tens == 1:
        return [(ONES[number], (1, 0))]
    words: Said = [(TENS[tens], (1,))] if tens else []
    return [*words, (ONES[ones], (0,))] if ones else words


ENGLISH = Language(
    name="English",
    writing=Writing(unit=r"[^\W_]+"),  # forty-two is two words: the hyphen is not written
    below_thousand=below_thousand,
    zero="zero",
    one="one",
    hundred="hundred",
    thousand="thousand",
    silent="and",
    alike={"a": "one", "fourty": "forty", "ninty": "ninety"},
)
