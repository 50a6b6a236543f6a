"""Recording inside a model: the tensors are those of its forward pass, and the model is left unchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer.model import attention
from transformer.model.transformer import Transformer
from transformer.recording.activations import RECORDABLE, record
from transformer.training.loop import train
from transformer.training.state import TrainState

SRC_LENGTHS, TGT_LENGTHS = [6, 3, 5, 1], [4, 7, 2, 1]  # B = 4, S = 6, T = 7
SITES = ["encoder.0", "decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross"]


@pytest.fixture
def ids(sentences, tiny_model):
    return (
        sentences(SRC_LENGTHS, tiny_model.src_vocab_size, seed=1),
        sentences(TGT_LENGTHS, tiny_model.tgt_vocab_size, seed=2),
    )


@pytest.fixture
def explicit_calls(monkeypatch):
    """The calls of the explicit attention path."""
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return attend(*arguments)

    attend = attention.attend
    monkeypatch.setattr(attention, "attend", counted)
    return calls


def test_recording_changes_no_output(model, ids):
    outside = model(*ids)
    with record(model):
        inside = model(*ids)
    torch.testing.assert_close(inside, outside, atol=1e-5, rtol=1e-5)
    assert not inside.requires_grad


def test_modules_store_weights_inside_a_recording_and_nothing_outside(model, ids, explicit_calls):
    def stored():
        return [site for site, one in model.attentions().items() if one.recorded]

    model(*ids)
    assert explicit_calls == []
    assert stored() == []
    with record(model) as cache:
        model(*ids)
        assert len(explicit_calls) == 5
        assert stored() == SITES
        for one in model.attentions().values():
            assert one.recorded["weights"].shape[:2] == (4, 3)
    assert stored() == []
    model(*ids)
    assert len(explicit_calls) == 5
    assert list(cache.weights) == SITES


def test_training_takes_the_fused_path_unless_dropout_acts_on_the_weights(tiny, explicit_calls):
    list(train(TrainState.begin(tiny(steps=2))))
    list(train(TrainState.begin(tiny(steps=2, dropout=0.3, dropout_on=("residual",)))))
    assert explicit_calls == []
    list(train(TrainState.begin(tiny(steps=2, dropout=0.3, dropout_on=("attention_weights",)))))
    assert len(explicit_calls) == 2 * 5


def test_the_cache_keeps_the_last_pass_and_does_not_change_when_training_goes_on(tiny):
    state = TrainState.begin(tiny())
    reports = train(state)
    src, tgt_in, _ = state.to_device(state.task.encode(["cab", "x"]))
    next(reports)
    with record(state.model) as cache:
        state.model(tgt_in, tgt_in)
        state.model(src, tgt_in)
    before = {site: weights.copy() for site, weights in cache.weights.items()}
    assert before["encoder.0"].shape == (2, 3, 5, 5)
    for _ in reports:
        pass
    with record(state.model) as later:
        state.model(src, tgt_in)
    for site, weights in cache.weights.items():
        assert np.array_equal(weights, before[site])
        assert weights.base is None or not weights.base.flags.writeable
        assert not np.array_equal(weights, later.weights[site])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_recording_leaves_the_model_unchanged_even_after_an_exception(tiny_model, fill, ids, training, fails):
    model = fill(Transformer(replace(tiny_model, dropout=0.5))).train(training)

    def look():
        with record(model) as cache:
            assert not any(module.training for module in model.modules())
            model(*ids)
            if fails:
                raise RuntimeError("in the middle")
        return cache

    if fails:
        with pytest.raises(RuntimeError, match="in the middle"):
            look()
    else:
        assert list(look().weights) == SITES
    assert all(module.training == training for module in model.modules())
    for one in model.attentions().values():
        assert not one.recording
        assert not one.recorded
    assert model(*ids).requires_grad


def test_tensors_that_cannot_be_recorded_are_refused_by_name(model):
    known = "'key', 'mask', 'mixed', 'query', 'scores', 'value', 'weights'"
    with (
        pytest.raises(ValueError, match=rf"^Cannot record \['gradients'\]; only \[{known}\]\.$"),
        record(model, {"weights", "gradients"}),
    ):
        pass


@pytest.mark.parametrize("masks", [(True, True), (False, True), (True, False), (False, False)])
def test_the_tensors_from_queries_to_mixed_values_are_consistent(tiny_model, fill, ids, masks):
    """Scores precede the mask; the mask follows from the lengths; each head mixes values by its weights."""
    causal, padding = masks
    model = fill(Transformer(replace(tiny_model, causal_mask=causal, padding_mask=padding)))
    with record(model, RECORDABLE) as cache:
        model(*ids)
    assert list(cache.sites) == SITES
    for site, found in cache.sites.items():
        own = site.endswith("self")
        n_rows, n_columns = 6 if site.startswith("encoder") else 7, 7 if own else 6
        assert found["query"].shape == found["mixed"].shape == (4, 3, n_rows, 4)
        assert found["key"].shape == found["value"].shape == (4, 3, n_columns, 4)
        scores = np.einsum("bhqk,bhsk->bhqs", found["query"], found["key"]) / 2.0  # sqrt(12 / 3)
        np.testing.assert_allclose(found["scores"], scores, atol=1e-5)
        lengths = np.array(TGT_LENGTHS if own else SRC_LENGTHS)[:, None, None, None]
        rows, columns = np.arange(n_rows)[:, None], np.arange(n_columns)
        allowed = (columns < lengths) | np.array(not padding)
        allowed = allowed & ((columns <= rows) | np.array(not (causal and own)))
        assert found["mask"].dtype == bool
        assert np.array_equal(found["mask"], np.broadcast_to(allowed, found["scores"].shape)), site
        shares = np.where(allowed, np.exp(scores), 0.0)
        np.testing.assert_allclose(found["weights"], shares / shares.sum(-1, keepdims=True), atol=1e-5)
        assert (found["weights"][~found["mask"]] == 0.0).all()
        mixed = np.einsum("bhqs,bhsk->bhqk", found["weights"], found["value"])
        np.testing.assert_allclose(found["mixed"], mixed, atol=1e-5)
