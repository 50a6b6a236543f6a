"""The list of runs that a visitor knows, and the upload of a run from its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import streamlit as st

from pages.controls.commands import await_effect
from pages.runs import keyring
from pages.settings.beginnings import fill
from pages.shared import ownership, selection
from pages.shared.plain import plain, show_error
from pages.shared.session import session
from pages.shared.wording import distinguishing_labels
from transformer.errors import InputError
from transformer.player.sentences import STATE_SIGNS
from transformer.recording.view import ENDED, IDLE, MAX_NAME, RunFacts
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched
from transformer.storage.file import SUFFIX
from transformer.storage.tokens import new_token
from transformer.tasks.about import ABOUT

MAX_LISTED = 12
"""Highest number of runs in the list, the newest first; older ones can be opened by their links."""
SHOWS_ANOTHER_MODEL = "This page shows another model. To train your own, press Start on Watch."
"""Notice on pages that have no Start button."""


def parent_of(view: RunFacts) -> RunFacts | None:
    """The run that this one was started beside, where this visitor may see it.

    The owner of this run may see it; others only if a link from the owner names it.
    """
    if view.after is None:
        return None
    started_here = REGISTRY.owners.is_owner(view.id, keyring.token_of(view.id))
    if not started_here and view.after not in session.known_runs:
        return None
    return REGISTRY.facts_of_run(view.after)


def parents(view: RunFacts) -> Iterator[RunFacts]:
    """The parent of a run, the parent's parent, and so on, as long as this visitor may see them."""
    while (parent := parent_of(view)) is not None:
        yield (view := parent)


def known_runs(run: Watched | None) -> Iterator[RunFacts]:
    """Runs that this visitor started or opened, and their parents; newest first.

    Other visitors' runs are not listed: a run is known by its link.
    """
    ids = session.known_runs
    ids[:0] = [parent.id for parent in parents(run.view) if parent.id not in ids][::-1] if run else []
    every = [*(id_ for id_ in keyring.own_runs() if id_ not in ids), *ids]
    return (found for id_ in reversed(every) if (found := REGISTRY.facts_of_run(id_)) is not None)


def run_list(current: Watched) -> None:
    """Draw the list in the sidebar. A click shows that run and does not affect any training."""
    published = REGISTRY.library.published()
    remote_ids = {run.id for run in published.values()}
    own = (run for run in known_runs(current) if run.id not in remote_ids)
    runs = list(islice(own, MAX_LISTED))  # runs beyond the limit are not read from disk
    with st.sidebar, st.container(key="run_picker"):
        st.caption("Your runs" if runs else "Your runs: none yet")
        for run, label in zip(runs, labels(runs), strict=True):
            _button(label, run, current)
        if published:
            with st.container(key="run_remote"):
                st.caption("Trained elsewhere, kept on this server")
                watched: dict[str, RunFacts] = {run.id: run.view for run in REGISTRY.listed()}
                views = [watched.get(run.id, run) for run in published.values()]  # an open run: as it is now
                for name, view, label in zip(published, views, labels(views), strict=True):
                    _button(f"{plain(name)} · {label}", view, current)
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


def _button(label: str, run: RunFacts, current: Watched) -> None:
    st.button(
        label,
        key=f"show_{run.id}",
        type="secondary" if run.id == current.id else "tertiary",
        width="stretch",
        on_click=_show,
        args=(run.id,),
    )


def _name(run: Watched) -> None:
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


def labels(runs: Sequence[RunFacts]) -> list[str]:
    """A label for each run: sign of its state, name, settings that differ among these runs, and progress."""
    if not runs:
        return []
    ours = [run for run in runs if run.own is None]
    settings = distinguishing_labels([run.config for run in ours]) if ours else []
    known = dict(zip((run.id for run in ours), settings, strict=True))
    apart = [known.get(run.id, f"{run.parameters:,} parameters") for run in runs]
    return [_label(run, differs) for run, differs in zip(runs, apart, strict=True)]


def _label(view: RunFacts, differs: str) -> str:
    right = ""
    if view.right:
        right = f" · {view.right[0]:,} of {view.right[1]:,} right"
    now = f"{view.state} at {view.step:,}{right}" if view.state in ENDED else view.state
    recipe, task = view.config.recipe, view.config.train.task
    named = (
        [] if recipe in ("default", ABOUT[task].name) else [plain(recipe)]
    )  # the preset of a task has the task's name
    what = plain(view.own.name) if view.own else ", ".join([*named, ABOUT[task].name])
    name = f"**{plain(view.name)}**" if view.name else what
    return f"{STATE_SIGNS[view.state]} {' · '.join(filter(None, (name, plain(differs), now)))}"


def _show(id_: str) -> None:
    if run := REGISTRY.get(id_):
        selection.choose(run)
        fill(run)


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
    """Say that the linked run is gone, until a run is started or opened."""
    with st.container(key="lost_run"):  # what comes below keeps its place in the page
        if session.lost_run:
            st.info(f"The run of this link is no longer on this server. {instead}")
