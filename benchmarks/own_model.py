"""The cost of `Watch` in a user's own training loop, for seven models; for two of them, also with `measure=`.

    python -m benchmarks.own_model [--seeds N] [--limit SECONDS] [--json]

Each model is trained N times for `--limit` seconds. Measures the share of processor time that `Watch` takes,
in the loop and in the thread that writes the folder. (On a shared machine, the times of two trainings differ
by chance by more than this share, so training with and without `Watch` is not compared.) Then, for a
Transformer of 6 + 6 layers, measures the time of an observed pass with all 18 attentions, at three sizes, and
of a recorded step, with all and with one of them in `sites`, relative to a forward pass without gradients.
PyTorch's fast path of whole encoder layers is off for it, as in a training.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.tools.measuring import end, options
from transformer import Watch
from transformer.watching.attention import Observer

SHARE, MORE = 0.03, 0.02
"""The requested share of the time, and how far it may be exceeded."""
WATCHING = "watching seven models of one's own, two of them with `measure=`, of 15 s of their training's time"
PASSES = 2.5
"""Forward passes that an observed one may take, but for the smallest model: it takes 0.6 ms an attention."""
SIZES = ((64, 4, 24, 1), (128, 4, 32, 4), (256, 8, 64, 4))
"""Width, heads, length and examples of observed passes."""
D, HEADS, LENGTH, BATCH = 64, 4, 24, 32
OBSERVED = 40


class Bare(nn.Module):
    """Layers of `nn.MultiheadAttention` alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.MultiheadAttention(D, HEADS, batch_first=True) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x, x, x, need_weights=False)[0]
        return x


class HandWritten(nn.Module):
    """A hand-written attention: a softmax and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.qkv:
            q, k, v = layer(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            x = x + self.attend(q, k, v).transpose(1, 2).flatten(2)
        return x

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q @ k.mT / 4).softmax(-1) @ v


class Fused(HandWritten):
    """The same with PyTorch's fused attention."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _translator(layers: int = 2, width: int = D, heads: int = HEADS) -> nn.Module:
    return nn.Transformer(width, heads, layers, layers, 4 * width, batch_first=True)


def _encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(D, HEADS, 4 * D, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=True)


def _gpt() -> nn.Module:
    from transformers import GPT2Config, GPT2Model

    return GPT2Model(GPT2Config(vocab_size=64, n_positions=LENGTH, n_embd=D, n_layer=4, n_head=HEADS))


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    sizes = {
        "hidden_size": D,
        "num_hidden_layers": 4,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * D,
    }
    return BertModel(BertConfig(vocab_size=64, **sizes))


def _vectors(n: int) -> Tensor:
    return torch.randn(n, LENGTH, D)


def _ids(n: int) -> dict[str, Tensor]:
    return {"input_ids": torch.randint(64, (n, LENGTH))}


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Any]]] = {
    "nn.Transformer": (_translator, lambda n: (_vectors(n), _vectors(n))),
    "nn.TransformerEncoder": (_encoder, _vectors),
    "nn.MultiheadAttention": (Bare, _vectors),
    "GPT-2": (_gpt, _ids),
    "BERT": (_bert, _ids),
    "hand-written": (HandWritten, _vectors),
    "fused": (Fused, _vectors),
}


MEASURED = "nn.Transformer", "GPT-2"
"""The models whose heads are switched off as well, each time for one batch."""


def _loss(model: nn.Module, inputs: Any) -> Tensor:
    if isinstance(inputs, dict):
        out = model(**inputs).last_hidden_state
    else:
        out = model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    return (out**2).mean()


def _steps(model: nn.Module, draw: Callable[[int], Any]) -> Iterator[float]:
    """Train forever; yields the loss of each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    while True:
        loss = _loss(model, draw(BATCH))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def share_of(kind: str, seconds: float, folder: Path, *, measured: bool) -> float:
    """Return the share of a training's processor time that watching takes."""
    torch.manual_seed(0)
    make, draw = KINDS[kind]
    model = make()
    batch = draw(BATCH)
    measure = (lambda model: _loss(model, batch)) if measured else None
    watch = Watch(model, {"x": draw(1)}, folder, share=SHARE, measure=measure)
    steps = _steps(model, draw)
    next(steps)
    began, used = time.perf_counter(), time.process_time()
    for n, loss in enumerate(steps, start=1):
        watch.step(n, loss=loss)
        if time.perf_counter() - began >= seconds:
            break
    share = watch.seconds / (time.process_time() - used)
    watch.close()
    assert not watch.problem, watch.problem
    return share


