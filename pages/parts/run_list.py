"""The runs that a visitor knows, each one click away."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.beginnings import fill
from pages.parts.wording import STATE_SIGNS
from transformer.runs.run import Run
from transformer.runs.view import ENDED, RunView


def run_list(current: Run) -> None:
    """Draw the list in the sidebar; a click shows that run, and disturbs none."""
    runs = selection.known_runs(current)
    with st.sidebar, st.container(key="run_list"):
        st.caption("Runs" if runs else "Runs: none yet")
        for run in runs:
            st.button(
                _label(run.view),
                key=f"show_{run.id}",
                type="primary" if run is current else "tertiary",
                width="stretch",
                on_click=_show,
                args=(run,),
            )


def _label(view: RunView) -> str:
    model = view.config.model
    exact = view.frame.exact if view.frame else None
    right = f" · {100 * exact[0] // exact[1]}% right" if exact else ""  # 999 of 1,000 are not all
    now = f"{view.state} at {view.step:,}{right}" if view.state in ENDED else view.state
    sizes = {"encoder-only": (model.n_encoder_layers,), "decoder-only": (model.n_decoder_layers,)}
    both = (model.n_encoder_layers, model.n_decoder_layers)
    layers = "+".join(map(str, sizes.get(model.topology, both)))
    heads = "1 head" if model.n_heads == 1 else f"{model.n_heads} heads"
    name = "" if view.config.recipe == "default" else f"{view.config.recipe} · "
    sign, seed = STATE_SIGNS[view.state], view.config.seed
    return f"{sign} {name}seed {seed} · {layers} · {heads} · d {model.d_model} · {now}"


def _show(run: Run) -> None:
    selection.choose(run)
    fill(run.config)
