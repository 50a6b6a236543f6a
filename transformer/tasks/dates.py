"""Dates: English ones, written in ten ways, become ISO dates, character by character."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np

from transformer.errors import InputError
from transformer.tasks.corpus import HELD_OUT_SEED, Corpus, Links, Pair, held_out_by_hash
from transformer.tasks.writing import LETTERS

FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
WEEKDAYS = tuple("monday tuesday wednesday thursday friday saturday sunday".split())
MONTHS = tuple(
    "january february march april may june july august september october november december".split()
)


def _short(name: str) -> str:
    return name[:3]


def _ordinal_ending(day: int) -> str:
    return "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


_SHORT_MONTHS = "|".join(map(_short, MONTHS))
# Regular expression of each part of a template.
_PARTS = {
    "weekday": f"(?:{'|'.join(WEEKDAYS)})",
    "wkd": f"(?:{'|'.join(map(_short, WEEKDAYS))})",
    "day": "(?P<day>[1-9][0-9]?)",
    "th": "(?:st|nd|rd|th)",
    "month": f"(?P<month>{'|'.join(MONTHS)})",
    "mon": f"(?P<month>{_SHORT_MONTHS})",
    "year": "(?P<year>[0-9]{4})",
}


@dataclass(frozen=True)
class Form:
    """One format of dates, which writes and recognises them."""

    template: str
    """The parts in their order, with what stands between them."""

    def write(self, day: date) -> str:
        """A date in this form, with its true weekday."""
        weekday, month = WEEKDAYS[day.weekday()], MONTHS[day.month - 1]
        return self.template.format(
            weekday=weekday,
            wkd=_short(weekday),
            day=day.day,
            th=_ordinal_ending(day.day),
            month=month,
            mon=_short(month),
            year=day.year,
        )

    @cached_property
    def name(self) -> str:
        """Its name on the page: an example."""
        return self.write(date(2021, 3, 12))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.template.format(**_PARTS))

    def match(self, text: str) -> re.Match[str] | None:
        """The match of a text in this form, with groups for day, month and year; None for another text."""
        return self._pattern.fullmatch(text)


FORMS = (
    Form("{day} {month} {year}"),
    Form("{month} {day}, {year}"),
    Form("{weekday}, {day} {month} {year}"),
    Form("{weekday}, {month} {day}, {year}"),
    Form("{day}{th} of {month} {year}"),
    Form("{month} {day}{th}, {year}"),
    Form("the {day}{th} of {month} {year}"),
    Form("{day} {mon} {year}"),
    Form("{mon} {day}, {year}"),
    Form("{wkd} {day} {mon} {year}"),
)


def is_held_out(day: date) -> bool:
    """Whether training never sees this day of this month, in any year: one in ten, by hash."""
    return held_out_by_hash(str(day.day), MONTHS[day.month - 1])


def _month_number(name: str) -> int:
    return [_short(month) for month in MONTHS].index(_short(name)) + 1


def _date(match: re.Match[str]) -> date | None:
    """The date of a match; None where there is no such date."""
    try:
        return date(int(match["year"]), _month_number(match["month"]), int(match["day"]))
    except ValueError:
        return None


def _links(match: re.Match[str]) -> Links:
    """Link digits to digits, and both digits of the month to all letters of its name.

    Nothing links to the weekday; hyphens, and the zero before a day of one digit, have no links.
    """
    year = [(i,) for i in range(*match.span("year"))]
    month = tuple(range(*match.span("month")))
    day = [(i,) for i in range(*match.span("day"))]
    zero = [()] if len(day) == 1 else []
    return (*year, (), month, month, (), *zero, *day)


class Dates(Corpus):
    """Read a date in English, write it as year-month-day.

    One in ten days of the year, such as the 6th of june, is held out in all years and forms. Each day, month,
    year and form occurs in training in other combinations.
    """

    name = "dates"
    src = tgt = LETTERS

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Dates of a hundred years in all forms, dates and forms uniform, without held-out days."""
        chosen = rng.integers(0, len(FORMS), count)
        days = rng.integers(FIRST.toordinal(), LAST.toordinal() + 1, count)
        pairs: list[Pair] = []
        for form, ordinal in zip(chosen.tolist(), days.tolist(), strict=True):
            day = date.fromordinal(ordinal)
            while is_held_out(day):
                day = date.fromordinal(int(rng.integers(FIRST.toordinal(), LAST.toordinal() + 1)))
            pairs.append(self._written(FORMS[form], day))
        return pairs

    def held_out_draws(self) -> Iterator[Pair]:
        """Texts of held-out days, forms and dates uniform."""
        rng = np.random.default_rng(HELD_OUT_SEED)
        every = [date.fromordinal(n) for n in range(FIRST.toordinal(), LAST.toordinal() + 1)]
        days = [day for day in every if is_held_out(day)]
        while True:
            yield self._written(FORMS[rng.integers(len(FORMS))], days[rng.integers(len(days))])

    def tracked_words(self) -> Sequence[str]:
        """The same day in two orders, days of one digit, months that begin alike, a day of leap years."""
        return (
            "friday, 12 march 2021",
            "march 12, 2021",
            "1st of may 1999",
            "sat 6 jun 1987",
            "the 29th of february 2024",
        )

    def read(self, text: str) -> str:
        """Clean and check a typed date. A wrong weekday is no fault: nothing depends on it.

        Raises:
            InputError: the text is empty or in none of the forms (the message suggests one where the date is
                clear), the month has no such day (the message suggests its last), or the year is not
                trained on.
        """
        source = LETTERS.clean(text).rstrip(".")
        source = re.sub(r" ?, ?", ", ", source)
        source = re.sub(r"\b0(?=[1-9][ ,snrt])", "", source)  # 05 march
        if not source:
            raise InputError(f"The date is empty; type one, such as {FORMS[0].name}.", "probe_words")
        for form in FORMS:
            match = form.match(source)
            if match:
                return _checked(source, form, match)
        suggestion = _understood(source)
        examples = "Type one like “{}”, “{}” or “{}”.".format(*(FORMS[i].name for i in (0, 1, 4)))
        advice = f"Try {suggestion}." if suggestion else examples
        raise InputError(
            f"“{source[:60]}” is not in a date format of this task. {advice}", "probe_words", suggestion
        )

    def find(self, source: str) -> Pair | None:
        """A date of any year in any of the forms, with its ISO date; None for another text."""
        for form in FORMS:
            match = form.match(source)
            day = match and _date(match)
            if match and day:
                return Pair(source, day.isoformat(), _links(match), form.name, is_held_out(day))
        return None

    def _written(self, form: Form, day: date) -> Pair:
        """The pair of a date, found by its text: a text with "may" can fit two forms."""
        pair = self.find(form.write(day))
        assert pair is not None
        return pair


