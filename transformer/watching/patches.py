"""Tokens that are patches of a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from transformer.errors import InputError
from transformer.recording.patched import LARGEST_SIDE, MOST_PATCHES, Patched


class Patches(Sequence[str]):
    """The tokens of an axis whose positions are patches of a picture, row by row.

    A row of a map is then drawn over the picture. As a token, a patch is named by its row and column, from 1.

    Args:
        image: (H, W), (H, W, C) or (C, H, W) with 1 or 3 colours: a tensor, an array or a picture of Pillow.
            A fourth channel of (H, W, C) is left out. Integers are from 0 to 255; those outside are clipped.
            Floats are from 0 to 1; if some are outside, as after a normalisation, all are rescaled to 0 to 1.
            Of a larger picture, the longer side is recorded with LARGEST_SIDE pixels.
        grid: number of rows and of columns of patches, at most MOST_PATCHES in all.
        before: tokens before the patches, such as ["[CLS]"].
        after: tokens after the patches.

    Raises:
        InputError: `image` is no picture or has pixels that are not finite, or `grid` is no grid of patches.
    """

    def __init__(
        self, image: Any, grid: tuple[int, int], before: Sequence[str] = (), after: Sequence[str] = ()
    ) -> None:
        try:
            rows, columns = map(index, grid)
        except (TypeError, ValueError):
            rows = columns = 0
        if rows < 1 or columns < 1 or rows * columns > MOST_PATCHES:
            raise InputError(
                f"grid={grid!r} is no grid: give rows and columns, of at most {MOST_PATCHES:,} patches.",
                "grid",
            )
        before, after = (([one] if isinstance(one, str) else list(one or ())) for one in (before, after))
        names = (f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1))
        self._tokens = (*map(str, before), *names, *map(str, after))
        pixels = _pixels(image)
        height, width, _ = pixels.shape
        self.picture = Patched(
            width=width,
            height=height,
            pixels=pixels.tobytes(),
            grid=(rows, columns),
            before=len(before),
            after=len(after),
        )

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, i: Any) -> Any:
        return self._tokens[i]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokens)


def _pixels(image: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """(H, W, 3) uint8 of at most LARGEST_SIDE pixels a side. Raises InputError: no picture."""
    if hasattr(image, "convert"):  # a picture of Pillow
        image = image.convert("RGB")
    try:
        values = torch.as_tensor(image if isinstance(image, Tensor) else np.array(image)).detach().cpu()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{image!r} is no image: give a tensor, an array or a picture of Pillow.", "image"
        ) from error
    if values.dtype == torch.bool:
        values = 255 * values.int()
    shares = values.is_floating_point()
    values = values.float()
    if values.dim() == 2:
        values = values[None]
    elif values.dim() == 3 and values.shape[0] not in (1, 3) and values.shape[2] in (1, 3, 4):
        values = values.movedim(-1, 0)[:3]
    colored = values.dim() == 3 and values.shape[0] in (1, 3)
    if not colored or not values.numel():
        shape = tuple(values.shape)
        raise InputError(f"An image has the shape (H, W), (H, W, C) or (C, H, W), not {shape}.", "image")
    if not values.isfinite().all():
        raise InputError("The image has pixels that are no numbers (NaN).", "image")
    if shares:
        low, high = values.min(), values.max()
        if low < 0 or high > 1:
            values = (values - low) / (high - low).clamp_min(1e-30)  # equal pixels become black
        values = values * 255
    values = values.expand(3, -1, -1)
    scale = LARGEST_SIDE / max(values.shape[1:])
    if scale < 1:
        size = [max(1, round(n * scale)) for n in values.shape[1:]]
        values = functional.interpolate(values[None], size, mode="area")[0]
    return values.clamp(0, 255).round().to(torch.uint8).movedim(0, -1).contiguous().numpy()
