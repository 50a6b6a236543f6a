"""Reading and writing of story files, in TOML; an error names the line and the field where it can."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

from transformer.config import RunConfig
from transformer.config.limits import Settings
from transformer.config.recipes import RECIPES
from transformer.config.tasks import with_task
from transformer.errors import InputError
from transformer.stories.story import MOST_BEATS, MOST_RUNS, NONE, RACE, Beat, Story, inherited, read_role
from transformer.tasks import resolved

ENVIRONMENT = "HEADLIGHT_STORIES"
"""Environment variable that names a folder with more stories, besides the shipped ones."""
SHIPPED = Path(__file__).with_name("shipped")
MOST_BYTES = 100_000
UNNAMED = "My story"


def read_story(text: str) -> Story:
    """A story from its file.

    Raises:
        InputError: the text is too long or not TOML, or has an unknown name or an invalid value; names the
            line where it can.
    """
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise InputError(f"The story is larger than {MOST_BYTES:,} bytes; shorten it.")
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"The story is not TOML: {error}.") from error
    runs, beats = values.pop("runs", {"run": {}}), values.pop("beat", None)
    if not isinstance(runs, dict) or not 1 <= len(runs) <= MOST_RUNS:
        raise InputError(f"{_line(text, 'runs')}A story has 1 to {MOST_RUNS} tables [runs.NAME].", "runs")
    tables = isinstance(beats, list) and all(isinstance(table, dict) for table in beats)
    if not tables or not 1 <= len(beats) <= MOST_BEATS:
        raise InputError(f"A story has 1 to {MOST_BEATS} tables [[beat]].", "beat")
    parts: dict[str, Any] = {"runs": {}}
    for name, table in runs.items():
        with _at(text, f"[runs.{name}]", f"run {name}"):
            parts["runs"][name] = read_role(table)
    first = next(iter(runs))
    if not parts["runs"][first].trains:
        line = _line(text, "trains", f"[runs.{first}]")
        raise InputError(f"{line}run {first}: the first run of a story trains.", "trains")
    made = []
    for place, table in enumerate(inherited(beats, first)):
        with _at(text, "[[beat]]", f"slide {place + 1}", place):
            _needs(Beat, table)
            if isinstance(table.get("step"), int):
                table["step"] = str(table["step"])
            beat = Beat.from_dict(table)
            _check_runs(beat, parts["runs"])
            made.append(beat)
    with _at(text, "", "the story"):
        _needs(Story, values | parts | {"beats": made})
        return Story.from_dict({**values, **parts, "beats": tuple(made)})


def _check_runs(beat: Beat, runs: Mapping[str, Any]) -> None:
    """Refuse unknown runs, a page that does not fit `against`, and what the run of the beat cannot do."""
    for value in beat.roles:
        if value and value not in runs:
            name = "run" if value == beat.run else "against"
            raise InputError(f"{name}={value!r} is no run of this story; it has {', '.join(runs)}.", name)
    if (beat.page == RACE) != bool(beat.against):
        raise InputError("A slide on the page Race needs the other runs: against.", "against")
    alone = not runs[beat.run].trains
    if alone and beat.command:
        raise InputError(f"Run {beat.run} is a recording, which obeys no command.", "command")
    if beat.hides == "later" and not alone:
        raise InputError("Only of a recording (trains = false) can all that follows be hidden.", "hides")


@contextmanager
def _at(text: str, header: str, called: str, place: int = 0) -> Iterator[None]:
    """Add the line and the table to the message of an InputError that is raised inside."""
    try:
        yield
    except InputError as error:
        line = _line(text, error.field or "", header, place)
        raise InputError(f"{line}{called}: {error}", error.field) from error


def _needs(kind: type[Settings], values: Mapping[str, Any]) -> None:
    """Refuse a table in which a field that has no default is missing."""
    for field in fields(kind):  # type: ignore[arg-type]
        if field.default is MISSING and field.name not in values:
            raise InputError(f"{field.name} is missing.", field.name)


def _line(text: str, field: str, header: str = "", place: int = 0) -> str:
    """The line that sets a field of a table, or else the line of the table itself."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if header and line.strip().startswith(header)]
    start = starts[place] if place < len(starts) else 0
    for i in range(start + bool(header), len(lines)):
        if header and lines[i].strip().startswith("["):
            break
        if field and re.match(rf"\s*\[?{re.escape(field)}\b", lines[i]):
            return f"Line {i + 1}, "
    return f"Line {start + 1}, "


def stories() -> dict[str, Story | InputError]:
    """Stories by name, or the error of an invalid one; the server's folder replaces a shipped story."""
    folders = [SHIPPED, *([Path(named)] if (named := os.environ.get(ENVIRONMENT)) else [])]
    by_name: dict[str, Story | InputError] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.toml"))):
        try:
            by_name[path.stem] = read_story(path.read_text(encoding="utf-8"))
        except (InputError, OSError, UnicodeDecodeError) as error:
            by_name[path.stem] = error if isinstance(error, InputError) else InputError(str(error))
    return by_name


@cache
def shipped(name: str) -> Story:
    """A story that is shipped, by its name."""
    return read_story((SHIPPED / f"{name}.toml").read_text(encoding="utf-8"))


def with_beat(text: str, configs: Sequence[RunConfig], beat: Mapping[str, Any]) -> str:
    """The file of a story with one more beat and the runs that the beat needs; the rest is unchanged.

    Args:
        text: the file; empty for a new story.
        configs: settings of the run of the beat, or of the runs of a race.

    Raises:
        InputError: the file cannot be used, or already has the maximum number of runs or beats.
    """
    config_of = {name: one.config for name, one in read_story(text).runs.items()} if text else {}
    tables, names = [text or f"title = {_value(UNNAMED)}\n"], []
    for config in map(resolved, configs):
        name = next((one for one, has in config_of.items() if has == config), f"run{len(config_of) + 1}")
        if name not in config_of:
            tables.append(_of_run(name, config))
            config_of[name] = config
        names.append(name)
    shown = {**beat, "run": names[0]} | ({"against": " ".join(names[1:])} if names[1:] else {})
    content = "\n".join([*tables, _table("[[beat]]", shown)])
    read_story(content)
    return content


def _of_run(name: str, config: RunConfig) -> str:
    begun = resolved(with_task(RECIPES["default"].small, config.train.task))
    differs = {key: here for key, (here, _) in config.differences(begun).items() if key != "task"}
    values = {key: NONE if here is None else here for key, here in differs.items()}
    return _table(f"[runs.{name}]", {"task": config.train.task, **values})


def _table(header: str, values: Mapping[str, Any]) -> str:
    return "\n".join([header, *(f"{name} = {_value(value)}" for name, value in values.items()), ""])


def _value(value: object) -> str:
    """A value as TOML, which writes strings, numbers and lists as JSON does."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
