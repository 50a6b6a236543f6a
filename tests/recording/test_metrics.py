"""The numbers of every step, read while they grow."""

from __future__ import annotations

import numpy as np

from transformer.recording.metrics import COLUMNS, Metrics


def test_rows_keep_their_values_however_many_follow():
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


def test_a_table_has_no_number_for_what_was_not_measured_and_does_not_change_when_rows_follow():
    metrics = Metrics()
    metrics.append(step=1, loss=2.5)
    metrics.append(step=2, loss=2.0, exact=0.25)
    table = metrics.table()
    metrics.append(step=3, loss=1.5)
    assert list(table.columns) == list(COLUMNS)
    assert table["step"].dtype == np.int64
    assert table["loss"].tolist() == [2.5, 2.0]
    assert table["exact"].isna().tolist() == [True, False]
    assert table["seconds"].isna().all()
