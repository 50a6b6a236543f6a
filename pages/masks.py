"""Masks: who may look at whom in the probe batch, and the weights that come of it."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.entry import guard
from pages.parts.live_figure import live_figure
from pages.parts.pictures import mask_panels, sites_of
from pages.parts.presets import DEFAULT_PRESET, PRESETS
from pages.parts.refresh import refresh_seconds, refreshing
from pages.parts.run_list import run_list
from pages.parts.style import style
from pages.parts.time_control import draw_time, seconds_between_frames, time_control
from pages.parts.wording import status_line
from transformer.runs.view import FAILED, RunView

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

ENDS = {"cross": "cross", "encoder": "", "decoder": "self"}
"""How the names of each kind's sites end."""

guard("masks")
style()
run = selection.chosen_run() or selection.draft(PRESETS[DEFAULT_PRESET].config, keep=True)
words = sorted((question.text for question in run.questions), key=len)
model = run.config.model
# The same selection as on the other pages. This page opens on the decoder, whose attention has both masks.
st.session_state.setdefault("mask_site", selection.kind() if "kind" in st.query_params else "decoder")
if selection.kind() != st.session_state.get("masks_beside", "cross"):
    st.session_state["mask_site"] = selection.kind()  # chosen on another page since
st.session_state["masks_beside"] = selection.kind()
word = st.session_state.get("word", st.query_params.get("word"))
if word in words:
    st.session_state["mask_word"] = word


def _chosen() -> None:
    st.session_state["kind"] = st.session_state["mask_site"]
    st.session_state["word"] = st.session_state["mask_word"]


def _head_chosen() -> None:
    stack = "encoder" if st.session_state["mask_site"] == "encoder" else "decoder"
    names = (stack, str(st.session_state["mask_layer"]), ENDS[st.session_state["mask_site"]])
    st.session_state["pinned"] = ".".join(filter(None, names)), st.session_state["mask_head"]


def _put(key: str, number: object, n: int) -> None:
    """Before its box is drawn: a model with fewer of them has another last one."""
    st.session_state[key] = min(number, n - 1) if isinstance(number, int) else 0


with st.sidebar:
    kind = st.segmented_control(
        "Attention",
        list(EXPLAINED),
        required=True,
        key="mask_site",
        format_func=lambda name: EXPLAINED[name][0],
        persist_state="session",
        on_change=_chosen,
        help="Which of the model's three kinds of attention.",
    )
    if st.session_state.get("mask_word") not in words:
        st.session_state["mask_word"] = words[0]
    word = st.pills(
        "Word of the batch",
        words,
        required=True,
        key="mask_word",
        on_change=_chosen,
        help="The probes are one batch. The shorter a word, the more padding it carries.",
    )
    n_layers = model.n_encoder_layers if kind == "encoder" else model.n_decoder_layers
    site, number = selection.pinned() or ("", 0)  # the head chosen on another page, if it is of this kind
    ours = site.startswith("encoder" if kind == "encoder" else "decoder") and site.endswith(ENDS[kind])
    _put("mask_layer", int(site.split(".")[1]) if ours else st.session_state.get("mask_layer"), n_layers)
    _put("mask_head", number if ours else st.session_state.get("mask_head"), model.n_heads)
    layer = st.selectbox(
        "Layer",
        range(n_layers),
        key="mask_layer",
        on_change=_head_chosen,
        format_func=lambda i: str(i + 1),
        help="Whose weights stand beside the masks.",
    )
    head = st.selectbox(
        "Head",
        range(model.n_heads),
        key="mask_head",
        on_change=_head_chosen,
        format_func=lambda i: str(i + 1),
        help="All heads obey the same masks.",
    )
run_list(run)

st.subheader("Masks: who may look at whom", anchor=False)
st.markdown(
    f"{EXPLAINED[kind][1]} Words of different lengths travel in one batch, so the shorter ones are filled up "
    "with [PAD]: the longer the longest word, the more padding the others carry."
)
seen = run.view
time_places = time_control(seen)
place = st.container(key="mask_maps")


def interval(view: RunView) -> float | None:
    """How often to look again: as often as the film plays, or while the run moves."""
    return seconds_between_frames() or refresh_seconds(view)


def live(view: RunView) -> None:
    """The masks of one frame's batch, and the weights it produced."""
    draw_time(view, time_places)
    frame = selection.shown_frame(view)
    with place:
        if frame is None and view.state == FAILED:
            st.error(view.reason)
        elif frame is None:
            st.skeleton(height=380)
        else:
            site = sites_of(frame, kind)[layer]
            live_figure(
                [mask_panels(frame, word, site, head, view.config.seed)],
                key="mask_figure",
                height="max(360px, calc(100vh - 330px))",
                file_name=f"headlight-mask-{word}-{site}-head{head + 1}-seed{view.config.seed}",
            )
    st.caption(f"{status_line(view)} · seed {view.config.seed} · batch of {len(run.questions)} words")
    selection.keep_in_link()


refreshing(run, seen, live, every=interval)
st.markdown(
    ":gray-background[ ╱ ] blocked by the **causal** mask: it lies in the future &nbsp;&nbsp; "
    ":orange-background[ • ] blocked by the **padding** mask: it is no letter &nbsp;&nbsp; "
    "plain cells are allowed. In the weights, every row adds up to 100 % over its allowed cells, and a "
    "blocked cell has exactly none."
)
