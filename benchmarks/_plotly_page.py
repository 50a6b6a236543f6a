"""The pictures of the Watch page as Streamlit's own charts draw them, to compare with."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from plotly.subplots import make_subplots

from transformer.figures.curves import thinned
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.runs.registry import REGISTRY

SECONDS = 0.5
"""Between two refreshes, as on the Watch page."""
SHADES = {"zmin": 0, "zmax": 1, "colorscale": "Viridis"}


def maps(frame: Frame) -> go.Figure:
    """Every head of the cross-attention."""
    sites = [site for site, axes in frame.axes.items() if axes.kind == "cross"]
    heads = len(frame.map(0, sites[0]))
    figure = make_subplots(rows=heads, cols=len(sites))
    for column, site in enumerate(sites, start=1):
        for row, weights in enumerate(frame.map(0, site), start=1):
            z = weights.astype(np.float32)
            figure.add_trace(go.Heatmap(z=z, showscale=False, **SHADES), row=row, col=column)
    return figure.update_layout(height=400)


def large(frame: Frame) -> go.Figure:
    """The clearest head."""
    site, head = frame.clearest
    return go.Figure(go.Heatmap(z=frame.map(0, site)[head].astype(np.float32), **SHADES))


def curves(view: RunView) -> go.Figure:
    """Loss and accuracy."""
    steps, loss, accuracy = view.metrics.columns("step", "loss", "token_accuracy")
    exact, held_out, free = view.metrics.columns("exact", "held_out_loss", "free_loss")
    known = ~np.isnan(held_out)
    x, thin_loss, thin_accuracy = thinned(steps, loss, accuracy)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True)
    for row, at, y in (
        (1, x, thin_loss),
        (1, steps[known], held_out[known]),
        (1, steps[known], free[known]),
        (2, x, thin_accuracy),
        (2, steps[known], exact[known]),
    ):
        figure.add_trace(go.Scatter(x=at.astype(np.float32), y=y.astype(np.float32)), row=row, col=1)
    return figure


def scores(view: RunView) -> go.Figure:
    """The score of each head above the loss."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True)
    measured, frame = view.frames.measurements, view.frames[-1]
    steps = np.array([one.step for one in measured], dtype=np.float32)
    for site, of_heads in frame.scores.items():
        for head in range(len(of_heads)):
            y = np.array([one.head_scores[site][frame.aim][head] for one in measured], dtype=np.float32)
            figure.add_trace(go.Scatter(x=steps, y=y), row=1, col=1)
    x, loss = thinned(*view.metrics.columns("step", "loss"))
    return figure.add_trace(go.Scatter(x=x.astype(np.float32), y=loss.astype(np.float32)), row=2, col=1)


@st.fragment(run_every=SECONDS)
def look() -> None:
    """One refresh."""
    run = REGISTRY.get(st.query_params.get("run"))
    if run is None or run.view.frame is None:
        return
    view = run.view
    columns = st.columns([1.32, 0.84, 0.98])
    for column, figure in zip(columns, (large(view.frame), maps(view.frame), curves(view)), strict=True):
        column.plotly_chart(figure)
    st.plotly_chart(scores(view))


st.set_page_config(layout="wide")
look()
