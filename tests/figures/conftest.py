"""What the tests of pictures share."""

from __future__ import annotations

import numpy as np
from plotly.graph_objects import Figure


def drawn(picture):
    """The figure as Plotly understands it, which refuses what does not exist."""
    return Figure(picture.figure())


def heatmaps(figure):
    """Its traces of cells, without the legend of the weights."""
    return [trace for trace in figure.data if trace.type == "heatmap"]


def softmaxed(*shape, seed=0):
    """Random rows that add up to 1, as weights do."""
    scores = np.exp(3 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(axis=-1, keepdims=True)
