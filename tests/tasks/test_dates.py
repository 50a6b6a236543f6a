"""Dates: their English forms, their ISO form, and the source of each character."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, datetime, timedelta

import numpy as np
import pytest

from transformer.config import TASK_INFO
from transformer.errors import InputError
from transformer.tasks.dates import FIRST, FORMS, LAST, Dates, is_held_out

DATES = Dates()
ENDING = {1: "st", 21: "st", 31: "st", 2: "nd", 22: "nd", 3: "rd", 23: "rd"}


def nth(day):
    return f"{day.day}{ENDING.get(day.day, 'th')}"


# The same forms, with the standard library's names of days and months.
WRITTEN = {
    "12 march 2021": lambda d: f"{d.day} {d:%B} {d.year}",
    "march 12, 2021": lambda d: f"{d:%B} {d.day}, {d.year}",
    "friday, 12 march 2021": lambda d: f"{d:%A}, {d.day} {d:%B} {d.year}",
    "friday, march 12, 2021": lambda d: f"{d:%A}, {d:%B} {d.day}, {d.year}",
    "12th of march 2021": lambda d: f"{nth(d)} of {d:%B} {d.year}",
    "march 12th, 2021": lambda d: f"{d:%B} {nth(d)}, {d.year}",
    "the 12th of march 2021": lambda d: f"the {nth(d)} of {d:%B} {d.year}",
    "12 mar 2021": lambda d: f"{d.day} {d:%b} {d.year}",
    "mar 12, 2021": lambda d: f"{d:%b} {d.day}, {d.year}",
    "fri 12 mar 2021": lambda d: f"{d:%a} {d.day} {d:%b} {d.year}",
}
SOME_DAYS = [date(1950, 1, 1) + timedelta(days=n) for n in range(0, 36_500, 11)]


def drawn(seed=0, count=20_000):
    return DATES.drawn(np.random.default_rng(seed), count)


@pytest.mark.parametrize("name", WRITTEN)
def test_every_date_is_written_as_by_the_standard_library_and_recognised(name):
    (form,) = (form for form in FORMS if form.name == name)
    for day in SOME_DAYS:
        text = WRITTEN[name](day).lower()
        assert form.write(day) == text
        pair = DATES.find(text)
        assert pair.target == day.isoformat()
        assert pair.held_out == is_held_out(day)
        assert pair.pattern == name or day.month == 5  # the short name of May is also its full name
        assert DATES.read(text.upper()) == text
        assert DATES.references(text) == (day.isoformat(),)


def test_drawn_dates_are_within_the_hundred_years_and_have_their_true_weekday():
    weekdays = 0
    for pair in [*drawn(), *DATES.held_out()]:
        day = datetime.strptime(pair.target, "%Y-%m-%d").date()
        assert date(1950, 1, 1) <= day <= date(2049, 12, 31)
        assert pair == DATES.find(pair.source)
        named = re.match("(mon|tue|wed|thu|fri|sat|sun)", pair.source)
        weekdays += named is not None
        assert named is None or named[0] == f"{day:%a}".lower()
        assert DATES.src.clean(pair.source) == pair.source
    assert weekdays > 5500


def test_combinations_of_day_and_month_are_held_out_and_all_their_parts_are_trained_on():
    pairs = drawn()
    days = [date.fromisoformat(pair.target) for pair in pairs]
    held_out = [date.fromisoformat(pair.target) for pair in DATES.held_out()]
    assert not {(d.day, d.month) for d in days} & {(d.day, d.month) for d in held_out}
    assert not any(pair.held_out for pair in pairs)
    assert all(pair.held_out for pair in DATES.held_out())
    assert {d.day for d in days} == set(range(1, 32))
    assert {d.month for d in days} == set(range(1, 13))
    assert {d.year for d in days} == set(range(1950, 2050))
    assert {pair.pattern for pair in pairs} == set(WRITTEN)


def test_the_day_that_the_description_names_is_held_out():
    day, month = re.search(r"such as (\d+) (\w+),", TASK_INFO["dates"].held_out).groups()
    assert is_held_out(datetime.strptime(f"{day} {month} 2021", "%d %B %Y").date())


def test_about_a_tenth_of_the_days_of_the_year_is_held_out_in_every_year():
    leap = [date(2000, 1, 1) + timedelta(days=n) for n in range(366)]
    held_out = {(d.day, d.month) for d in leap if is_held_out(d)}
    assert 25 <= len(held_out) <= 48
    assert all(is_held_out(d) == ((d.day, d.month) in held_out) for d in SOME_DAYS)


def test_a_thousand_different_dates_are_held_out_in_all_forms_and_many_years():
    pairs = DATES.held_out()
    assert len({pair.source for pair in pairs}) == len(pairs) == 1000
    assert pairs == Dates().held_out()
    forms = Counter(pair.pattern for pair in pairs)
    assert set(forms) == set(WRITTEN)
    assert min(forms.values()) > 60
    assert len({pair.target[:4] for pair in pairs}) == 100
    assert len({pair.pattern for pair in pairs[:60]}) == 10  # in random order


# Where each character comes from.


def test_the_links_of_a_long_date_equal_those_made_by_hand():
    pair = DATES.find("friday, 12 march 2021")
    #                  0       8  11    17
    assert pair.target == "2021-03-12"
    march = (11, 12, 13, 14, 15)
    assert pair.links == ((17,), (18,), (19,), (20,), (), march, march, (), (8,), (9,))


def test_the_links_of_a_day_of_one_digit_equal_those_made_by_hand():
    pair = DATES.find("jun 5, 1987")
    assert pair.target == "1987-06-05"
    jun = (0, 1, 2)
    assert pair.links == ((7,), (8,), (9,), (10,), (), jun, jun, (), (), (4,))


def test_links_point_to_the_same_digit_or_to_the_name_of_the_month():
    for pair in [*drawn(1, 5000), *DATES.held_out()]:
        year, month, day = pair.links[:4], pair.links[5:7], pair.links[8:]
        assert len(pair.links) == len(pair.target) == 10
        assert pair.links[4] == pair.links[7] == ()
        for places, digit in zip([*year, *day], pair.target[:4] + pair.target[8:], strict=True):
            assert [pair.source[place] for place in places] in ([digit], [])
        assert all(len(places) == 1 for places in [*year, day[1]])
        # A zero is inserted where the day has one digit, and only there.
        assert (day[0] == ()) == (pair.target[8] == "0")
        name = "".join(pair.source[place] for place in month[0])
        assert month[0] == month[1]
        assert f"{date.fromisoformat(pair.target):%B}".lower().startswith(name)
        assert len(name) >= 3


# What a user types.


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("  March 12,2021 ", "march 12, 2021"),
        ("12  MAR   2021.", "12 mar 2021"),
        ("05 March 2021", "5 march 2021"),
        ("Mar 05 , 2021", "mar 5, 2021"),
        ("Monday, 12 March 2021", "monday, 12 march 2021"),  # it was a Friday; the weekday is not checked
        ("12nd of march 2021", "12nd of march 2021"),
    ],
)
def test_a_typed_date_is_cleaned_and_recognised(typed, read):
    assert DATES.read(typed) == read
    assert DATES.find(read).target == ("2021-03-05" if "5" in read else "2021-03-12")


@pytest.mark.parametrize(
    ("typed", "says", "offer"),
    [
        (" ", "date is empty", None),
        ("February 30, 2021", "february 30 does not exist; .* 28 days", "february 28, 2021"),
        ("thu 30 feb 2024", "has 29 days", "thu 29 feb 2024"),
        ("31st of april 1999", "has 30 days", "30th of april 1999"),
        ("99 december 1999", "december 99 does not exist", "31 december 1999"),
        ("12 march 1850", "year 1850 .* from 1950 to 2049", None),
        ("12 march 2050", "year 2050", None),
        ("2021 March 12", "“2021 march 12” is not in a date format", "12 march 2021"),
        ("1950 January 1", "is not in a date format", "1 january 1950"),
        ("2049 December 31", "is not in a date format", "31 december 2049"),
        ("Sept. 3rd 1999", "is not in a date format", "3 september 1999"),
        (
            "12/03/2021",
            "is not in a date format .* “12 march 2021”, “march 12, 2021” or “12th of march 2021”",
            None,
        ),
        ("banana", "is not in a date format", None),
        ("2021 feb 30", "is not in a date format", None),
        ("1850 march 12", "is not in a date format", None),
        (90 * "x", f"“{60 * 'x'}” is not in a date format", None),
    ],
)
def test_an_unusable_typed_date_is_refused_with_a_hint(typed, says, offer):
    with pytest.raises(InputError, match=says) as refused:
        DATES.read(typed)
    assert (refused.value.field, refused.value.suggestion) == ("probe_words", offer)
    assert offer is None or DATES.read(offer) == offer


def test_text_that_is_not_a_date_has_no_answer():
    for text in (
        "30 february 2021",
        "12 march",
        "12 march 0000",
        "",
        "march 12 2021",
        "0 may 2021",
        "12 march 2021 ",
    ):
        assert DATES.find(text) is None
        assert DATES.references(text) == ()


def test_probes_are_valid_dates_in_different_forms_and_some_are_held_out():
    pairs = [DATES.find(DATES.read(text)) for text in DATES.tracked_words()]
    assert [pair.source for pair in pairs] == list(DATES.tracked_words())
    assert len({pair.pattern for pair in pairs}) == len(pairs) == 5
    assert {pair.held_out for pair in pairs} == {True, False}
    for pair in pairs:
        day = date.fromisoformat(pair.target)
        form = next(form for form in FORMS if form.name == pair.pattern)
        assert form.write(day) == pair.source
        assert FIRST <= day <= LAST
