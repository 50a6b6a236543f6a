"""The layout of a question and its answer as tokens, for each topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Ids = np.ndarray[tuple[int, int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Batch:
    """Token ids of B examples, padded with [PAD] to common lengths."""

    src: Ids
    """(B, S), what the encoder reads; without an encoder, the same as `tgt_in`."""
    tgt_in: Ids
    """(B, T), what the decoder reads; without a decoder, the same as `src`."""
    tgt_out: Ids
    """(B, T), the label of each position; [PAD] where no loss is computed."""
    answers: Ids
    """(B, A), the answer's tokens and [EOS] alone."""
    prompt: Ids
    """(B, P), what the decoder reads before it writes its first token; without a decoder, P is 0."""
    words: tuple[str, ...] = ()
    """The B questions as text, if given."""


def sequence_limit(topology: str, question: int, answer: int) -> int:
    """A number of positions that is enough for a question and its answer; in decoder-only, three are spare.

    Args:
        question: number of tokens of the question, special ones left out.
        answer: number of tokens of the answer, special ones left out.
    """
    return question + answer + 2 + 3 if topology == "decoder-only" else max(question, answer) + 2


def arrange(
    topology: str,
    read: Sequence[Sequence[int]],
    written: Sequence[Sequence[int]],
    *,
    sep_id: int = -1,
    words: Sequence[str] = (),
    pad_to: int | None = None,
    most: int | None = None,
) -> Batch:
    """Lay out questions with their answers as one batch.

    - encoder-decoder: the encoder reads [SOS] question [EOS], the decoder [SOS] answer, and it writes
      answer [EOS].
    - encoder-only: the encoder reads [SOS] question [EOS], and writes answer [EOS] from the position after
      [SOS] on: token i of the answer at the position of token i of the question.
    - decoder-only: the decoder reads [SOS] question [SEP] answer, and writes answer [EOS] from [SEP] on.

    Args:
        read: ids of each question, from [SOS] to [EOS].
        written: ids of each answer, from [SOS] to [EOS].
        sep_id: id of [SEP], for decoder-only.
        words: the questions as text.
        pad_to: length of each question and each answer with [SOS] and [EOS]; none may be longer. By default
            that of the longest of its side (in encoder-only, of both sides). In decoder-only, the whole
            sequence is padded to the length of a question and an answer of `pad_to` tokens each.
        most: maximum length to which `pad_to` pads a decoder-only sequence; by default unlimited.
    """
    behind = [list(ids[1:]) for ids in written]  # the answer and [EOS]
    n_read = pad_to or max(map(len, read))
    n_written = pad_to or max(map(len, written))
    if topology == "encoder-only":
        n_read = n_written = max(n_read, n_written)
    src, answers = _padded(read, n_read), _padded(behind, n_written - 1)
    first = _padded([ids[:1] for ids in read], 1)
    if topology == "encoder-only":
        nothing = np.zeros((len(read), 0), dtype=np.int64)
        labels = np.concatenate([np.zeros_like(first), answers], axis=1)
        return Batch(src, src, labels, answers, nothing, tuple(words))
    if topology == "encoder-decoder":
        tgt_in = _padded([ids[:-1] for ids in written], n_written - 1)
        return Batch(src, tgt_in, answers, answers, first, tuple(words))
    prompts = [[*ids[:-1], sep_id] for ids in read]
    whole = [[*prompt, *ids[:-1]] for prompt, ids in zip(prompts, behind, strict=True)]
    silent = [[0] * (len(p) - 1) + ids for p, ids in zip(prompts, behind, strict=True)]
    length = max(map(len, whole))
    if pad_to:
        filled = 2 * pad_to - 2
        length = max(length, filled if most is None else min(filled, most))
    tgt_in, labels = _padded(whole, length), _padded(silent, length)
    return Batch(tgt_in, tgt_in, labels, answers, _padded(prompts, max(map(len, prompts))), tuple(words))


def _padded(rows: Sequence[Sequence[int]], length: int) -> Ids:
    """(B, length), each row filled up with [PAD], which is 0 in every tokenizer."""
    filled = [[*row, *[0] * (length - len(row))] for row in rows]
    return np.array(filled, dtype=np.int64).reshape(len(rows), length)
