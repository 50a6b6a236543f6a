"""Your data: what a task's examples are, how they become tokens, and training on one's own pairs."""

from __future__ import annotations

import streamlit as st

from pages.own_data.examples import draw_examples, what_it_is
from pages.own_data.in_use import own_data
from pages.own_data.pairs import upload_pairs, uploader
from pages.own_data.report import go_to_watch, pairs_report
from pages.own_data.sidebar import chosen, data_settings
from pages.own_data.tokenizer import tokenizer_upload
from pages.own_data.tokens import draw_tokens
from pages.own_data.unknown import warn_of_unknown
from pages.runs.keyring import keyring
from pages.settings.beginnings import fill_once
from pages.shared import selection
from pages.shared.style import style

fill_once(selection.chosen_run())
go_to_watch()
style()
form = data_settings()
if form.values["task"] == "pairs":
    with st.container(key="pairs"):
        left, right = st.columns([1, 1.75], gap="medium")
        with left:
            upload, refusal = upload_pairs()
        with right, st.container(key="pairs_report"):
            pairs_report(upload, refusal)
    own = own_data().pairs
    form.values["pairs"] = own.digest if own else None  # as the report has just made them
else:
    said, own = st.columns([1.9, 1], vertical_alignment="center", gap="medium")
    said.markdown(what_it_is(form.values["task"]))
    with own:
        uploader()
data = chosen(form)
warn_of_unknown(data.config)
with st.container(key="data_examples"):
    example = draw_examples(data)
with st.container(key="data_tokens"):
    st.subheader("Tokens", anchor=False)
    if form.values["tokenizer"] == "file":
        tokenizer_upload()
    draw_tokens(data.tokens, example)
keyring()
