"""The weights of one step as a safetensors file that says which model they belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from transformer.config import RunConfig
from transformer.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]

FORMAT = "headlight-weights-1"
_ADVICE = "Choose a .safetensors file that was saved with “Weights” in this app."


def weights_file(config: RunConfig, step: int, weights: Mapping[str, Array]) -> bytes:
    """Weights by the name of their parameter, with the configuration and the step in the file's metadata."""
    metadata = {"format": FORMAT, "config": config.to_json(), "step": str(step)}
    data: bytes = save({name: np.ascontiguousarray(array) for name, array in weights.items()}, metadata)
    return data


def read_weights(data: bytes) -> tuple[RunConfig, int, dict[str, Array]]:
    """Read what `weights_file` wrote. Nothing in the file is executed.

    Returns:
        The configuration of the run, the step, and the weights by name.

    Raises:
        InputError: another kind of file, a damaged one, or one of another version.
    """
    try:
        weights: dict[str, Array] = load(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a type of number that numpy lacks
        raise InputError(
            f"This file of {len(data):,} bytes holds no readable weights ({error}). {_ADVICE}"
        ) from error
    metadata = _metadata(data)
    if metadata.get("format") != FORMAT:
        raise InputError(
            f"These weights have the format {metadata.get('format')!r}; {FORMAT!r} is needed. {_ADVICE}"
        )
    step = metadata.get("step", "")
    if not (step.isascii() and step.isdigit()) or len(step) > 12:
        raise InputError(f"The step of these weights is {step[:40]!r}, not a whole number. {_ADVICE}")
    return RunConfig.from_json(metadata.get("config", "")), int(step), weights


def _metadata(data: bytes) -> dict[str, str]:
    """The free part of the header of a safetensors file that could be loaded; its values are all text."""
    length = int.from_bytes(data[:8], "little")
    metadata: dict[str, str] = json.loads(data[8 : 8 + length]).get("__metadata__") or {}
    return metadata
