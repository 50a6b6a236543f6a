"""Watching a training loop of the user's own: what is recorded and when; the training is unaffected."""

from __future__ import annotations

import gc
import html
import json
import os
import random
import re
import subprocess
import sys
import threading
import warnings
import weakref
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from tests.conftest import facts_of
from tests.watching.conftest import Toy, kept, recorded, training
from transformer import Watch, attention_of
from transformer.player.pictures import run_curves
from transformer.storage.saved import read_run
from transformer.watching import watch as module

EXAMPLE = torch.linspace(-1, 1, 35).reshape(1, 7, 5)
QUANTIZATION_TOLERANCE = 0.5 / 65534 + 1e-6
DRAWN = count()
EVEN = {"mine": torch.full((1, 2, 3, 3), 1 / 3)}


def said(watched):
    return " ".join(str(one.message) for one in watched.said)


def test_recorded_weights_are_those_of_a_direct_call_under_the_names_of_the_model(watched):
    torch.manual_seed(1)
    model = nn.Transformer(12, 3, 1, 2, 20, dropout=0.5, batch_first=True)
    pair = torch.randn(2, 7, 12), torch.randn(2, 5, 12)
    watch = watched(model, {"pair": pair})
    with torch.no_grad():
        for one in model.parameters():
            one += 0.1
    expected = attention_of(model, pair)
    view = recorded(watch)
    assert list(view.frames.words) == ["pair 1", "pair 2"]
    assert view.frames.steps == (0, 1)
    for i, word in enumerate(view.frames.words):
        maps = view.frames.of_step(1).maps[view.frames.of_step(1).row_of(word)]
        assert list(maps) == [
            "encoder.layers.0.self_attn",
            *(f"decoder.layers.{n}.{kind}" for n in range(2) for kind in ("self_attn", "multihead_attn")),
        ]
        for site, weights in maps.items():
            np.testing.assert_allclose(weights, expected[site][i], atol=QUANTIZATION_TOLERANCE)
            np.testing.assert_allclose(np.nansum(weights, axis=-1), 1, atol=1e-4)
    assert not np.allclose(view.frames.of_step(0).maps[0][site], view.frames.of_step(1).maps[0][site])


def state_of(model):
    hooks = [(len(one._forward_hooks), len(one._forward_pre_hooks)) for one in model.modules()]
    modes = [one.training for one in model.modules()]
    gradients = [
        None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()
    ]
    return hooks, modes, gradients


def test_watching_changes_no_bit_of_200_losses_or_of_the_state_of_the_model(toy, watched):
    start = {name: one.clone() for name, one in toy.state_dict().items()}
    torch.manual_seed(9)
    alone = training(toy, 200)
    after, random = state_of(toy), torch.get_rng_state()
    toy.load_state_dict(start)
    toy.zero_grad()
    torch.manual_seed(9)
    watch = watched(toy, {"line": EXAMPLE})
    assert training(toy, 200, watch) == alone
    watch.close()
    for one, other in zip(after[:2], state_of(toy)[:2], strict=True):
        assert one == other
    assert all(torch.equal(one, other) for one, other in zip(after[2], state_of(toy)[2], strict=True))
    assert torch.equal(random, torch.get_rng_state())
    assert len(kept(watch).frames) > 150


def test_an_exception_in_the_loop_leaves_the_model_unchanged_and_the_run_failed(toy, watched):
    before = state_of(toy)
    with pytest.raises(ArithmeticError), watched(toy, {"line": EXAMPLE}) as watch:
        training(toy, 5, watch, fails_at=3)
    assert state_of(toy)[:2] == before[:2]
    view = kept(watch)
    assert (view.state, view.reason, view.step) == ("failed", "ArithmeticError: no more", 3)


def test_every_number_of_every_step_is_recorded_as_a_curve(toy, watched):
    watch = watched(toy, {"line": EXAMPLE})
    for step in (0, 1, 2, 5):
        watch.step(step, loss=float("nan") if step == 2 else 3.0 - step, accuracy=step / 10)
    watch.close()
    metrics = kept(watch).metrics
    assert metrics.column("step").tolist() == [0, 1, 2, 5]
    np.testing.assert_equal(metrics.column("loss"), [3.0, 2.0, np.nan, -2.0])
    assert metrics.column("accuracy").tolist() == [0.0, 0.1, 0.2, 0.5]
    assert list(metrics.table())[-1] == "accuracy"


def of_function(watched, attention):
    """Watch a model whose attention a function returns; every step may be recorded."""
    return watched(nn.Linear(1, 1), {"x": torch.zeros(1)}, attention=attention)


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


