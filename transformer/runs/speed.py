"""How long a run will take on this machine, from one measured number and the work of a training step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from transformer.config import RunConfig
from transformer.tasks import resolved, task_of
from transformer.tasks.arrange import Ids

BLOCK, MAP, CELL, PRODUCT = 0.6e-3, 6e-6, 7.5e-9, 1.25e-11
"""Seconds of a forward and backward pass through one block (an attention or a feed-forward part), one map (of
a head and an example), one cell of a map, and of one floating-point operation of a matrix product, on one
thread of a reference machine."""
SAMPLE = 0.4e-3
"""Seconds of the sample that `slowness` measures, on the reference machine."""
OVERHEAD = 1.3
"""Approximate factor by which evaluations, frames and the page lengthen a run."""


@dataclass(frozen=True)
class Work:
    """The work of one training step."""

    blocks: int
    """Number of attentions and feed-forward parts."""
    maps: int
    """Number of maps: one for each attention, head and example."""
    cells: int
    """Number of cells of all maps."""
    products: float
    """Floating-point operations of the matrix products on tokens, forward and backward."""

    @property
    def seconds(self) -> float:
        """Seconds that the step takes on one thread of the reference machine."""
        return self.blocks * BLOCK + self.maps * MAP + self.cells * CELL + self.products * PRODUCT


def run_seconds(config: RunConfig, steps: int) -> float:
    """Approximate seconds of this many steps on one CPU thread, with evaluations, frames and a page."""
    return OVERHEAD * steps * slowness() * work_of(config).seconds


@cache
def slowness() -> float:
    """Seconds that this machine takes for one second of the reference machine, measured once.

    The sample is small products and softmaxes, as in a step of a small model. The fastest of many counts, so
    that a training that goes on meanwhile makes little difference.
    """
    random = np.random.default_rng(0)
    words, weights = (random.standard_normal(shape, np.float32) for shape in ((64, 10, 64), (64, 64)))
    seconds = []
    for _ in range(30):
        began = time.perf_counter()
        for _ in range(4):
            powers = np.exp(np.tanh(words @ weights))
            powers /= powers.sum(-1, keepdims=True)
        seconds.append(time.perf_counter() - began)
    return min(seconds) / SAMPLE


@lru_cache(maxsize=64)  # called at every rerun of a page, and draws a batch
def work_of(config: RunConfig) -> Work:
    """The work of a step of this configuration, for the lengths of its first batch with seed 0."""
    config = resolved(config)
    batch = task_of(config).batch(0, 0)
    model, (n_examples, s), t = config.model, batch.src.shape, batch.tgt_in.shape[1]
    read, written = _tokens(batch.src, model.padding_mask), _tokens(batch.tgt_in, model.padding_mask)
    square, feed_forward = model.d_model**2, 2 * model.d_model * model.d_ff
    encoder, decoder = model.n_encoder_layers, model.n_decoder_layers
    if model.topology == "encoder-only":
        decoder, written = 0, read
    if model.topology == "decoder-only":
        blocks, attentions, cells = 2 * decoder, decoder, decoder * t * t
        multiplied = decoder * written * (4 * square + feed_forward)
    else:
        blocks, attentions = 2 * encoder + 3 * decoder, encoder + 2 * decoder
        cells = encoder * s * s + decoder * t * (t + s)
        multiplied = read * (encoder * (4 * square + feed_forward) + decoder * 2 * square)
        multiplied += written * decoder * (6 * square + feed_forward)
    multiplied += written * model.d_model * model.tgt_vocab_size
    heads = n_examples * model.n_heads
    return Work(blocks, heads * attentions, heads * cells, 6.0 * multiplied)


def _tokens(ids: Ids, hidden: bool) -> int:
    """Number of positions that are computed: without padding if it is masked."""
    return int((ids != 0).sum()) if hidden else ids.size
