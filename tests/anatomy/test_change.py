"""The change of a step equals what autograd, subtraction and the training itself report."""

from __future__ import annotations

import dataclasses

import pytest

from tests.anatomy.autograd import box_of, by_autograd, in_boxes, kept, total
from transformer.anatomy.change import BoxChange, boxes_of, step_change
from transformer.config.recipes import RECIPES, with_topology
from transformer.errors import InputError
from transformer.model.transformer import Transformer
from transformer.runs.run import Run
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions
from transformer.tasks import resolved, task_of
from transformer.training.loop import train
from transformer.training.state import TrainState

SIZES = {"n_encoder_layers": 1, "n_decoder_layers": 3, "n_heads": 2, "d_model": 18, "d_ff": 10, "seed": 5}
SIZES |= {"batch_size": 4, "max_letters": 5, "steps": 6, "warmup_steps": 2, "device": "cpu"}
SIZES |= {"dropout": 0.0, "label_smoothing": 0.2, "clip": 0.05}
BASES = {name: RECIPES[name].small for name in ("default", "bloem", "lin", "torres")}
BASES["decoder alone"] = with_topology(RECIPES["default"].small, "decoder-only")
CONFIGS = {name: resolved(config.with_changes(**SIZES)) for name, config in BASES.items()}
"""These cover every topology, norm, norm placement and fill, one table, learned positions, unmasked [PAD]."""
BOXES = {
    "encoder-decoder": "encoder.embedding encoder.0 encoder.0.feed_forward encoder.output decoder.embedding "
    "decoder.0.self decoder.0.cross decoder.0.feed_forward "
    "decoder.1.self decoder.1.cross decoder.1.feed_forward decoder.output",
    "encoder-only": "encoder.embedding encoder.0 encoder.0.feed_forward encoder.output",
    "decoder-only": "decoder.embedding decoder.0.self decoder.0.feed_forward "
    "decoder.1.self decoder.1.feed_forward decoder.output",
}
BLOCK = Block(site="encoder.0", token="e")
TAKEN = Interventions(ablated=(("decoder.0.cross", 1),), blocked=(BLOCK,), masks=(("causal", False),))


@pytest.fixture(params=CONFIGS)
def config(request):
    return CONFIGS[request.param]


@pytest.fixture
def pair(fill):
    """Return snapshots of random weights for steps 7 and 8."""

    def make(config, deviation=0.3):
        return [kept(fill(Transformer(config.model), sd), step) for sd, step in ((deviation, 7), (0.2, 8))]

    return make


def test_losses_and_gradients_equal_those_of_autograd(config, pair):
    shots = pair(config)
    loss, each, gradients = by_autograd(config, shots[0])
    found = step_change(config, *shots)
    assert (found.step, found.n_rows, found.loss) == (8, 4, pytest.approx(loss, rel=1e-5))
    assert [loss for row in found.rows for loss in row.losses] == pytest.approx(each, rel=1e-4)
    assert {box: one.gradient for box, one in found.boxes.items()} == in_boxes(config, gradients)
    more = step_change(config.with_changes(batch_size=7), *shots)
    assert (more.n_rows, len(more.rows)) == (7, 4)


def test_the_update_is_the_difference_of_the_two_snapshots(config, pair):
    before, after = pair(config)
    names = [name for name, _ in Transformer(config.model).named_parameters()]
    boxes = step_change(config, before, after).boxes
    moved = in_boxes(config, {name: after.weights[name] - before.weights[name] for name in names})
    assert {box: one.update for box, one in boxes.items()} == moved
    weights = in_boxes(config, {name: before.weights[name] for name in names})
    assert {box: one.weight for box, one in boxes.items()} == weights
    assert BoxChange(gradient=5.0, update=3.0, weight=4.0).ratio == 0.75
    assert BoxChange(gradient=1.0, update=2.0, weight=0.0).ratio == 0.0


