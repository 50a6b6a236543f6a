"""The selection of a visitor: run, step, word, kind and head, kept in the link.

The pages share it, but Race and Masks have a kind and a head of their own, and Race also a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.runs import keyring
from pages.shared import ownership
from pages.shared.session import CLOCKS, OnScreen, came_back, joined, read_link, session, show_linked_place
from transformer.config import KINDS_OF
from transformer.insight.names import is_ours
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY

BESIDE, MOST_BESIDE = "with", 12
"""Parameter of a link that shows earlier runs too, and the most of them that are looked up."""
MOST_STEPS = 10**9
"""Upper bound of step numbers: a visitor can send any number."""


def chosen_run() -> AnyRun | None:
    """Return the run that the link or else this session names, and put it into the link; None if it is gone.

    Also accepts the owner's token in the link. After Back or Forward, the selection is that of the link.
    """
    asked = named_in_link("run") or session.run
    run = REGISTRY.get(asked)
    if token := st.query_params.get("owner"):  # keep it in session and browser, not in copied links
        del st.query_params["owner"]
        keyring.accept_token(asked or "", token)
    if asked and run is None:
        session.lost_run, session.run = True, None
        st.query_params.pop("run", None)
        _stand(None)
        return None
    if run is not None:
        read_link()
        _note_beside()
        choose(run)
        kept, frame = session.pinned, run.view.frame
        if kept and frame and not is_ours(kept[0]) and kept[0] not in frame.axes:
            session.pinned = None  # a head of another own model, or of none
    if came_back():
        show_linked_place()
        _show_followers()
    return run


def named_in_link(name: str) -> str | None:
    """The value of a parameter of the link that names runs, "run" or "race"; None if there is none.

    A request that the browser sends before it has received the link of a newly chosen run still names the
    previous run or race; that value counts only if Back or Forward led to it.
    """
    named = st.query_params.get(name)
    return None if named in session.previous_runs and not came_back() else named


def _note_beside() -> None:
    """Add the earlier runs that the link names, by their unguessable ids, to the known runs."""
    named = st.query_params.get(BESIDE)
    if named is None or named == session.beside:
        return
    ids = [id_ for id_ in named.split(",")[:MOST_BESIDE] if REGISTRY.facts_of_run(id_) is not None]
    session.known_runs.extend(id_ for id_ in ids if id_ not in session.known_runs)
    session.beside = ",".join(ids) or None


def choose(run: AnyRun) -> None:
    """Select this run on all pages."""
    if run.id not in session.known_runs:
        session.known_runs.append(run.id)
    other = session.run not in (None, run.id)
    if other:
        session.previous_runs = session.run, joined(session.race)
        _stand(None)  # another run has other steps
        session.problem = session.word_problem = None  # these concern the previous run
        session.race = ()
    session.run, session.lost_run = run.id, False
    if st.query_params.get("run") != run.id:
        st.query_params["run"] = run.id
        if other:
            st.query_params.pop("step", None)
    if other:
        _show_followers()


def follows() -> bool:
    """Whether the screen shows the step of the run's owner; a link with a step opens at that step instead."""
    return ownership.may_follow() and session.follow


def step() -> int | None:
    """The step on the screen; None if the screen follows the run (LIVE)."""
    return REGISTRY.owners.shown(session.run) if follows() else session.at_step


def look_at(step: int | None) -> None:
    """Show this step, or follow the run (LIVE) if None; followers of a run see what its owner shows."""
    if follows():
        session.follow = False
    _stand(step)
    _show_followers()


def _show_followers() -> None:
    """If this visitor owns the run, show the step on the screen to those who follow."""
    if session.run is not None:
        REGISTRY.owners.show(session.run, keyring.token_of(session.run), session.at_step)


def _stand(step: int | None) -> None:
    session.at_step, session.playing = step, False


def shown_frame(view: RunView) -> Frame | None:
    """The frame that every panel shows: the nearest to the chosen step, or the newest; None if there is none.

    Once found, the frame stays even if the run thins its past, so that a step on the screen does not move by
    itself. For a step that the run has not reached, the nearest frame is looked up anew each time.
    """
    at = step()
    if at is None:
        return view.frame
    chosen, frame = session.reviewed
    if chosen == (view.id, at) and frame is not None and at <= view.step:
        if frame.step in view.frames.steps:  # may be re-recorded, with a new word or intervention
            frame = view.frames.of_step(frame.step)
    else:
        frame = view.frame_at(at)
    session.reviewed = (view.id, at), frame
    return frame


def shown_step(view: RunView) -> int | None:
    """The step on the page: the chosen one, or at LIVE the newest; None if there is none."""
    at = step()
    return at if at is not None or view.frame is None else view.frame.step


def kind(view: RunView, opens_on: str | None = None) -> str:
    """The kind of attention that is shown: the chosen one (on a page or in the link) if the model has it.

    Args:
        opens_on: the kind that is shown otherwise, if the model has it; by default the model's first kind.
    """
    if session.kind is None and st.query_params.get("kind") in (*sum(KINDS_OF.values(), ()), *view.kinds):
        choose_kind(st.query_params["kind"])
    if session.kind_chosen and session.kind in view.kinds:
        return session.kind
    default = opens_on if opens_on in view.kinds else view.kinds[0]
    if session.kind != default:  # write only if needed: the state of a drawn widget is read-only
        session.kind = default
    return default


def choose_kind(name: str) -> None:
    """Show this kind of attention from now on, on this page and on those that share its kind."""
    session.kind, session.kind_chosen = name, True


def head(frame: Frame, sites: Sequence[str]) -> tuple[str, int]:
    """(site, head) that is shown large among these sites; see `Frame.large_head`."""
    return frame.large_head(sites, session.pinned)


def on_screen() -> OnScreen:
    """Update and return the one `OnScreen` of the session; downloads keep it, and read it when pressed."""
    now = session.on_screen
    now.step, now.kind, now.pinned, now.word = step(), session.kind, session.pinned, session.word
    now.clock = session.clock
    return now


def keep_in_link(word: str | None = None) -> None:
    """Put the selection into the link, which navigation empties.

    Args:
        word: the page's own word, if it need not be tracked; by default the chosen tracked word.
    """
    on_screen()
    kept = session.pinned
    if session.playing:
        at = st.query_params.get("step")  # unchanged: each change adds an entry to the history
    else:
        at = None if follows() else step()
    parts = {
        BESIDE: session.beside,
        "race": joined(session.race) if session.page == "Race" else None,
        "clock": session.clock if session.page == "Race" and session.clock != CLOCKS[0] else None,
        "step": at,
        "word": word or session.word,
        "kind": session.kind if session.kind_chosen else None,
        "head": f"{kept[0]}.{kept[1] + 1}" if kept else None,
        "box": session.box,
    }
    for name, value in parts.items():
        if value is None:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != str(value):
            st.query_params[name] = str(value)
