"""How a question and its answer are laid out as tokens, for each topology."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.tasks.task import Batch, Ids
from transformer.tasks.tokenizer import CharacterTokenizer


def sequence_limit(topology: str, letters: int) -> int:
    """Positions that a question of so many letters and its answer need, with room to write three more."""
    return 2 * letters + 2 + 3 if topology == "decoder-only" else letters + 2


def arrange(
    topology: str,
    tokenizer: CharacterTokenizer,
    questions: Sequence[str],
    answers: Sequence[str],
    pad_to: int | None = None,
) -> Batch:
    """Lay out questions with their answers as one batch.

    - encoder-decoder: the encoder reads [SOS] question [EOS], the decoder [SOS] answer, and it writes
      answer [EOS].
    - encoder-only: it reads [SOS] question [EOS], and writes answer [EOS] one position behind [SOS], so that
      each letter of an answer as long as its question stands in the place of a letter.
    - decoder-only: it reads [SOS] question [SEP] answer, and writes answer [EOS] from [SEP] on.

    Args:
        pad_to: fixed length in tokens of question and answer each; by default that of the longest.
    """
    read = tokenizer.encode(questions)
    written = [ids[1:] for ids in tokenizer.encode(answers)]  # the answer and [EOS]
    longest = pad_to or max(map(len, [*read, *([tokenizer.sos_id, *ids] for ids in written)]))
    src, answer_ids = _padded(read, longest), _padded(written, longest - 1)
    first = np.full((len(read), 1), tokenizer.sos_id, dtype=np.int64)
    if topology == "encoder-only":
        nothing = np.zeros((len(read), 0), dtype=np.int64)
        labels = np.concatenate([np.full_like(first, tokenizer.pad_id), answer_ids], axis=1)
        return Batch(src, src, labels, answer_ids, nothing, tuple(questions))
    if topology == "encoder-decoder":
        tgt_in = _padded([[tokenizer.sos_id, *ids[:-1]] for ids in written], longest - 1)
        return Batch(src, tgt_in, answer_ids, answer_ids, first, tuple(questions))
    prompts = [[*ids[:-1], tokenizer.sep_id] for ids in read]
    whole = [[*prompt, *ids[:-1]] for prompt, ids in zip(prompts, written, strict=True)]
    silent = [[tokenizer.pad_id] * (len(p) - 1) + ids for p, ids in zip(prompts, written, strict=True)]
    length = 2 * longest - 2 if pad_to else max(map(len, whole))
    tgt_in, labels = _padded(whole, length), _padded(silent, length)
    return Batch(
        tgt_in, tgt_in, labels, answer_ids, _padded(prompts, max(map(len, prompts))), tuple(questions)
    )


def _padded(rows: Sequence[Sequence[int]], length: int) -> Ids:
    """(B, length), each row filled up with [PAD], which is 0 in every tokenizer."""
    table = np.zeros((len(rows), length), dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table
