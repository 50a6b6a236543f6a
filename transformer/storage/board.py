"""The curves of a run for TensorBoard, in its own folder."""

from __future__ import annotations

from pathlib import Path

from transformer.axes import reading_sites
from transformer.recording.view import RunView

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
        from tensorboardX import SummaryWriter  # only where it was asked for

        self._writer = SummaryWriter(str(folder / FOLDER))
        self._n = 0
        """Rows that are written."""
        self._measured = -1
        """The step of the newest measurement that is written."""

    def note(self, view: RunView) -> None:
        """Write what is new: the rows of the table, and each head's score for the aim of the run."""
        steps, *columns = view.metrics.columns("step", *NAMES)
        for row in range(self._n, len(steps)):
            for name, values in zip(NAMES.values(), columns, strict=True):
                if values[row] == values[row]:  # no evaluation, no number
                    self._writer.add_scalar(name, float(values[row]), int(steps[row]))
        self._n = len(steps)
        if (frame := view.frame) is not None:
            for one in view.frames.measurements:
                for site in reading_sites(frame.axes) if one.step > self._measured else ():
                    for head, score in enumerate(one.head_scores[site][frame.aim]):
                        self._writer.add_scalar(f"{frame.aim}/{site}.{head + 1}", float(score), one.step)
                self._measured = max(self._measured, one.step)
        self._writer.flush()

    def close(self) -> None:
        """Nothing more can be noted."""
        self._writer.close()
