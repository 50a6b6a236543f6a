"""Matrix products in bfloat16: nearly the same numbers, and weights that stay float32."""

import pytest
import torch

from transformer.training.evaluation import evaluate
from transformer.training.loop import train
from transformer.training.state import TrainState


def trained(config, precision, steps):
    state = TrainState.begin(config(precision=precision, steps=steps, goal=None))
    return state, [loss for report in train(state) for loss in report.losses]


def test_products_in_bfloat16_give_nearly_the_same_losses_but_not_the_same(tiny):
    _, full = trained(tiny, "float32", 20)
    state, half = trained(tiny, "bfloat16", 20)
    assert half != full
    assert half == pytest.approx(full, rel=0.03)  # bfloat16 has 8 bits of precision
    assert {p.dtype for p in state.model.parameters()} == {torch.float32}


def test_bfloat16_is_used_by_every_linear_layer_in_training_and_by_none_in_evaluation(tiny, monkeypatch):
    seen = []
    forward = torch.nn.Linear.forward

    def watched(self, x):
        result = forward(self, x)
        seen.append(result.dtype)
        return result

    monkeypatch.setattr(torch.nn.Linear, "forward", watched)
    state = TrainState.begin(tiny(precision="bfloat16", steps=2, evaluate_every=2, goal=None))
    steps = train(state)
    next(steps)
    assert set(seen) == {torch.bfloat16}
    seen.clear()
    evaluate(state, state.task.held_out()[:5])
    assert set(seen) == {torch.float32}  # evaluations use full precision
