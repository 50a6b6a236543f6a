"""The numbers of every step of a run: a table that can be read while it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from transformer.shared.evaluation import Evaluation

if TYPE_CHECKING:  # imported by `table`, so that the first page need not wait
    import pandas as pd


OF_EVALUATION = {
    "held_out_loss": "loss",
    "free_loss": "free_loss",
    "held_out_token_accuracy": "token_accuracy",
    "exact": "exact",
    "bleu": "bleu",
    "chrf": "chrf",
}
"""The field of an `Evaluation` that each column holds."""
COLUMNS = (
    "step",
    "loss",
    "token_accuracy",
    "learning_rate",
    "gradient_norm",
    "tokens_per_second",
    "seconds",
    *OF_EVALUATION,
)
"""The columns of the table, which has one row per step. Those of an evaluation are NaN at steps without one;
BLEU and chrF are NaN also if the task is no translation. Of an own model, usually only step, loss and seconds
are not NaN."""


class Metrics:
    """An append-only table: one thread appends, any thread reads without a lock; finished rows never change.

    Args:
        more: names of columns that an own model records in addition to `COLUMNS`.
    """

    def __init__(self, more: tuple[str, ...] = ()) -> None:
        self.names = *COLUMNS, *(name for name in more if name not in COLUMNS)
        self._rows = np.full((256, len(self.names)), np.nan)
        self._n = 0

    def append(self, **values: float | None) -> None:
        """Add a row; a value that is missing or None becomes NaN, and values without a column are ignored."""
        if self._n == len(self._rows):
            self._rows = np.concatenate([self._rows, np.full_like(self._rows, np.nan)])
        row = (values.get(name) for name in self.names)
        self._rows[self._n] = [np.nan if value is None else value for value in row]
        self._n += 1  # counted last: a reader never sees half a row

    def add(
        self,
        step: int,
        numbers: tuple[tuple[float, ...], ...],
        *,
        seconds: float,
        tokens_per_second: float = np.nan,
        evaluation: Evaluation | None = None,
    ) -> None:
        """Add a row for each step read since the last call; an evaluation goes into the row of its own step.

        Args:
            step: the newest of these steps.
            numbers: losses, token accuracies, gradient norms and learning rates, each with one number per
                step.
            seconds: of training so far; the same for all these rows, as `tokens_per_second` is.
        """
        first = step - len(numbers[0]) + 1
        for row, (loss, accuracy, norm, rate) in enumerate(zip(*numbers, strict=True), start=first):
            evaluated = {}
            if evaluation is not None and evaluation.step == row:
                evaluated = {column: getattr(evaluation, name) for column, name in OF_EVALUATION.items()}
            self.append(
                step=row,
                loss=loss,
                token_accuracy=accuracy,
                learning_rate=rate,
                gradient_norm=norm,
                tokens_per_second=tokens_per_second,
                seconds=seconds,
                **evaluated,
            )

    def until(self, step: int) -> Metrics:
        """Copy the rows up to a step to a new table, because this one may grow."""
        rows = self._rows[: self._n]
        made = Metrics(self.names[len(COLUMNS) :])
        made.extend(rows[rows[:, 0] <= step])
        return made

    def at(self, step: int) -> tuple[float, float | None]:
        """(seconds of training, loss) of a step; if it has no row, (seconds of the row before or 0, None)."""
        steps, seconds, losses = self.columns("step", "seconds", "loss")
        place = int(steps.searchsorted(step))
        if place < len(steps) and steps[place] == step:
            return float(seconds[place]), float(losses[place])
        return (float(seconds[place - 1]) if place else 0.0), None

    def speed(self) -> float:
        """Steps per second over about the last second; 0 where unknown."""
        seconds, steps = self.columns("seconds", "step")
        if len(seconds) < 2:
            return 0.0
        first = max(0, min(len(seconds) - 2, int(seconds.searchsorted(seconds[-1] - 1.0))))
        return float((steps[-1] - steps[first]) / max(seconds[-1] - seconds[first], 1e-9))

    def extend(self, rows: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        """Add the rows of another table with the same columns, (N, columns)."""
        self._rows = np.concatenate([self._rows[: self._n], rows, np.full((256, len(self.names)), np.nan)])
        self._n += len(rows)

    def rows(self, first: int, end: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Some rows, as `extend` takes them."""
        return self._rows[first:end]

    def __len__(self) -> int:
        return self._n

    def columns(self, *names: str) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
        """Several columns, all of the same length even if rows are added meanwhile."""
        n = self._n  # read before `_rows`, which can only grow
        return [self._rows[:n, self.names.index(name)] for name in names]

    def column(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """One column, (N,)."""
        return self.columns(name)[0]

    def table(self) -> pd.DataFrame:
        """The whole table as a DataFrame; `step` is int64."""
        import pandas as pd

        n = self._n
        frame = pd.DataFrame(self._rows[:n].copy(), columns=list(self.names))
        return frame.astype({"step": "int64"})
