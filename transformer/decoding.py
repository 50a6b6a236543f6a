"""Writing an answer token by token: greedy search with kept keys and values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.model.transformer import LayerMemory, Transformer
from transformer.tasks import Task


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


@torch.no_grad()
def letters_right(model: Transformer, task: Task, words: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Ask a model these words, free-running, and compare position by position. Draws nothing.

    Returns:
        (B, T) bool, whether each token of the answer, its [EOS] included, is written in its place, and
        (B, T) bool, whether there is such a token: answers have different lengths. On the CPU.
    """
    batch, tokenizer = task.encode(words), task.tgt_tokenizer
    src = torch.from_numpy(batch.src).to(model.to_logits.weight.device)
    answers = torch.from_numpy(batch.tgt_out)
    was_training = model.training
    model.eval()
    written = greedy(model, src, tokenizer.sos_id, tokenizer.eos_id, answers.size(1)).cpu()
    model.train(was_training)
    ends = written == tokenizer.eos_id
    written = written.masked_fill(
        ends.cumsum(dim=1) > ends.long(), tokenizer.pad_id
    )  # behind the first [EOS]
    # Where writing broke off before the longest answer, every sequence had ended: nothing stands there.
    missing = torch.full((len(words), answers.size(1) - written.size(1)), tokenizer.pad_id)
    real = answers != tokenizer.pad_id
    return (torch.cat([written, missing], dim=1) == answers) & real, real


def exact_words(model: Transformer, task: Task, words: Sequence[str]) -> list[bool]:
    """Whether each word's greedy output is right to the last letter and stops."""
    right, real = letters_right(model, task, words)
    return (right | ~real).all(dim=1).tolist()
