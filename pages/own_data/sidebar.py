"""The sidebar of the page Your data: task, its settings and its tokenizer, shared with the page Watch."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.settings.beginnings import default_settings, fill_defaults, task_chosen, values_of
from pages.settings.form import Form
from pages.settings.task_settings import task_choice, task_settings, tokenizer_settings
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.tasks import Task, corpus_of, task_of
from transformer.tasks.corpus import Corpus


@dataclass(frozen=True)
class Chosen:
    """The choices of the sidebar. A field is None if a value is invalid; its widget shows the message."""

    config: RunConfig | None
    corpus: Corpus | None
    tokens: Task | None
    """The task with its tokenizers."""


def data_settings() -> Form:
    """Draw the widgets, and return their form."""
    fill_defaults()
    defaults = values_of(default_settings())
    for key in ("preset", *defaults):
        # Streamlit deletes a widget's value on another page; assigning the value keeps it.
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
    form = Form(defaults)
    with st.sidebar:
        form.values["task"] = task_choice(task_chosen)
        form.places["task"] = form.places["topology"] = st.container()
        task_settings(form)
        tokenizer_settings(form)
        st.caption("The page Watch uses the same task and tokens.")
    return form


def chosen(form: Form) -> Chosen:
    """Build the task from the widgets. An error is shown beside the widget that caused it."""
    values = form.values
    config, corpus, task = None, None, None
    try:
        config = default_settings().with_changes(**values)
        if values["task"] != "pairs" or values["pairs"]:
            corpus = corpus_of(config.train)
            task = task_of(config)
    except InputError as error:
        form.refuse(error)
    st.session_state["data_task"] = task  # without a reference it would be built anew at every run
    return Chosen(config, corpus, task)
