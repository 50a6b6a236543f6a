"""The layers around attention: linear, embedding, positions, norms, dropout, feed-forward, residual.

`initialise` draws the initial weights of an assembled model.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig


def linear(n_in: int, n_out: int, bias: bool) -> nn.Linear:
    """A linear layer with uninitialised weights, so that the global random state is not used."""
    made: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out, bias=bias)
    return made


def embedding(n: int, d_model: int) -> nn.Embedding:
    """An embedding with uninitialised weights; here `skip_init` would load torch's compiler."""
    made: nn.Embedding = nn.Embedding.from_pretrained(torch.empty(n, d_model), freeze=False)
    return made


def sinusoid(length: int, d_model: int) -> Tensor:
    """Sines and cosines of the position, with a lower frequency for each further pair of features.

    "Attention Is All You Need" (Vaswani et al., 2017), section 3.5:
    PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)).

    Returns:
        (length, D) float32. An odd D ends with a sine.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]  # (length, 1)
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    angle = position * torch.exp(-math.log(10_000.0) * pair / d_model)  # (length, ceil(D/2))
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table.float()


class Dropout(nn.Module):
    """Dropout that is active if the configuration names one of its places.

    It draws from `generator`, which `Transformer.draw_from` sets; before that, from the global random state.

    Args:
        places: names of `ModelConfig.dropout_on` at which this dropout acts.
    """

    def __init__(self, config: ModelConfig, *places: str) -> None:
        super().__init__()
        self.share = config.dropout if set(places) & set(config.dropout_on) else 0.0
        self.generator: torch.Generator | None = None

    @property
    def active(self) -> bool:
        """Whether the next forward pass drops anything."""
        return self.training and self.share > 0.0

    def forward(self, x: Tensor) -> Tensor:
        """In training, zero each value of `x`, any shape, with probability `share`; scale up the rest."""
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
    """Two linear maps with an activation between, the same at every position
    ("Attention Is All You Need", section 3.3)."""

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
        """(..., D) to (..., D)."""
        return self.narrow(self.dropout(self.activation(self.widen(x))))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """A residual connection around a branch; the configuration sets the place of its norm."""

    def __init__(self, config: ModelConfig, *dropout_places: str) -> None:
        super().__init__()
        self.placement = config.norm_placement
        self.norm = norm(config)
        self.dropout = Dropout(config, "residual", *dropout_places)

    def forward(self, x: Tensor, branch: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the output of `branch` to `x`, with norm and dropout: (..., D) to (..., D)."""
        if self.placement == "pre":
            return x + self.dropout(branch(self.norm(x)))  # type: ignore[no-any-return]
        if self.placement == "post":
            return self.norm(x + self.dropout(branch(x)))  # type: ignore[no-any-return]
        return x + self.dropout(self.norm(branch(x)))  # type: ignore[no-any-return]


@torch.no_grad()
def initialise(model: nn.Module, config: ModelConfig, pad_id: int, generator: torch.Generator) -> None:
    """Draw every matrix and embedding. Biases start at zero, except with `pytorch`; norms are not drawn.

    Args:
        model: a `Transformer` with a source embedding, a target embedding, both, or one shared by both.
        pad_id: the row that stays zero in the target embedding (the source embedding of an encoder-only
            model), if the configuration has a `padding_row`.
    """
    named = (getattr(model, name, None) for name in ("src_embedding", "tgt_embedding"))
    tables = list(dict.fromkeys(table for table in named if table is not None))
    kind = config.initialisation
    for module in model.modules():
        if not isinstance(module, nn.Linear | nn.Embedding):
            continue
        weight = module.weight
        if kind == "normal":
            nn.init.normal_(weight, std=0.01, generator=generator)
        elif kind == "xavier":
            nn.init.xavier_uniform_(weight, generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
        else:
            nn.init.normal_(weight, generator=generator)
        if isinstance(module, nn.Linear) and module.bias is not None:
            bound = 1.0 / math.sqrt(module.in_features) if kind == "pytorch" else 0.0
            nn.init.uniform_(module.bias, -bound, bound, generator=generator)
    if config.embedding_std is not None:
        for table in tables:
            nn.init.normal_(table.weight, std=config.embedding_std, generator=generator)
    if config.padding_row:
        written = tables[-1]
        written.weight[pad_id] = 0.0
        written.padding_idx = pad_id  # keeps its gradient at zero too
