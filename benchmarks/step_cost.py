"""The cost of one training step, relative to `nn.Transformer` and to the matrix products alone.

    python -m benchmarks.step_cost [--seeds N] [--limit SECONDS] [--json]

Measures the processor time of a step on one thread, for each cell of a grid (width 32 to 256, length 8 to 42
tokens, 1 to 6 layers a stack; 4 heads, batches of 64). The contenders take turns; each result is the median
of N steps after the first:

- ours: the app's own training step (`take_step`) on the app's own batches of random words of 1 to L letters,
  in which nearly half of the positions are padding;
- plain: `nn.Transformer` of the same size and arrangement (pre-norm, no dropout), with the same batch,
  loss, clipping and AdamW;
- full: both with words of exactly L letters, so that there is no padding to skip;
- floor: the matrix products of the padded batch alone, forward and backward, as plain `torch.mm` and
  `torch.bmm` of the same shapes.

Then prints how the step's time grows with each of the three sizes, with the others at their smallest.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.tools.measuring import end, options
from transformer.config import RunConfig
from transformer.model.layers import sinusoid
from transformer.tasks import Batch
from transformer.training.loop import take_step
from transformer.training.state import TrainState

WIDTHS, LENGTHS, LAYERS = (32, 64, 128, 256), (8, 16, 32, 42), (1, 2, 6)
HEADS, EXAMPLES = 4, 64
RATIO = 0.8


class Plain(nn.Module):
    """`nn.Transformer` arranged as the app's default (pre-norm), except for the scale of the embeddings."""

    positions: Tensor

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        model = config.model
        self.scale = model.d_model**0.5
        self.src_embedding = nn.Embedding(model.src_vocab_size, model.d_model)
        self.tgt_embedding = nn.Embedding(model.tgt_vocab_size, model.d_model)
        self.register_buffer("positions", sinusoid(model.max_len, model.d_model))
        self.transformer = nn.Transformer(
            model.d_model,
            model.n_heads,
            model.n_encoder_layers,
            model.n_decoder_layers,
            model.d_ff,
            dropout=0.0,
            batch_first=True,
            norm_first=True,
        )
        self.to_logits = nn.Linear(model.d_model, model.tgt_vocab_size)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Map token ids (B, S) and (B, T) to logits (B, T, V)."""
        mixed = self.transformer(
            self.src_embedding(src) * self.scale + self.positions[: src.size(1)],
            self.tgt_embedding(tgt) * self.scale + self.positions[: tgt.size(1)],
            tgt_mask=torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1),
            tgt_is_causal=True,
            src_key_padding_mask=src == 0,
            tgt_key_padding_mask=tgt == 0,
            memory_key_padding_mask=src == 0,
        )
        return self.to_logits(mixed)  # type: ignore[no-any-return]


def configured(width: int, length: int, layers: int, *, full: bool) -> RunConfig:
    """Return the default at these sizes; `length` is in tokens, including [SOS] and [EOS]."""
    letters = length - 2
    return RunConfig(threads=1, device="cpu").with_changes(
        d_model=width,
        d_ff=4 * width,
        n_heads=HEADS,
        n_encoder_layers=layers,
        n_decoder_layers=layers,
        batch_size=EXAMPLES,
        max_letters=letters,
        min_letters=letters if full else 1,
    )


def ours(config: RunConfig) -> tuple[Callable[[], object], Batch]:
    """Return the app's step, and the batch that it uses."""
    state = TrainState.begin(config)
    batch = state.task.batch(0, 0)

    def step() -> None:
        take_step(state, batch)
        state.unread.clear()

    return step, batch


