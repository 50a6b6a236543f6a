"""The weights of one step as a safetensors file that says which model they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save

from transformer.config import RunConfig

Array = np.ndarray[Any, np.dtype[Any]]

FORMAT = "headlight-weights-1"


def weights_file(config: RunConfig, step: int, weights: Mapping[str, Array]) -> bytes:
    """Weights by the name of their parameter, with the configuration and the step in the file's metadata."""
    metadata = {"format": FORMAT, "config": config.to_json(), "step": str(step)}
    data: bytes = save({name: np.ascontiguousarray(array) for name, array in weights.items()}, metadata)
    return data
