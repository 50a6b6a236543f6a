"""A head that is switched off gives nothing on, whoever wrote its attention."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.watching import written
from tests.watching.test_watch import state_of
from tests.watching.written import HEADS, IDS, WIDTH, Fused, Stack, Written
from transformer import InputError
from transformer.watching.attention import Observer

BATCH = (torch.arange(33) * 7).remainder(13).reshape(3, 11)


class Folded(written.Projected):
    """Heads folded into a batch of any size, the examples first or the heads first."""

    def __init__(self, heads_first):
        super().__init__()
        self.heads_first = heads_first

    def attend(self, q, k, v):
        turn = (lambda x: x.transpose(0, 1)) if self.heads_first else (lambda x: x)
        sizes = turn(q).shape[:2]
        q, k, v = (turn(one).flatten(0, 1) for one in (q, k, v))
        return turn(torch.bmm(torch.bmm(q, k.mT).softmax(2), v).unflatten(0, sizes))


def total(model, ids=BATCH):
    """A number that every output counts for."""
    out = model(ids)
    return (out * torch.linspace(0.5, 1.5, out.numel()).view_as(out)).square().mean()


def without(model, number, head, ids=BATCH):
    """The same number by hand: the part of one head in what one block gives on is 0."""
    x = model.embed(ids)
    for i, block in enumerate(model.blocks):
        y = block(x).clone()
        if i == number:
            each = y.shape[-1] // HEADS
            y[..., head * each : (head + 1) * each] = 0
        x = x + y
    return float((x * torch.linspace(0.5, 1.5, x.numel()).view_as(x)).square().mean())


def ablated(model, shown=IDS, measure=total):
    """The number with all heads, and without each head of each attention."""
    observer = Observer(model)
    heads = {site: seen.heads for site, seen in observer.look(shown).items()}
    whole, *others = observer.ablations(measure, [head for of in heads.values() for head in of])
    rest = iter(others)
    return whole, {site: [next(rest) for _ in of] for site, of in heads.items()}


KINDS = {
    "fused": Fused,
    "softmax and product": Written,
    "grouped keys": lambda: Fused(keys=1),
    "heads on the last axis": written.HeadsLast,
    "a module for each head": written.Heads,
    "a sink": written.Sink,
    "columns of neighbours": written.Banded,
    "parts multiplied apart": written.Halves,
    "folded": lambda: Folded(False),
    "folded, heads first": lambda: Folded(True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_without_a_head_is_that_of_a_pass_in_which_its_part_is_zero(kind):
    torch.manual_seed(4)
    model = Stack(KINDS[kind](), KINDS[kind](), width=WIDTH).eval()
    whole, found = ablated(model)
    with torch.no_grad():
        assert whole == pytest.approx(float(total(model)), rel=1e-6)
        for number, numbers in enumerate(found.values()):
            assert len(numbers) == HEADS
            truth = [without(model, number, head) for head in range(HEADS)]
            np.testing.assert_allclose(numbers, truth, rtol=1e-5)
            assert min(abs(one - whole) for one in truth) > 1e-4 * whole  # each head counts


@pytest.mark.parametrize("heads_first", [False, True])
def test_batches_of_several_sizes_in_one_measure_are_each_told_apart(heads_first):
    torch.manual_seed(5)
    model = Stack(Folded(heads_first)).eval()
    parts = [BATCH, BATCH[:2], BATCH[:, :6]]
    _, found = ablated(model, shown=IDS[:1], measure=lambda model: sum(total(model, part) for part in parts))
    with torch.no_grad():
        truth = [sum(without(model, 0, head, part) for part in parts) for head in range(HEADS)]
    np.testing.assert_allclose(found["blocks.0"], truth, rtol=1e-5)


def test_heads_that_cannot_be_told_from_examples_have_no_number_and_the_reason_is_given():
    observer = Observer(model := Stack(Folded(False)).eval())
    heads = observer.look(IDS[:1])["blocks.0"].heads
    _, *numbers = observer.ablations(lambda model: total(model.forward), heads)  # no call of the model itself
    assert all(map(math.isnan, numbers))
    assert "which axes of blocks.0 are heads is not known" in observer.unmeasured["blocks.0"]
    list(observer.ablations(total, heads))
    assert not observer.unmeasured
    assert model is observer.model


@pytest.mark.parametrize("heads_first", [False, True])
def test_of_one_example_a_look_at_the_batch_tells_which_axes_are_heads(heads_first):
    torch.manual_seed(5)
    model = Stack(Folded(heads_first)).eval()
    _, found = ablated(model, shown=IDS[:1])
    with torch.no_grad():
        truth = [without(model, 0, head) for head in range(HEADS)]
    np.testing.assert_allclose(found["blocks.0"], truth, rtol=1e-5)


def test_of_a_module_that_is_called_twice_each_call_has_heads_of_its_own():
    torch.manual_seed(6)
    model = written.TwoPools()
    seen = Observer(model).look(IDS)
    assert [head.number for one in seen.values() for head in one.heads] == [1, 2]
    _, found = ablated(model, measure=lambda model: model(IDS).sum() + model(IDS + 1).sum())
    with torch.no_grad():
        x = [model.embed(ids) for ids in (IDS, IDS + 1)]
        whole, part = (float(sum(model.pool(one[:, :n]).sum() for one in x)) for n in (11, 6))
    np.testing.assert_allclose(
        [number for numbers in found.values() for number in numbers], [part, whole], rtol=1e-4
    )


def test_rows_that_are_computed_one_by_one_lose_their_head_in_every_row():
    torch.manual_seed(7)
    model = written.Additive()
    _, found = ablated(model, measure=lambda model: model(BATCH).sum())
    with torch.no_grad():
        keys = model.embed(BATCH)
        state = keys.mean(1)
        for _ in range(5):
            state = model.cell(torch.zeros_like(state), state)
    assert list(found.values()) == [[pytest.approx(float(state.sum()), rel=1e-5)]]


def test_measuring_leaves_model_streams_and_modes_as_they_were_and_begins_alike_each_time():
    torch.manual_seed(8)
    model = Stack(Written(), nn.Sequential(nn.Dropout(0.5)), Fused()).train()
    model.blocks[1].eval()
    before, stream = state_of(model), torch.get_rng_state()
    drawn = []

    def measure(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
        model.blocks[1].train()
        drawn.append(float(torch.rand(())))
        return total(model)

    ablated(model, measure=measure)
    assert state_of(model) == before
    assert torch.equal(torch.get_rng_state(), stream)
    assert len(drawn) == 1 + 2 * HEADS
    assert len(set(drawn)) == 1


def test_a_head_that_the_measure_does_not_run_has_no_number():
    model = Stack(Fused(), Fused())
    _, found = ablated(model, measure=lambda model: model.blocks[0](model.embed(BATCH)).sum())
    assert all(map(math.isfinite, found["blocks.0"]))
    assert all(map(math.isnan, found["blocks.1"]))


@pytest.mark.parametrize("value", [None, "high", torch.zeros(2), math.nan])
def test_what_is_no_number_is_refused_with_the_value(value):
    with pytest.raises(InputError, match=r"measure gave .*; expected is a number"):
        ablated(Stack(Fused()), measure=lambda model: value)


@pytest.mark.parametrize("value", [7, 7.0, torch.tensor([[7]]), np.array([7]), np.float32(7)])
def test_every_usual_form_of_a_number_is_taken(value):
    assert ablated(Stack(Fused()), measure=lambda model: value)[0] == 7
