"""Access to the tensors inside a forward pass: within `record`, attentions store what is requested."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager

import torch

from transformer.model.transformer import Transformer
from transformer.recording.frame import Array

RECORDABLE = frozenset({"query", "key", "value", "scores", "mask", "weights", "mixed"})
"""Names of tensors that can be recorded. query, key, value and mixed (the weighted sum of the values) are
(B, H, positions, d_head). scores (scaled, before the mask), mask (True where attention is allowed) and
weights are (B, H, Q, S)."""
WEIGHTS = frozenset({"weights"})


class ActivationCache:
    """The tensors of a forward pass, copied to arrays that later training cannot change."""

    def __init__(self) -> None:
        self.sites: dict[str, dict[str, Array]] = {}
        """For each site, the tensors of the last forward pass by name; filled at the end of the block."""

    @property
    def weights(self) -> dict[str, Array]:
        """The attention weights of each site, (B, H, Q, S) float32."""
        return {site: recorded["weights"] for site, recorded in self.sites.items()}


@contextmanager
def record(model: Transformer, what: Set[str] = WEIGHTS) -> Iterator[ActivationCache]:
    """Record the last forward pass of this block, in eval mode and without gradients.

    Within the block, each attention module takes the explicit path and stores the requested tensors. At
    the end of the block, these are copied to the cache, and the model is back in its earlier mode.

    Args:
        model: must not be trained by another thread meanwhile.
        what: names of the tensors to record, from `RECORDABLE`.

    Raises:
        ValueError: `what` names a tensor that cannot be recorded.
    """
    if not what <= RECORDABLE:
        raise ValueError(f"Cannot record {sorted(what - RECORDABLE)}; only {sorted(RECORDABLE)}.")
    cache = ActivationCache()
    was_training = model.training
    attentions = model.attentions()
    if was_training:  # only if needed: visiting every module takes as long as a layer
        model.eval()
    for attention in attentions.values():
        attention.recording = what
    try:
        with torch.no_grad():
            yield cache
        for site, attention in attentions.items():
            stored = attention.recorded
            if stored:
                cache.sites[site] = {name: _copied(tensor) for name, tensor in stored.items()}
    finally:
        for attention in attentions.values():
            attention.recording, attention.recorded = frozenset(), {}
        if was_training:
            model.train()


def _copied(tensor: torch.Tensor) -> Array:
    """Copy a tensor to an array: bool stays bool, any other type becomes float32."""
    kept = tensor if tensor.dtype == torch.bool else tensor.float()
    return kept.cpu().numpy().copy()
