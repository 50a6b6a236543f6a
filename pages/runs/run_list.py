"""The list of runs in the sidebar, and the upload of a run from its file."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.controls.commands import await_effect
from pages.runs import keyring
from pages.runs.all_runs import all_runs, all_runs_button
from pages.runs.known import labels, listed_runs, show_run
from pages.settings.beginnings import fill
from pages.shared import ownership, selection
from pages.shared.plain import plain, show_error
from pages.shared.session import session
from transformer.errors import InputError
from transformer.recording.view import IDLE, MAX_NAME, RunFacts
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.storage.file import SUFFIX
from transformer.storage.tokens import new_token

MAX_LISTED = 5
"""Maximum length of each list in the sidebar; the dialog lists all."""
SHOWS_ANOTHER_MODEL = "This page shows another model. To train your own, press Start on Watch."
"""Notice on Ask and Look inside, which have no Start button, when the run of the link is gone."""


def run_list(current: AnyRun) -> None:
    """Draw in the sidebar the lists of runs, the name of the current run, and the uploader of a run.

    A click on a run shows that run and does not affect any training. If the dialog of all runs is open, it is
    drawn too.
    """
    own, elsewhere = listed_runs(current)
    with st.sidebar, st.container(key="run_picker"):
        commands = any(REGISTRY.owners.is_owner(run.id, keyring.token_of(run.id)) for run in own)
        st.caption("Your runs: none yet" if not own else "Your runs" if commands else "Runs that you opened")
        recent = _recent(own, current)
        for run, label in zip(recent, labels(recent), strict=True):
            _button(label, run, current)
        if elsewhere:
            with st.container(key="run_remote"):
                st.caption("Trained elsewhere, kept on this server")
                names = {run.id: name for name, run in elsewhere.items()}
                recent = _recent([*elsewhere.values()], current)
                for run, label in zip(recent, labels(recent), strict=True):
                    _button(f"{plain(names[run.id])} · {label}", run, current)
        all_runs_button(len(own) + len(elsewhere))
        if ownership.owns(current) and current.view.state != IDLE:
            _name(current)
        _open_run()
        if thinned := len(REGISTRY.library.thinned):
            st.caption(
                f"The runs have reached the disk limit of {REGISTRY.limits.disk_mb:,} MB: {thinned:,} "
                "runs not viewed recently keep the weights of fewer steps. All maps are kept."
            )
        if REGISTRY.problem:
            show_error(REGISTRY.problem)
    all_runs(current)


def _recent(runs: Sequence[RunFacts], current: AnyRun) -> list[RunFacts]:
    """The first `MAX_LISTED` of these runs; if the run on the screen is a later one, it is the last."""
    here = [run for run in runs[MAX_LISTED:] if run.id == current.id]
    return [*runs[: MAX_LISTED - len(here)], *here]


def _button(label: str, run: RunFacts, current: AnyRun) -> None:
    st.button(
        label,
        key=f"show_{run.id}",
        type="secondary" if run.id == current.id else "tertiary",
        width="stretch",
        on_click=show_run,
        args=(run.id,),
    )


def _name(run: AnyRun) -> None:
    """Draw the field for the name of the run on the screen."""
    st.session_state["run_name"] = run.view.name
    st.text_input(
        "Name of this run",
        key="run_name",
        placeholder="name this run…",
        label_visibility="collapsed",
        on_change=_named,
        args=(run.id,),
        help=f"The name of this run, up to {MAX_NAME} letters. Anyone with its link sees it. Press Enter.",
    )
    of, problem = session.name_problem
    if of == run.id:
        show_error(problem)


def _named(id_: str) -> None:
    session.name_problem = None, ""
    run = REGISTRY.get(id_)
    try:
        if run is not None:
            await_effect(ownership.command(run).rename(st.session_state.get("run_name", "")))
    except InputError as error:
        session.name_problem = id_, str(error)


def _open_run() -> None:
    """Draw the uploader under the list of runs; an uploaded run is shown at once."""
    most = min(REGISTRY.limits.upload_mb, int(st.get_option("server.maxUploadSize")))
    with st.popover("Open a run", icon=":material/folder_open:", width="stretch"):
        if session.open_problem:
            show_error(session.open_problem)  # above the uploader: a low screen hides what is below
        st.file_uploader(
            "A run, as one file",
            type=SUFFIX.removeprefix("."),
            key="run_open",
            max_upload_size=most,
            on_change=_opened,
            help=f"Up to {most:,} MB. The file is read and never executed. You own the opened run: view "
            "any step, ask it, or continue its training.",
        )


def _opened() -> None:
    session.open_problem = None
    file = st.session_state.get("run_open")
    if file is None:
        return
    token = new_token()
    try:
        run = REGISTRY.open_file(file.getvalue(), visitor=session.visitor.name, token=token)
    except InputError as error:
        session.open_problem = str(error)
        return
    keyring.accept_token(run.id, token)
    selection.choose(run)
    fill(run)


def lost_run_notice(instead: str) -> None:
    """Say that the run of the link is gone, until a run is started or opened.

    Args:
        instead: a sentence on what the page shows, or what to do.
    """
    with st.container(key="lost_run"):  # what comes below keeps its place in the page
        if session.lost_run:
            st.info(f"The run of this link is no longer on this server. {instead}")
