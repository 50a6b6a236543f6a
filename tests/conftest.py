"""Fixtures that the tests share: tiny configurations, models with random weights, short runs."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.model.transformer import PAD_ID, Transformer
from transformer.recording.view import RunView
from transformer.runs.run import Run
from transformer.shared.interventions import Interventions
from transformer.tasks import Batch, Task
from transformer.training.loop import train
from transformer.training.state import TrainState

TINY_MODEL = ModelConfig(
    src_vocab_size=13,
    tgt_vocab_size=17,
    max_len=11,
    n_encoder_layers=1,
    n_decoder_layers=2,
    n_heads=3,
    d_model=12,
    d_ff=10,
)
TINY_RUN = RunConfig(
    model=TINY_MODEL,
    train=TrainConfig(max_letters=5, batch_size=6, steps=8, warmup_steps=3, evaluate_every=4),
    device="cpu",
)


# Unless a test sets it otherwise, no run is saved and pages open with an untrained model; servers that tests
# start inherit this.
os.environ["HEADLIGHT_RUNS"] = os.environ["HEADLIGHT_RECORDING"] = ""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two processes for each processor, since many tests wait; one where each has a server and a browser."""
    processors = os.cpu_count() or 1
    without_browser = config.option.markexpr.startswith("not browser")
    return min(4, 2 * processors if without_browser else processors)


def pytest_collection() -> None:
    """Collect without garbage collection, which takes a third of the processor time of collecting tests."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt modules and tests from garbage collection: they are never released."""
    gc.freeze()
    gc.enable()


LIVE, HELD_OUT = 40, 100
"""Numbers of held-out words on which test runs are evaluated: during training, and at the end."""


@pytest.fixture(autouse=True, scope="session")
def few_words() -> Iterator[None]:
    """Evaluate on fewer words: the usual 200 and 1,000 take a short run longer than its training."""
    held_out = Task.held_out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer.tasks.task.N_LIVE", LIVE)
        patch.setattr(Task, "held_out", lambda task: held_out(task)[:HELD_OUT])
        yield


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Use the default thread count of configurations, so that equal results are bit-equal."""
    torch.set_num_threads(1)


def fill(module: torch.nn.Module, deviation: float = 0.4) -> torch.nn.Module:
    """Fill every parameter, including biases and gains, with random numbers seeded by its name."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            parameter.normal_(0.0, deviation, generator=generator)
            if "norm" in name and name.endswith("weight"):
                parameter.add_(1.0)
    return module


@pytest.fixture(name="fill")
def fill_fixture() -> Callable[..., torch.nn.Module]:
    return fill


@pytest.fixture
def tiny_model() -> ModelConfig:
    """1 encoder layer, 2 decoder layers, 3 heads, width 12."""
    return TINY_MODEL


@pytest.fixture(scope="session")
def tiny_run() -> RunConfig:
    """The configuration of a run of eight steps."""
    return TINY_RUN


@pytest.fixture
def tiny() -> Callable[..., RunConfig]:
    """Return the configuration of a run of eight steps, with settings changed by name."""
    return TINY_RUN.with_changes


@pytest.fixture
def sentences() -> Callable[..., torch.Tensor]:
    """Return random token ids of the given lengths, padded at the end: (B, longest)."""

    def make(lengths: list[int], vocabulary: int, seed: int = 0) -> torch.Tensor:
        ids = torch.full((len(lengths), max(lengths)), PAD_ID)
        generator = torch.Generator().manual_seed(seed)
        for row, n in zip(ids, lengths, strict=True):
            row[:n] = torch.randint(1, vocabulary, (n,), generator=generator)
        return ids

    return make


@pytest.fixture
def batch_of() -> Callable[..., Batch]:
    """Return a batch for an encoder-decoder from sources (B, S) and, optionally, right answers (B, A)."""

    def make(src: torch.Tensor, answers: torch.Tensor | None = None) -> Batch:
        first = np.ones((len(src), 1), dtype=np.int64)
        labels = np.zeros((len(src), 0), dtype=np.int64) if answers is None else answers.numpy()
        tgt_in = np.concatenate([first, labels[:, :-1]], axis=1)
        return Batch(src.numpy(), tgt_in, labels, labels, first)

    return make


@pytest.fixture
def model(tiny_model: ModelConfig) -> Transformer:
    """The tiny model in eval mode, with no parameter left at zero or one."""
    made = fill(Transformer(tiny_model)).eval()
    assert isinstance(made, Transformer)
    return made


@pytest.fixture(scope="session")
def half_trained() -> TrainState:
    """A model that reverses only some short words. Read-only: do not train it further."""
    config = RunConfig(
        model=ModelConfig(n_encoder_layers=1, n_decoder_layers=1, n_heads=2, d_model=32, d_ff=40),
        train=TrainConfig(max_letters=4, batch_size=32, steps=130, warmup_steps=20, evaluate_every=1000),
        seed=3,
        device="cpu",
    )
    state = TrainState.begin(config)
    for _ in train(state):
        pass
    return state


@pytest.fixture(scope="session")
def changed_midway() -> Callable[..., RunView]:
    """Finish a run with an intervention midway, join its threads and return its view."""

    def finish(run: Run, steps: int, taken: Interventions, word: str | None = None) -> RunView:
        assert run.ready.wait(60)
        run.advance(steps).result(30)
        assert run.wait(60)
        run.intervene(taken).result(30)
        if word is not None:
            run.add_word(word)
        run.resume().result(30)
        assert run.wait(60)
        run.close()
        run.join()
        assert run.view.state == "finished", run.view.reason
        return run.view

    return finish


@pytest.fixture
def losses() -> Callable[[RunConfig], list[float]]:
    """Return the losses of a complete training by the `train` generator, without a run."""

    def of(config: RunConfig) -> list[float]:
        return [loss for report in train(TrainState.begin(config)) for loss in report.losses]

    return of


@pytest.fixture
def every_right(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that makes every later answer right."""

    def spelled(model: object, task: object, words: list[str], **_: object) -> SimpleNamespace:
        return SimpleNamespace(exact=[True] * len(words), loss=0.0)

    return lambda: monkeypatch.setattr("transformer.training.evaluation.spell", spelled)


def facts_of(path: Path) -> dict[str, Any]:
    """Return the fact `run` in the file of a run; an empty dictionary where there is none."""
    return json.loads(fact_of(path, "run") or b"{}")


def fact_of(path: Path, name: str) -> bytes | None:
    """Return a fact in the file of a run, read by plain SQLite."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as database:
        if not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            return None
        row = database.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        return row and row[0]


def change(path: Path, sql: str, *values: object) -> None:
    """Change the file of a run by plain SQLite."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(sql, values)
        database.commit()


def with_facts(path: Path, **changes: object) -> None:
    """Change values of the fact `run`."""
    facts = json.dumps({**facts_of(path), **changes}).encode()
    change(path, "UPDATE fact SET value = ? WHERE name = 'run'", facts)


def table_of(path: Path) -> Any:
    """Return the numbers of every step in the file of a run as a table."""
    from transformer.storage.saved import read_run

    return read_run(path).view.metrics.table()


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Wait until another thread makes a condition true."""

    def wait(condition: Callable[[], object], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.002)

    return wait


@pytest.fixture
def make_run() -> Iterator[Callable[..., Run]]:
    """Return a new run; its threads end after the test."""
    made: list[Run] = []

    def make(config: RunConfig, **settings: object) -> Run:
        made.append(Run(config, **settings))
        return made[-1]

    yield make
    for run in made:
        run.close()
    for run in made:
        run.join()
