"""Compute the maps of several steps at once, from copied weights, in a copy of the model.

While the model trains, `WeightBuffer` copies its weights at each step to record. Some steps later, one
forward pass mapped over all these copies (`torch.func.vmap`) computes the maps, which is much cheaper than
separate passes. The model that trains is not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from transformer.config import ModelConfig
from transformer.model.layers import embedding
from transformer.model.transformer import Transformer
from transformer.recording.activations import WEIGHTS
from transformer.recording.frame import Array
from transformer.recording.weights import Tensors
from transformer.shared.interventions import Interventions

BATCH = 25
"""Maximum number of steps whose maps wait to be computed together. Larger batches are no cheaper; a default
run evaluates at the same interval."""
BUFFER_BYTES = 96 * 2**20
"""Approximate limit in bytes of the copies of weights whose maps are not computed yet."""


def tensors_of(model: Transformer) -> Tensors:
    """Name and shape of each parameter; a parameter shared by two modules is listed under both names."""
    return tuple((name, tuple(tensor.shape)) for name, tensor in model.state_dict().items())


class WeightBuffer:
    """Copies of a model's weights at steps to record, one row per step, on the model's device.

    Args:
        model: the model whose weights are copied.
    """

    def __init__(self, model: Transformer) -> None:
        self._sources = [tensor.detach().view(-1) for tensor in model.state_dict().values()]
        self._n_numbers = sum(len(source) for source in self._sources)
        self.room: int = max(1, min(BATCH, BUFFER_BYTES // (4 * self._n_numbers)))
        """Maximum number of steps that it holds."""
        self._rows: Tensor | None = None  # `clear` frees them: a paused run needs none
        self.steps: list[int] = []
        """The steps that it holds now, ascending."""

    @property
    def full(self) -> bool:
        """Whether there is no room for another step."""
        return len(self.steps) >= self.room

    def copy(self, step: int) -> None:
        """Copy the current weights, as those of this step; there must be room."""
        if self._rows is None:
            device = self._sources[0].device
            self._rows = torch.empty((self.room, self._n_numbers), dtype=torch.float32, device=device)
        torch.cat(self._sources, out=self._rows[len(self.steps)])
        self.steps.append(step)

    def waiting(self) -> tuple[list[int], Tensor]:
        """The steps whose maps are not computed yet, and their weights, (N, numbers)."""
        rows = torch.empty((0, self._n_numbers)) if self._rows is None else self._rows
        return list(self.steps), rows[: len(self.steps)]

    def clear(self) -> None:
        """Discard all copies, and free their memory."""
        self.steps, self._rows = [], None


class MapComputer:
    """A copy of a model for forward passes with the weights of any step.

    Args:
        config: the configuration of the model.
        device: the device of the copied weights.
    """

    def __init__(self, config: ModelConfig, device: torch.device) -> None:
        self.model = Transformer(config).to(device).eval()
        self.tensors = tensors_of(self.model)
        # `functional_call` inside `vmap` leaves a mapped tensor behind in a module that has two names.
        if "src_embedding" in self.model._modules and "tgt_embedding" in self.model._modules:
            table = self.model.tgt_embedding
            self.model.tgt_embedding = embedding(*table.weight.shape).to(device)
        self._attentions = self.model.attentions()
        self.axes = self.model.axes()
        """The axes of every attention by its site, with the masks that are on now."""
        self._parameters = [tensor.detach() for tensor in self.model.state_dict().values()]

    def intervene(self, interventions: Interventions, id_of: Any) -> None:
        """Apply these interventions to the copy from now on; `id_of` as in `Transformer.intervene`."""
        if self.model.interventions != interventions:
            self.model.intervene(interventions, id_of)
            self.axes = self.model.axes()

    def compute(self, rows: Tensor, src: Array, tgt: Array) -> tuple[Array, dict[str, Array]]:
        """Run a batch through the model with the weights of each of several steps.

        Args:
            rows: (N, numbers), the weights of a step in each row.
            src: (B, S) token ids.
            tgt: (B, T) token ids.

        Returns:
            The most probable tokens, (N, B, T), and each site's attention weights, (N, B, H, Q, K) float32.
        """
        device = rows.device
        tokens = torch.from_numpy(src).to(device), torch.from_numpy(tgt).to(device)

        def one_step(weights: dict[str, Tensor]) -> tuple[Tensor, list[Tensor]]:
            logits = functional_call(self.model, weights, tokens, tie_weights=False)
            return logits.argmax(dim=-1), [
                attention.recorded["weights"] for attention in self._attentions.values()
            ]

        for attention in self._attentions.values():
            attention.recording = WEIGHTS
        try:
            with torch.no_grad():
                guesses, maps = vmap(one_step)(self._split(rows))
        finally:
            for attention in self._attentions.values():
                attention.recording, attention.recorded = frozenset(), {}
        arrays = [weights.float().cpu().numpy() for weights in maps]
        return guesses.cpu().numpy(), dict(zip(self._attentions, arrays, strict=True))

    def load(self, row: Tensor) -> Transformer:
        """Load the weights of one step, (numbers,), into the copy and return it."""
        torch._foreach_copy_(self._parameters, [*self._split(row).values()])
        return self.model

    def _split(self, rows: Tensor) -> dict[str, Tensor]:
        """Split rows of numbers, (..., numbers), into parameters by name."""
        parts = rows.split([prod(shape) for _, shape in self.tensors], dim=-1)
        lead = rows.shape[:-1]
        return {
            name: part.view(*lead, *shape) for (name, shape), part in zip(self.tensors, parts, strict=True)
        }


def stacked(bodies: Sequence[bytes], device: torch.device) -> Tensor:
    """The kept weights of several steps, as the rows of one tensor, (N, numbers)."""
    return torch.from_numpy(np.stack([np.frombuffer(body, dtype="<f4") for body in bodies])).to(device)
