"""Your data: the examples of a task, how they become tokens, and training on your own pairs."""

from __future__ import annotations

import streamlit as st

from pages.own_data.examples import draw_examples, what_it_is
from pages.own_data.in_use import own_data
from pages.own_data.pairs import upload_pairs, uploader
from pages.own_data.report import go_to_watch, pairs_report, train_button
from pages.own_data.tokenizer import tokenizer_upload
from pages.own_data.tokens import draw_tokens
from pages.own_data.unknown import warn_of_unknown
from pages.runs.keyring import keyring
from pages.settings.beginnings import default_settings, fill_defaults, fill_once, task_chosen, values_of
from pages.settings.form import Form
from pages.settings.task_settings import task_choice, task_settings, tokenizer_settings
from pages.shared import selection
from pages.shared.style import style
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.tasks import Task, corpus_of, task_of
from transformer.tasks.corpus import Corpus


def data_settings() -> Form:
    """Draw the sidebar: task, its settings and its tokenizer, which Watch shares; return their form."""
    fill_defaults()
    defaults = values_of(default_settings())
    for key in ("preset", *defaults):
        # Streamlit deletes the value of a widget that a page does not draw; assigning the value keeps it.
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


def made_of(form: Form) -> tuple[RunConfig | None, Corpus | None, Task | None]:
    """The settings in the sidebar, their examples, and the task with its tokenizers.

    If a value is invalid, whatever depends on it is None, and the error is shown beside the widget that
    caused it, or else in the sidebar. Examples and task are also None until own pairs are given.
    """
    values = form.values
    config, corpus, task = None, None, None
    try:
        config = default_settings().with_changes(**values)
        if values["task"] != "pairs" or values["pairs"]:
            corpus = corpus_of(config.train)
            task = task_of(config)
    except InputError as error:
        form.show_error(error)
    st.session_state["data_task"] = task  # a reference: otherwise every rerun rebuilds a task of own pairs
    return config, corpus, task


fill_once(selection.chosen_run())
go_to_watch()
style()
form = data_settings()
if form.values["task"] == "pairs":
    with st.container(key="pairs"):
        left, right = st.columns([1, 1.6], gap="medium")
        with left:
            upload, refusal = upload_pairs()
        with right, st.container(key="pairs_report"):
            pairs_report(upload, refusal)
    own = own_data().pairs
    form.values["pairs"] = own.digest if own else None  # the report may have stored new ones
else:
    left, right = st.columns([1, 1.6], vertical_alignment="center", gap="medium")
    with left:
        uploader()
    with right:
        st.markdown(what_it_is(form.values["task"]))
        train_button(disabled=False)
config, corpus, task = made_of(form)
warn_of_unknown(config)
with st.container(key="data_examples"):
    example = draw_examples(config, corpus, task)
with st.container(key="data_tokens"):
    st.subheader("Tokens", anchor=False)
    if form.values["tokenizer"] == "file":
        tokenizer_upload()
    draw_tokens(task, example)
keyring()
