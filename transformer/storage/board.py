"""The curves of a run for TensorBoard, in its own folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformer.recording.frame import Measurement
from transformer.recording.metrics import Metrics

FOLDER = "tensorboard"
NAMES = {
    "loss": "loss/training",
    "held_out_loss": "loss/held_out",
    "free_loss": "loss/writing_freely",
    "token_accuracy": "accuracy/tokens_training",
    "held_out_token_accuracy": "accuracy/tokens_held_out",
    "exact": "accuracy/exact",
    "bleu": "translation/bleu",
    "chrf": "translation/chrf",
    "learning_rate": "training/learning_rate",
    "gradient_norm": "training/gradient_norm",
}
"""Columns of the table of a run, and what they are called there."""


class Board:
    """Writes event files: each number once, and nothing where there is none."""

    def __init__(self, folder: Path) -> None:
        from tensorboardX import SummaryWriter  # only where somebody asked for it

        self._writer = SummaryWriter(str(folder / FOLDER))
        self._n = 0
        """Rows that are written."""
        self._measured = -1
        """The step of the newest measurement that is."""

    def note(self, metrics: Metrics) -> None:
        """The rows of the table that are new."""
        steps, *columns = metrics.columns("step", *NAMES)
        for row in range(self._n, len(steps)):
            for name, values in zip(NAMES.values(), columns, strict=True):
                if values[row] == values[row]:  # no evaluation, no number
                    self._writer.add_scalar(name, float(values[row]), int(steps[row]))
        self._n = len(steps)

    def note_measurements(self, measured: Sequence[Measurement], aim: str, sites: Sequence[str]) -> None:
        """The score that the task aims at, of each head of these sites, as far as that is new."""
        for one in measured:
            for site in sites if one.step > self._measured else ():
                for head, score in enumerate(one.head_scores[site][aim]):
                    self._writer.add_scalar(f"{aim}/{site}.{head + 1}", float(score), one.step)
        self._measured = max([self._measured, *(one.step for one in measured)])

    def flush(self) -> None:
        """Bring to disk what its own thread has written so far."""
        self._writer.flush()

    def close(self) -> None:
        """Bring all to disk; nothing more can be noted."""
        self._writer.close()
