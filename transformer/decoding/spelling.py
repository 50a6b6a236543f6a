"""Free-running outputs, by greedy decoding or beam search, and whether they are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.decoding.beam import GREEDY, Decoding, beam
from transformer.decoding.greedy import Written, greedy
from transformer.model.transformer import PAD_ID, Transformer
from transformer.tasks import Batch, Task


def write(
    model: Transformer,
    batch: Batch,
    eos_id: int,
    max_tokens: int,
    *,
    decoding: Decoding,
    compare: bool = False,
) -> Written:
    """Write answers by beam search if `decoding` has more than one beam, and greedily otherwise.

    Args:
        compare: whether to measure losses. They are always those of greedy outputs, so that the curves of two
            runs are comparable. Other arguments as of `greedy` and `search`.
    """
    if decoding.width == 1:
        return greedy(model, batch, eos_id, max_tokens, compare=compare)
    written = beam(model, batch, eos_id, max_tokens, decoding)
    if not compare:
        return written
    return replace(written, losses=greedy(model, batch, eos_id, max_tokens, compare=True).losses)


@dataclass(frozen=True)
class GenerationResult:
    """The correctness of free-running outputs, token by token. On the CPU."""

    right: Tensor
    """(B, A) bool, whether each token of the answer, its [EOS] included, is written in its place."""
    real: Tensor
    """(B, A) bool, whether there is such a token: answers have different lengths."""
    exact: list[bool]
    """Whether each output is right to the last token and stops; any accepted answer counts."""
    outputs: list[str]
    """Each output as text."""
    loss: float | None
    """Mean per token of the right answers, free-running and always greedy; None if it was not measured."""


def spell(
    model: Transformer,
    task: Task,
    words: Sequence[str],
    *,
    losses: bool = False,
    decoding: Decoding = GREEDY,
) -> GenerationResult:
    """Ask a model these words, free-running, and compare position by position. Uses no randomness.

    The model answers in eval mode; its mode is restored afterwards. At most as many tokens are written as the
    longest right answer has.

    Args:
        losses: whether to measure the loss too; then writing goes on to the end of the longest answer.
        decoding: the settings of the search for the outputs.
    """
    batch = task.encode(words, filled=not model.masked("padding"))
    answers = torch.from_numpy(batch.answers)
    was_training = model.training
    model.eval()
    written = write(
        model, batch, task.tgt_tokenizer.eos_id, answers.size(1), decoding=decoding, compare=losses
    )
    model.train(was_training)
    real = answers != PAD_ID
    loss = None if written.losses is None else float(written.losses[real].mean())
    texts = [
        task.tgt_tokenizer.text(ids[:n])
        for ids, n in zip(written.tokens.tolist(), written.lengths.tolist(), strict=True)
    ]
    tokens = F.pad(written.tokens, (0, answers.size(1) - written.tokens.size(1)), value=PAD_ID)
    right = (tokens == answers) & real
    # Texts are compared, as everywhere: an answer with an unknown token cannot be written right.
    exact = [ended and task.accepts(word, text) for word, (text, ended) in zip(words, texts, strict=True)]
    return GenerationResult(right, real, exact, [output for output, _ in texts], loss)
