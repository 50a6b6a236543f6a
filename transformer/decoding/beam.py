"""Beam search: several answers are written side by side, and the likeliest continuations are kept.

At each step every open beam is continued by every token, and of all continuations of a question the `width`
likeliest are kept. A beam that has written [EOS] is finished: it is not continued, and at the next step
another beam takes its place. With width 1 this is greedy decoding.

Finished beams have different lengths, and a longer one is less probable merely because it is longer. So they
compete by their score, which divides the log-probability by a penalty that grows with the length n:

    score = log P(answer | question) / ((5 + n) / 6) ** length_penalty        (Wu et al., 2016, equation 14)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.config import TrainConfig
from transformer.decoding.greedy import NextLogits, Written, greedy, next_logits_of, room
from transformer.model.transformer import PAD_ID, Transformer
from transformer.tasks import Batch

_IMPOSSIBLE = -1e9
"""Replaces a log-probability of NaN or -inf, since -inf marks places where there is no beam."""


@dataclass(frozen=True)
class Decoding:
    """The settings of a search; by default greedy."""

    width: int = 1
    """Most beams of a question; 1 is greedy decoding."""
    length_penalty: float = 0.0
    """Exponent of the length penalty that divides the log-probabilities; 0: no penalty."""

    @classmethod
    def of(cls, config: TrainConfig) -> Decoding:
        """The search that a run is configured to use."""
        return cls(config.beam_width, config.length_penalty) if config.decoding == "beam" else GREEDY

    def score(self, total: Tensor, n: int) -> Tensor:
        """Scores of beams of n tokens from the sums of their log-probabilities, any shape."""
        return total / float(((5 + n) / 6) ** self.length_penalty)


GREEDY = Decoding()


@dataclass(frozen=True)
class Level:
    """The beams, after one more token, of every question that was still being answered. On the CPU.

    A is the number of these questions, W the number of places; place 0 holds the best beam.
    """

    asked: Tensor
    """(A,) indices of these questions in the batch."""
    parents: Tensor
    """(A, W) the place, in the level before, of the beam that each continues."""
    tokens: Tensor
    """(A, W) its newest token."""
    log_probabilities: Tensor
    """(A, W) float64, of that token, given those before it."""
    totals: Tensor
    """(A, W) float64, their sums over the whole beam; -inf where a place is empty."""
    scores: Tensor
    """(A, W) float64."""
    ended: Tensor
    """(A, W) bool, whether it is finished; meaningless where a place is empty."""

    @property
    def there(self) -> Tensor:
        """(A, W) bool, whether there is a beam in a place: there may be fewer continuations than places."""
        return self.totals > -torch.inf


@dataclass(frozen=True)
class SearchResult:
    """The results of a search for B questions."""

    levels: tuple[Level, ...]
    """After the first token, the second, and so on."""
    winners: Tensor
    """(B, 2) level and place of each question's answer: its finished beam with the best score, of equal ones
    the shorter; where none is finished, the likeliest open one."""


@torch.no_grad()
def search(
    model: Transformer, batch: Batch, eos_id: int, max_tokens: int, decoding: Decoding
) -> SearchResult:
    """Beam search for each question of a batch, all at once.

    A question is done when no open beam can overtake its best finished beam any more, or after
    `max_tokens`. An encoder alone writes each token without knowing the others: it has one
    beam, that of greedy decoding, and the batch must then be one question.

    Args:
        model: in eval mode.
        batch: only its `src` and `prompt` are read.
        max_tokens: most tokens to write, [EOS] included; fewer if the model has no positions for so many. An
            encoder alone writes one token for each that it reads after [SOS].
    """
    device = model.to_logits.weight.device
    src, prompt = (torch.from_numpy(a).to(device) for a in (batch.src, batch.prompt))
    if model.writes_at_once:
        most, decoding = int((src != PAD_ID).sum()) - 1, Decoding(1, decoding.length_penalty)
        next_logits = _one_after_another(model(src)[:, 1:])  # [SOS] writes nothing
    else:
        most = room(model, prompt, max_tokens)
        next_logits = next_logits_of(model, src, prompt, most)
    asked = torch.arange(len(src))
    totals = torch.zeros(len(src), 1, dtype=torch.float64)  # at first one empty beam each
    best = torch.full((len(src),), -torch.inf, dtype=torch.float64)
    winners = torch.zeros(len(src), 2, dtype=torch.long)
    newest = rows = None
    levels: list[Level] = []
    while len(levels) < most and len(asked):
        level = _continued(next_logits(newest, rows), asked, totals, eos_id, len(levels) + 1, decoding)
        place = level.ended.long().argmax(dim=1)  # of equally long beams, the first has the best score
        score = level.scores.masked_fill(~level.ended, -torch.inf).amax(dim=1)
        none_yet, better = best == -torch.inf, score > best
        winners[asked[none_yet], 0], winners[asked[none_yet], 1] = len(levels), 0
        winners[asked[better], 0], winners[asked[better], 1] = len(levels), place[better]
        best = torch.maximum(best, score)
        levels.append(level)
        before = torch.arange(len(asked))[:, None] * totals.size(1) + level.parents  # (A, W), row indices
        totals = level.totals.masked_fill(level.ended, -torch.inf)
        # A bound on future scores: totals can only fall, and a total scores highest at the greatest length.
        going = decoding.score(totals.amax(dim=1), most) > best
        rows, newest = before[going].flatten().to(device), level.tokens[going].flatten().to(device)
        asked, totals, best = asked[going], totals[going], best[going]
    return SearchResult(tuple(levels), winners)


def _continued(
    logits: Tensor, asked: Tensor, totals: Tensor, eos_id: int, n: int, decoding: Decoding
) -> Level:
    """The likeliest beams of n tokens among all continuations of the open ones.

    Args:
        logits: (A * W, V).
        asked: (A,).
        totals: (A, W) of the beams that are continued; -inf where there is none, or it has ended.
    """
    each = logits.cpu().double().log_softmax(dim=-1)  # float32 would make some different logits equal
    each = each.nan_to_num(nan=_IMPOSSIBLE, neginf=_IMPOSSIBLE).unflatten(0, totals.shape)  # (A, W, V)
    sums = (totals[:, :, None] + each).flatten(1)  # (A, W * V)
    # Stable: of equal sums, the one with the better parent comes first, then the lower token id.
    best_sums, places = sums.sort(dim=1, descending=True, stable=True)
    best_sums, places = best_sums[:, : decoding.width], places[:, : decoding.width]
    tokens = places % logits.size(1)
    return Level(
        asked=asked,
        parents=places // logits.size(1),
        tokens=tokens,
        log_probabilities=each.flatten(1).gather(1, places),
        totals=best_sums,
        scores=decoding.score(best_sums, n),
        ended=tokens == eos_id,
    )


def _one_after_another(logits: Tensor) -> NextLogits:
    """A function that returns, at each call, the next position of known logits (1, T, V)."""
    at = iter(logits[0])
    return lambda newest, rows: next(at)[None]


@torch.no_grad()
def beam(model: Transformer, batch: Batch, eos_id: int, max_tokens: int, decoding: Decoding) -> Written:
    """Write the answer with the best score that beam search finds. Arguments as of `search`.

    An encoder alone writes each token without knowing the others; so its answer is that of greedy decoding,
    and the batch may have any number of questions.
    """
    if model.writes_at_once:
        return greedy(model, batch, eos_id, max_tokens)
    result = search(model, batch, eos_id, max_tokens, decoding)
    last, place = result.winners[:, 0], result.winners[:, 1].clone()
    tokens = torch.full((len(last), len(result.levels)), PAD_ID)
    for n, level in reversed(list(enumerate(result.levels))):
        rows = last[level.asked] >= n
        asked, at = level.asked[rows], place[level.asked[rows]][:, None]
        tokens[asked, n] = level.tokens[rows].gather(1, at)[:, 0]
        place[asked] = level.parents[rows].gather(1, at)[:, 0]
    return Written(tokens[:, : int(last.max()) + 1], last + 1)
