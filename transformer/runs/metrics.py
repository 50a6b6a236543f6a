"""The numbers of every step of a run: one growing table that readers may look at while it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # loaded when a table is asked for, and not before the first page
    import pandas as pd

COLUMNS = (
    "step",
    "loss",
    "token_accuracy",
    "learning_rate",
    "gradient_norm",
    "tokens_per_second",
    "seconds",
    "held_out_loss",
    "free_loss",
    "held_out_token_accuracy",
    "exact",
    "bleu",
    "chrf",
)
"""One row a step; the last six are NaN at steps without an evaluation, and BLEU and chrF where nothing is
translated."""


class Metrics:
    """Append-only: one thread appends, any thread reads without a lock: a counted row never changes."""

    def __init__(self) -> None:
        self._rows = np.full((256, len(COLUMNS)), np.nan)
        self._n = 0

    def append(self, **values: float | None) -> None:
        """Add a row; what is left out or None is NaN."""
        if self._n == len(self._rows):
            self._rows = np.concatenate([self._rows, np.full_like(self._rows, np.nan)])
        found = (values.get(name) for name in COLUMNS)
        self._rows[self._n] = [np.nan if value is None else value for value in found]
        self._n += 1  # counted last: a reader never sees half a row

    def __len__(self) -> int:
        return self._n

    def columns(self, *names: str) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
        """Several columns, all of the same length though rows may be added meanwhile."""
        n = self._n  # before the rows: they may only have grown since
        return [self._rows[:n, COLUMNS.index(name)] for name in names]

    def column(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """All values of one column so far."""
        return self.columns(name)[0]

    def table(self) -> pd.DataFrame:
        """The whole table; `step` as whole numbers."""
        import pandas as pd

        n = self._n
        frame = pd.DataFrame(self._rows[:n].copy(), columns=list(COLUMNS))
        return frame.astype({"step": "int64"})
