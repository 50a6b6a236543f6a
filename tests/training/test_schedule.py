"""The learning rate: it rises, then falls until the last planned step."""

from __future__ import annotations

import math

import pytest

from transformer.training.state import SchedulePhase


def rates(**settings):
    stretch = SchedulePhase(
        **{"first": 0, "steps": 10, "peak": 0.5, "warmup": 4, "decay": "linear", **settings}
    )
    return [stretch.rate(step) for step in range(stretch.first + 1, stretch.last + 1)]


def test_the_rate_rises_and_falls_in_equal_steps_until_the_end_of_the_plan():
    """Four steps up to the peak, then six down; a seventh would be at zero."""
    expected = [0.125, 0.25, 0.375, 0.5, *(0.5 * left / 7 for left in (6, 5, 4, 3, 2, 1))]
    assert rates() == pytest.approx(expected)


def test_the_cosine_decay_is_half_a_cosine_wave():
    expected = [0.25 * (1 + math.cos(math.pi * done / 7)) for done in (1, 2, 3, 4, 5, 6)]
    assert rates(decay="cosine")[4:] == pytest.approx(expected)


def test_a_constant_schedule_stays_at_the_peak_after_the_warm_up():
    assert rates(decay="constant") == pytest.approx([0.125, 0.25, 0.375, *[0.5] * 7])


@pytest.mark.parametrize("decay", ["linear", "cosine"])
@pytest.mark.parametrize(("steps", "warmup"), [(300, 50), (7, 0), (1, 0), (2, 1), (90, 89)])
def test_every_planned_step_has_a_positive_rate_and_the_decay_ends_with_the_plan(decay, steps, warmup):
    all_rates = rates(steps=steps, warmup=warmup, decay=decay, peak=1.0)
    assert len(all_rates) == steps
    assert all(0.0 < rate <= 1.0 for rate in all_rates)
    after = all_rates[warmup:]
    assert after == sorted(after, reverse=True)
    assert after[-1] <= 1.0 / (steps - warmup + 1) + 1e-12


def test_a_warm_up_longer_than_the_plan_reaches_the_peak_at_the_last_step():
    assert rates(steps=4, warmup=1000) == pytest.approx([0.125, 0.25, 0.375, 0.5])


def test_a_continuation_has_its_own_warm_up_and_end():
    assert rates(first=300) == rates(first=0)
    assert SchedulePhase(first=300, steps=10, peak=0.5, warmup=4, decay="linear").last == 310
