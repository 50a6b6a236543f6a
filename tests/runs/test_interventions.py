"""Switching off heads, blocking cells and switching masks in mid-run, and the moments that result."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from tests.conftest import HELD_OUT, LIVE
from tests.runs.conftest import TWO_HEADS_OFF, kept_at, losses_of, moments_of
from transformer.errors import InputError
from transformer.shared.interventions import Block, Interventions
from transformer.training import evaluation
from transformer.training.loop import train
from transformer.training.state import TrainState

LOOKS = Interventions(
    blocked=(
        Block(site="encoder.0", head=2, row=1, column=0),
        Block(site="decoder.1.cross", token="[EOS]"),
    )
)


BOTH = Interventions(ablated=TWO_HEADS_OFF.ablated, blocked=LOOKS.blocked)


@pytest.mark.parametrize("state", ["idle", "training", "paused", "finished", "stopped"])
def test_an_intervention_takes_effect_at_once_and_is_a_moment_with_a_frame_and_a_snapshot(
    tiny, make_run, until, at, state
):
    steps = 8 if state == "finished" else 100_000
    run = make_run(tiny(steps=steps, evaluate_every=100_000), words=("frog", "ox"), every_step=False)
    assert run.ready.wait(20.0)
    if state in ("training", "finished"):
        run.start()
        until(lambda: run.view.step > 3)
    elif state != "idle":
        run.advance(7)
        at(run, "paused", 7)
    if state == "stopped":
        run.stop()
    at(run, state)
    step = run.view.step
    for _ in range(2):  # repeating it adds no moment
        run.intervene(BOTH).result(20.0)
    view = run.view
    assert (view.interventions, view.state) == (BOTH, state)
    ((moment_step, text),) = moments_of(view, "intervention")
    assert text == BOTH.text()
    assert step <= moment_step <= view.step
    assert moment_step == step or state == "training"
    (frame,), (snapshot,) = kept_at(view.frames, moment_step), kept_at(view.snapshots, moment_step)
    assert frame.interventions == snapshot.interventions == BOTH
    assert frame.evaluation.step == moment_step  # evaluated again
    assert frame.evaluation.total == (HELD_OUT if state in ("finished", "stopped") else LIVE)
    for row, word in enumerate(("frog", "ox")):
        assert np.argwhere(np.isnan(frame.map(row, "encoder.0"))).tolist() == [[2, 1, 0]]
        weights = frame.map(row, "decoder.1.cross")
        assert np.isnan(weights[:, :, -1]).all()
        assert np.isnan(weights).sum() == 3 * (len(word) + 1)
        np.testing.assert_allclose(np.nansum(weights, axis=-1), 1.0, atol=2e-4)


def test_a_finished_run_is_evaluated_again_with_a_head_switched_off(make_run, until, half_trained):
    """Compare with the same weights after the head's columns of the output projection are set to zero."""
    run = make_run(half_trained.config, every_step=False)
    run.start()
    until(lambda: run.view.state == "finished", 120.0)
    before = run.view.frame
    run.intervene(Interventions(ablated=(("decoder.0.cross", 0),))).result(20.0)
    frame = run.view.frame
    state = TrainState.begin(half_trained.config)
    state.model.load_state_dict({n: torch.tensor(w) for n, w in run.view.snapshots[-1].weights.items()})
    with torch.no_grad():
        state.model.decoder[0].cross_attention.to_output.weight[:, :16] = 0.0
    words = state.task.held_out()
    expected = evaluation.evaluate(state, words)
    assert frame.evaluation == replace(expected, step=before.step, everyday=frame.evaluation.everyday)
    whole = evaluation.evaluate(half_trained, words)
    assert expected.right < whole.right
    assert before.evaluation.total == HELD_OUT  # on the same words, so the numbers are comparable
    assert f"switched off cross-attention layer 1, head 1: {expected.right} of {HELD_OUT}" in run.view.reason


def without_heads(model, heads):
    """Set these heads' part of the input of the output projection to zero, by forward hooks."""
    hooks = []
    for name, head in heads:
        attention = model.attentions()[name]
        width = model.config.d_head

        def emptied(_, args, head=head, width=width):
            x = args[0].clone()
            x[..., width * head : width * (head + 1)] = 0.0
            return (x,)

        hooks.append(attention.to_output.register_forward_pre_hook(emptied))
    return hooks


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_run_trains_on_like_a_model_whose_heads_were_zeroed_by_hooks(tiny, make_run, at, dropout):
    """Losses and weights are bitwise equal, from mid-run on and in a continuation."""
    config = tiny(dropout=dropout)
    run = make_run(config, every_step=False)
    run.advance(4)
    at(run, "paused", 4)
    run.intervene(TWO_HEADS_OFF)
    run.resume()
    at(run, "finished", 8)
    run.continue_for(5, 0.01)
    at(run, "finished", 13)

    state, expected = TrainState.begin(config), []
    for report in train(state):
        expected += report.losses
        if report.step == 4:
            without_heads(state.model, TWO_HEADS_OFF.ablated)
    state.continue_for(5, 0.01)
    expected += [loss for report in train(state) for loss in report.losses]
    assert losses_of(run) == expected
    weights = run.view.snapshots[-1].weights
    assert run.view.snapshots[-1].step == 13
    for name, weight in state.model.state_dict().items():
        assert np.array_equal(weights[name], weight.numpy()), name
    assert run.view.interventions == TWO_HEADS_OFF


