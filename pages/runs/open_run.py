"""Opening a run from one file."""

from __future__ import annotations

import streamlit as st

from pages.runs import keyring
from pages.settings.beginnings import fill
from pages.shared import selection
from pages.shared.plain import refuse
from pages.shared.session import session
from transformer.errors import InputError
from transformer.runs.registry import REGISTRY
from transformer.storage.tokens import new_token


def open_run() -> None:
    """Draw the uploader under the list of runs; the run that it takes is on the screen at once."""
    most = min(REGISTRY.limits.upload_mb, int(st.get_option("server.maxUploadSize")))
    with st.popover("Open a run", icon=":material/folder_open:", width="stretch"):
        if session.open_problem:
            refuse(session.open_problem)  # above the uploader: a low screen hides what is below
        st.file_uploader(
            "A run saved as one file (ZIP)",
            type="zip",
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
    keyring.hold(run.id, token)
    selection.choose(run)
    fill(run)
