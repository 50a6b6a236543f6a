"""Looking inside: while a recording lasts, every attention takes the explicit path and keeps its weights."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager

import torch

from transformer.model.transformer import Transformer
from transformer.recording.frame import Array

RECORDABLE = frozenset({"query", "key", "value", "scores", "mask", "weights", "mixed"})
"""query, key, value and mixed (what each head read) are (B, H, positions, K); scores (scaled, before the
mask), mask (True where attention is allowed) and weights are (B, H, Q, S)."""
WEIGHTS = frozenset({"weights"})


class Tape:
    """The tensors of a forward pass as arrays of their own, which later training cannot change."""

    def __init__(self) -> None:
        self.sites: dict[str, dict[str, Array]] = {}
        """Name of the site to what was recorded there in the last forward pass, by name."""

    @property
    def weights(self) -> dict[str, Array]:
        """Name of the site to (B, H, Q, S) float32."""
        return {site: recorded["weights"] for site, recorded in self.sites.items()}


@contextmanager
def record(model: Transformer, what: Set[str] = WEIGHTS) -> Iterator[Tape]:
    """Record the forward passes of this block, in eval mode and without gradients.

    Inside, each attention module takes the explicit path and stores what is asked for; at the end that is
    copied out to the tape, the modules are emptied, and the model is as it was before.

    Args:
        model: must not be trained by another thread meanwhile.
        what: names of what to keep, from `RECORDABLE`.

    Raises:
        ValueError: something that cannot be recorded.
    """
    if not what <= RECORDABLE:
        raise ValueError(f"Cannot record {sorted(what - RECORDABLE)}; only {sorted(RECORDABLE)}.")
    tape = Tape()
    was_training = model.training
    attentions = model.attentions()
    if was_training:  # to go through all modules takes as long as a layer
        model.eval()
    for attention in attentions.values():
        attention.recording = what
    try:
        with torch.no_grad():
            yield tape
        for site, attention in attentions.items():
            stored = attention.recorded
            if stored:
                tape.sites[site] = {name: _copied(tensor) for name, tensor in stored.items()}
    finally:
        for attention in attentions.values():
            attention.recording, attention.recorded = frozenset(), {}
        if was_training:
            model.train()


def _copied(tensor: torch.Tensor) -> Array:
    """An array of its own: float32, or bool as it was."""
    kept = tensor if tensor.dtype == torch.bool else tensor.float()
    return kept.cpu().numpy().copy()