def plain(config: RunConfig, batch: Batch) -> Callable[[], object]:
    """Return the same step with `nn.Transformer`."""
    model = Plain(TrainState.begin(config).config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    loss_of = nn.CrossEntropyLoss(ignore_index=0)
    src, tgt_in, labels = (torch.from_numpy(ids) for ids in (batch.src, batch.tgt_in, batch.tgt_out))

    def step() -> None:
        optimizer.zero_grad()
        loss = loss_of(model(src, tgt_in).flatten(0, 1), labels.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def floor(config: RunConfig, batch: Batch) -> Callable[[], object]:
    """Return a step of the matrix products alone: each once forward and twice backward."""
    model, (b, s), t = config.model, batch.src.shape, batch.tgt_in.shape[1]
    d, wide, heads = model.d_model, model.d_ff, b * model.n_heads
    read, written = b * s, b * t
    maps = [(read, d, d)] * 4 + [(read, d, wide), (read, wide, d)]
    linear = maps * model.n_encoder_layers
    maps = [(written, d, d)] * 6 + [(read, d, d)] * 2 + [(written, d, wide), (written, wide, d)]
    linear += maps * model.n_decoder_layers
    linear.append((written, d, model.tgt_vocab_size))
    sizes = [(s, s)] * model.n_encoder_layers + [(t, t), (t, s)] * model.n_decoder_layers
    k = model.d_head
    two = {shape: (torch.randn(shape[0], shape[1]), torch.randn(shape[1], shape[2])) for shape in linear}
    many = {
        (rows, columns): (
            torch.randn(heads, rows, k),
            torch.randn(heads, columns, k),
            torch.randn(heads, rows, columns),
        )
        for rows, columns in sizes
    }
    grown = {shape: torch.randn(shape[0], shape[2]) for shape in linear}

    def step() -> None:
        for shape in linear:
            x, w = two[shape]
            torch.mm(x, w)
            torch.mm(grown[shape], w.t())
            torch.mm(x.t(), grown[shape])
        for shape in sizes:
            q, v, weights = many[shape]
            for _ in range(2):  # scores, and the weighted sum of values: the same shapes
                torch.bmm(q, v.transpose(1, 2))
                torch.bmm(weights, v)
                torch.bmm(weights.transpose(1, 2), q)

    return step


def measure(width: int, length: int, layers: int, steps: int) -> dict[str, Any]:
    """Measure one cell of the grid: milliseconds of a step by contender, and the ratios."""
    config = configured(width, length, layers, full=False)
    our_step, batch = ours(config)
    config_full = configured(width, length, layers, full=True)
    our_full, batch_full = ours(config_full)
    contenders = {
        "ours": our_step,
        "plain": plain(config, batch),
        "ours_full": our_full,
        "plain_full": plain(config_full, batch_full),
        "floor": floor(config, batch),
    }
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(steps + 1):
        for name, step in contenders.items():
            began = time.thread_time()
            step()
            taken[name].append(1000 * (time.thread_time() - began))
    row: dict[str, Any] = {"d_model": width, "length": length, "layers": layers}
    row |= {name: round(statistics.median(times[1:]), 2) for name, times in taken.items()}
    row["ratio"] = round(row["ours"] / row["plain"], 3)
    row["ratio_full"] = round(row["ours_full"] / row["plain_full"], 3)
    row["over_floor"] = round(row["ours"] / row["floor"], 2)
    return row


def main() -> int:
    """Print a row for each cell; exit status 1 if the median ratio is above the limit."""
    arguments = options(__doc__, seeds=5, limit=900.0)
    torch.set_num_threads(1)
    write = sys.stdout.write
    write(
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, one thread\n"
    )
    write("width length layers    ours ms   plain ms  ratio   full: ratio   floor ms  ours over floor\n")
    rows: list[dict[str, Any]] = []
    began = time.perf_counter()
    grid = sorted(product(WIDTHS, LENGTHS, LAYERS), key=lambda cell: cell[0] * cell[1] * cell[2])
    for width, length, layers in grid:
        if time.perf_counter() - began > arguments.limit:
            write(f"{len(grid) - len(rows)} larger cells are left out: {arguments.limit:g} s are over\n")
            break
        row = measure(width, length, layers, arguments.seeds)
        rows.append(row)
        write(
            f"{width:5d} {length:6d} {layers:6d} {row['ours']:10.1f} {row['plain']:10.1f} "
            f"{row['ratio']:6.2f} {row['ratio_full']:13.2f} {row['floor']:10.1f} {row['over_floor']:16.1f}\n"
        )
        sys.stdout.flush()
    for name in ("ratio", "ratio_full", "over_floor"):
        values = [row[name] for row in rows]
        write(f"{name}: min {min(values):g}, median {statistics.median(values):g}, max {max(values):g}\n")
    for name, sizes in (("d_model", WIDTHS), ("length", LENGTHS), ("layers", LAYERS)):
        _growth(rows, name, sizes)
    met = {"step_at_most_0.8_of_plain": statistics.median(row["ratio"] for row in rows) <= RATIO}
    figures = {
        "one training step, relative to `nn.Transformer`": _spread(rows, "ratio"),
        "the same with words that leave no padding": _spread(rows, "ratio_full"),
        "one training step, relative to its matrix products alone": _spread(rows, "over_floor"),
    }
    return end(arguments, rows, met, figures)


def _spread(rows: list[dict[str, Any]], name: str) -> str:
    values = [row[name] for row in rows]
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _growth(rows: list[dict[str, Any]], name: str, sizes: tuple[int, ...]) -> None:
    """Print how the step's time grows with one size, with the others at their smallest."""
    least = {"d_model": WIDTHS[0], "length": LENGTHS[0], "layers": LAYERS[0]}
    least.pop(name)
    taken = {
        row[name]: row["ours"] for row in rows if all(row[other] == size for other, size in least.items())
    }
    grown = ", ".join(f"{size}: {taken[size]:.1f} ms" for size in sizes if size in taken)
    sys.stdout.write(f"grows with {name}: {grown}\n")


if __name__ == "__main__":
    sys.exit(main())
