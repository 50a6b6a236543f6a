"""Watch: configure, start, and see every head while it learns."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.controls import controls
from pages.parts.entry import guard
from pages.parts.live_figure import live_figure
from pages.parts.pictures import curves_picture, large_picture, sites_of, strip_picture
from pages.parts.presets import DEFAULT_PRESET, PRESETS
from pages.parts.refresh import refresh_seconds
from pages.parts.run_list import run_list
from pages.parts.settings import fill, settings
from pages.parts.style import style
from pages.parts.tiles import chosen_tiles, tile_choice
from pages.parts.wording import SITE_KINDS, moment, outputs, status_line, words_right
from pages.parts.words import probe_words
from transformer.figures.maps import tile_at
from transformer.recording.frame import Frame
from transformer.runs.registry import REGISTRY
from transformer.runs.view import RunView

# What stands above the pictures leaves this much of the window to them; type grows with it.
TALL = "max(370px, calc(100vh - 355px))"
STRIP_TALL = "max(332px, calc(100vh - 393px))"
CURVES_TALL = "max(210px, calc(100vh - 530px))"

guard("train")
style()

run = selection.chosen_run()
if run is not None and not st.session_state.get("settings_filled"):
    fill(run.config)  # a shared link shows the settings of its run
st.session_state["settings_filled"] = True
config = settings()
run = run or selection.draft(config)
if run is None:
    st.warning("These settings cannot be used yet: mend the one that is marked in the sidebar.")
    st.stop()
with st.container():
    if st.session_state.pop("lost_run", False):
        st.info("The run of this link is no longer on this server. Here is a new one, ready to start.")

controls(run, config)
top, right = st.columns([3.2, 1], vertical_alignment="center", gap="small")
status, sentence = top.container(key="run_status"), top.container(key="moment")
right_words = right.container(key="words_right")
word = probe_words(run)

left, middle, last = st.columns([1.32, 0.84, 0.98], gap="small")
with middle:
    kind = st.segmented_control(
        "Attention",
        list(SITE_KINDS),
        default="cross",
        required=True,
        key="kind",
        format_func=SITE_KINDS.get,
        label_visibility="collapsed",
        persist_state="session",
        help="Cross: what each written letter reads of the word. Encoder: how letters read each other. "
        "Decoder: how the letters written so far read each other.",
    )
    tile_choice(run.config.model.n_encoder_layers, run.config.model.n_heads)
maps_place, strip_place = left.container(), middle.container()
with left:
    outline = st.toggle(
        "Outline the mirrored letters",
        key="outline",
        persist_state="session",
        help="The cells on which a perfect reader of backwards words would put all its weight.",
    )


def pin(site: str, head: int) -> None:
    """A click on a small map shows it large and keeps it there; a second click lets go."""
    st.session_state["pinned"] = None if st.session_state.get("pinned") == (site, head) else (site, head)


def large_head(frame: Frame, sites: list[str]) -> tuple[str, int]:
    """The pinned head, or the one with the clearest pattern."""
    pinned = st.session_state.get("pinned")
    if pinned and pinned[0] in sites and pinned[1] < frame.maps[pinned[0]].shape[1]:
        return pinned
    return frame.clearest if frame.clearest[0] in sites else (sites[-1], 0)


def frames_to_draw(view: RunView) -> list[Frame]:
    """The newest frame, and before it those of the steps just taken: at a slow pace every step is drawn."""
    newest = list(view.frames[-4:])
    while len(newest) > 1 and newest[0].step + 1 != newest[1].step:
        newest.pop(0)
    return newest


def interval(view: RunView) -> float | None:
    """How often to look again; at once while a word that was typed is not on the screen."""
    waiting = view.frame is not None and word not in (probe.text for probe in view.frame.probes)
    return refresh_seconds(view, waiting=waiting and view.state != "failed")


seen = run.view


@st.fragment(run_every=interval(seen))
def live() -> None:
    """Everything that moves, from one look at the run."""
    view = run.view
    with status:
        st.markdown(f"{status_line(view)} · :red-badge[LIVE]")
        st.progress(min(1.0, view.step / view.planned))
    with right_words:
        st.html(words_right(view.frame))
    with sentence:
        preset = PRESETS.get(run.config.recipe, PRESETS[DEFAULT_PRESET])
        text = moment(view, preset.look_for)
        if view.state == "failed":
            st.error(text)
        else:
            st.markdown(text)
    if view.frame is None:
        for place in (maps_place, strip_place, last):
            place.skeleton(height=380)
    else:
        draw(view)
    if (view.state, view.pace) != (seen.state, seen.pace) or interval(view) != interval(seen):
        st.rerun()


def draw(view: RunView) -> None:
    """The maps, the curves and the outputs."""
    frames = frames_to_draw(view)
    sites = sites_of(view.frame, kind)
    shown_sites, shown_heads = chosen_tiles(sites, view.config.model.n_heads)
    site, head = large_head(view.frame, sites)
    seed = view.config.seed
    name = f"headlight-{word}-seed{seed}"
    with maps_place, st.container(key="live_map"):
        live_figure(
            [large_picture(frame, word, site, head, seed, outline) for frame in frames],
            key="live_map_figure",
            height=TALL,
            file_name=f"{name}-{site}-head{head + 1}",
        )
    with strip_place, st.container(key="live_maps"):
        live_figure(
            [strip_picture(frame, word, shown_sites, shown_heads, (site, head)) for frame in frames],
            key="live_maps_figure",
            height=STRIP_TALL,
            file_name=f"{name}-{kind}",
            on_click=lambda trace: clicked(trace, shown_sites, shown_heads),
        )
    with last:
        before = REGISTRY.get(view.after)
        with st.container(key="live_curves"):
            live_figure(
                [curves_picture(view, before.view if before else None)],
                key="live_curves_figure",
                height=CURVES_TALL,
                file_name=f"{name}-curves",
            )
        with st.container(key="live_outputs"):
            st.caption("Written by the model alone:")
            st.html(outputs(view.frame, word))


def clicked(trace: int, sites: list[str], heads: list[int]) -> None:
    """Pin the head of the tile that was clicked."""
    layer, head = tile_at(trace % (len(sites) * len(heads)), len(sites))
    pin(sites[layer], heads[head])


live()

st.caption(
    "**How to read a map:** each row is a letter being written (“after reading → writes”), each column a "
    "letter of the word. The brighter a cell, the more of its attention the row puts there; every row adds "
    "up to 100 %. A word read backwards draws a line from top right to bottom left. ✗ marks a row that would "
    "write the wrong letter, and which. Weights are measured in the model of this very step, with the right "
    "answer as the decoder's input; the outputs are what it writes by itself. Click a small map to keep it."
)
run_list(run)
