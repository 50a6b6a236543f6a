"""The time of a training step on a CUDA GPU: eager, replayed as one CUDA graph, and lower bounds.

    python -m benchmarks.gpu [--seeds N] [--json]

Measures the default, two wider models and a larger batch, each in float32 and bfloat16: the milliseconds of a
step (wall time with a GPU synchronisation at both ends, median of N blocks of 50 steps), eager and replayed,
and two lower bounds: the time to move every weight, gradient and Adam moment at the bandwidth of a large copy
on this GPU, and the time of the matrix products at the speed of a large product in the same precision. Then
the losses of a hundred replayed steps of the default are compared with those of a hundred eager steps.
Without a CUDA GPU nothing is measured.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.tools.measuring import end, options
from transformer.config import PRECISIONS, RunConfig
from transformer.config.size import parameter_count
from transformer.runs.speed import work_of
from transformer.training.graphs import EAGER_FIRST
from transformer.training.loop import read_numbers, take_step, train
from transformer.training.state import TrainState

SIZES: dict[str, dict[str, Any]] = {
    "default": {},
    "width 128": {"d_model": 128, "d_ff": 512},
    "width 512": {"d_model": 512, "d_ff": 2048, "n_heads": 8},
    "batch 1,024": {"batch_size": 1024},
}
STEPS, RATIO, CLOSE = 50, 4.0, 1e-4
MOVED = 4 * 11
"""Bytes moved for each weight: the weight is read forward, backward and by the optimiser, and written; its
gradient is written, and read twice; the two Adam moments are read and written."""


def begun(config: RunConfig, *, eager: bool) -> TrainState:
    """Return the initial state of a training, with or without CUDA graphs."""
    return TrainState.begin(config.with_changes(cuda_graphs=not eager))


def step_ms(config: RunConfig, *, eager: bool, stretches: int) -> float:
    """Return the median milliseconds of a step on a batch that is already drawn."""
    state = begun(config, eager=eager)
    batch = state.task.batch(0, 0)
    for _ in range(EAGER_FIRST + 3):
        take_step(state, batch)

    def stretch() -> None:
        for _ in range(STEPS):
            take_step(state, batch)
        read_numbers(state)

    return statistics.median(seconds(stretch) / STEPS * 1000 for _ in range(stretches))


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of `work` in seconds, with a GPU synchronisation at both ends."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def bandwidth() -> float:
    """Return the bytes per second that a large copy reads and writes."""
    x = torch.empty(2**28, device="cuda")
    y = torch.empty_like(x)
    y.copy_(x)
    return 2 * x.nbytes / min(seconds(lambda: y.copy_(x)) for _ in range(5))


def arithmetic(precision: str) -> float:
    """Return the floating-point operations per second of a large product."""
    n, dtype = 4096, torch.float32 if precision == "float32" else torch.bfloat16
    x = torch.randn(n, n, device="cuda", dtype=dtype)
    x @ x
    return 2 * n**3 / min(seconds(lambda: x @ x) for _ in range(5))


def largest_difference() -> float:
    """Return the largest difference between the eager and replayed losses of 100 default steps."""
    config = RunConfig(device="cuda").with_changes(steps=100, min_letters=12)
    differences = [
        [loss for report in train(begun(config, eager=eager)) for loss in report.losses]
        for eager in (True, False)
    ]
    return max(abs(a - b) for a, b in zip(*differences, strict=True))


def main() -> int:
    """Print a row for each size and precision; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=5)
    write = sys.stdout.write
    if not torch.cuda.is_available():
        write("There is no CUDA GPU here: nothing has been measured.\n")
        return end(arguments, [], {}, {"CUDA graph, relative to eager steps": "no GPU here: not measured"})
    write(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    write("size         precision   eager ms  graph ms  times faster  memory floor ms  arithmetic floor ms\n")
    rows: list[dict[str, Any]] = []
    moved = bandwidth()
    for precision in PRECISIONS:
        speed = arithmetic(precision)
        for size, changes in SIZES.items():
            config = RunConfig(device="cuda").with_changes(precision=precision, steps=100_000, **changes)
            eager = step_ms(config, eager=True, stretches=arguments.seeds)
            graph = step_ms(config, eager=False, stretches=arguments.seeds)
            row = {
                "size": size,
                "precision": precision,
                "eager_ms": eager,
                "graph_ms": graph,
                "times": eager / graph,
                "memory_floor_ms": 1000
                * MOVED
                * parameter_count(TrainState.begin(config).config.model)
                / moved,
                "arithmetic_floor_ms": 1000 * work_of(config).products / speed,
            }
            rows.append(row)
            write(
                f"{size:12s} {precision:10s} {eager:9.3f} {graph:9.3f} {row['times']:13.1f} "
                f"{row['memory_floor_ms']:16.4f} {row['arithmetic_floor_ms']:20.4f}\n"
            )
            sys.stdout.flush()
    apart = largest_difference()
    write(f"largest difference of 100 losses, eager and replayed: {apart:.2g}\n")
    met = {
        "graph_at_least_4_times_eager": rows[0]["times"] >= RATIO,
        "losses_equal_to_1e-4_over_100_steps": apart <= CLOSE,
    }
    figures = {
        "CUDA graph, relative to eager steps, default size": f"{rows[0]['times']:.1f} times faster "
        f"({rows[0]['graph_ms']:.2f} ms a step; 100 losses apart by {apart:.1g} at most)"
    }
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
