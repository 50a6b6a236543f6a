"""Which task is learned, and what is its own to choose: drawn by Watch and by Your data alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import streamlit as st

from pages.own_data.brought import brought
from pages.shared import ownership
from pages.shared.plain import plain, refuse
from pages.shared.wording import in_words
from transformer.config import GRAMMARS, LANGUAGES, LETTER_TASKS, TASKS, TOKENIZERS
from transformer.errors import InputError
from transformer.tasks import PATTERNS
from transformer.tasks.about import ABOUT

OWN = {
    "max_letters": LETTER_TASKS,
    "shift": ("caesar",),
    "language": ("numbers",),
    "digits": ("numbers",),
    "to_words": ("numbers",),
    "patterns": GRAMMARS,
    "adjectives": GRAMMARS,
}
"""Settings of which only some tasks know, by field."""


def task_choice(on_change: Callable[[], None]) -> str:
    """Draw the choice of a task."""
    task = st.selectbox(
        "Task",
        TASKS,
        key="task",
        persist_state="session",
        format_func=lambda task: ABOUT[task].name,
        on_change=on_change,
        help="What is learned. " + "; ".join(f"**{name}**: {what}" for name, what in ABOUT.values()) + ".",
    )
    if task != TASKS[0]:
        st.query_params["task"] = task  # Streamlit itself would put the label into the link
    elif "task" in st.query_params:
        del st.query_params["task"]
    return task


def task_settings(task: str, defaults: dict[str, Any], values: dict[str, Any], boxes: dict[str, Any]) -> None:
    """Draw what is the task's own to choose.

    Args:
        defaults: what the widgets begin with, by key.
        values: theirs are added, by the configuration's names.
        boxes: where a message about each of them goes is added.
    """

    def add(field: str, draw: Callable[[], Any]) -> None:
        if task in OWN[field]:
            values[field] = draw()
            boxes[field] = st.container()

    add("max_letters", lambda: whole("Longest word (L)", "letters", defaults, _LETTERS_HELP))
    add("shift", lambda: whole("Shift", "shift", defaults, "Places on in the alphabet, 1 to 25."))
    add("language", lambda: _language(defaults))
    add("digits", lambda: whole("Digits", "digits", defaults, "Of the largest number, 2 to 6."))
    add("to_words", lambda: _to_words(defaults))
    add("patterns", lambda: _patterns(task))
    add("adjectives", lambda: whole("Adjectives", "adjectives", defaults, _ADJECTIVES_HELP))
    if task == "pairs":
        own = brought().pairs
        values["pairs"] = own.digest if own else None
        boxes["pairs_upload"] = st.container()


def say_what_is_wrong(problem: InputError, values: dict[str, Any]) -> None:
    """Show why the settings cannot be used; what has not been brought yet is no mistake."""
    absent = values.get("pairs", "") is None or values.get("tokenizer_file", "") is None
    if not absent:
        refuse(in_words(str(problem)))
    elif ownership.only_watches():
        st.info(
            "This run learns pairs that its owner brought, and the file stays with the owner. Bring your own "
            "on the page Your data, or choose another task."
        )
    else:
        st.info(plain(str(problem)))


def tokenizer_settings(defaults: dict[str, Any], values: dict[str, Any], boxes: dict[str, Any]) -> None:
    """Draw how text becomes tokens."""
    values["tokenizer"] = st.selectbox(
        "Tokens",
        TOKENIZERS,
        key="tokenizer_kind",
        bind="query-params",
        help="**auto**: as the task has it, words for sentences and characters otherwise. **bpe** is learned "
        "from the task's own examples. **file** is a tokenizer.json of yours: bring it on Your data.",
    )
    boxes["tokenizer"] = st.container()
    if values["tokenizer"] == "file":
        file = brought().tokenizer
        values["tokenizer_file"] = file.digest if file else None
        boxes["tokenizer_file"] = boxes["tokenizer"]
    drop_infinite("vocabulary")
    values["vocabulary"] = st.number_input(
        "Most tokens of a side",
        value=defaults["vocabulary"],
        step=50,
        key="vocabulary",
        bind="query-params",
        placeholder="all",
        help="Special tokens included, 10 to 50,000; the most frequent stay. Empty: all, and 300 for bpe.",
    )
    boxes["vocabulary"] = st.container()
    values["min_frequency"] = whole("Least frequency", "min_frequency", defaults, _FREQUENCY_HELP)
    boxes["min_frequency"] = st.container()


_LETTERS_HELP = "Training words have 1 to L letters, 3 to 40. Nothing longer than L is learned."
_ADJECTIVES_HELP = "Most adjectives in a sentence, 0 to 4: with more of them more words change places."
_FREQUENCY_HELP = "Words that training has less often than this become [UNK], 1 to 1,000."


def whole(
    label: str,
    key: str,
    defaults: dict[str, Any],
    text: str,
    *,
    disabled: bool = False,
    placeholder: str | None = None,
) -> int:
    """Draw the box of a whole number.

    It has no limits of its own: they are said by the configuration, in words, to any value that is sent.
    """
    drop_infinite(key)
    return st.number_input(
        label,
        value=defaults[key],
        step=1,
        key=key,
        bind="query-params",
        help=text,
        disabled=disabled,
        placeholder=placeholder,
    )


def _language(defaults: dict[str, Any]) -> str:
    return st.selectbox(
        "Language",
        LANGUAGES,
        index=LANGUAGES.index(defaults["language"]),
        key="language",
        bind="query-params",
        help="In which numbers are written: German says the last digit before the tens.",
    )


def _to_words(defaults: dict[str, Any]) -> bool:
    return st.toggle(
        "From digits to words",
        value=defaults["to_words"],
        key="to_words",
        bind="query-params",
        help="Read 342, write its words; otherwise the other way round.",
    )


def _patterns(task: str) -> tuple[str, ...] | None:
    known, key = PATTERNS[task], f"patterns_{task}"
    # Written and not only read: on the first run of another page the new widget would not find the old one's.
    st.session_state[key] = [name for name in st.session_state.get(key, ()) if name in known]
    chosen = st.multiselect(
        "Sentence patterns",
        list(known),
        key=key,
        persist_state="session",
        placeholder="all",
        help="Kinds of sentences to draw from; none chosen: all. "
        + " ".join(f"**{name}**: {look_for}" for name, look_for in known.items()),
    )
    return tuple(name for name in known if name in chosen) or None


def drop_infinite(key: str) -> None:
    """Streamlit itself breaks at a link whose whole number is infinite, such as 1e999."""
    with suppress(ValueError):
        if math.isinf(float(st.query_params.get(key, ""))):
            del st.query_params[key]
            st.rerun()  # what a box begins with has been read of the link already