@pytest.mark.parametrize(
    ("taken", "message"),
    [
        (
            (Block(site="decoder.0.self", head=1, row=0, column=0),),
            "In decoder layer 1, head 2, row 1 (“[SOS]”) may look at 1 of ",
        ),
        (
            # No single block closes a row, but together they close every column of a word such as "zz".
            (
                Block(site="encoder.0", token="a"),
                *(Block(site="decoder.1.cross", head=2, token=token) for token in ("[SOS]", "[EOS]", "z")),
            ),
            "In cross-attention layer 2, head 3, row 1 (“[SOS]”) may look at 3 of 3 columns",
        ),
    ],
)
def test_a_block_that_closes_a_row_is_refused_and_changes_nothing(tiny, make_run, losses, at, taken, message):
    run = make_run(tiny())
    assert run.ready.wait(20.0)
    view = run.view
    with pytest.raises(InputError) as refused:
        run.intervene(Interventions(blocked=taken))
    assert str(refused.value).startswith(message)
    assert run.view == view
    run.start()
    at(run, "finished")
    assert losses_of(run) == losses(tiny())


def test_blocked_letters_that_leave_every_row_an_open_cell_are_accepted(tiny, make_run):
    run = make_run(tiny())
    assert run.ready.wait(20.0)
    letters = tuple(Block(site="encoder.0", token=letter) for letter in "abcdefghijklmnopqrstuvwxyz")
    run.intervene(Interventions(blocked=letters)).result(20.0)
    assert run.view.interventions.blocked == letters


WORDS = ("frog", "ox")
TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]


@pytest.mark.parametrize(
    ("topology", "mask"),
    [
        *((topology, "causal") for topology in TOPOLOGIES),
        (TOPOLOGIES[0], "padding"),
        *(pytest.param(topology, "padding", marks=pytest.mark.slow) for topology in TOPOLOGIES[1:]),
    ],
)
def test_a_mask_switched_twice_leaves_no_trace_and_switched_once_trains_like_a_replaced_configuration(
    tiny, make_run, losses, topology, mask
):
    """Compare with a model whose configuration is replaced in mid-run, with the same weights."""
    config = tiny(topology=topology)
    run, on = make_run(config, words=WORDS, every_step=False), config.model.masks[mask]
    run.advance(3).result(20.0)
    assert run.wait(20.0)
    frames = []
    for state in (not on, on, on):
        frames.append(run.view.frame)
        run.switch_mask(mask, state).result(20.0)
    before, between, after = frames
    for row, site in product(range(len(WORDS)), before.axes):
        np.testing.assert_allclose(after.map(row, site), before.map(row, site), atol=2e-5, equal_nan=True)
    assert any(between.map(1, s).shape != before.map(1, s).shape for s in before.axes) == (mask == "padding")
    assert (after.words, after.axes) == (before.words, before.axes)
    assert after.axes != between.axes
    for site, by_name in before.head_scores.items():
        for name, values in by_name.items():
            assert np.array_equal(after.head_scores[site][name], values)
    run.advance(1).result(20.0)
    assert run.wait(20.0)
    run.switch_mask(mask, not on).result(20.0)
    run.resume().result(20.0)
    assert run.wait(20.0)
    found, plain = losses_of(run), losses(config)
    assert found[:4] == plain[:4]
    # In one sequence all padding follows the real tokens, where the causal mask blocks it anyway.
    assert (found[4] == plain[4]) == ((topology, mask) == ("decoder-only", "padding"))
    state, expected = TrainState.begin(config), []
    for report in train(state):
        expected += report.losses
        if report.step == 4:
            state.model.config = replace(state.model.config, **{f"{mask}_mask": not on})
    assert found == expected


def test_a_block_is_checked_against_the_resulting_masks_and_survives_another_switch(tiny, make_run):
    """The first cell may be blocked while the causal mask is off; then the mask cannot be switched on."""
    run = make_run(tiny())
    assert run.ready.wait(20.0)
    first = Interventions(blocked=(Block(site="decoder.0.self", row=0, column=0),))
    with pytest.raises(InputError, match="row 1"):
        run.intervene(first)
    run.switch_mask("causal", False).result(20.0)
    run.intervene(run.view.interventions | first).result(20.0)
    for refused in (lambda: run.intervene(first), lambda: run.switch_mask("causal", True)):
        with pytest.raises(InputError, match="may look at 1 of"):
            refused()
    run.switch_mask("padding", False).result(20.0)
    assert run.view.interventions.blocked == first.blocked
    assert run.view.masks == {"causal": False, "padding": False}
    with pytest.raises(InputError, match="no mask 'sideways'"):
        run.switch_mask("sideways", False)
