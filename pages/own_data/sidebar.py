"""The sidebar of Your data: the task, what is its own to choose, its tokens; the same choices as on Watch."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.settings.beginnings import base, begin, task_chosen, values_of
from pages.settings.form import Form
from pages.settings.task_settings import task_choice, task_settings, tokenizer_settings
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.tasks import Task, corpus_of, task_of
from transformer.tasks.corpus import Corpus


@dataclass(frozen=True)
class Chosen:
    """What the sidebar says; what cannot be made of it is None, and a message stands beside what is wrong."""

    task: str
    config: RunConfig | None
    corpus: Corpus | None
    tokens: Task | None
    """The corpus in tokens."""


def data_settings() -> Form:
    """Draw the widgets."""
    begin()
    defaults = values_of(base())
    for key in ("preset", *defaults):
        # Written and not only read: on another page a new widget would not find what the old one says.
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
    form = Form(defaults)
    with st.sidebar:
        form.values["task"] = task_choice(task_chosen)
        form.places["task"] = form.places["topology"] = st.container()
        task_settings(form)
        tokenizer_settings(form)
        st.caption("Watch uses the same task and tokens.")
    return form


def chosen(form: Form) -> Chosen:
    """The task that the widgets mean; mistakes are answered beside the widget that they stand in."""
    values = form.values
    config, corpus, task = None, None, None
    try:
        config = base().with_changes(**values)
        if values["task"] != "pairs" or values["pairs"]:
            corpus = corpus_of(config.train)
            task = task_of(config)
    except InputError as error:
        form.refuse(error)
    st.session_state["data_task"] = task  # else that of a person's own pairs would be made anew at every turn
    return Chosen(values["task"], config, corpus, task)
