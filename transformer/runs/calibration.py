"""Measure the speed of this machine once, to choose the number of threads and estimate a run's time."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from transformer.config import RunConfig
from transformer.runs.machine import processors
from transformer.tasks import completed, task_of
from transformer.tasks.arrange import Ids

SECONDS = 1.6
"""Approximate limit of all measurements together, in seconds."""
BLOCK, MAP, CELL = 0.6e-3, 6e-6, 7.5e-9
"""Seconds of a forward and backward pass through one block (an attention or a feed-forward part), one map (of
a head and an example) and one cell of a map, on a reference machine. Only their ratios matter: the speed of
this machine is measured."""
OVERHEAD = 1.3
"""Approximate factor by which evaluations, frames and the page lengthen a run."""
_SMALL_MODEL = RunConfig()
_LARGE_MODEL = RunConfig().with_changes(
    d_model=128, d_ff=512, max_letters=30, n_encoder_layers=1, n_decoder_layers=1
)


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
    def small(self) -> float:
        """Seconds that the blocks, maps and cells take on the reference machine of `BLOCK`."""
        return self.blocks * BLOCK + self.maps * MAP + self.cells * CELL


@dataclass(frozen=True)
class Speed:
    """The measured speed."""

    threads: int
    """Number of CPU threads with which a step of the default configuration is fastest."""
    slowness: float
    """Seconds that this machine takes for one second of `Work.small`."""
    product: float
    """Seconds per floating-point operation of a large matrix product."""
    devices: tuple[str, ...]
    """Values of the setting `device` that select the CPU, to which the measured speed applies."""

    def step_seconds(self, config: RunConfig) -> float:
        """Approximate seconds of one training step of this configuration on the CPU."""
        work = work_of(config)
        return self.slowness * work.small + self.product * work.products

    def run_seconds(self, config: RunConfig, steps: int) -> float:
        """Approximate seconds of this many steps of a watched run, with evaluations and frames."""
        return OVERHEAD * steps * self.step_seconds(config)


_lock = threading.Lock()
_speed: Speed | None = None


def speed() -> Speed | None:
    """The speed measured in this process; None before that."""
    return _speed


def candidates() -> tuple[int, ...]:
    """Numbers of threads worth trying: powers of two that leave a core to the page."""
    return tuple(2**i for i in range(max(processors() - 1, 1).bit_length()))


def threads_of(config: RunConfig, quiet: Callable[[], bool]) -> int:
    """CPU threads with which a run of this configuration trains: its own choice, or the fastest here.

    Args:
        quiet: as in `calibrate`; if the speed cannot be measured, the result is 1.
    """
    if config.threads is not None:
        return config.threads
    if len(candidates()) == 1:
        return 1
    found = calibrate(quiet)
    return 1 if found is None else found.threads


def calibrate(quiet: Callable[[], bool]) -> Speed | None:
    """Measure the speed, unless it has been measured. Imports torch.

    Args:
        quiet: returns whether no run trains in this process, which would slow the measured steps.

    Returns:
        The speed; None if it could not be measured because a run was training.
    """
    global _speed
    with _lock:
        if _speed is None and quiet():
            tried = candidates()
            share = SECONDS / (len(tried) + 1)
            seconds = {threads: _step_seconds(_SMALL_MODEL, threads, share) for threads in tried if quiet()}
            if quiet():
                threads = min(seconds, key=lambda one: seconds[one])
                small, large = work_of(_SMALL_MODEL), work_of(_LARGE_MODEL)
                large_seconds = _step_seconds(_LARGE_MODEL, threads, share)
                found = _solved(threads, small, seconds[threads], large, large_seconds)
                _speed = found if quiet() else None
        return _speed


def _solved(threads: int, small: Work, small_seconds: float, large: Work, large_seconds: float) -> Speed:
    """Solve two measurements for two unknowns; both have lower bounds, since noise can make them negative."""
    from transformer.training.device import available_devices

    determinant = small.small * large.products - large.small * small.products
    slowness = (small_seconds * large.products - large_seconds * small.products) / determinant
    product = (small.small * large_seconds - large.small * small_seconds) / determinant
    devices = ("auto", "cpu") if available_devices()[0] == "cpu" else ("cpu",)
    return Speed(threads, max(slowness, 0.1 * small_seconds / small.small), max(product, 0.0), devices)


def _step_seconds(config: RunConfig, threads: int, budget: float) -> float:
    """Median time of a few training steps, the first left out."""
    import torch

    from transformer.training.loop import train
    from transformer.training.state import TrainState

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    steps = train(TrainState.begin(config.with_changes(device="cpu", steps=1000, evaluate_every=1000)))
    next(steps)
    taken: list[float] = []
    while sum(taken) < 0.6 * budget and len(taken) < 12:  # the rest is for building, and for the first step
        began = time.perf_counter()
        next(steps)
        taken.append(time.perf_counter() - began)
    torch.set_num_threads(before)
    return statistics.median(taken)


@lru_cache(maxsize=64)  # called at every rerun of a page, and draws a batch
def work_of(config: RunConfig) -> Work:
    """The work of a step of this configuration, for the lengths of its task."""
    config = completed(config)
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
