"""The player of a recording on a page: the browser decides what is shown, and reports it here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.shared import ownership, selection
from pages.shared.session import CLOCKS, Place, sent_value, session
from pages.stream.broadcaster import buttons_state
from pages.stream.files import PLAYER, loading, plotly, styles
from pages.stream.tickets import ticket
from transformer.anatomy.boxes import CHANGEABLE_SETTINGS
from transformer.recording.view import RunView
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY

KEY = "player"
COMPONENT = st.components.v2.component(
    "headlight_player",
    html=(PLAYER / "player" / "player.html").read_text(encoding="utf-8"),
    css=styles("player/player", "model/model"),
    js=loading("mounted"),
    isolate_styles=False,  # plotly.js puts its styles into the document's head
)


def player(
    run: AnyRun,
    view: RunView,
    *,
    word: str,
    on_cell: Callable[[str, str, int, object], None] | None = None,
    **data: Any,
) -> None:
    """Show the player of a run, or a part of it; call this in a fragment.

    Args:
        view: the state of the run from which the page is drawn.
        word: the word to show, unless the visitor has since chosen another in the browser.
        on_cell: called with kind, site, head and cell (row, column) of a map that was clicked. By default,
            cells cannot be clicked.
        data: for the browser. `parts`: "control" for the step control alone, "model" for it and the picture
            of the model, "race" for several runs; `race`: the other runs, and how all are shown; `answers`:
            the step of the figures made in Python; `seen`: the states that the buttons show, by default
            that of `view`; `greets`: a sentence at LIVE, for first visits;
            `opened`: the open box of the picture, or its cell;
            `picture`: what the picture shows and requests; `over`: a sentence that replaces the run's own;
            `ghost`: arrays of the parent run, for the curves;
            `more`: words of another run, which the page shows once one of them is chosen;
            `plays`: whether the recording plays by itself, once per visit and some seconds after it is
            drawn, unless reduced motion is preferred.
    """
    if page := session.goes_to:
        session.goes_to = None
        st.switch_page(page, query_params={})  # not None: Streamlit cannot clear bound parameters
    kinds = view.kinds

    def chosen() -> None:
        sent = sent_value(KEY, "chosen")
        if isinstance(sent, dict):
            picked = sent.get("picked") is True
            if "parts" not in data or "race" in data or picked:
                _take_choice(run, sent, data.get("more", ()))
            session.page_is_stale |= picked and "parts" in data
            _take_step(sent)
            number = sent.get("number")
            session.last_choice = number if isinstance(number, int) else 0

    def clicked() -> None:
        sent = sent_value(KEY, "cell")
        if isinstance(sent, dict) and isinstance(sent.get("number"), int):
            session.last_box = sent["number"]
        match sent:
            case {
                "at": {"kind": str(kind)},
                "head": [str(site), int(head)],
                "point": [int(row), int(column)],
            }:
                if has_head(view, kind, site, head) and on_cell is not None:
                    on_cell(kind, site, head, (row, column))
            case {"box": str(), "how": dict(how)}:
                session.box = Place.sent(sent)
                session.goes_to = None if data.get("parts") == "model" else "inside.py"
                session.arranged = {
                    name: how[name] for name in CHANGEABLE_SETTINGS if isinstance(how.get(name), str)
                }
            case {"run": str(id_)} if (pressed := REGISTRY.get(id_)) is not None:
                selection.choose(pressed)
                session.goes_to = "watch.py"
            case {"how": dict()}:
                session.box = None

    COMPONENT(
        key=KEY,
        height="content",
        data={
            "run": run.id,
            "ticket": ticket(run.id),
            "plotly": plotly(),
            "seen": buttons_state(view),
            "heard": session.last_choice,
            "boxHeard": session.last_box,
            "mayFollow": ownership.may_follow(),
            "fileName": f"headlight-{view.stem}",
            "first": {
                "word": word,
                "kind": session.kind if session.kind in kinds else kinds[0],
                "pinned": session.pinned,
                "step": selection.step(),
                "outline": session.outline,
                "follow": selection.follows(),
            },
            "opens": on_cell is not None,
            "stays": session.problem is not None,
            **data,
        },
        on_chosen_change=chosen,
        on_cell_change=clicked,
        on_changed_change=changed,
        on_refused_change=lambda: None,  # drawing the player again issues a new ticket
    )


def changed() -> None:
    """Callback: the state on which the page depends has changed, so the whole page must be drawn again."""
    session.page_is_stale = True


def stale() -> bool:
    """Return whether the whole page must be drawn again, such as after a change of state; reset the flag."""
    was, session.page_is_stale = session.page_is_stale, False
    return was


def has_head(view: RunView, kind: object, site: object, head: object) -> bool:
    """Whether the newest frame has this head and, if a kind is given, the head is of that kind."""
    frame = view.frame
    return (
        frame is not None
        and isinstance(site, str)
        and site in frame.axes
        and kind in (None, frame.axes[site].kind)
        and isinstance(head, int)
        and 0 <= head < frame.n_heads(site)
    )


def _take_choice(run: AnyRun, sent: dict[str, Any], more: Sequence[str]) -> None:
    """Store the outline that the browser sent, and the word, kind, head and clock if they are valid.

    Args:
        more: the words that are valid besides those of the run.
    """
    view = run.view
    word, kind = sent.get("word"), sent.get("kind")
    if word in (*run.words, *more):
        session.word = word
    if kind in view.kinds and kind != selection.kind(view):
        selection.choose_kind(kind)
    match sent.get("pinned"):
        case [str(site), int(head)]:
            if has_head(view, None, site, head):
                session.pinned = site, head
        case None:
            session.pinned = None
    session.outline = sent.get("outline") is True
    if sent.get("clock") in CLOCKS:
        session.clock = sent["clock"]


def _take_step(sent: dict[str, Any]) -> None:
    """Store the step, whether the owner is followed, and whether the recording is playing."""
    step = sent.get("step")
    if ownership.may_follow():
        session.follow = sent.get("follow") is True
    if selection.follows():  # the owner's step may have changed since this was sent
        session.playing = False
        return
    number = isinstance(step, int) and not isinstance(step, bool) and 0 <= step < selection.MOST_STEPS
    if (number or step is None) and step != selection.step():
        selection.look_at(step)
    session.playing = sent.get("playing") is True