def test_the_change_equals_what_the_training_reports_and_does_not_affect_the_training(config, losses):
    state = TrainState.begin(config)
    before, reported = kept(state.model, 0), []
    for report in train(state):
        after = kept(state.model, report.step)
        found, before = step_change(config, before, after), after
        assert report.losses == (pytest.approx(found.loss, rel=1e-6),)
        assert report.gradient_norms == (pytest.approx(total(found), rel=1e-5),)
        assert total(found) > config.train.clip
        reported += report.losses
    assert reported == losses(config)
    assert len(reported) == 6


def test_the_change_of_a_step_applies_the_interventions_of_that_step(changed_midway):
    config = CONFIGS["default"]
    view = changed_midway(Run(config, words=("banana",)), 3, TAKEN)
    at = {snapshot.step: snapshot for snapshot in view.snapshots}
    assert [at[step].interventions for step in (2, 3)] == [NO_INTERVENTIONS, TAKEN]
    for step, loss, norm in zip(*view.metrics.columns("step", "loss", "gradient_norm"), strict=True):
        found = step_change(config, at[step - 1], at[step])
        assert (loss, norm) == (pytest.approx(found.loss, rel=1e-6), pytest.approx(total(found), rel=1e-5))
    wrong = dataclasses.replace(at[1], interventions=Interventions(ablated=(("encoder.0", 2),)))
    with pytest.raises(InputError, match="has heads 1 to 2, not 3"):
        step_change(config, wrong, at[2])


def test_each_loss_belongs_to_its_token_of_a_pair_of_the_batch(config, pair):
    found = step_change(config, *pair(config))
    pairs = task_of(config).pairs(config.seed, 7)
    assert len({len(one.source) for one in pairs}) > 1, "the batch must be padded"
    close = "[SEP]" if config.model.topology == "decoder-only" else "[EOS]"
    assert [row.reads for row in found.rows] == [("[SOS]", *one.source, close) for one in pairs]
    assert [row.writes for row in found.rows] == [(*one.target, "[EOS]") for one in pairs]
    assert [len(row.losses) for row in found.rows] == [len(row.writes) for row in found.rows]


@pytest.mark.parametrize("topology", BOXES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_parameter_is_in_one_box(recipe, topology):
    model = Transformer(resolved(with_topology(RECIPES[recipe].small, topology)).model)
    boxes = boxes_of(model)
    assert sorted(sum(boxes.values(), ())) == sorted(name for name, _ in model.named_parameters())
    assert all(box == box_of(name, topology) for box, some in boxes.items() for name in some)
    assert {*model.attentions()} < {*boxes}


@pytest.mark.parametrize("topology", BOXES)
def test_boxes_are_in_the_order_of_the_pass(topology):
    config = with_topology(CONFIGS["default"], topology).with_changes(n_decoder_layers=2)
    assert [*boxes_of(Transformer(config.model))] == BOXES[topology].split()


def test_snapshots_of_steps_that_are_not_consecutive_are_refused(pair):
    config = CONFIGS["default"]
    (before, after), said = pair(config), "^The weights of step 8 are not kept, so the change from step 7 can"
    for step in (6, 7, 9):
        with pytest.raises(InputError, match=f"{said}not be shown; choose another step.$"):
            step_change(config, before, dataclasses.replace(after, step=step))


def test_the_change_lists_the_settings_that_it_leaves_out_and_is_computed_once(pair):
    config, shots = CONFIGS["default"], pair(CONFIGS["default"])
    both = config.with_changes(dropout=0.4, precision="bfloat16")
    assert step_change(config, *shots) is step_change(config, *shots)
    assert step_change(config, *shots).without == ()
    assert step_change(both, *shots).without == ("dropout", "bfloat16")
    assert step_change(both.with_changes(dropout_on=()), *shots).without == ("bfloat16",)
    assert step_change(both, *shots).loss == step_change(config, *shots).loss


def test_numbers_beyond_float32_are_refused_as_a_diverged_training(pair):
    with pytest.raises(InputError, match="^The numbers of the model of step 7 are not finite"):
        step_change(CONFIGS["default"], *pair(CONFIGS["default"], 1e28))
