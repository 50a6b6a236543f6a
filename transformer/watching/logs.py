"""Focus and worth of every head of a watched model, and its clearest head, for TensorBoard or W&B."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer.figures.colors import CAUSAL, VIRIDIS, rgb
from transformer.recording.frame import Array

if TYPE_CHECKING:
    from transformer.watching.watch import Log

SIDE = 384
"""Maximum pixels of a side of a picture; a longer map has one pixel per cell."""


def log_of(writer: Any) -> Log:
    """The function that logs to a `SummaryWriter` of TensorBoard, or to a run of W&B."""
    return _to_tensorboard(writer) if hasattr(writer, "add_scalar") else _to_wandb(writer)


def _to_tensorboard(writer: Any) -> Log:
    def log(step: int, what: str, numbers: Mapping[str, Array], shown: tuple[str, Array] | None) -> None:
        for tag, number in _scalars(what, numbers):
            writer.add_scalar(tag, number, step)
        if shown is not None:
            writer.add_image("attention/clearest head", picture(shown[1]), step, dataformats="HWC")

    return log


def _to_wandb(run: Any) -> Log:
    import wandb

    def log(step: int, what: str, numbers: Mapping[str, Array], shown: tuple[str, Array] | None) -> None:
        logged: dict[str, Any] = dict(_scalars(what, numbers))
        if shown is not None:
            name, weights = shown
            logged["attention/clearest head"] = wandb.Image(
                picture(weights), caption=f"{name}, step {step:,}"
            )
        # These numbers join the next ones that the training logs; W&B counts its steps itself.
        run.log(logged, commit=False)

    return log


def _scalars(what: str, numbers: Mapping[str, Array]) -> Iterator[tuple[str, float]]:
    for site, values in numbers.items():
        for head, number in enumerate(values.tolist()):
            if number == number:  # not NaN
                yield f"{what}/{site}.{head + 1}", number


def picture(weights: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A map as a picture, (height, width, 3), in the colours of the app.

    Args:
        weights: (Q, K); NaN in cells that a mask blocks.
    """
    stops = np.array([rgb(color) for color in VIRIDIS], dtype=float)
    place = np.sqrt(np.nan_to_num(weights).clip(0, 1)) * (len(stops) - 1)  # the app's scale: of square roots
    colors = np.stack([np.interp(place, np.arange(len(stops)), stops[:, i]) for i in range(3)], -1)
    colors[np.isnan(weights)] = rgb(CAUSAL)
    size = max(1, SIDE // max(weights.shape))
    return colors.round().astype(np.uint8).repeat(size, 0).repeat(size, 1)
