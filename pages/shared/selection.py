"""The selection of a visitor: run, step, word, kind of map, head. One for all pages, kept in the link."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.runs import keyring
from pages.shared import ownership
from pages.shared.session import OnScreen, came_back, read_link, session, stand_as_linked
from transformer.config import KINDS_OF
from transformer.insight.names import is_ours
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched

BESIDE, MOST_BESIDE = "with", 12
"""Parameter of a link that shows earlier runs too, and how many of them are looked up."""
MOST_STEPS = 10**9
"""No step is as late: a visitor can send any number."""


def chosen_run() -> Watched | None:
    """The run that the link or this session names, if it is still there; puts it back into the link."""
    asked = named_in_link("run") or session.run
    run = REGISTRY.get(asked)
    if token := st.query_params.get("owner"):  # to this session and browser, and into no link that is copied
        del st.query_params["owner"]
        keyring.hold(asked or "", token)
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
            session.pinned = None  # it belongs to another model of a user's own, or to none
    if came_back():
        stand_as_linked()
    return run


def named_in_link(name: str) -> str | None:
    """The run that the link names.

    A request that the browser sends before it has received the link of a newly chosen run still names the
    previous run; that name counts only if Back or Forward led to it.
    """
    named = st.query_params.get(name)
    return None if named in session.left and not came_back() else named


def _note_beside() -> None:
    """Earlier runs that the owner's link shows too: named by their ids, which cannot be guessed."""
    named = st.query_params.get(BESIDE)
    if named is None or named == session.beside:
        return
    found = [id_ for id_ in named.split(",")[:MOST_BESIDE] if REGISTRY.facts_of_run(id_) is not None]
    session.known_runs.extend(id_ for id_ in found if id_ not in session.known_runs)
    session.beside = ",".join(found) or None


def choose(run: Watched) -> None:
    """Look at this run from now on."""
    if run.id not in session.known_runs:
        session.known_runs.append(run.id)
    other = session.run not in (None, run.id)
    if other:
        session.left = session.run, session.race
        _stand(None)  # another run has other steps
        session.problem = session.word_problem = None  # what was asked before is not asked of it
        session.race = None
    session.run, session.lost_run = run.id, False
    if st.query_params.get("run") != run.id:
        st.query_params["run"] = run.id
        if other:
            st.query_params.pop("step", None)


def follows() -> bool:
    """Whether the screen stands where the run's owner stands: a link with a step shows that step."""
    return ownership.may_follow() and session.follow


def step() -> int | None:
    """The step at which the screen stands; None where it follows the run (LIVE)."""
    return REGISTRY.owners.shown(session.run) if follows() else session.at_step


def look_at(step: int | None) -> None:
    """Stand at this step from now on (REVIEW), or follow the run (LIVE): the owner's followers too."""
    if follows():
        session.follow = False
    _stand(step)
    if session.run is not None:
        REGISTRY.owners.show(session.run, keyring.token_of(session.run), step)


def _stand(step: int | None) -> None:
    session.at_step, session.playing = step, False


def shown_frame(view: RunView) -> Frame | None:
    """The frame that every panel shows: the nearest to the chosen step, or the newest.

    Once chosen it stays, even where the run thins its past meanwhile: what is reviewed never moves by itself.
    """
    at = step()
    if at is None:
        return view.frame
    chosen, frame = session.reviewed
    if chosen == (view.id, at) and frame is not None and at <= view.step:
        if frame.step in view.frames.steps:  # recorded anew where a word was asked, or something taken away
            frame = view.frames.of_step(frame.step)
    else:
        frame = view.frame_at(at)
    session.reviewed = (view.id, at), frame
    return frame


def answered(view: RunView) -> int | None:
    """The step that the page shows now: the chosen one, or the newest of a followed run, if there is one."""
    at = step()
    return at if at is not None or view.frame is None else view.frame.step


def kind(view: RunView, opens_on: str | None = None) -> str:
    """The kind of attention that is shown: the one that was chosen, on any page or in the link.

    Args:
        opens_on: what the page shows as long as none has been chosen; by default the model's first kind.
    """
    if session.kind is None and st.query_params.get("kind") in (*sum(KINDS_OF.values(), ()), *view.kinds):
        choose_kind(st.query_params["kind"])
    if session.kind_chosen and session.kind in view.kinds:
        return session.kind
    default = opens_on if opens_on in view.kinds else view.kinds[0]
    if session.kind != default:  # a widget's own state may be read at any time, but not written
        session.kind = default
    return default


def choose_kind(name: str) -> None:
    """Show this kind of attention on every page from now on."""
    session.kind, session.kind_chosen = name, True


def head(frame: Frame, sites: Sequence[str]) -> tuple[str, int]:
    """(site, head) that is shown large: the one that was clicked, or the one with the clearest pattern."""
    return large_head(frame, sites, session.pinned)


def large_head(frame: Frame, sites: Sequence[str], kept: tuple[str, int] | None) -> tuple[str, int]:
    """The same for a head that is to be kept, if this model has it; for code without a session."""
    if kept and kept[0] in sites and 0 <= kept[1] < len(frame.head_scores[kept[0]]["entropy"]):
        return kept
    return frame.clearest if frame.clearest[0] in sites else (sites[-1], 0)


def on_screen() -> OnScreen:
    """The same object for the whole session; the refreshing part of a page keeps it up to date."""
    now = session.on_screen
    now.step, now.kind, now.pinned, now.word = step(), session.kind, session.pinned, session.word
    return now


def keep_in_link(word: str | None = None) -> None:
    """Put the selection into the link, which navigation empties.

    Args:
        word: the page's own where it need not be a probe; by default the probe that is chosen.
    """
    on_screen()
    kept = session.pinned
    if session.playing:
        at = st.query_params.get("step")  # each change is one more page for the Back button to leave
    else:
        at = None if follows() else step()
    parts = {
        BESIDE: session.beside,
        "race": session.race if session.page == "Race" else None,
        "clock": "seconds" if session.page == "Race" and session.clock == "seconds" else None,
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
