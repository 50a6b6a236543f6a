"""The limits of a server: read from the environment, explained in words, and enforced."""

from __future__ import annotations

import re
from dataclasses import fields
from math import ceil
from pathlib import Path

import pytest

from transformer.config.recipes import RECIPES
from transformer.config.size import training_bytes
from transformer.errors import InputError
from transformer.runs import limits
from transformer.runs.limits import Limits, variable
from transformer.tasks import resolved

SERVING = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
DEFAULT = resolved(RECIPES["default"].small)
NAMES = [limit.name for limit in fields(Limits)]


def tightest(**others):
    """Return limits at their minimum, except for the given ones."""
    return Limits(**{limit.name: limit.metadata["range"][0] for limit in fields(Limits)} | others)


def test_without_variables_the_limits_are_the_defaults():
    limits = Limits.from_environment({"HOME": "/root", "HEADLIGHT_REQUIRE_BROWSER": "1"})
    assert limits == Limits()
    assert (limits.training, limits.per_visitor, limits.unseen_minutes) == (2, 12, 10)


@pytest.mark.parametrize("name", NAMES)
def test_each_limit_is_set_by_its_variable_and_leaves_the_others_alone(name):
    least = getattr(tightest(), name)
    limits = Limits.from_environment({f"HEADLIGHT_{name.upper()}": str(least)})
    assert limits == Limits(**{name: least})
    assert limits != Limits()


@pytest.mark.parametrize(
    "text", ["two", "", "2.5", "0", "-1", "65", "inf", "nan", "1e3", "2 runs", 4000 * "9"]
)
def test_an_invalid_value_is_refused_with_the_allowed_range(text):
    with pytest.raises(InputError) as refused:
        Limits.from_environment({"HEADLIGHT_TRAINING": text})
    assert str(refused.value) == (
        f"HEADLIGHT_TRAINING={text} cannot be used; choose a whole number from 1 to 64, or leave it out "
        "for the default, 2."
    )
    assert refused.value.field == "training"


@pytest.mark.parametrize("value", [True, 2.0, None])
def test_a_limit_must_be_a_whole_number(value):
    with pytest.raises(InputError, match="choose a whole number from 1 to 64"):
        Limits(training=value)


def test_the_default_settings_can_be_trained_under_the_tightest_limits():
    tightest().check(DEFAULT)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("size", ["small", "published"])
def test_every_recipe_can_be_trained_under_the_default_limits(name, size):
    Limits().check(resolved(getattr(RECIPES[name], size) or RECIPES[name].small))


LARGE_BATCH = training_bytes(resolved(DEFAULT.with_changes(batch_size=1000)))


@pytest.mark.parametrize(
    ("changes", "limit", "allowed", "field", "asked"),
    [
        ({"d_model": 64, "d_ff": 256}, "parameters", 239_518, "d_model", "239,518 parameters"),
        ({"max_letters": 20}, "tokens", 42, "max_letters", "up to 42 tokens"),
        ({"task": "dates"}, "tokens", 60, "task", "up to 60 tokens"),
        ({"steps": 301}, "steps", 301, "steps", "301 steps"),
        ({"batch_size": 1000}, "memory_mb", ceil(LARGE_BATCH / 1e6), "batch_size", "needs about"),
    ],
)
def test_settings_beyond_a_limit_are_refused_and_settings_at_the_limit_are_not(
    changes, limit, allowed, field, asked
):
    config = resolved(DEFAULT.with_changes(**changes))
    Limits(**{limit: allowed}).check(config)
    with pytest.raises(InputError, match="[Cc]hoose") as refused:
        Limits(**{limit: allowed - 1}).check(config)
    assert asked in str(refused.value)
    assert f"{allowed - 1:,}" in str(refused.value)
    assert refused.value.field == field


def test_a_run_has_no_more_threads_than_the_machine_has_processors(monkeypatch):
    monkeypatch.setattr(limits, "processors", lambda: 3)
    for threads in (None, 1, 3):
        Limits().check(resolved(DEFAULT.with_changes(threads=threads)))
    with pytest.raises(InputError, match="4 threads are too many for this server; it has 3") as refused:
        Limits().check(resolved(DEFAULT.with_changes(threads=4)))
    assert refused.value.field == "threads"


def test_the_docs_name_every_limit_with_its_default():
    rows = dict(re.findall(r"\| `(HEADLIGHT_\w+)` \| ([\d,]+) \|", SERVING))
    assert rows == {variable(limit.name): f"{limit.default:,}" for limit in fields(Limits)}
