"""The training loop, compared with a loop written in plain PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.conftest import HELD_OUT, LIVE
from transformer.training import loop
from transformer.training.evaluation import Evaluation
from transformer.training.loop import NotFinite, train
from transformer.training.state import TrainState


def loss_by_hand(logits, labels, smoothing):
    """Return the mean loss over real target tokens, summed one at a time."""
    total, n = 0.0, 0
    for row, label in zip(logits.flatten(0, 1).double().tolist(), labels.flatten().tolist(), strict=True):
        if label == 0:
            continue
        highest = max(row)
        log_sum = highest + math.log(sum(math.exp(x - highest) for x in row))
        right = log_sum - row[label]
        any_token = sum(log_sum - x for x in row) / len(row)
        total += (1 - smoothing) * right + smoothing * any_token
        n += 1
    return total / n


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_is_the_mean_over_target_tokens(tiny, smoothing):
    state = TrainState.begin(tiny(label_smoothing=smoothing))
    src, tgt_in, labels = state.to_device(state.task.batch(state.config.seed, 0))
    assert len(set((labels != 0).sum(1).tolist())) > 1, "the batch must be padded"
    logits = state.model(src, tgt_in).detach()
    report = next(train(state))
    assert report.losses == pytest.approx([loss_by_hand(logits, labels, smoothing)], rel=1e-5)
    real = labels != 0
    share = float((logits.argmax(-1) == labels)[real].float().mean())
    assert report.token_accuracies == pytest.approx([share])


def test_padding_never_counts_as_a_right_token(tiny):
    state = TrainState.begin(tiny())
    with torch.no_grad():
        state.model.to_logits.bias[0] = 100.0  # [PAD] everywhere
    assert next(train(state)).token_accuracies == (0.0,)


@pytest.mark.parametrize(
    ("settings", "optimizer"),
    [
        ({"adam_eps": 1e-4}, lambda p: torch.optim.AdamW(p, betas=(0.9, 0.98), eps=1e-4, weight_decay=0.01)),
        (
            {"optimizer": "adam", "betas": (0.7, 0.8), "adam_eps": 1e-3, "schedule": "constant", "clip": 0.1},
            lambda p: torch.optim.Adam(p, betas=(0.7, 0.8), eps=1e-3, weight_decay=0.01),
        ),
    ],
    ids=["adamw", "adam"],
)
@pytest.mark.parametrize("topology", ["encoder-decoder", "encoder-only", "decoder-only"])
def test_training_equals_a_loop_in_plain_pytorch(tiny, settings, optimizer, topology):
    config = tiny(steps=5, learning_rate=0.02, topology=topology, **settings)
    ours, theirs = TrainState.begin(config), TrainState.begin(config).model.train()
    reports = list(train(ours))
    optimizer = optimizer(theirs.parameters())
    falling = [1.0, 1.0] if config.train.schedule == "constant" else [2 / 3, 1 / 3]
    rates = [0.02 * share for share in (1 / 3, 2 / 3, 1.0, *falling)]
    for k, (report, rate) in enumerate(zip(reports, rates, strict=True)):
        src, tgt_in, labels = ours.to_device(ours.task.batch(config.seed, k))
        logits = theirs(src, tgt_in)
        loss = torch.nn.functional.cross_entropy(logits[labels != 0], labels[labels != 0])
        optimizer.zero_grad()
        loss.backward()
        norm = torch.cat([p.grad.flatten() for p in theirs.parameters()]).norm().item()
        for p in theirs.parameters():
            p.grad.mul_(min(1.0, config.train.clip / norm))
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        assert report.step == k + 1
        assert report.learning_rate == pytest.approx(rate)
        assert report.losses == pytest.approx([loss.item()], rel=1e-4)
        assert report.gradient_norms == pytest.approx([norm], rel=1e-3)
    for ours_p, theirs_p in zip(ours.model.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours_p, theirs_p, atol=1e-4, rtol=0)


def test_a_large_gradient_is_clipped_to_the_limit_and_its_original_norm_is_reported(tiny):
    free, cut = TrainState.begin(tiny(clip=None)), TrainState.begin(tiny(clip=0.05))
    reports = next(train(free)), next(train(cut))
    norms = [
        torch.cat([p.grad.flatten() for p in state.model.parameters()]).norm().item() for state in (free, cut)
    ]
    assert norms[0] > 0.1
    assert norms[1] == pytest.approx(0.05, rel=1e-3)
    assert reports[0].gradient_norms == reports[1].gradient_norms == (pytest.approx(norms[0], rel=1e-4),)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_the_same_configuration_gives_bit_equal_losses_and_draws_from_no_global_state(tiny, losses, dropout):
    config = tiny(dropout=dropout)
    torch.manual_seed(1)
    first = losses(config)
    torch.manual_seed(2)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    assert losses(config) == first
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    assert len(first) == 8
    assert not set(losses(tiny(dropout=dropout, seed=1))) & set(first)


@pytest.mark.parametrize("topology", ["encoder-only", "decoder-only"])
def test_one_stack_alone_learns(tiny, topology):
    """Words of up to three letters, in a few seconds: the loss falls, and new words are written right."""
    config = tiny(
        topology=topology, d_model=24, d_ff=48, max_letters=3, batch_size=48, steps=200, warmup_steps=20
    )
    reports = list(train(TrainState.begin(config.with_changes(evaluate_every=200))))
    assert reports[0].losses[0] > 3.0
    assert reports[-1].losses[0] < 1.0
    assert reports[-1].evaluation.exact > 0.3


def test_the_last_batch_of_an_epoch_of_a_finite_set_can_be_smaller(tiny):
    state = TrainState.begin(tiny(examples=8, batch_size=6, steps=4))
    reports = list(train(state))
    assert [len(report.words) for report in reports] == [6, 2, 6, 2]
    assert sorted(reports[0].words + reports[1].words) == sorted(reports[2].words + reports[3].words)


def test_dropout_is_on_in_every_step_even_after_evaluation_mode_between_steps(tiny, losses):
    config = tiny(dropout=0.4)
    state, found = TrainState.begin(config), []
    for report in train(state):
        found += report.losses
        state.model.eval()
    assert found == losses(config)
    assert losses(tiny(dropout=0.0)) != found


def test_evaluations_come_at_their_interval_and_at_the_last_step_with_all_held_out_words(tiny):
    reports = list(train(TrainState.begin(tiny(steps=7, evaluate_every=3))))
    assert [report.step for report in reports if report.evaluation] == [3, 6, 7]
    assert [report.evaluation.total for report in reports if report.evaluation] == [LIVE, LIVE, HELD_OUT]
    state = TrainState.begin(tiny(steps=7))
    assert reports[-1].evaluation.everyday[1] == len(state.task.corpus.everyday())


def evaluations(monkeypatch, shares):
    """Set the shares of right held-out words: {step: (share of the live words, share of all words)}."""
    asked = []

    def evaluate(state, held_out, everyday=()):
        assert held_out == state.task.held_out()[: len(held_out)]
        asked.append((state.step, len(held_out)))
        share = shares[state.step][len(held_out) > LIVE]
        return Evaluation(
            step=state.step,
            right=round(share * len(held_out)),
            total=len(held_out),
            loss=1.0,
            free_loss=2.0,
            token_accuracy=0.5,
        )

    monkeypatch.setattr(loop, "evaluate", evaluate)
    return asked


def test_on_an_asynchronous_device_numbers_are_read_at_evaluations_and_every_ten_steps(tiny, losses):
    config = tiny(steps=18, evaluate_every=14)
    on_cpu, elsewhere = TrainState.begin(config), TrainState.begin(config)
    elsewhere.device = torch.device("mps")
    elsewhere.to_device = on_cpu.to_device  # all computation stays on the CPU
    reports = list(train(elsewhere))
    assert {report.step: len(report.losses) for report in reports if report.losses} == {10: 10, 14: 4, 18: 4}
    assert [loss for report in reports for loss in report.losses] == losses(config)


def test_the_goal_stops_the_run_only_when_all_held_out_words_confirm_it(tiny, monkeypatch):
    asked = evaluations(monkeypatch, {2: (0.7, 0.6), 4: (0.85, 0.75), 6: (0.85, 0.8)})
    state = TrainState.begin(tiny(steps=20, evaluate_every=2, goal=0.8))
    assert [report.step for report in train(state)] == [1, 2, 3, 4, 5, 6]
    assert state.goal_reached
    assert asked == [(step, n) for step in (2, 4, 6) for n in (LIVE, HELD_OUT)]  # step 2: for the mark 0.5


def test_a_run_that_misses_its_goal_takes_all_planned_steps(tiny, monkeypatch):
    evaluations(monkeypatch, {2: (0.1, 0.1), 4: (0.2, 0.2)})
    state = TrainState.begin(tiny(steps=4, evaluate_every=2, goal=0.8))
    assert [report.step for report in train(state)] == [1, 2, 3, 4]
    assert not state.goal_reached


def test_first_step_at_is_the_first_step_at_which_all_held_out_words_reach_each_mark(tiny, monkeypatch):
    shares = {1: (0.6, 0.4), 2: (0.6, 0.5), 3: (0.4, 0.4), 4: (0.95, 0.89), 5: (1.0, 0.995), 6: (1.0, 1.0)}
    asked = evaluations(monkeypatch, shares)
    state = TrainState.begin(tiny(steps=6, evaluate_every=1))
    list(train(state))
    assert state.first_step_at == {"0.5": 2, "0.9": 5, "0.99": 5}
    # step 3: no new mark within reach; step 6: the last step
    assert [step for step, n in asked if n == HELD_OUT] == [1, 2, 4, 5, 6]


def test_a_loss_that_is_not_finite_ends_the_training_and_reports_the_step(tiny):
    state = TrainState.begin(tiny(learning_rate=1e30))
    with pytest.raises(NotFinite) as ended:
        list(train(state))
    assert str(ended.value).startswith(f"At step {state.step} the loss is ")
    assert str(ended.value).endswith("training cannot continue. Start again with a lower learning rate.")
    assert 1 < state.step < 8


def test_a_continuation_goes_on_from_the_same_weights_to_its_own_end(tiny, monkeypatch):
    """The goal has already been met, so it no longer stops the run."""
    evaluations(monkeypatch, {4: (1.0, 1.0), 8: (1.0, 1.0), 10: (1.0, 1.0)})
    state = TrainState.begin(tiny(goal=0.9))
    assert [report.step for report in train(state)] == [1, 2, 3, 4]
    state.continue_for(6, 0.01)
    reports = list(train(state))
    assert [report.step for report in reports] == [5, 6, 7, 8, 9, 10]
    assert [report.learning_rate for report in reports] == pytest.approx(
        [0.01, *(0.01 * left / 6 for left in (5, 4, 3, 2, 1))]
    )
    assert state.change_log == [(4, "continue", {"steps": 6, "learning_rate": 0.01})]


def test_a_new_learning_rate_scales_the_plan_from_the_next_step_on(tiny):
    plain = [report.learning_rate for report in train(TrainState.begin(tiny(evaluate_every=99)))]
    state = TrainState.begin(tiny(evaluate_every=99))
    rates = []
    for report in train(state):
        rates.append(report.learning_rate)
        if report.step == 5:
            state.set_learning_rate(2 * 5e-3)
    assert rates == pytest.approx([*plain[:5], *(2 * rate for rate in plain[5:])])
    assert state.change_log == [(5, "learning_rate", 0.01)]
