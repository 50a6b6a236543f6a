"""One training spread over several processes that PyTorch's launcher starts."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.conftest import table_of
from tests.training.conftest import MODULE, complaints, launch
from transformer.commands.line import NAMES, place
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.storage.saved import read_run
from transformer.training import distributed as spread_module
from transformer.training.distributed import Distributed
from transformer.training.loop import train
from transformer.training.state import TrainState

NUMBERS = ("loss", "token_accuracy", "gradient_norm", "learning_rate")


def numbers_of(config):
    """Return losses, token accuracies, gradient norms and learning rates of every step, by one process."""
    reports = list(train(TrainState.begin(config)))
    names = ("losses", "token_accuracies", "gradient_norms", "learning_rates")
    return np.array([[number for report in reports for number in getattr(report, name)] for name in names])


@pytest.fixture(scope="module")
def uneven(tiny_run):
    """A configuration with batches of 7."""
    return tiny_run.with_changes(batch_size=7, steps=60, evaluate_every=30)


@pytest.fixture(scope="module")
def by_two(uneven, tmp_path_factory):
    """The same configuration trained by two processes: the result of the launcher, and the file."""
    home = tmp_path_factory.mktemp("by_two")
    (home / "uneven.json").write_text(uneven.to_json(), encoding="utf-8")
    done = launch(*MODULE, "train", "--config", home / "uneven.json", "--json", "--out", home / "run")
    assert done.returncode == 0, done.stderr
    return done, home / "run.headlight"


def test_two_processes_report_the_same_numbers_as_one_on_the_same_batches(by_two, uneven):
    table = table_of(by_two[1])
    assert table["step"].tolist() == list(range(1, uneven.train.steps + 1))
    for name, ours in zip(NUMBERS, numbers_of(uneven), strict=True):
        # a norm sums many gradients, with the rounding error of each
        np.testing.assert_allclose(table[name], ours, atol=1e-5, rtol=1e-4 if "norm" in name else 0)


def test_the_file_is_written_once_and_holds_the_same_run_as_that_of_one(by_two, uneven, make_run, until):
    _, folder = by_two
    run, steps = make_run(uneven, every_step=False), uneven.train.steps
    run.start()
    until(lambda: run.view.state == "finished")
    theirs, ours = read_run(folder).view, run.view
    assert theirs.config.differences(TrainState.begin(uneven).config) == {"threads": (1, None)}
    assert theirs.state == "finished"
    assert len(theirs.frames) > 3  # every step, or fewer if the machine is busy
    assert (
        {0, steps // 2, steps} <= {snapshot.step for snapshot in theirs.snapshots} == {*theirs.frames.steps}
    )
    last = dict(theirs.snapshots[-1].weights)
    assert set(last) == set(ours.snapshots[-1].weights)
    for name, weights in ours.snapshots[-1].weights.items():
        if not name.endswith("to_key.bias"):  # its gradient is only rounding error, which Adam amplifies
            np.testing.assert_allclose(last[name], weights, atol=1e-3)


def test_one_process_prints_and_none_warns(by_two, uneven):
    done, _ = by_two
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["steps"] == 60
    assert "60/60" in done.stderr
    assert done.stderr.count("\n") == 1  # one at the end of each progress bar
    assert "arning" not in done.stderr


TOGETHER = """
import json, sys
from pathlib import Path
from transformer.commands.line import place
from transformer.config import RunConfig
from transformer.training.loop import train
from transformer.training.distributed import Distributed
from transformer.training.loop import follow
from transformer.training.state import TrainState

source, result = map(Path, sys.argv[1:])
configs = [RunConfig.from_json(text) for text in json.loads(source.read_text())]
distributed = Distributed.join(configs[0], *place())
found = []
for config in configs:
    if distributed.leads:
        reports = list(train(TrainState.begin(config, distributed)))
        names = ("losses", "token_accuracies", "gradient_norms", "learning_rates")
        found.append([[number for report in reports for number in getattr(report, name)] for name in names])
        distributed.announce_end()
    else:
        follow(config, distributed)
if distributed.leads:
    result.write_text(json.dumps(found))
