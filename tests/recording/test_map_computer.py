"""Frames that are computed together, in a copy of the model, equal those of separate passes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer.asking.model import model_of
from transformer.config.recipes import RECIPES
from transformer.model.transformer import Transformer
from transformer.recording.activations import record
from transformer.recording.map_computer import BATCH, BUFFER_BYTES, WeightBuffer
from transformer.recording.recording import Recording
from transformer.recording.weights import Weights
from transformer.shared.interventions import Block, Interventions
from transformer.training.loop import train
from transformer.training.state import TrainState

TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]
WORDS = ["frog", "q", "kayaks"]


@pytest.fixture
def recorded(recorder_of, evaluation):
    """Train for six steps and compute them together; return the state, losses, frames and weights."""

    def train_and_look(config, taken=None, words=WORDS):
        state, weights, losses = TrainState.begin(config), Weights(), []
        if taken is not None:
            state.intervene(taken)
        recorder = recorder_of(state, words)
        early = [evaluation(0), recorder.measure(0), recorder.write(0)]
        recorder.buffer.copy(0)
        for report in train(state):
            losses += report.losses
            recorder.buffer.copy(report.step)
        assert len(recorder.buffer.steps) == 7
        frames = Recording([*early, *recorder.compute(weights)], target_score=state.task.target_score)
        return state, losses, frames, weights

    return train_and_look


def check(state, frames, weights):
    """Compare every map and prediction with a separate pass through the weights of its step."""
    assert frames.steps == tuple(range(7)) == tuple(snapshot.step for snapshot in weights.snapshots)
    for snapshot, frame in zip(weights.snapshots, frames, strict=True):
        model = model_of(state.config, snapshot)
        model.intervene(snapshot.interventions, state.task.src_tokenizer.id_of)
        for row, tracked in enumerate(frame.words):
            batch = state.task.encode([tracked.text], filled=not model.masked("padding"))
            with record(model) as cache:
                logits = model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
            predicted = state.task.tgt_tokenizer.tokens(logits[0].argmax(-1).tolist())
            assert tracked.predicted == predicted[: len(tracked.predicted)]
            assert list(cache.weights) == list(frame.axes)
            for site, every in cache.weights.items():
                shown = frame.map(row, site)
                single = every[0][:, : shown.shape[1], : shown.shape[2]]
                np.testing.assert_allclose(np.nan_to_num(shown), single, atol=2e-4)
                allowed = np.nansum(shown, axis=-1)
                assert np.all((allowed < 1.001) & ((allowed > 0.999) | (allowed == 0)))
    first, last = (frames[i].map(0, site) for i in (0, 6))
    assert not np.allclose(np.nan_to_num(first), np.nan_to_num(last), atol=2e-4), "it must have learned"


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("masks", [(True, True), (False, True), (True, False), (False, False)], ids=str)
def test_frames_of_each_topology_are_right_with_and_without_masks(tiny, recorded, losses, topology, masks):
    causal, padding = masks
    config = tiny(
        topology=topology, causal_mask=causal, padding_mask=padding, steps=6, learning_rate=0.03, dropout=0.2
    )
    state, found, frames, weights = recorded(config)
    check(state, frames, weights)
    assert found == losses(config)


@pytest.mark.parametrize("recipe", RECIPES)
def test_frames_of_each_recipe_are_right(recorded, losses, recipe):
    """One recipe ties its two embedding tables; a pass over several steps must not untie them."""
    config = RECIPES[recipe].small.with_changes(
        n_heads=3, d_model=12, d_ff=10, steps=6, batch_size=6, learning_rate=0.03, goal=None, device="cpu"
    )
    state, found, frames, weights = recorded(config)
    check(state, frames, weights)
    assert found == losses(config)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_frames_are_right_with_heads_off_a_cell_blocked_and_a_mask_off(tiny, recorded, topology):
    site = {"encoder-only": "encoder.0", "encoder-decoder": "decoder.1.cross"}.get(topology, "decoder.1.self")
    taken = Interventions(
        ablated=((site, 2), (site, 0)),
        blocked=(Block(site=site, head=1, row=1, column=0),),
        masks=(("padding", False),),
    )
    state, _, frames, weights = recorded(tiny(topology=topology, steps=6, learning_rate=0.03), taken)
    assert all(frame.interventions == taken for frame in frames)
    assert all(np.isnan(frame.map(0, site)[1, 1, 0]) for frame in frames)
    check(state, frames, weights)


def test_maps_of_an_unknown_answer_run_over_the_newest_output_and_record_its_step(
    tiny, recorder_of, evaluation
):
    config = tiny(task="en-fr", tokenizer="words", n_heads=4, steps=6, learning_rate=0.03)
    state = TrainState.begin(config)
    recorder = recorder_of(state, ["dog the sees cat"])
    early, reports = [evaluation(0), recorder.measure(0), recorder.write(0)], train(state)
    for step in (1, 2, 3):
        next(reports)
        recorder.buffer.copy(step)
    chunks = recorder.compute()
    outputs = recorder.write(3)
    for step in (4, 5, 6):
        next(reports)
        recorder.buffer.copy(step)
    frames = Recording([*early, *chunks, outputs, *recorder.compute()], target_score=state.task.target_score)
    for frame in frames:
        (tracked,), newest = frame.words, 0 if frame.step <= 3 else 3
        assert (tracked.forced, tracked.written_at) == (False, newest)
        written = (early[2] if newest == 0 else outputs).by_word["dog the sees cat"]
        assert tracked.tgt_tokens == ("[SOS]", *(piece.strip() for piece in written.pieces))
        assert tracked.output_step == (0 if frame.step < 3 else 3)


def test_a_ring_holds_a_batch_of_steps_and_fewer_for_a_large_model(tiny_model, fill, monkeypatch):
    model = fill(Transformer(tiny_model))
    each = 4 * sum(tensor.numel() for tensor in model.state_dict().values())
    assert WeightBuffer(model).room == min(BATCH, BUFFER_BYTES // each) == BATCH
    monkeypatch.setattr("transformer.recording.map_computer.BUFFER_BYTES", 3 * each + 1)
    buffer = WeightBuffer(model)
    assert buffer.room == 3
    for step in (4, 5, 9):
        assert not buffer.full
        with torch.no_grad():
            model.to_logits.bias.fill_(step)
        buffer.copy(step)
    assert buffer.full
    steps, rows = buffer.waiting()
    buffer.clear()
    assert (steps, buffer.steps) == ([4, 5, 9], [])
    expected = torch.cat([tensor.flatten() for tensor in model.state_dict().values()])
    assert torch.equal(rows[2], expected)
    assert (rows[0] != rows[2]).sum() == len(model.to_logits.bias)


def test_weights_that_are_nan_are_refused_and_earlier_steps_are_kept(tiny, recorder_of):
    state, weights = TrainState.begin(tiny()), Weights()
    recorder = recorder_of(state, ["ox"])
    recorder.buffer.copy(0)
    recorder.buffer.copy(1)
    with torch.no_grad():
        state.model.src_embedding.weight.fill_(float("nan"))
    recorder.buffer.copy(2)
    with pytest.raises(FloatingPointError, match="no numbers"):
        recorder.compute(weights)
    (chunk,) = recorder.compute(weights, finite=True)
    assert chunk.steps == (0, 1) == tuple(snapshot.step for snapshot in weights.snapshots)


def test_large_maps_are_computed_fewer_steps_at_once_with_the_same_result(tiny, recorded, monkeypatch):
    config = tiny(steps=6, learning_rate=0.03)
    _, _, together, _ = recorded(config)
    monkeypatch.setattr("transformer.recording.map_recorder.MAPS_BYTES", 20_000)
    state, _, apart, weights = recorded(config)
    check(state, apart, weights)
    assert len(apart.chunks_of("frog")) > len(together.chunks_of("frog")) == 1
