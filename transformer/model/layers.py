"""The small parts between two attentions: linear maps, norms, dropout, feed-forward, residual."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig


def linear(n_in: int, n_out: int, bias: bool) -> nn.Linear:
    """A linear map whose numbers are not drawn yet, so that no global random state is touched."""
    made: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out, bias=bias)
    return made


def embedding(n: int, d_model: int) -> nn.Embedding:
    """A table of vectors whose numbers are not drawn yet: `skip_init` would load torch's compiler for it."""
    made: nn.Embedding = nn.Embedding.from_pretrained(torch.empty(n, d_model), freeze=False)
    return made


class Dropout(nn.Module):
    """Dropout that draws from the run's own generator, at the places that the configuration names."""

    def __init__(self, config: ModelConfig, *places: str) -> None:
        super().__init__()
        self.share = config.dropout if set(places) & set(config.dropout_on) else 0.0
        self.generator: torch.Generator | None = None

    @property
    def active(self) -> bool:
        """Whether the next forward pass drops anything."""
        return self.training and self.share > 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Zero a share of `x`, any shape, and scale up the rest, in training only."""
        if not self.active:
            return x
        kept = torch.rand(x.shape, device=x.device, generator=self.generator) >= self.share
        return x * kept / (1.0 - self.share)


class ScalarNorm(nn.Module):
    """Standardise each vector, with one gain and one bias for all features.

    Unlike layer normalisation, the deviation is unbiased and eps is added to it, not to the variance.
    """

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., D)."""
        centred = x - x.mean(dim=-1, keepdim=True)
        return self.weight * centred / (x.std(dim=-1, keepdim=True) + self.eps) + self.bias


def norm(config: ModelConfig) -> nn.Module:
    """The norm that the configuration names, over the last axis."""
    if config.norm == "scalar":
        return ScalarNorm(config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)


class FeedForward(nn.Module):
    """Two linear maps with an activation between, the same at every position (the paper's section 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.widen = linear(config.d_model, config.d_ff, True)
        kinds: dict[str, Callable[[], nn.Module]] = {
            "relu": nn.ReLU,
            "leaky_relu": nn.LeakyReLU,
            "gelu": nn.GELU,
        }
        self.activation = kinds[config.activation]()
        self.dropout = Dropout(config, "feed_forward")
        self.narrow = linear(config.d_ff, config.d_model, True)

    def forward(self, x: Tensor) -> Tensor:
        """(B, Q, D) to (B, Q, D)."""
        return self.narrow(self.dropout(self.activation(self.widen(x))))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """One branch beside the residual stream; the configuration says where its norm stands."""

    def __init__(self, config: ModelConfig, *dropout_places: str) -> None:
        super().__init__()
        self.placement = config.norm_placement
        self.norm = norm(config)
        self.dropout = Dropout(config, "residual", *dropout_places)

    def forward(self, x: Tensor, branch: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, Q, D) to (B, Q, D), with what `branch` has to add."""
        if self.placement == "pre":
            return x + self.dropout(branch(self.norm(x)))  # type: ignore[no-any-return]
        if self.placement == "post":
            return self.norm(x + self.dropout(branch(x)))  # type: ignore[no-any-return]
        return x + self.dropout(self.norm(branch(x)))  # type: ignore[no-any-return]
