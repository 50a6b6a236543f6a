"""An experiment as one PyTorch script that a student reads, changes and runs without the app.

The script is `experiment.py`, a program by itself; a run's settings replace those at its top.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.tasks import resolved

EXPERIMENT = Path(__file__).with_name("experiment.py")
_WRITTEN: dict[str, tuple[object, ...]] = {
    "tokenizer": ("auto", "characters", "words"),
    "precision": ("float32",),
    "decoding": ("greedy",),
    "tensorboard": (False,),
}
"""Settings for which the script supports only these values; with another value there is no script."""


def script(config: RunConfig) -> str:
    """A Python file that trains the model of this configuration with PyTorch alone, and prints the results.

    Raises:
        InputError: the script does not support one of the settings.
    """
    problem = script_problem(config)
    if problem is not None:
        raise InputError(problem)
    settings = {**vars(config), **vars(config.train), **vars(resolved(config).model)}
    settings |= {"causal_mask": config.model.masks["causal"], "threads": config.threads or 1}
    top, words, rest = EXPERIMENT.read_text(encoding="utf-8").partition("\n# ---- Words ----\n")
    filled = re.sub(
        r"^([A-Z_]+) = .*?(?=  #|$)",
        lambda line: f"{line[1]} = {_literal(settings[line[1].lower()])}",
        top,
        flags=re.MULTILINE,
    )
    return filled + words + rest


def script_problem(config: RunConfig) -> str | None:
    """The reason why a configuration has no script; None if it has one."""
    if config.train.task != "reverse":
        return "The script supports the reversal only; choose that task."
    for name, written in _WRITTEN.items():
        value = getattr(config.train, name)
        if value not in written:
            choices = " or ".join(map(str, written))
            return f"{name}={value!r} cannot be written as a script yet; choose {choices}."
    return None


def _literal(value: object) -> str:
    """A setting as Python source: JSON, except true, false and null; text cannot leave its quotes."""
    return repr(value) if value is None or isinstance(value, bool) else json.dumps(value)
