"""Evaluation of a model on held-out examples; of translations also by BLEU and chrF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from transformer.decoding.spelling import spell
from transformer.shared.evaluation import Evaluation
from transformer.training.state import TrainState

SAMPLES = 5
"""Number of held-out sentences whose outputs are kept with every evaluation of a translation."""


def sum_of_losses(logits: torch.Tensor, labels: torch.Tensor, pad_id: int, smoothing: float) -> torch.Tensor:
    """Cross-entropy summed over the labels that are not padding.

    Args:
        logits: (B, T, V).
        labels: (B, T).
    """
    return F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=pad_id,
        reduction="sum",
        label_smoothing=smoothing,
    )


@torch.no_grad()
def evaluate(state: TrainState, held_out: Sequence[str], everyday: Sequence[str] = ()) -> Evaluation:
    """Evaluate on these examples, free-running (decoded as configured) and teacher-forced; deterministic.

    Args:
        held_out: questions; if there are more than the live words, these come first.
        everyday: further questions, asked free-running only.
    """
    spelling = spell(state.model, state.task, held_out, losses=True, decoding=state.decoding)
    assert spelling.loss is not None  # it was asked for
    exact = spelling.exact
    by_length: dict[int, tuple[int, int]] = {}
    for word, right in zip(held_out, exact, strict=True):
        length = state.task.corpus.length(word)
        before = by_length.get(length, (0, 0))
        by_length[length] = (before[0] + right, before[1] + 1)
    batch = state.task.encode(held_out, filled=not state.model.masked("padding"))
    src, tgt_in, labels = state.to_device(batch)
    was_training = state.model.training
    state.model.eval()
    logits = state.model(src, tgt_in)
    state.model.train(was_training)
    real = labels != state.task.tgt_tokenizer.pad_id
    n, n_live = int(real.sum()), len(state.task.live_words())
    loss = float(sum_of_losses(logits, labels, state.task.tgt_tokenizer.pad_id, 0.0)) / n
    hits = int(((logits.argmax(-1) == labels) & real).sum())
    of_everyday = None
    if everyday:
        answers = spell(state.model, state.task, everyday, decoding=state.decoding).exact
        of_everyday = sum(answers), len(everyday)
    bleu, chrf = None, None
    samples: tuple[tuple[str, str], ...] = ()
    if state.task.corpus.translates:
        samples = tuple(zip(held_out, spelling.outputs, strict=True))[:SAMPLES]
        references = [state.task.references(word) for word in held_out]
        bleu, chrf = translation_scores(spelling.outputs, references)
    return Evaluation(
        step=state.step,
        right=sum(exact),
        total=len(exact),
        by_length=dict(sorted(by_length.items())),
        live=(sum(exact[:n_live]), n_live) if len(exact) > n_live else None,
        loss=loss,
        free_loss=spelling.loss,
        token_accuracy=hits / n,
        everyday=of_everyday,
        bleu=bleu,
        chrf=chrf,
        samples=samples,
    )


def translation_scores(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Corpus BLEU and chrF, 0 to 100 each.

    Args:
        outputs: a translation of each source.
        references: for each source, every translation that counts as right; at least one.
    """
    from sacrebleu.metrics.bleu import BLEU  # only where sentences are learned
    from sacrebleu.metrics.chrf import CHRF

    # Row i holds reference i of each source; None where a source has fewer references.
    most = max(map(len, references))
    rows: list[Any] = [[some[i] if i < len(some) else None for some in references] for i in range(most)]
    bleu = BLEU(effective_order=True).corpus_score(list(outputs), rows)  # short sentences have no 4-grams
    return float(bleu.score), float(CHRF().corpus_score(list(outputs), rows).score)