def _checked(source: str, form: Form, match: re.Match[str]) -> str:
    """The text, if its day exists and its year is trained on. Raises InputError."""
    year, month, day = int(match["year"]), _month_number(match["month"]), int(match["day"])
    if not FIRST.year <= year <= LAST.year:
        raise InputError(
            f"The year {match['year']} is out of range; choose one from {FIRST.year} to {LAST.year}.",
            "probe_words",
        )
    length = monthrange(year, month)[1]
    if day > length:
        name = MONTHS[month - 1]
        suggestion = form.write(date(year, month, length))
        raise InputError(
            f"{name} {day} does not exist; {name} {year} has {length} days. Try {suggestion}.",
            "probe_words",
            suggestion,
        )
    return source


def _understood(text: str) -> str | None:
    """A date in an unknown form, as in 2021 march 12, in the first form; None if unclear or out of range."""
    month = re.findall(rf"\b({_SHORT_MONTHS})[a-z]*", text)
    day, year = re.findall(r"\b([0-9]{1,2})(?![0-9])", text), re.findall(r"\b([0-9]{4})\b", text)
    if not len(month) == len(day) == len(year) == 1:
        return None
    match = FORMS[0].match(f"{int(day[0])} {MONTHS[_month_number(month[0]) - 1]} {year[0]}")
    named_date = match and _date(match)
    return FORMS[0].write(named_date) if named_date and FIRST <= named_date <= LAST else None
