"""Limits of settings, stated once, in their types; used for checks, error messages and labels of widgets."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

from transformer.errors import InputError

LARGEST = sys.float_info.max
"""The largest finite float; a larger whole number would overflow in the arithmetic of a model."""


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int
    high: int
    advice: str = ""
    """Added to the message for a value outside the limits."""

    def check(self, name: str, value: object) -> None:
        """Raise InputError for a value that is not allowed; the message names the value and the limit."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{name}={value!r} is not a whole number; choose one from {self}.", name)
        if not self.low <= value <= self.high:
            message = f"{name}={value:,} is outside {self}; choose a value in between. {self.advice}"
            raise InputError(message.rstrip(), name)

    def __str__(self) -> str:
        return f"{self.low} to {self.high:,}"


@dataclass(frozen=True)
class Number:
    """A finite number from `low` to `high`."""

    low: float
    high: float = math.inf
    above: bool = False
    """Whether it must be more than `low`."""

    def check(self, name: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            example = max(self.low, 0.001)
            raise InputError(f"{name}={value!r} is not a finite number; choose one like {example:g}.", name)
        if not self.low <= value <= self.high or (self.above and value == self.low):
            least = f"more than {self.low:g}" if self.above else f"at least {self.low:g}"
            limit = least if math.isinf(self.high) else f"{least} and at most {self.high:g}"
            raise InputError(f"{name}={value:g} cannot be used; choose {limit}.", name)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class OneOf:
    """One of these names."""

    options: tuple[str, ...]

    def check(self, name: str, value: object) -> None:
        if value not in self.options:
            raise InputError(f"{name}={value!r} does not exist; choose {self}.", name)

    def __str__(self) -> str:
        return either(self.options)


@dataclass(frozen=True)
class Text:
    """A text of at most `most` characters; it is empty or matches `pattern`, if there is one."""

    most: int
    pattern: str = ""
    form: str = ""
    """The pattern in words; needed if there is one."""

    def check(self, name: str, value: object) -> None:
        if not isinstance(value, str):
            raise InputError(f"{name}={value!r} is no text; write it in quotes.", name)
        if len(value) > self.most:
            raise InputError(f"{name} has {len(value)} characters; {self.most} are allowed.", name)
        if value and self.pattern and not re.fullmatch(self.pattern, value):
            raise InputError(f"{name}={value!r} cannot be used; choose {self.form}.", name)

    def __str__(self) -> str:
        return self.form or f"up to {self.most} characters"


class _Flag:
    """True or false: the limit of every setting of type bool."""

    def check(self, name: str, value: object) -> None:
        if not isinstance(value, bool):
            raise InputError(f"{name}={value!r} is neither true nor false; choose one.", name)


Limit = Whole | Number | OneOf | Text | _Flag
"""The limit of a setting. As text it is its range, choices or form, except `_Flag`, which has no text."""


def either(options: Iterable[str]) -> str:
    """Several names as a choice in words."""
    *others, last = options
    return f"{', '.join(others)} or {last}" if others else last


def _limits_of(kind: type) -> dict[str, tuple[Limit, bool]]:
    limits: dict[str, tuple[Limit, bool]] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        limit: Limit | None = None
        if get_origin(hint) is Annotated:
            hint, limit = get_args(hint)
        elif bool in (hint, *get_args(hint)):
            limit = _Flag()
        if limit is not None:
            limits[name] = limit, NoneType in get_args(hint)
    return limits


class Settings:
    """Base class of the configurations: checks each setting that has a limit; converts to and from dicts.

    Raises:
        InputError: a value is outside its limit.
    """

    limits: ClassVar[dict[str, tuple[Limit, bool]]]
    """The limit of each setting that has one, and whether the setting may be None instead."""

    def __init_subclass__(cls) -> None:
        cls.limits = _limits_of(cls)

    def __post_init__(self) -> None:
        for name, (limit, may_be_none) in self.limits.items():
            value = getattr(self, name)
            if not (value is None and may_be_none):
                limit.check(name, value)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    @cache
    def _types(cls) -> dict[str, Any]:
        """The type of each field; cached, because evaluating annotations is slow."""
        return get_type_hints(cls)

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Build from the result of `to_dict`; absent names keep their defaults.

        Raises:
            InputError: a name that does not exist, or a value that cannot be used.
        """
        if not isinstance(values, dict):
            raise InputError(f"{cls.__name__} needs a JSON object, not {type(values).__name__}.")
        names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        for name in values:
            if name not in names:
                hint = did_you_mean(str(name), names) or f"it has {', '.join(sorted(names))}."
                raise InputError(f"{cls.__name__} has no setting {name!r}; {hint}", str(name))
        kinds = cls._types()
        made: dict[str, Any] = {}
        for name, value in values.items():
            kind = kinds[name]
            if isinstance(kind, type) and issubclass(kind, Settings):
                value = kind.from_dict(value)
            elif isinstance(value, list):  # JSON has no tuples
                value = tuple(value)
            made[name] = value
        return cls(**made)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that suggests the nearest known name; empty if none is near."""
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""