def observed_seconds(sites: tuple[str, ...], folder: Path) -> float:
    """Return the seconds that recording one step of a model with 18 attentions takes."""
    torch.manual_seed(0)
    watch = Watch(_translator(6), {"x": (_vectors(1), _vectors(1))}, folder, sites=sites, share=1.0)
    for step in count(1):
        time.sleep(0.02)  # so that every step is due, and the folder can be written
        watch.step(step)
        if step == OBSERVED:
            break
    watch.close()
    return watch.seconds / OBSERVED


def pass_seconds(width: int, heads: int, length: int, n: int) -> tuple[float, float]:
    """Return the median seconds of an observed pass of a model like it, and of a forward pass."""
    torch.manual_seed(0)
    model, inputs = _translator(6, width, heads).eval(), tuple(torch.randn(2, n, length, width))
    observer = Observer(model, None, ("*",), length)
    observer.look(inputs)  # learns how the model arranges its attentions
    observed, bare = [], []
    with torch.no_grad():
        for _ in range(OBSERVED):
            began = time.perf_counter()
            observer.look(inputs)
            observed.append(time.perf_counter() - began)
            torch.backends.mha.set_fastpath_enabled(False)
            began = time.perf_counter()
            model(*inputs)
            bare.append(time.perf_counter() - began)
            torch.backends.mha.set_fastpath_enabled(True)
    return statistics.median(observed), statistics.median(bare)


def main() -> int:
    """Print a line for each model, then the time of a recorded step; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=3, limit=15.0)
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as name:
        place = Path(name)
        for kind, measured in (*((kind, False) for kind in KINDS), *((kind, True) for kind in MEASURED)):
            shares = []
            for number in range(arguments.seeds):
                file = place / f"{kind}-{number}-{measured}"
                shares.append(share_of(kind, arguments.limit, file, measured=measured))
            kind += ", with measure" if measured else ""
            rows.append({"model": kind, "share": statistics.median(shares), "shares": shares})
            rounds = ", ".join(f"{share:.1%}" for share in shares)
            sys.stdout.write(f"{kind}: {rows[-1]['share']:.1%} of the time ({rounds})\n")
        passes = [pass_seconds(*size) for size in SIZES]
        every, one = (
            observed_seconds(("*",), place / "all"),
            observed_seconds(("decoder.layers.5.self_attn",), place / "one"),
        )
    sys.stdout.write(
        f"a recorded step: {1e3 * every:.1f} ms with 18 attentions, {1e3 * one:.1f} ms with one; observed "
        f"and forward passes of widths {', '.join(str(size[0]) for size in SIZES)}: "
        f"{'; '.join(f'{1e3 * a:.1f} and {1e3 * b:.1f} ms' for a, b in passes)}\n"
    )
    most = max(max(row["shares"]) for row in rows)
    ratios, forward = [a / b for a, b in passes], passes[0][1]
    figures = {
        f"{WATCHING} (3% asked for, and .15 s)": f"{most:.1%} at most",
        "an observed pass, relative to a forward pass of an `nn.Transformer` with 18 attentions, of width "
        f"{', '.join(str(size[0]) for size in SIZES)}": ", ".join(f"{ratio:.1f}" for ratio in ratios),
        f"recording a step of it, relative to a forward pass, at width {D}: all 18 attentions, and one": (
            f"{every / forward:.1f}, and {one / forward:.1f}"
        ),
    }
    return end(
        arguments,
        [*rows, {"all": every, "one": one, "passes": passes}],
        {"share": most <= SHARE + MORE, "observed_pass": max(ratios[1:]) <= PASSES},
        figures,
    )


if __name__ == "__main__":
    sys.exit(main())