def test_watching_takes_its_share_of_the_time_and_records_densely_at_first(watched, monkeypatch):
    clock = Clock()

    def weights(model, inputs):
        clock.now += 0.05
        return EVEN

    monkeypatch.setattr(module, "time", clock)
    watch = watched(nn.Linear(1, 1), {"x": torch.zeros(1)}, attention=weights, share=0.1)
    for step in range(1, 301):
        clock.now += 0.02
        watch.step(step)
    assert watch.seconds <= 0.1 * (clock.now - 100.0) + module.CREDIT_SECONDS + 0.1
    assert watch.seconds > 0.9 * 0.1 * 300 * 0.02
    watch.close()
    steps = kept(watch).frames.steps
    assert steps[:4] == (0, 1, 2, 3)
    later = np.diff(steps[5:-1])
    assert later.min() >= 15
    assert later.max() <= 30


def test_a_long_training_is_recorded_ever_more_sparsely(watched):
    watch = of_function(watched, lambda model, inputs: EVEN)
    steps = recorded(watch, range(1, 2_001)).frames.steps
    assert steps[:129] == tuple(range(129))
    assert all(later - one <= 1 + one // module.SPARSER for one, later in zip(steps, steps[1:], strict=False))
    assert len(steps) < 64 + 64 * np.log(2_000 / 64) + 70


def test_a_head_that_takes_a_role_is_a_moment_at_its_step(watched):
    calls = []

    def weights(model, inputs):
        calls.append(1)  # the first call is for step 0
        even = torch.full((4, 4), 0.25)
        previous = torch.roll(torch.eye(4), 1, 0) * 0.8 + 0.05
        return {"a.0": torch.stack([even, previous if len(calls) > 3 else even])[None]}

    view = recorded(of_function(watched, weights), range(1, 6))
    found = [(moment.step, moment.site, moment.head, moment.text) for moment in view.moments]
    assert found == [(3, "a.0", 1, "a.0, head 2: looks one token back")]
    assert view.turned_at == (3, "a.0", 1)
    assert view.frame.role("a.0", 1) == "looks one token back 85%"


def test_attentions_with_different_numbers_of_heads_are_kept_side_by_side(watched):
    few, many = torch.full((1, 2, 3, 3), 1 / 3), torch.eye(3).flip(0).expand(1, 5, 3, 3)
    view = recorded(of_function(watched, lambda model, inputs: {"a.0": few, "a.1": many}))
    assert said(watched) == ""
    assert [view.frame.n_heads(site) for site in ("a.0", "a.1")] == [2, 5]
    assert {site: len(of["focus"]) for site, of in view.frame.head_scores.items()} == {"a.0": 2, "a.1": 5}
    assert view.frame.clearest[0] == "a.1"
    np.testing.assert_allclose(view.frame.map(0, "a.1"), many[0], atol=QUANTIZATION_TOLERANCE)


def test_examples_of_different_lengths_are_recorded_side_by_side(toy, watched):
    watch = watched(toy, {"short": EXAMPLE[:, :4], "long": EXAMPLE}, tokens={"short": "abcd"})
    view = recorded(watch, range(1, 4))
    assert said(watched) == ""
    assert view.frames.steps == (0, 1, 2, 3)
    shapes = {
        word.text: of["body.layers.0.self_attn"].shape
        for word, of in zip(view.frame.words, view.frame.maps, strict=True)
    }
    assert shapes == {"short": (3, 4, 4), "long": (3, 7, 7)}


class Random(Toy):
    """A forward pass that draws from streams other than PyTorch's own, and changes a buffer."""

    def __init__(self):
        super().__init__()
        self.own = torch.Generator().manual_seed(4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        noise = torch.randn(1, generator=self.own) + np.random.rand() + random.random()
        return super().forward(x + 0.01 * noise.float())


def test_random_streams_of_a_model_and_its_buffers_stay_as_they_were(watched):
    def losses(observed):
        torch.manual_seed(5)
        random.seed(1)
        np.random.seed(2)
        model = Random()
        watch = watched(model, {"line": EXAMPLE}) if observed else None
        return training(model, 30, watch), model.calls.item()

    assert losses(True) == losses(False)
    assert said(watched) == ""


def test_a_lazy_model_is_looked_at_when_its_parameters_are_initialised(watched):
    def losses(observed):
        torch.manual_seed(5)
        model = nn.Sequential(nn.LazyLinear(12), Toy().body, nn.LazyLinear(5))
        watch = watched(model, {"line": EXAMPLE}) if observed else None
        first = model(EXAMPLE).sum().item()  # a loop calls the model before its optimiser is made
        return [first, *training(model, 20, watch)], watch

    with_watch, watch = losses(True)
    assert with_watch == losses(False)[0]
    watch.close()
    assert kept(watch).frames.steps == tuple(range(1, 21))


def test_looks_in_two_threads_leave_the_switches_of_pytorch_as_they_were(tmp_path):
    def loop(name):
        with Watch(Toy(), {"line": EXAMPLE}, tmp_path / name, share=1.0) as watch:
            for step in range(1, 15):
                watch.step(step, loss=1.0)

    threads = [threading.Thread(target=loop, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert torch.backends.mha.get_fastpath_enabled()
    assert len(list(tmp_path.glob("*.headlight"))) == 2


# What can go wrong.


def growing(model, inputs):
    model.n = getattr(model, "n", 2) + 1
    return {"grows": torch.full((1, 2, model.n, model.n), 1 / model.n)}


@pytest.mark.parametrize(
    ("model", "how", "sentence"),
    [
        (nn.Linear(5, 5), {}, "Linear has no attention that can be observed: neither a fused one of PyTorch"),
        (
            Toy(),
            {"attention": growing},
            "From step 1 on grows cannot be recorded: its shape is now (2, 4, 4); give Watch inputs of",
        ),
        (Toy(), {"attention": lambda model, x: {"mine": x}}, "'mine' are of shape (1, 7, 5); expected is"),
        (Toy(), {"attention": lambda model, x: 1 / 0}, "ZeroDivisionError: division by zero"),
        (Toy(), {"sites": ("decoder.*",)}, "can be observed and matches decoder.*"),
        (Toy(), {"tokens": {"line": {"*": list("abc")}}}, "has 7 positions, but 3 tokens were given for"),
        (Toy(), {"tokens": {"line": {"cross*": "abc"}}}, "no attention is called 'cross*'; there are body"),
        (Toy(), {"tokens": {"word": "abc"}}, "there is no input 'word'"),
        (Toy(), {"tokens": {"line": torch.arange(7)}}, "those of 'line' are no lists of texts"),
        (
            Toy(),
            {"tokens": {"line": "abc"}},
            "3 were given for 'line', and no attention has so many positions",
        ),
        (Toy(), {"attention": lambda model, x: {"a": torch.full((1, 65, 3, 3), 1 / 3)}}, "it has 65 heads"),
        (Toy(), {"attention": lambda model, x: {"a": torch.full((1, 2, 3, 3), 1.5)}}, "go from 1.5 to 1.5"),
        (Toy(), {"attention": lambda model, x: {"a": torch.full((1, 2, 3, 3), 0.5)}}, "'a' add up to 1.5"),
        (Toy(), {"inputs": EXAMPLE}, "inputs is a mapping of names to inputs"),
        (Toy(), {"share": 0}, "share=0 is no share of the time"),
        (Toy(), {"share": "3%", "measure": lambda model: 0.0}, "share='3%' is no share of the time"),
        (Toy(), {"out": "/proc/headlight"}, "The file /proc/headlight.headlight cannot be written"),
    ],
)
def test_a_warning_names_what_cannot_be_recorded_and_training_goes_on(model, how, sentence, watched):
    watch = watched(model, how.pop("inputs", {"line": EXAMPLE}), **how)
    for step in range(1, 4):
        watch.step(step, loss=1.0)
    watch.close()
    assert said(watched).count(sentence) == 1
    if watch.path is not None:
        assert kept(watch).own.problem == watch.problem


def test_steps_that_do_not_increase_and_late_numbers_are_left_out_with_a_warning(toy, watched):
    watch = watched(toy, {"line": EXAMPLE})
    for step in (1, 2, 2, 1.5, 3):
        watch.step(step, loss=1.0, **({"late": 4.0} if step == 3 else {}))
    watch.close()
    assert kept(watch).metrics.column("step").tolist() == [1, 2, 3]
    assert "step=2 is not recorded: steps are whole numbers, and the last one was 2." in said(watched)
    assert "late is not drawn: give all numbers at the first step" in said(watched)


@pytest.mark.parametrize(
    ("steps", "failing", "kept_steps"),
    [(range(1, 9), range(4, 99), (0, 1, 2)), (range(5, 9), [1], (5, 6, 7, 8))],
    ids=["what was recorded stays", "recorded from then on"],
)
def test_a_model_that_fails_at_some_steps_is_recorded_at_the_others(watched, steps, failing, kept_steps):
    calls = []

    def fails(model, inputs):
        calls.append(1)
        if len(calls) in failing:
            raise RuntimeError("out of memory")
        return EVEN

    view = recorded(of_function(watched, fails), steps, loss=2.0)
    assert view.frames.steps == kept_steps
    assert view.metrics.column("step").tolist() == [*steps]
    assert "The input 'x' cannot be observed: RuntimeError: out of memory" in said(watched)


def test_a_wrapped_or_compiled_model_is_watched_under_its_own_names_without_a_problem(toy, watched):
    watch = watched(torch.compile(nn.DataParallel(torch.compile(toy))), {"line": EXAMPLE})
    assert list(recorded(watch).frame.axes) == [f"body.layers.{i}.self_attn" for i in range(2)]
    assert watch.problem == ""


class Merging(nn.Module):
    """A layer whose `train` does more than set a flag, like layers that merge their weights."""

    def __init__(self):
        super().__init__()
        self.body, self.calls = nn.MultiheadAttention(4, 2, batch_first=True), 0

    def train(self, mode=True):
        self.calls = getattr(self, "calls", 0) + 1
        return super().train(mode)

    def forward(self, x):
        assert not self.training
        return self.body(x, x, x)[0]


def test_a_train_method_that_does_more_than_set_the_mode_is_not_called(watched):
    model = Merging()
    watch = watched(model, {"x": torch.randn(1, 3, 4)})
    watch.step(1)
    assert (model.calls, model.training, watch.problem) == (0, True, "")


def test_the_first_frame_shows_the_weights_before_the_first_step(watched):
    model = nn.Linear(1, 1)
    model.mine = nn.Parameter(torch.eye(3)[None, None].clone())
    watch = watched(model, {"x": torch.zeros(1)}, attention=lambda model, x: {"mine": model.mine})
    with torch.no_grad():
        model.mine[:] = torch.eye(3).flip(0)
    frames = recorded(watch).frames
    first, last = (frames.of_step(step).map(0, "mine")[0] for step in (0, 1))
    np.testing.assert_allclose(np.nan_to_num(first), np.eye(3), atol=QUANTIZATION_TOLERANCE)
    np.testing.assert_allclose(last, np.eye(3)[::-1], atol=QUANTIZATION_TOLERANCE)


@pytest.mark.parametrize(
    ("numbers", "panels"),
    [
        ({"loss": 1.5, "val": 0.5}, ["loss", "val"]),
        ({"val": 0.5}, ["val"]),
        ({}, ["no loss was given"]),
    ],
    ids=str,
)
def test_the_curves_have_a_panel_for_each_number_that_was_given(numbers, panels, toy, watched):
    view = recorded(watched(toy, {"line": EXAMPLE}), **numbers)
    notes = json.loads(run_curves(view).spec)["layout"]["annotations"]
    assert [note["text"] for note in notes] == panels


def test_numbers_may_be_missing_or_invalid_and_steps_of_any_integer_type(toy, watched):
    watch = watched(toy, {"line": EXAMPLE})
    for step in np.arange(1, 4):
        watch.step(step, loss=2.0, learning_rate=0.1 * step, val="x" if step == 1 else None, **{"step": 7})
    watch.close()
    view = kept(watch)
    assert view.own.curves == ("learning_rate", "val")
    np.testing.assert_allclose(view.metrics.column("learning_rate"), [0.1, 0.2, 0.3])
    assert np.isnan(view.metrics.column("val")).all()
    assert "val='x' is no number, and is left out." in said(watched)
    assert "step is not drawn: Watch has a curve of this name" in said(watched)
    assert len(view.frames) == 4


def test_each_example_of_a_batch_has_its_own_tokens(watched):
    layer = nn.TransformerEncoderLayer(4, 2, 4, batch_first=True)
    inputs = {"w": torch.randn(2, 3, 4), "w 2x": torch.randn(1, 3, 4)}
    watch = watched(layer, inputs, tokens={"w": [list("abc"), {"*": list("def")}]}, sites="self_attn")
    frame = recorded(watch).frame
    assert {word.text: "".join(word.tokens("self_attn queries")) for word in frame.words} == {
        "w 1": "abc",
        "w 2": "def",
        "w 2x": "123",
    }
    assert said(watched) == ""


def test_a_training_resumed_at_a_late_step_is_recorded_densely_at_first_too(watched):
    watch = of_function(watched, lambda model, inputs: EVEN)
    assert recorded(watch, range(50_000, 50_050)).frames.steps == tuple(range(49_999, 50_050))


def test_no_warning_reaches_the_loop_where_warnings_are_errors(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch = Watch(nn.Linear(1, 1), {"x": torch.zeros(1)}, tmp_path / "mine")
        watch.step(1)
        watch.close()
    assert "no attention that can be observed" in watch.problem


@pytest.mark.parametrize("closed", [True, False])
def test_a_model_that_is_no_longer_needed_is_released(tmp_path, closed):
    model = Toy()
    watch, gone = Watch(model, {"line": EXAMPLE}, tmp_path / "mine"), weakref.ref(model)
    watch.step(1)
    if closed:
        watch.close()
        del model
    else:
        archive = watch._archive
        del model, watch
    gc.collect()
    assert gone() is None
    if not closed:
        archive.close()


@pytest.fixture
def one_process():
    """A group of one process."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


def test_a_sharded_model_is_not_observed_since_its_passes_wait_for_all_processes(toy, watched, one_process):
    model = fully_shard(toy, mesh=one_process)
    watch = watched(model, {"line": EXAMPLE})
    watch.step(1, loss=1.0)
    assert watch.path is None
    assert "FSDPToy is sharded over processes (FSDP), and each of its passes waits for all" in said(watched)


def test_record_keeps_every_step_whatever_the_share(toy, watched):
    watch = watched(toy, {"line": EXAMPLE}, share=1e-9)
    for step in (100, 250, 900):  # three checkpoints
        with torch.no_grad():
            toy.enter.weight.mul_(0.5)
        watch.record(step, loss=1 / step)
    view = recorded(watch, steps=())
    assert view.frames.steps == (100, 250, 900)
    first, last = (view.frames.of_step(step).map(0, "body.layers.0.self_attn") for step in (100, 900))
    assert not np.allclose(first, last, atol=1e-3)
    truth = attention_of(toy, EXAMPLE)["body.layers.0.self_attn"][0]
    np.testing.assert_allclose(last, truth, atol=QUANTIZATION_TOLERANCE)


def test_a_resumed_run_goes_on_in_its_file_without_the_steps_that_are_trained_again(toy, watched, tmp_path):
    watch = watched(toy, {"line": EXAMPLE})
    before = recorded(watch, range(1, 9), loss=2.0, norm=1.0)
    again = watched(toy, {"line": EXAMPLE}, resume=True)
    after = recorded(again, range(6, 11), loss=1.0, norm=3.0)
    assert again.path == watch.path
    assert (after.id, after.state, after.own.curves) == (before.id, "finished", ("norm",))
    assert after.frames.steps == tuple(range(11))
    assert after.metrics.column("step").tolist() == list(range(1, 11))
    assert after.metrics.column("loss").tolist() == [2.0] * 5 + [1.0] * 5
    assert after.seconds > before.metrics.column("seconds")[4]
    late = watched(toy, {"line": EXAMPLE}, resume=True)  # a step that it has not yet
    assert recorded(late, (40,), loss=0.5).frames.steps == (*range(11), 40)
    assert said(watched) == ""


@pytest.mark.parametrize(
    ("other", "inputs"),
    [
        (Toy(heads=4), {"line": EXAMPLE}),
        (Toy(layers=1), {"line": EXAMPLE}),
        (nn.MultiheadAttention(5, 1), {"line": (EXAMPLE,) * 3}),
        (Toy(), {"another": EXAMPLE}),
        (Toy(), {"line": EXAMPLE[:, :4]}),
    ],
    ids=["heads", "layers", "model", "example", "length"],
)
def test_a_run_of_another_model_is_not_continued(toy, other, inputs, watched, tmp_path):
    recorded(watched(toy, {"line": EXAMPLE}), range(1, 4))
    watch = watched(other, inputs, resume=True)
    assert recorded(watch, range(1, 3)).frames.steps == (0, 1, 2)
    assert watch.path == tmp_path / "mine-2.headlight"
    assert "holds a run of another model or other examples. This run is kept in a file of its own." in said(
        watched
    )
    assert read_run(tmp_path / "mine.headlight").view.frames.steps == (0, 1, 2, 3)


def test_a_notebook_shows_the_page_of_what_is_recorded_so_far_and_training_goes_on(toy, watched, tmp_path):
    watch = watched(toy, {"li<e": EXAMPLE})
    assert "nothing has been recorded yet" in watch._repr_html_()
    watch.step(1, loss=2.0)
    shown = watch._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    page, written = html.unescape(shown.split('"')[1]), watch.html(tmp_path / "page.html").read_text("utf-8")
    assert re.sub(r"in [\d.]+ s", "", page) == re.sub(r"in [\d.]+ s", "", written)
    assert "Toy" in re.search("<title>(.*)</title>", page)[1]
    assert "2 of 2 frames" in page
    assert recorded(watch, (2, 3)).frames.steps == (0, 1, 2, 3)


class Written:
    """What a `SummaryWriter`, or a run of W&B, was given."""

    def __init__(self):
        self.scalars, self.images = {}, {}

    def add_scalar(self, tag, value, step):
        self.scalars[tag, step] = value

    def add_image(self, tag, image, step, dataformats):
        assert dataformats == "HWC"
        self.images[tag, step] = image


def test_scores_and_the_clearest_head_are_logged_to_tensorboard(watched):
    sharp = torch.eye(3).expand(1, 2, 3, 3).clone()
    sharp[0, 0] = 1 / 3
    watch, writer = of_function(watched, lambda model, inputs: {"a": sharp}), Written()
    watch.log_to(writer)
    view = recorded(watch)
    for measurement in view.frames.measurements:
        for head in (0, 1):
            score = writer.scalars[f"attention/a.{head + 1}", measurement.step]
            assert score == pytest.approx(measurement.head_scores["a"]["focus"][head])
    image = writer.images["attention/clearest head", 1]
    assert image.shape == (384, 384, 3)
    assert image[0, 0].tolist() == [0xFD, 0xE7, 0x25]  # weight 1
    assert image[0, 383].tolist() == [0x44, 0x01, 0x54]  # weight 0


def test_scores_and_the_clearest_head_are_logged_to_wandb(watched, monkeypatch):
    class Image:
        def __init__(self, data, caption):
            self.data, self.caption = data, caption

    class Run:
        def log(self, data, commit):
            assert not commit  # the training's own log ends the step
            logged.append(data)

    logged = []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Image=Image))
    watch = of_function(watched, lambda model, inputs: EVEN)
    watch.log_to(Run())
    recorded(watch)
    (site,) = EVEN
    assert logged[-1][f"attention/{site}.1"] == pytest.approx(float(EVEN[site][0, 0].max()))
    assert logged[-1]["attention/clearest head"].caption == f"{site}, head 1, step 1"


@pytest.mark.parametrize("causal", [False, True])
def test_a_part_of_a_pooled_map_is_recorded_in_full_and_the_rest_is_elsewhere(watched, causal):
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(12, 3, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    mask = nn.Transformer.generate_square_subsequent_mask(150) if causal else None
    lines = torch.randn(2, 150, 12)
    tokens = [f"t{i}" for i in range(150)]
    watch = watched(
        encoder,
        {"lines": {"src": lines, "mask": mask}},
        tokens={"lines": tokens},
        part={"lines": (slice(40, 45), slice(30, 42))},
    )
    view = recorded(watch)
    site = "layers.0.self_attn"
    expected = attention_of(encoder, {"src": lines, "mask": mask})[site]
    assert list(view.frame.axes) == [site, f"{site} part"]
    for example in range(2):
        found = view.frame.map(example, f"{site} part")
        truth = expected[example, :, 40:45, 30:42]
        np.testing.assert_allclose(np.nan_to_num(found[..., :-1]), truth, atol=QUANTIZATION_TOLERANCE)
        np.testing.assert_allclose(np.nansum(found, -1), 1, atol=1e-3)
        blocked = np.triu(np.ones((150, 150), dtype=bool), 1)[40:45, 30:42] & causal
        assert (np.isnan(found[..., :-1]) == blocked).all()
    axes = view.frame.axes[f"{site} part"]
    word = view.frame.words[0]
    assert word.tokens(axes.query) == tuple(tokens[40:45])
    assert word.tokens(axes.key) == (*tokens[30:42], "elsewhere")
    scores = view.frame.head_scores
    assert all(np.array_equal(scores[site][name], of) for name, of in scores[f"{site} part"].items())
    assert view.frame.clearest[0] == site


@pytest.mark.parametrize(
    "part", [(slice(0, 9, 2), slice(0, 4)), slice(3), 7, (slice(0.5), slice(4)), (slice(3, 3), slice(4))]
)
def test_a_part_that_is_no_pair_of_slices_is_said_and_left_out(toy, watched, part):
    watch = watched(toy, {"line": EXAMPLE}, part={"line": part})
    assert len(recorded(watch).frame.axes) == 2
    assert "is no part of maps; give slices, such as {'line': " in said(watched)


def test_a_part_without_the_name_of_its_input_is_said_and_the_maps_are_recorded(toy, watched):
    watch = watched(toy, {"line": EXAMPLE}, part=(slice(0, 3), slice(0, 3)))
    assert len(recorded(watch).frame.axes) == 2
    assert "is no part of maps; give slices, such as {'example': (slice(0, 64), slice(0, 64))}." in said(
        watched
    )


# What heads are worth.


def error_of(model):
    return (model(EXAMPLE[:, :6]) - EXAMPLE[:, :6].flip(1)).square().mean()


def test_what_each_head_is_worth_is_in_the_file_and_found_by_zeroing_its_columns(toy, watched):
    watch = watched(toy, {"line": EXAMPLE}, measure=error_of)
    training(toy, 30, watch)
    watch.close()
    view = kept(watch)
    last = view.frames.of_step(30).ablations
    assert (last.step, last.name) == (30, "error of")
    assert len(view.frames.ablations) > 1
    assert view.frames[0].ablations is None  # nothing was measured yet
    toy.eval()
    with torch.no_grad():
        assert last.whole == pytest.approx(float(error_of(toy)), rel=1e-6)
        for number, layer in enumerate(toy.body.layers):
            weight = layer.self_attn.out_proj.weight
            before = weight.clone()
            for head in range(3):
                weight[:, 4 * head : 4 * head + 4] = 0  # of width 12
                found = last.without[f"body.layers.{number}.self_attn"][head]
                assert found == pytest.approx(float(error_of(toy)), rel=1e-5)
                weight.copy_(before)


def test_measuring_heads_changes_no_bit_of_the_losses(toy, watched):
    start = {name: one.clone() for name, one in toy.state_dict().items()}
    torch.manual_seed(9)
    alone = training(toy, 40)
    toy.load_state_dict(start)
    torch.manual_seed(9)
    assert training(toy, 40, watched(toy, {"line": EXAMPLE}, measure=error_of)) == alone


def test_heads_are_measured_within_half_of_the_share_and_once_at_the_end(toy, watched, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", lambda: clock.now)

    def slow(model):
        clock.now += 0.2
        return error_of(model)

    watch = watched(toy, {"line": EXAMPLE}, measure=slow, share=0.1)
    for step in range(1, 300):
        clock.now += 0.5
        watch.step(step, loss=1.0)
        spent = watch._worth.seconds
        assert spent <= 0.05 * (clock.now - watch._began) + 0.25  # and the first call, of unknown cost
    assert 1 < len(watch._view.frames.ablations) <= 6  # 7 calls of .2 s each
    short = watched(toy, {"line": EXAMPLE}, measure=slow, share=0.1)
    assert [ablation.step for ablation in recorded(short, steps=(1, 2)).frames.ablations] == [2]


@pytest.mark.parametrize(
    ("how", "said_of_it"),
    [
        ({"measure": lambda model: "low"}, "measure gave 'low'; expected is a number"),
        ({"measure": lambda model: model.gone}, "measure failed with AttributeError"),
        ({"measure": lambda model: next(DRAWN)}, "another number at every call"),
        ({"measure": 5}, "measure=5 is no function of the model"),
        ({"measure": lambda model: model(EXAMPLE)}, r"measure gave Tensor of shape (1, 7, 5)"),
        (
            {"measure": error_of, "attention": lambda model, inputs: EVEN},
            "the heads of a given function cannot be switched off",
        ),
    ],
)
def test_a_measure_that_fails_is_said_once_and_the_maps_go_on(toy, watched, how, said_of_it):
    watch = watched(toy, {"line": EXAMPLE}, **how)
    training(toy, 12, watch)
    watch.close()
    assert said(watched).count(said_of_it) == 1
    assert kept(watch).frames.ablations == ()
    assert len(kept(watch).frames) > 5


def test_a_measure_that_fails_at_once_makes_no_more_steps_due(toy, watched, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", lambda: clock.now)
    recorded_steps = []
    for measure in (None, lambda model: model.gone):
        watch = watched(toy, {"line": EXAMPLE}, measure=measure, share=0.03)
        looks, look = [], watch._examples.observed
        monkeypatch.setattr(
            watch._examples,
            "observed",
            lambda step, looks=looks, look=look: looks.append(1) or slow(clock, look, step),
        )
        for step in range(1, 100):
            clock.now += 0.1
            watch.step(step, loss=1.0)
        recorded_steps.append(len(looks))
    assert recorded_steps[1] <= recorded_steps[0] < 60


def slow(clock, look, step):
    clock.now += 0.05
    return look(step)


def test_a_measure_that_failed_is_tried_again_and_changes_no_gradient(toy, watched):
    calls = []

    def sometimes(model):
        calls.append(1)
        if len(calls) < 4:
            raise MemoryError("for now")
        with torch.enable_grad():
            loss = error_of(model)
            loss.backward()
        return loss

    watch = watched(toy, {"line": EXAMPLE}, measure=sometimes)
    error_of(toy).backward()
    before = [parameter.grad for parameter in toy.parameters()]
    kept_values = [one.clone() for one in before]
    for step in range(1, 8):
        watch.step(step, loss=1.0)
    assert all(one.grad is other for one, other in zip(toy.parameters(), before, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(before, kept_values, strict=True))
    watch.close()
    assert "measure failed with MemoryError: for now." in said(watched)
    assert kept(watch).frames.ablations


def test_attentions_that_the_measure_does_not_run_are_named(toy, watched):
    watch = watched(
        toy, {"line": EXAMPLE}, measure=lambda model: model.body.layers[0](model.enter(EXAMPLE)).sum()
    )
    view = recorded(watch)
    assert "measure does not run body.layers.1.self_attn" in said(watched)
    assert view.frames.ablations[0].name == "measure"
    assert np.isnan(view.frames.ablations[0].without["body.layers.1.self_attn"]).all()


def test_changes_are_logged_for_every_head(toy, watched):
    watch, writer = watched(toy, {"line": EXAMPLE}, measure=error_of), Written()
    watch.log_to(writer)
    (found,) = recorded(watch).frames.ablations
    for site, changes in found.changes.items():
        for head, change in enumerate(changes):
            assert writer.scalars[f"error of without/{site}.{head + 1}", 1] == pytest.approx(change)


# Files and processes.


def test_a_file_whose_name_is_taken_gets_a_number(toy, watched, tmp_path):
    first, second = (watched(toy, {"line": EXAMPLE}) for _ in range(2))  # both at once
    assert len({recorded(one).id for one in (first, second)}) == 2
    third = watched(toy, {"line": EXAMPLE})
    assert [one.path.stem for one in (first, second, third)] == ["mine", "mine-2", "mine-3"]


LOOP = """
import sys, time, torch
from torch import nn
from transformer import Watch
layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
watch = Watch(layer, {"x": torch.randn(1, 3, 8)}, sys.argv[1])
for step in range(1, 10**6 if sys.argv[2] == "for ever" else 5):
    watch.step(step, loss=1 / step)
    print(step, flush=True)
    time.sleep(0.05)
if sys.argv[2] == "fails":
    raise KeyError("gone")
"""


def loop(folder, how):
    command, quiet = [sys.executable, "-c", LOOP, str(folder), how], subprocess.DEVNULL
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=one_thread, stdout=subprocess.PIPE, stderr=quiet, text=True)


@pytest.mark.parametrize(
    ("how", "state", "reason"), [("ends", "finished", ""), ("fails", "failed", "KeyError: 'gone'")]
)
def test_a_program_that_ends_without_closing_records_how_it_ended(how, state, reason, tmp_path):
    with loop(tmp_path / "run", how) as process:
        process.communicate(timeout=60)
    view = read_run(tmp_path / "run.headlight").view
    assert (view.state, view.reason, view.step) == (state, reason, 4)


def test_a_run_is_readable_while_another_process_writes_it_and_after_that_process_is_killed(tmp_path, until):
    seen = set()

    def followed():
        if facts_of(tmp_path / "run.headlight"):
            seen.add(read_run(tmp_path / "run.headlight").view.step)
        return len(seen) >= 3 and max(seen) > 15

    with loop(tmp_path / "run", "for ever") as process:
        until(followed)
        process.kill()
    view = read_run(tmp_path / "run.headlight").view
    assert view.state == "paused"
    assert view.step >= max(seen)
    assert view.reason == f"Its process ended; the last saved step is {view.step}."
    assert set(view.frames.steps) <= {*range(view.step + 1)}
    assert len(view.frames) > 3


NEEDED = """
import sys

for name in ("pandas", "plotly", "psutil", "pyarrow", "safetensors", "streamlit", "tokenizers", "tqdm"):
    sys.modules[name] = None
import torch
from transformer import Watch

watch = Watch(torch.nn.MultiheadAttention(4, 2), {"x": (torch.ones(3, 1, 4),) * 3}, sys.argv[1])
watch.step(1, loss=1.0)
watch.close()
assert not watch.problem, watch.problem
"""


def test_watching_needs_no_packages_but_torch_numpy_and_msgspec(tmp_path):
    subprocess.run([sys.executable, "-c", NEEDED, str(tmp_path / "run")], check=True, timeout=120)
    assert read_run(tmp_path / "run.headlight").view.step == 1


SEVERAL = """
import os, sys
import torch

initialised = sys.argv[2] == "initialised"
if initialised:
    rank = int(os.environ.pop("RANK"))
    os.environ.pop("WORLD_SIZE")
    store = torch.distributed.FileStore(sys.argv[1] + "/meeting", 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
from transformer import Watch

watch = Watch(torch.nn.MultiheadAttention(4, 2), {"x": (torch.ones(3, 1, 4),) * 3}, sys.argv[1] + "/run")
watch.step(1, loss=1.0)
watch.close()
assert not watch.problem, watch.problem
"""


@pytest.mark.parametrize("how", ["initialised", "launched"])
def test_of_several_processes_that_train_together_only_the_first_writes_a_file(tmp_path, how):
    command = [sys.executable, "-c", SEVERAL, str(tmp_path), how]
    each = [os.environ | {"RANK": str(rank), "WORLD_SIZE": "2"} for rank in range(2)]
    begun = [subprocess.Popen(command, env=env) for env in each]
    assert [one.wait(120) for one in begun] == [0, 0]
    assert [path.name for path in tmp_path.glob("*headlight")] == ["run.headlight"]
