"""The widgets of the task and its settings, shared by Watch and Your data."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.own_data.in_use import own_data
from pages.settings.form import Form
from transformer.config import GRAMMARS, LETTER_TASKS, TASK_INFO, TASKS, TOKENIZERS
from transformer.tasks import PATTERNS


def task_choice(on_change: Callable[[], None]) -> str:
    """Draw the choice of a task; return the name of the chosen one."""
    titles = [(task.title, task.examples) for task in TASK_INFO.values()]
    task = st.selectbox(
        "Task",
        TASKS,
        key="task",
        persist_state="session",
        format_func=lambda task: TASK_INFO[task].title,
        on_change=on_change,
        help="What is learned. " + "; ".join(f"**{name}**: {what}" for name, what in titles) + ".",
    )
    if task != TASKS[0]:
        st.query_params["task"] = task  # Streamlit itself would put the label into the link
    elif "task" in st.query_params:
        del st.query_params["task"]
    return task


def task_settings(form: Form) -> None:
    """Draw the settings that belong to the chosen task."""
    task = form.values["task"]
    if task in LETTER_TASKS:
        form.number(
            "letters",
            "Longest word (L)",
            "Training words have 1 to L letters, {limits}. Nothing longer than L is learned.",
        )
        form.place()
    if task == "caesar":
        form.number("shift", "Shift", "Places that each letter moves on in the alphabet, {limits}.")
        form.place()
    if task in GRAMMARS:
        form.values["patterns"] = _patterns(task)
        form.places["patterns"] = st.container()
        form.number(
            "adjectives",
            "Adjectives",
            "Most adjectives in a sentence, {limits}. With more adjectives, more words change places.",
        )
        form.place()
    if task == "pairs":
        own = own_data().pairs
        form.values["pairs"] = own.digest if own else None
        form.places["pairs_upload"] = st.container()


def tokenizer_settings(form: Form) -> None:
    """Draw the settings of the tokenizers."""
    form.choice(
        "tokenizer_kind",
        "Tokens",
        TOKENIZERS,
        "**auto**: words for sentences, characters for words and dates; for your own pairs, chosen by "
        "measurement (see Your data). **bpe**: learned from the task's examples. **file**: your "
        "tokenizer.json, uploaded on Your data.",
    )
    form.place()
    if form.values["tokenizer"] == "file":
        file = own_data().tokenizer
        form.values["tokenizer_file"] = file.digest if file else None
        form.places["tokenizer_file"] = form.places["tokenizer"]
    form.number(
        "vocabulary",
        "Most tokens of a side",
        "Special tokens included, {limits}; the most frequent are kept. Empty: all, or 300 for bpe.",
        step=50,
        placeholder="all",
    )
    form.place()
    form.number(
        "min_frequency",
        "Least frequency",
        "Words that occur less often in training become [UNK], {limits}.",
    )
    form.place()


def _patterns(task: str) -> tuple[str, ...] | None:
    patterns, key = PATTERNS[task], f"patterns_{task}"
    # Assign the value: on the first run of another page, the new widget does not find the old widget's value.
    st.session_state[key] = [name for name in st.session_state.get(key, ()) if name in patterns]
    chosen = st.multiselect(
        "Sentence patterns",
        list(patterns),
        key=key,
        persist_state="session",
        placeholder="all",
        help="Patterns to train on; empty: all. "
        + " ".join(f"**{name}**: {look_for}" for name, look_for in patterns.items()),
    )
    return tuple(name for name in patterns if name in chosen) or None
