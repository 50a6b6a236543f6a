"""Switching a mask of a run while it learns: at once, told in words, and given back without a trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.interventions import NOTHING, Block, Interventions
from transformer.runs.run import Run
from transformer.training.loop import train
from transformer.training.state import TrainState

TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]
MASKS = [(topology, mask) for topology in TOPOLOGIES for mask in ("causal", "padding")]
WORDS = ("frog", "ox")


def default(topology, mask):
    return mask == "padding" or topology != "encoder-only"


def switched(topology, mask):
    return Interventions(masks=((mask, not default(topology, mask)),))


@pytest.fixture
def begun(make_run, until):
    """A run of a few steps, with its command of going on for some more."""

    def make(config, **settings):
        run = make_run(config, words=WORDS, every_step=False, **settings)

        def go_on(steps):
            step = run.view.step + steps
            run.advance(steps)
            until(lambda: run.view.state in ("paused", "finished") and run.view.step == step)

        assert run.ready.wait(20.0)
        return run, go_on

    return make


def frame_of(run, step):
    (frame,) = [frame for frame in run.view.frames if frame.step == step]
    return frame


@pytest.mark.parametrize(("topology", "mask"), MASKS)
def test_losses_are_bit_equal_up_to_the_switch_and_from_there_those_of_a_model_built_so(
    tiny, begun, losses, topology, mask
):
    """The same weights go on in a model whose configuration is changed behind its back."""
    config = tiny(topology=topology)
    run, go_on = begun(config)
    go_on(4)
    assert run.intervene(switched(topology, mask)).wait(20.0)
    go_on(4)
    found = run.view.metrics.column("loss").tolist()
    plain = losses(config)
    assert found[:4] == plain[:4]
    # In one sequence all padding lies behind what is real, where the causal mask hides it anyway.
    assert (found[4] == plain[4]) == ((topology, mask) == ("decoder-only", "padding"))

    state, expected = TrainState.begin(config), []
    for report in train(state):
        expected += report.losses
        if report.step == 4:
            changed = {f"{mask}_mask": not default(topology, mask)}
            state.model.config = replace(state.model.config, **changed)
    assert found == expected


@pytest.mark.parametrize(("topology", "mask"), MASKS)
def test_a_mask_that_is_switched_back_gives_the_same_maps_and_losses(tiny, begun, losses, topology, mask):
    config = tiny(topology=topology)
    run, go_on = begun(config)
    go_on(4)
    before = frame_of(run, 4)
    assert run.intervene(switched(topology, mask)).wait(20.0)
    between = frame_of(run, 4)
    assert run.intervene(NOTHING).wait(20.0)
    after = frame_of(run, 4)
    for row in range(len(WORDS)):
        for site in before.axes:
            np.testing.assert_allclose(after.map(row, site), before.map(row, site), atol=2e-5, equal_nan=True)
    assert any(between.map(1, s).shape != before.map(1, s).shape for s in before.axes) == (mask == "padding")
    assert after.probes == before.probes
    assert after.axes == before.axes != between.axes
    for site, scores in before.head_scores.items():
        for name, values in scores.items():
            assert np.array_equal(after.head_scores[site][name], values)
    go_on(4)
    assert run.view.metrics.column("loss").tolist() == losses(config)


def test_a_block_is_checked_against_the_masks_that_will_be_on(tiny, begun):
    """While the causal mask is off, a block of its first cell is refused if the mask comes back with it."""
    run, go_on = begun(tiny())
    first = Block(site="decoder.0.self", row=0, column=0)
    with pytest.raises(InputError, match="row 1"):
        run.intervene(Interventions(blocked=(first,)))
    assert run.intervene(Interventions(blocked=(first,), masks=(("causal", False),))).wait(20.0)
    with pytest.raises(InputError, match="may look at 1 of"):
        run.intervene(Interventions(blocked=(first,)))
    go_on(1)
    assert run.view.state == "paused"


def test_switching_a_mask_leaves_what_else_is_taken_away_and_two_switches_add_up():
    run = Run(
        RunConfig(device="cpu").with_changes(d_model=8, n_heads=2, max_letters=4, batch_size=4, steps=3)
    )
    try:
        assert run.ready.wait(60)
        taken = Interventions(ablated=(("encoder.0", 1),))
        for asked in (
            run.intervene(taken),
            run.switch_mask("causal", False),
            run.switch_mask("padding", False),
        ):
            assert asked.wait(30)
        assert run.view.interventions.ablated == taken.ablated
        assert run.view.masks == {"causal": False, "padding": False}
        run.switch_mask("causal", True).wait(30)
        assert run.view.interventions.masks == (("padding", False),)
        with pytest.raises(InputError, match="no mask 'sideways'"):
            run.switch_mask("sideways", False)
    finally:
        run.close()
        run.join()
