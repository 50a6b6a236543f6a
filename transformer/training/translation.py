"""How good translations are, by BLEU and chrF, through sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def translation_scores(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Corpus BLEU and chrF, 0 to 100 each.

    Args:
        outputs: a translation of each source.
        references: of each source every translation that counts as right, at least one.
    """
    from sacrebleu.metrics.bleu import BLEU  # only where sentences are learned
    from sacrebleu.metrics.chrf import CHRF

    # One row for each place in the lists; a source with fewer references leaves the later rows empty.
    most = max(map(len, references))
    rows: list[Any] = [[some[i] if i < len(some) else None for some in references] for i in range(most)]
    bleu = BLEU(effective_order=True).corpus_score(list(outputs), rows)  # short sentences have no 4-grams
    return float(bleu.score), float(CHRF().corpus_score(list(outputs), rows).score)
