"""Spell: the answer to one word, token by token, with maps of one kind and the next-token probabilities."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import streamlit as st

from pages.explanations.explanation import look_at_cell, look_inside_link
from pages.player.figure import live_figure
from pages.questions.asking import Draw, kind_choice
from pages.questions.readings import INPUTS, RIGHT, ShownMap, as_written, labels, reading_strip
from pages.shared import selection
from pages.shared.plain import plain
from pages.shared.session import session
from transformer.figures.bars import next_token_bars
from transformer.figures.labels import MapAxes
from transformer.figures.maps import tile_at
from transformer.figures.picture import Array
from transformer.insight.narrator import narrate
from transformer.player.sentences import counts
from transformer.recording.view import RunView
from transformer.recording.weights import Snapshot
from transformer.runs.any_run import AnyRun
from transformer.shared.attention_info import sites_of

if TYPE_CHECKING:
    from transformer.asking.answers import Answer, Reading

POOLS = {"head": "one head", "mean": "mean", "max": "max", "rollout": "rollout"}
POOLED = {
    "mean": "Mean over the heads of this layer. Each row adds up to 100%.",
    "max": "Maximum over the heads of this layer. Rows can add up to more than 100%.",
    "rollout": "Attention followed through all layers: where information can come from.",
}
LONG = 36
"""Most letters of question and output together that are written in large type."""
ROW = 17
"""Minimum height of a row of the maps, in pixels."""
BARS_TALL = "max(200px, 19vh)"


def spell_tab(run: AnyRun, word: str) -> Draw:
    """Draw the widgets of the tab; return the function that draws the rest at a step."""
    if st.session_state.get("spelled") != (run.id, word):
        st.session_state["spelled"], st.session_state["spell_row"] = (run.id, word), 0
    with st.sidebar:
        kind = kind_choice(run)
        pool = st.pills(
            "Heads",
            list(POOLS),
            key="explore_pool",
            default="head",
            required=True,
            format_func=POOLS.get,
            persist_state="session",
            help="One head, the mean or the maximum over the heads of its layer, or attention rollout "
            "through all layers (Abnar and Zuidema, 2020).",
        )
        at_once = run.config.model.topology == "encoder-only"  # it has no decoder input
        fed = (
            None
            if at_once
            else st.pills(
                "The model writes",
                list(INPUTS),
                key="explore_input",
                default="forced",
                required=True,
                format_func=INPUTS.get,
                persist_state="session",
                help="What the model reads while it writes: the right answer so far, as in training "
                "(teacher-forced), or what it has written itself (free-running).",
            )
        )
        look_inside_link()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Back", key="explore_back", icon=":material/chevron_left:", on_click=_move, args=(-1,))
        st.button("Next", key="explore_next", type="primary", on_click=_move, args=(1,))
        position = st.container(key="explore_position", width="content")
        letters = st.container(key="explore_letters", width="stretch")
    with st.container(key="explore_maps"):
        maps, strip, lines = st.columns([1.2, 0.8, 1.2], gap="small")
    narrator, bars = st.container(key="explore_narrator"), st.container(key="explore_bars")
    pool, fed = pool if pool in POOLS else "head", fed if fed in INPUTS else "forced"
    lines = lines.container(key="explore_lines")

    def draw(view: RunView, snapshot: Snapshot | None, answer: Answer | None) -> None:
        """Draw the answer of the model at one step."""
        if answer is None or view.frame is None:
            for place in (maps, strip, lines, bars):
                place.skeleton(height=200)
            narrator.markdown("")
            letters.markdown("")
            position.markdown("")
            return
        n_rows = max(len(answer.forced.writing), len(answer.free.writing))
        st.session_state["spell_rows"] = n_rows
        row = min(st.session_state.get("spell_row", 0), n_rows - 1)
        reading = answer.forced if fed == "forced" else answer.free
        sites = sites_of(reading.axes, kind)
        site, head = selection.head(selection.shown_frame(view), sites)
        axes = reading.axes[site]
        lit = reading.writing[row] if axes.writes and row < len(reading.writing) else None
        shown = ShownMap(answer, reading, site, head, pool, lit)
        name = f"headlight-{answer.question.text}-step{answer.step}-seed{view.config.seed}"
        tall = f"max({max(245, 105 + ROW * len(reading.tokens(axes.query)))}px, calc(100vh - 575px))"
        with position:
            st.markdown(f"output **{row + 1}** of {n_rows}")
        with maps:
            live_figure(
                shown.large(),
                key="explore_map_figure",
                height=tall,
                file_name=f"{name}-{site}",
                # Look inside explains only single heads of a teacher-forced pass.
                on_click=(lambda _trace, point: look_at_cell(kind, site, head, point))
                if pool == "head" and reading is answer.forced
                else None,
            )
        with narrator:
            one = pool == "head"
            st.markdown(
                _narration(answer, reading, site, head, lit, run.task.target_score) if one else POOLED[pool]
            )
        with strip:
            live_figure(
                reading_strip(view, answer, reading, sites, (site, head)),
                key="explore_strip_figure",
                height=tall,
                file_name=f"{name}-{kind}",
                on_click=lambda _trace, point: _pin(point, sites, labels(answer, reading, sites[0])),
            )
        with lines:
            live_figure(
                shown.lines(),
                key="explore_lines_figure",
                height=tall,
                file_name=f"{name}-{site}-lines",
            )
        with letters:
            st.html(_spelled(answer, row))
        with bars:
            tokens = run.task.tgt_tokenizer.tokens(range(run.task.tgt_tokenizer.size))
            last = row < len(answer.expected)
            live_figure(
                next_token_bars(
                    _next(answer.forced, row),
                    _next(answer.free, row),
                    tokens,
                    expected=run.task.tgt_tokenizer.id_of(answer.expected[row]) if last else None,
                    most=4,
                    title=f"output {row + 1}: next token",
                    step=answer.step,
                ),
                key="explore_bars_figure",
                height=BARS_TALL,
                file_name=f"{name}-output{row + 1}",
            )

    return draw


def _move(by: int) -> None:
    """Callback: move by `by` tokens of the output, wrapping around at both ends."""
    n = max(1, st.session_state.get("spell_rows", 1))
    st.session_state["spell_row"] = (st.session_state.get("spell_row", 0) + by) % n


def _next(reading: Reading, row: int) -> Array | None:
    """Probabilities of the token that an output position writes, (V,); None beyond the end of the output."""
    return reading.probabilities[reading.writing[row]] if row < len(reading.writing) else None


def _narration(
    answer: Answer, reading: Reading, site: str, head: int, lit: int | None, target_score: str
) -> str:
    axes = reading.axes[site]
    sentence = narrate(
        reading.maps[site][head],
        axes.kind,
        reading.tokens(axes.query),
        reading.tokens(axes.key),
        **counts(answer, target_score),
        row=lit,
    )
    return plain(sentence)


def _pin(point: object, sites: list[str], axes: MapAxes) -> None:
    """Pin the clicked small map as the large one; a second click unpins it."""
    tile = tile_at(point, axes) if isinstance(point, tuple) else None
    if tile is not None:
        picked = sites[tile[0]], tile[1]
        session.pinned = None if session.pinned == picked else picked


def _spelled(answer: Answer, row: int) -> str:
    """As HTML, the right answer and both outputs, with the current token highlighted.

    If the right answer is not known, only the model's own output.
    """
    has_answer = answer.question.answer is not None
    lines = {INPUTS["free"]: _written_cells(answer, answer.free, row)}
    if has_answer:
        lines = {
            "right answer": "".join(f"<td>{html.escape(token)}</td>" for token in answer.expected),
            INPUTS["forced"]: _written_cells(answer, answer.forced, row),
        } | lines
    mark = RIGHT[answer.right] if has_answer else "? right answer not known"
    text = html.escape(as_written(answer.output, answer.stopped))
    rows = "".join(f"<tr><th>{name}</th>{cells}</tr>" for name, cells in lines.items())
    long = " class='long'" if len(answer.question.text) + len(answer.output) > LONG else ""
    return (
        "<div class='hl-spelled hl-wide' tabindex='0' role='group' aria-label='Output of the model'>"
        f"<p{long}>{html.escape(answer.question.text)} → <b>{text}</b><br>{mark}</p>"
        f"<table data-step='{answer.step}' data-row='{row}'>{rows}</table></div>"
    )


def _written_cells(answer: Answer, reading: Reading, row: int) -> str:
    cells = []
    for i, token in enumerate(reading.written):
        look = "lit" if i == row else "later" if i > row else ""
        right = i < len(answer.expected) and token == answer.expected[i]
        marked = "" if answer.question.answer is None else "ok" if right else "no"
        cells.append(f"<td class='{look} {marked}'>{html.escape(token)}</td>")
    return "".join(cells)
