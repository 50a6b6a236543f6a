"""The table of the numbers of every step, read while it grows."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.recording.metrics import COLUMNS, Metrics
from transformer.shared.evaluation import Evaluation


def test_rows_keep_their_values_when_more_follow():
    metrics = Metrics()
    taken = []
    for step in range(1, 701):
        metrics.append(step=step, loss=1.0 / step, **({"exact": 0.5} if step % 100 == 0 else {}))
        if step in (3, 256, 257):
            taken.append(metrics.column("loss"))
    assert len(metrics) == 700
    assert metrics.column("step").tolist() == list(range(1, 701))
    assert metrics.column("loss").tolist() == [1.0 / step for step in range(1, 701)]
    for column, n in zip(taken, (3, 256, 257), strict=True):
        assert column.tolist() == [1.0 / step for step in range(1, n + 1)]


def test_a_table_is_nan_where_nothing_was_measured_and_does_not_change_when_rows_follow():
    metrics = Metrics()
    metrics.append(step=1, loss=2.5)
    metrics.append(step=2, loss=2.0, exact=0.25)
    table, until = metrics.table(), [metrics.until(step) for step in (1, 2, 5)]
    metrics.append(step=3, loss=1.5)
    assert [one.column("loss").tolist() for one in until] == [[2.5], [2.5, 2.0], [2.5, 2.0]]
    assert list(table.columns) == list(COLUMNS)
    assert table["step"].dtype == np.int64
    assert table["loss"].tolist() == [2.5, 2.0]
    assert table["exact"].isna().tolist() == [True, False]
    assert table["seconds"].isna().all()


def test_rows_added_together_end_at_their_step_and_an_evaluation_goes_into_its_own_row():
    metrics = Metrics()
    evaluation = Evaluation(step=7, right=1, total=4, loss=2.5, free_loss=2.75, token_accuracy=0.5)
    numbers = (3.0, 2.0), (0.125, 0.25), (1.5, 1.25), (0.001, 0.002)
    metrics.add(7, numbers, seconds=0.5, tokens_per_second=90.0, evaluation=evaluation)
    metrics.add(8, ((1.0,), (0.5,), (1.0,), (0.003,)), seconds=0.75, evaluation=evaluation)
    table = metrics.table()
    assert table["step"].tolist() == [6, 7, 8]
    for column, of_all in zip(
        ("loss", "token_accuracy", "gradient_norm", "learning_rate"), numbers, strict=True
    ):
        assert table[column].tolist()[:2] == [*of_all]
    for column, value in (("held_out_loss", 2.5), ("free_loss", 2.75), ("held_out_token_accuracy", 0.5)):
        np.testing.assert_array_equal(table[column], [np.nan, value, np.nan])
    np.testing.assert_array_equal(table["exact"], [np.nan, 0.25, np.nan])
    assert [metrics.at(step) for step in (5, 6, 8, 9)] == [(0.0, None), (0.5, 3.0), (0.75, 1.0), (0.75, None)]


def test_the_speed_is_measured_over_the_last_second():
    metrics = Metrics()
    for step in range(1, 11):
        metrics.append(step=step, seconds=float(step))
        assert metrics.speed() == (0.0 if step == 1 else 1.0)
    for step in range(11, 51):
        metrics.append(step=step, seconds=10 + (step - 10) / 20)
    assert metrics.speed() == pytest.approx(20)