distributed.leave()
"""


@pytest.mark.slow
def test_partial_batches_all_topologies_and_all_losses_have_the_numbers_of_one_process(tiny, tmp_path):
    """Includes batches of one example, which leave a process empty, and gradients that are always clipped."""
    configs = [
        tiny(steps=40, examples=13, batch_size=6, topology="encoder-only"),
        tiny(steps=40, batch_size=5, topology="decoder-only", label_smoothing=0.1, clip=0.05),
        tiny(steps=40, batch_size=2, padding_mask=False, optimizer="adam"),
        # Only 15 steps: from step 20 on, rounding errors grow; even reversing the rows changes the losses.
        RunConfig(device="cpu").with_changes(steps=15),
    ]
    (tmp_path / "program.py").write_text(TOGETHER)
    (tmp_path / "configs.json").write_text(json.dumps([config.to_json() for config in configs]))
    done = launch(tmp_path / "program.py", tmp_path / "configs.json", tmp_path / "result.json")
    assert done.returncode == 0, done.stderr
    for config, theirs in zip(configs, json.loads((tmp_path / "result.json").read_text()), strict=True):
        np.testing.assert_allclose(theirs, numbers_of(config), atol=1e-5, rtol=1e-5)


def place_of(rank, n=2):
    """Return one of n processes without a launcher, for code that does not communicate."""
    return Distributed(rank=rank, n_processes=n, device=torch.device("cpu"))


@pytest.mark.parametrize("n", [2, 3, 7])
def test_every_row_of_a_batch_goes_to_exactly_one_process(n):
    batch = tuple(torch.arange(1, 7 * width + 1).view(7, width) for width in (4, 5, 6))
    shares = [place_of(rank, n).share(*batch, pad_id=0) for rank in range(n)]
    for whole, parts in zip(batch, zip(*shares, strict=True), strict=True):
        assert sorted(torch.cat(parts).tolist()) == whole.tolist()
        assert {len(part) for part in parts} <= {7 // n, -(-7 // n)}


def test_a_process_without_a_row_gets_the_first_row_without_labels():
    batch = tuple(torch.arange(1, 2 * width + 1).view(2, width) for width in (4, 5, 6))
    src, tgt_in, labels = place_of(2, 3).share(*batch, pad_id=0)
    assert (src.tolist(), tgt_in.tolist()) == (batch[0][:1].tolist(), batch[1][:1].tolist())
    assert labels.tolist() == [[0] * 6]


def test_each_process_has_its_own_dropout_seed_and_the_first_has_the_seed_of_a_single_one(tiny):
    def seed(distributed):
        return TrainState.begin(tiny(dropout=0.4), distributed).dropout.initial_seed()

    places = [SimpleNamespace(rank=r, device=torch.device("cpu"), wrap=lambda model: model) for r in range(3)]
    seeds = [seed(one) for one in places]
    assert len(set(seeds)) == 3
    assert seeds[0] == seed(None)


def test_a_process_without_a_launcher_is_alone(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert place() is None
    monkeypatch.setenv("WORLD_SIZE", "4")  # some clusters set it without a launcher
    assert place() is None
    for name, value in zip(NAMES, "2401", strict=True):
        monkeypatch.setenv(name, value)
    assert place() == (2, 4, 0, 1)
    for name, value in zip(NAMES, "0101", strict=True):
        monkeypatch.setenv(name, value)
    assert place() is None


@pytest.mark.slow
def test_a_refusal_is_reported_by_one_of_the_processes_in_one_line(config_file, tmp_path):
    arguments = ("train", "--config", config_file, "--set", "batch_size=1", "--out", tmp_path / "run")
    done = launch(*MODULE, *arguments)
    assert done.returncode != 0
    assert complaints(done.stderr) == [
        "A batch of 1 cannot be spread over 2 processes; choose a batch_size of at least 2, or start fewer "
        "processes."
    ]
    assert not (tmp_path / "run.headlight").exists()


CUDA, MPS, CPU = ("cuda", "cpu"), ("mps", "cpu"), ("cpu",)


@pytest.fixture
def machine(monkeypatch):
    """Simulate a machine with these devices and this many GPUs; return the backends that were started."""
    met = []

    def make(available, n_gpus):
        monkeypatch.setattr("transformer.training.device.available_devices", lambda: available)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in available)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
        monkeypatch.setattr(spread_module.dist, "init_process_group", met.append)
        return met

    return make


@pytest.mark.parametrize(
    ("available", "changes", "message"),
    [
        (
            CPU,
            {"batch_size": 1},
            "^A batch of 1 cannot be spread over 2 processes; choose a batch_size of at ",
        ),
        (
            CUDA,
            {"device": "auto"},
            "^2 processes need a GPU each, and this machine has 1; start at most that",
        ),
        (CUDA, {"device": "cuda"}, "or choose the device cpu.$"),
        (MPS, {"device": "mps"}, "^Several processes cannot share mps; choose the device cpu.$"),
        (CPU, {"device": "cuda"}, "^This machine has no cuda device; it has cpu."),
    ],
)
def test_a_batch_or_device_that_processes_cannot_share_is_refused(tiny, machine, available, changes, message):
    met = machine(available, n_gpus=1)
    with pytest.raises(InputError, match=message):
        Distributed.join(tiny(**changes), 0, 2, 0, 2)
    assert met == []


@pytest.mark.parametrize(
    ("available", "device", "expected"),
    [(CUDA, "auto", "cuda:1"), (CUDA, "cuda", "cuda:1"), (CUDA, "cpu", "cpu"), (MPS, "auto", "cpu")],
)
def test_each_process_has_a_gpu_of_its_own_and_all_share_the_cpu(tiny, machine, available, device, expected):
    met = machine(available, n_gpus=2)
    assert str(Distributed.join(tiny(device=device), 3, 4, 1, 2).device) == expected
    assert met == ["cpu:gloo,cuda:nccl" if expected != "cpu" else "gloo"]
