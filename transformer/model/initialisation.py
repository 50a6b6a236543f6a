"""First weights, drawn from the run's own generator."""

from __future__ import annotations

import math

import torch
from torch import nn

from transformer.config import ModelConfig


@torch.no_grad()
def initialise(model: nn.Module, config: ModelConfig, pad_id: int, generator: torch.Generator) -> None:
    """Draw every matrix and table anew; norms and biases begin at one and zero, except in `pytorch`.

    Args:
        model: a `Transformer`, with a token table for what it reads, one for what it writes, or one for both.
        pad_id: the row of that table that stays zero, where the configuration says so.
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
