"""Masks: who may look at whom in the probe batch, and the weights that come of it."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.entry import guard
from pages.parts.live_figure import live_figure
from pages.parts.pictures import mask_panels, sites_of
from pages.parts.presets import DEFAULT_PRESET, PRESETS
from pages.parts.refresh import refresh_seconds
from pages.parts.run_list import run_list
from pages.parts.style import style
from pages.parts.wording import status_line

EXPLAINED = {
    "cross": (
        "Cross",
        "**Cross-attention** reads the finished word, so nothing lies in the future: only padding is hidden.",
    ),
    "encoder": (
        "Encoder",
        "**Encoder self-attention** may look both ways along the word: only padding is hidden.",
    ),
    "decoder": (
        "Decoder",
        "**Decoder self-attention** has both masks: a row may not read the letters it is still to write, "
        "and no row may read padding.",
    ),
}

guard("masks")
style()
run = selection.chosen_run() or selection.draft(PRESETS[DEFAULT_PRESET].config, keep=True)
words = sorted((question.text for question in run.questions), key=len)
model = run.config.model

with st.sidebar:
    kind = st.segmented_control(
        "Attention",
        list(EXPLAINED),
        default="decoder",
        required=True,
        key="mask_site",
        format_func=lambda name: EXPLAINED[name][0],
        persist_state="session",
        help="Which of the model's three kinds of attention.",
    )
    word = st.pills(
        "Word of the batch",
        words,
        default=words[0],
        required=True,
        key="mask_word",
        help="The probes are one batch. The shorter a word, the more padding it carries.",
    )
    n_layers = model.n_encoder_layers if kind == "encoder" else model.n_decoder_layers
    layer = st.selectbox(
        "Layer",
        range(n_layers),
        format_func=lambda i: str(i + 1),
        help="Whose weights stand beside the masks.",
    )
    head = st.selectbox(
        "Head", range(model.n_heads), format_func=lambda i: str(i + 1), help="All heads obey the same masks."
    )
run_list(run)

st.subheader("Masks: who may look at whom", anchor=False)
st.markdown(
    f"{EXPLAINED[kind][1]} Words of different lengths travel in one batch, so the shorter ones are filled up "
    "with [PAD]: the longer the longest word, the more padding the others carry."
)
place = st.container(key="mask_maps")
seen = run.view


@st.fragment(run_every=refresh_seconds(seen))
def live() -> None:
    """The masks of the newest frame's batch, and the weights it produced."""
    view = run.view
    with place:
        if view.frame is None:
            st.skeleton(height=380)
        else:
            site = sites_of(view.frame, kind)[layer]
            live_figure(
                [mask_panels(view.frame, word, site, head, view.config.seed)],
                key="mask_figure",
                height="max(360px, calc(100vh - 330px))",
                file_name=f"headlight-mask-{word}-{site}-head{head + 1}-seed{view.config.seed}",
            )
    st.caption(f"{status_line(view)} · seed {view.config.seed} · batch of {len(run.questions)} words")
    if view.state != seen.state or refresh_seconds(view) != refresh_seconds(seen):
        st.rerun()


live()
st.markdown(
    ":gray-background[ ╱ ] blocked by the **causal** mask: it lies in the future &nbsp;&nbsp; "
    ":orange-background[ • ] blocked by the **padding** mask: it is no letter &nbsp;&nbsp; "
    "plain cells are allowed. In the weights, every row adds up to 100 % over its allowed cells, and a "
    "blocked cell has exactly none."
)
