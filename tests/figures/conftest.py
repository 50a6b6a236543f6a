"""Helpers that the tests of pictures share."""

from __future__ import annotations

import numpy as np
from plotly.graph_objects import Figure


def drawn(picture):
    """Return the figure as Plotly reads it; Plotly refuses attributes that do not exist."""
    return Figure(picture.figure())


def heatmaps(figure):
    """Return the traces of cells, without the legend of the weights."""
    return [trace for trace in figure.data if trace.type == "heatmap"]


def softmaxed(*shape, seed=0):
    """Return random rows that add up to 1, as weights do."""
    scores = np.exp(3 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(axis=-1, keepdims=True)
