"""Switching a mask of a run while it learns: at once, told in words, and given back without a trace."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.interventions import NOTHING, Block, Interventions
from transformer.runs.archive import Archive
from transformer.runs.run import Run
from transformer.training.evaluation import evaluate
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
        run = make_run(config, words=WORDS, live=False, **settings)

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


def self_attentions(frame):
    """What the attentions that the causal mask acts on say of both masks."""
    kinds = ("decoder", "sequence") if "decoder.0.self" in frame.axes else ("encoder",)
    return {(axes.causal, axes.padding) for axes in frame.axes.values() if axes.kind in kinds}


@pytest.mark.parametrize(("topology", "mask"), MASKS)
def test_a_switched_mask_is_a_moment_and_frames_and_weights_say_what_is_on(tiny, begun, topology, mask):
    run, go_on = begun(tiny(topology=topology, steps=30))
    taken, was = switched(topology, mask), default(topology, mask)
    masks = {"causal": default(topology, "causal"), "padding": True}
    go_on(3)
    assert run.intervene(taken).wait(20.0)
    go_on(2)
    assert run.intervene(NOTHING).wait(20.0)
    go_on(2)
    off, on = ("off", "on") if was else ("on", "off")
    assert [(m.step, m.text) for m in run.view.moments if m.kind == "intervention"] == [
        (3, f"{mask} mask switched {off}"),
        (5, f"{mask} mask switched {on}"),
    ]
    told = {frame.step: self_attentions(frame) for frame in run.view.frames}
    before, after = ((m["causal"], m["padding"]) for m in (masks, masks | {mask: not was}))
    assert told == {step: {after if 3 <= step < 5 else before} for step in told if step <= 7}, (
        "of steps 3 and 5 the look after the switch is kept"
    )
    assert {3, 4, 5} <= told.keys()
    kept = {snapshot.step: snapshot.interventions for snapshot in run.view.snapshots}
    assert (kept[2], kept[3], kept[4], kept[5]) == (NOTHING, taken, taken, NOTHING)
    assert run.view.masks == masks


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
        for site in before.maps:
            np.testing.assert_array_equal(after.map(row, site), before.map(row, site))
    assert any(between.map(1, s).shape != before.map(1, s).shape for s in before.maps) == (mask == "padding")
    assert after.probes == before.probes
    assert after.axes == before.axes != between.axes
    for site, scores in before.head_scores.items():
        for name, values in scores.items():
            assert np.array_equal(after.head_scores[site][name], values)
    go_on(4)
    assert run.view.metrics.column("loss").tolist() == losses(config)


def test_without_the_causal_mask_the_maps_show_the_future_and_with_it_they_do_not(tiny, begun):
    run, _ = begun(tiny())
    future = np.triu(np.ones((5, 5), bool), 1)
    assert np.isnan(frame_of(run, 0).map(0, "decoder.0.self")[:, future]).all()
    assert run.intervene(switched("encoder-decoder", "causal")).wait(20.0)
    shown = frame_of(run, 0).map(0, "decoder.0.self")
    assert (shown[:, future] > 0).all()
    np.testing.assert_allclose(shown.sum(axis=-1), 1.0, atol=2e-3)


def test_a_mask_is_taken_away_with_other_things_and_all_is_told(tiny, begun):
    run, go_on = begun(tiny())
    taken = Interventions(ablated=(("decoder.0.cross", 1),), masks=(("causal", False), ("padding", False)))
    assert run.intervene(taken).wait(20.0)
    (moment,) = [m for m in run.view.moments if m.kind == "intervention"]
    assert moment.text == ("ablated decoder layer 1 (cross), head 2; causal mask off; padding mask off")
    go_on(1)
    assert run.intervene(Interventions(ablated=taken.ablated)).wait(20.0)
    assert run.view.moments[-1].text == "causal mask switched on; padding mask switched on"


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


def test_a_folder_keeps_which_masks_were_on_at_each_step(tiny, begun, tmp_path, opened):
    run, go_on = begun(tiny(), archive=Archive(tmp_path / "kept"))
    go_on(3)
    assert run.intervene(switched("encoder-decoder", "causal")).wait(20.0)
    run.close()
    run.join()
    taken = switched("encoder-decoder", "causal")
    as_json = {"ablated": [], "blocked": [], "masks": [list(mask) for mask in taken.masks]}
    assert opened(tmp_path / "kept" / "snapshots" / "000002.safetensors")[1]["masks"] == []
    assert opened(tmp_path / "kept" / "snapshots" / "000003.safetensors")[1] == as_json
    facts = json.loads((tmp_path / "kept" / "run.json").read_text(encoding="utf-8"))
    assert facts["interventions"] == as_json
    log = opened(tmp_path / "kept" / "training.safetensors")[1]["progress"]["interventions"]
    assert log == [[3, "intervene", taken.to_dict()]]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_run_of_every_topology_learns_to_its_end_from_a_finite_set(tiny, begun, losses, topology):
    config = tiny(topology=topology, examples=11, mask_fill="-1e9")
    run, go_on = begun(config)
    go_on(8)
    assert run.view.state == "finished"
    assert run.view.metrics.column("loss").tolist() == losses(config)
    assert run.view.frame.clearest[0] in run.view.frame.scores


def test_a_frame_behind_a_switch_tells_the_numbers_of_the_model_as_it_then_is():
    """Not those of the evaluation before: they are what the pages put side by side."""
    config = RunConfig(device="cpu").with_changes(
        d_model=16, n_heads=2, max_letters=4, batch_size=16, steps=30, evaluate_every=30
    )
    run = Run(config)
    try:
        run.start()
        assert run.wait(60)
        before = run.view.frame
        run.switch_mask("causal", False).wait(30)
        after, state = run.view.frame, run._worker.state
        measured = evaluate(state, state.task.held_out())
        assert (after.held_out_loss, after.free_loss) == (measured.loss, measured.free_loss)
        assert after.token_accuracy == measured.token_accuracy
        assert after.held_out_loss != before.held_out_loss
        assert run.view.interventions.masks == (("causal", False),)
    finally:
        run.close()
        run.join()


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
