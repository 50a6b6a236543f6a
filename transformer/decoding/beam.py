"""Writing whole batches of answers by beam search."""

from __future__ import annotations

import torch

from transformer.decoding.greedy import greedy
from transformer.decoding.search import Decoding, search
from transformer.decoding.written import Written
from transformer.model.transformer import PAD_ID, Transformer
from transformer.tasks import Batch


def beam(
    model: Transformer,
    batch: Batch,
    eos_id: int,
    max_tokens: int,
    *,
    width: int,
    length_penalty: float,
) -> Written:
    """Write the answer with the best score that beam search finds.

    An encoder alone writes each token without knowing the others; so its answer is that of greedy decoding.

    Args:
        model: in eval mode.
        batch: of it `src` and `prompt` are read.
        max_tokens: most tokens to write, [EOS] included. An encoder alone writes as many as it has read.
        width: most beams of a question.
        length_penalty: as in `Decoding`.
    """
    if model.writes_at_once:
        return greedy(model, batch, eos_id, max_tokens)
    found = search(model, batch, eos_id, max_tokens, Decoding(width, length_penalty))
    last, place = found.winners[:, 0], found.winners[:, 1].clone()
    tokens = torch.full((len(last), len(found.levels)), PAD_ID)
    for n, level in reversed(list(enumerate(found.levels))):
        rows = last[level.asked] >= n
        asked, at = level.asked[rows], place[level.asked[rows]][:, None]
        tokens[asked, n] = level.tokens[rows].gather(1, at)[:, 0]
        place[asked] = level.parents[rows].gather(1, at)[:, 0]
    return Written(tokens[:, : int(last.max()) + 1], last + 1)
