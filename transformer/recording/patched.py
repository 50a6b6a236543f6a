"""A picture whose patches are the tokens of an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LARGEST_SIDE = 160
"""Maximum pixels of a side of a picture as it is recorded."""
MOST_PATCHES = 4096


@dataclass(frozen=True, kw_only=True)
class Patched:
    """A picture, and the tokens of an axis: some before its patches, the patches row by row, some after."""

    width: int
    height: int
    pixels: bytes
    """Red, green and blue of each pixel, row by row."""
    grid: tuple[int, int]
    """Rows and columns of patches."""
    before: int = 0
    """Tokens before the patches, such as [CLS]."""
    after: int = 0
    """Tokens after them."""

    def __post_init__(self) -> None:
        """Check the numbers, since a file can hold anything. Raises ValueError."""
        sides = 0 < self.width <= LARGEST_SIDE and 0 < self.height <= LARGEST_SIDE
        rows, columns = self.grid
        counted = (
            rows > 0 and columns > 0 and rows * columns <= MOST_PATCHES and self.before >= 0 <= self.after
        )
        if not sides or not counted or len(self.pixels) != 3 * self.width * self.height:
            raise ValueError("it is no picture of patches")

    def array(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """(H, W, 3) red, green and blue."""
        return np.frombuffer(self.pixels, dtype=np.uint8).reshape(self.height, self.width, 3)

    def shares(self, weights: np.ndarray[Any, Any], pooled: int) -> np.ndarray[Any, Any]:
        """(rows, columns) weights of the patches: the tokens of a cell share its weight evenly.

        Args:
            weights: (K,) weights of the cells; NaN where blocked, which counts as 0.
            pooled: tokens in a cell.
        """
        rows, columns = self.grid
        cells = (self.before + np.arange(rows * columns)) // pooled
        tokens = np.minimum(pooled, self.n_tokens - cells * pooled)
        table: np.ndarray[Any, Any] = (np.nan_to_num(weights)[cells] / tokens).reshape(rows, columns)
        return table

    @property
    def n_tokens(self) -> int:
        """Number of tokens: the patches, and those before and after."""
        return self.before + self.grid[0] * self.grid[1] + self.after


@dataclass(frozen=True, kw_only=True)
class Covered:
    """The keys of an attention as patches of a picture."""

    picture: Patched
    pooled: int
    """Tokens in a cell."""
    asks: bool
    """Whether queries are these patches too."""

    @property
    def usual_query(self) -> int:
        """The row that is drawn unless another is chosen.

        If queries are these patches and no token comes before them, that of the patch in the middle; else
        the first.
        """
        rows, columns = self.picture.grid
        in_the_middle = self.asks and not self.picture.before
        return (rows // 2 * columns + columns // 2) // self.pooled if in_the_middle else 0


Pictures = dict[str, dict[str, Patched]]
"""The picture of each axis, by word and by the name of the axis."""
