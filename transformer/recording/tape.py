"""Looking inside: while a recording lasts, every attention takes the explicit path and keeps its weights."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from transformer.model.transformer import Transformer

Array = np.ndarray[Any, np.dtype[Any]]

RECORDABLE = frozenset({"weights"})


class Tape:
    """What a recording has kept: arrays of its own, which later training cannot change."""

    def __init__(self) -> None:
        self.weights: dict[str, Array] = {}
        """Name of the site to (B, H, Q, S) float32, of the last forward pass inside the recording."""


@contextmanager
def record(model: Transformer, what: Set[str] = RECORDABLE) -> Iterator[Tape]:
    """Record the forward passes of this block, in eval mode and without gradients.

    Inside, each attention module takes the explicit path and stores `attention_weights`; at the end they are
    copied out to the tape, the modules are emptied, and the model is as it was before.

    Args:
        model: must not be trained by another thread meanwhile.
        what: names of what to keep; only "weights" so far.

    Raises:
        ValueError: something that cannot be recorded.
    """
    if not what <= RECORDABLE:
        raise ValueError(f"Cannot record {sorted(what - RECORDABLE)}; only {sorted(RECORDABLE)}.")
    tape = Tape()
    was_training = model.training
    sites = model.sites()
    model.eval()
    for site in sites:
        site.attention.recording = what
    try:
        with torch.no_grad():
            yield tape
        for site in sites:
            stored = site.attention.attention_weights
            if stored is not None:
                tape.weights[site.name] = stored.float().cpu().numpy().copy()
    finally:
        for site in sites:
            site.attention.recording = frozenset()
            site.attention.attention_weights = None
        model.train(was_training)
