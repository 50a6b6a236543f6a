"""All runs that a visitor knows, in a dialog that searches, opens and removes them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import streamlit as st

from pages.runs import keyring
from pages.runs.known import differing, listed_runs, show_run, stands_still
from pages.shared.plain import show_error
from pages.shared.session import joined, rerun, session
from transformer.config import TASK_INFO
from transformer.errors import InputError
from transformer.insight.moments import TURNED
from transformer.player.sentences import STATE_SIGNS
from transformer.recording.view import RunFacts
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.storage.library import UNDO_SECONDS

COLUMNS = {
    "right": st.column_config.NumberColumn(format="%.1f%%", help="Test words right, at the last evaluation."),
    "step": st.column_config.NumberColumn(format="localized"),
    "last used": st.column_config.DatetimeColumn(format="distance", help="When it was trained or opened."),
}
SEARCHED = ("state", "name", "task", "settings", "moment")
HEIGHT = 388
"""Height of the table in pixels: the dialog fits on a screen of 720."""


def all_runs_button(n: int) -> None:
    """Draw the button that opens the dialog of all n runs, and the undo of the last removal."""
    if n:
        st.button(
            f"All {n:,} runs…" if n > 1 else "All runs…",
            key="all_runs_open",
            icon=":material/list:",
            width="stretch",
            on_click=_stand,
            args=(True,),
            help="Search, open and remove runs.",
        )
    _offer_undo("sidebar")


def all_runs(current: AnyRun) -> None:
    """Draw the dialog if it is open on this page: Streamlit would close it when the page is drawn again."""
    if session.all_runs is not None and session.all_runs == session.page:
        _dialog(current)


def _stand(is_open: bool) -> None:
    session.all_runs = session.page if is_open else None
    session.remove_problem = None


@st.dialog("All runs", width="large", on_dismiss=lambda: _stand(False))
def _dialog(current: AnyRun) -> None:
    if session.all_runs is None:
        rerun()  # a run was opened
    own, elsewhere = listed_runs(current)
    runs = sorted([*own, *elsewhere.values()], key=stands_still)
    names = {run.id: name for name, run in elsewhere.items()}
    rows = [_row(run, differs, names.get(run.id)) for run, differs in zip(runs, differing(runs), strict=True)]
    keep = _filters(rows)
    shown = [(run, row) for run, row in zip(runs, rows, strict=True) if keep(row)]
    digest = sha256("".join(run.id for run, _ in shown).encode()).hexdigest()
    event = st.dataframe(
        [row for _, row in shown] or None,
        hide_index=True,
        height=HEIGHT,
        key=f"all_runs_{digest}",  # the selection is by place: other rows begin without one
        on_select="rerun",
        selection_mode="multi-row",
        column_config=COLUMNS,
        placeholder="–",
        alt="Runs with their state, name, task, settings, step, test words right, moment and last use.",
    )
    chosen = [shown[at][0] for at in event.selection.rows if at < len(shown)]
    ids = [run.id for run in chosen if _may_remove(run)]
    with st.container(key="all_runs_row", horizontal=True, vertical_alignment="center"):
        one = chosen[0].id if len(chosen) == 1 else ""
        st.button("Open", key="all_runs_show", disabled=not one, on_click=_show, args=(one,))
        st.button(
            f"Remove {_counted(len(ids))}" if ids else "Remove",
            key="all_runs_remove",
            icon=":material/delete:",
            disabled=not ids,
            on_click=_remove,
            args=(ids,),
        )
        _offer_undo("dialog")
        if kept := len(chosen) - len(ids):
            st.caption(f"{_counted(kept)} cannot be removed here: not yours, or training now.")
        elif not chosen:
            st.caption(f"{len(shown):,} of {_counted(len(runs))}. Select rows at their left edge.")
    if session.remove_problem:
        show_error(session.remove_problem)


def _row(run: RunFacts, differs: str, file: str | None) -> dict[str, Any]:
    """The cells of a run, by the name of their column."""
    turned = next((moment for moment in run.moments if moment.kind == TURNED), None)
    used_at = REGISTRY.library.used_at(run.id)
    return {
        "state": f"{STATE_SIGNS[run.state]} {run.state}",
        "name": " · ".join(filter(None, (file, run.name))),
        "task": run.own.name if run.own else TASK_INFO[run.config.train.task].title,
        "settings": differs,
        "step": run.step,
        "right": run.right and 100 * run.right[0] / run.right[1],
        "moment": f"turned at {turned.step:,}: {turned.text}" if turned else "",
        "last used": used_at and datetime.fromtimestamp(used_at, UTC),
    }


def _filters(rows: Sequence[dict[str, Any]]) -> Callable[[dict[str, Any]], bool]:
    """Draw the search field and the filters; return a function that says whether they keep a row."""
    places = st.columns([2, 1, 1])
    words = places[0].text_input(
        "Search", key="all_runs_search", placeholder="name, task, setting, moment", icon=":material/search:"
    )
    kept = {
        name: place.multiselect(
            name.capitalize(), sorted({row[name] for row in rows}), key=f"all_runs_{name}", placeholder="all"
        )
        for name, place in zip(("task", "state"), places[1:], strict=True)
    }

    def keep(row: dict[str, Any]) -> bool:
        text = " ".join(row[name] for name in SEARCHED).casefold()
        matches = all(not some or row[name] in some for name, some in kept.items())
        return matches and all(word in text for word in words.casefold().split())

    return keep


def _show(id_: str) -> None:
    _stand(False)
    show_run(id_)


def _may_remove(run: RunFacts) -> bool:
    return stands_still(run) and REGISTRY.owners.is_owner(run.id, keyring.token_of(run.id))


def _remove(ids: Sequence[str]) -> None:
    """Callback: remove those of these runs that can be removed; the session keeps why others cannot."""
    if removed := _each(REGISTRY.remove, ids, "removed"):
        session.removed = time.monotonic(), removed
    if session.run in removed:
        session.previous_runs = session.run, joined(session.race)  # the browser's address may still name them
        session.run, session.race = None, ()
        st.query_params.pop("run", None)


def _undo() -> None:
    (_, ids), session.removed = session.removed, (0.0, [])
    _each(REGISTRY.restore, ids, "restored")


def _each(do: Callable[[str, str], None], ids: Sequence[str], what: str) -> list[str]:
    """Call `do` with each run and its token; return those that were not refused, and keep why others were."""
    refused: Counter[str] = Counter()
    done = []
    for id_ in ids:
        try:
            do(id_, keyring.token_of(id_))
            done.append(id_)
        except InputError as error:
            refused[str(error)] += 1
    whys = [f"{_counted(n)} could not be {what}: {why}" for why, n in refused.items()]
    session.remove_problem = " ".join(whys) or None
    return done


def _offer_undo(place: str) -> None:
    """Draw the undo of the last removal, as long as it is possible."""
    removed_at, ids = session.removed
    if ids and time.monotonic() - removed_at < UNDO_SECONDS:
        with st.container(key=f"all_runs_removed_{place}", horizontal=True, vertical_alignment="center"):
            st.caption(f"{_counted(len(ids))} removed.", width="content")
            st.button("Undo", key=f"all_runs_undo_{place}", icon=":material/undo:", on_click=_undo)


def _counted(n: int) -> str:
    return f"{n:,} run{'s' if n != 1 else ''}"
