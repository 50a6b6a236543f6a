"""Writing an answer token by token: greedy search with kept keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from transformer.model.transformer import LayerMemory, Transformer


@torch.no_grad()
def greedy(model: Transformer, src: Tensor, sos_id: int, eos_id: int, max_tokens: int) -> Tensor:
    """At each position take the most probable token, until every sequence has ended or is too long.

    Args:
        model: in eval mode, or dropout would speak too.
        src: (B, S) token ids.
        max_tokens: most tokens to write, [EOS] included.

    Returns:
        (B, at most max_tokens) token ids; what follows an [EOS] means nothing.
    """
    memory = model.encode(src)
    kept = [LayerMemory() for _ in model.decoder]
    tgt = torch.full((src.size(0), 1), sos_id, dtype=src.dtype, device=src.device)
    ended = torch.zeros(src.size(0), dtype=torch.bool, device=src.device)
    for _ in range(max_tokens):
        newest = model.decode_next(memory, src, tgt, kept).argmax(dim=-1, keepdim=True)
        tgt = torch.cat([tgt, newest], dim=1)
        ended |= newest[:, 0] == eos_id
        if bool(ended.all()):
            break
    return tgt[:, 1:]
