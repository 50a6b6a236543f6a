"""The chosen word, and the box in which users type their own words."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.controls.commands import await_effect
from pages.shared import ownership
from pages.shared.plain import plain, show_error
from pages.shared.session import MASKS, request, session, take_requests
from transformer.config import LETTER_TASKS, TASK_INFO
from transformer.errors import InputError
from transformer.runs.any_run import AnyRun


def draw_word_box(run: AnyRun) -> None:
    """Draw in the sidebar the box in which the owner of a run adds or removes a word for all its viewers."""
    carry_out_word_requests(run)
    with st.sidebar, st.container(key="own_words", gap="xsmall"):
        if not ownership.owns(run):
            return
        noun = TASK_INFO[run.config.train.task].singular
        st.text_input(
            f"Your own {noun}",
            key="own_word",
            placeholder="your word…" if noun == "word" else f"a {noun}…",
            on_change=_typed,
            width="stretch",
            help=f"{input_help(run)} Press Enter.",
        )
        _problem()
        with st.container(horizontal=True, gap="xsmall"):
            st.button("Add", key="add_word", on_click=_add, width="stretch")
            st.button(
                "Remove",
                key="drop_word",
                on_click=_drop,
                disabled=len(run.questions) < 2,
                width="stretch",
                help="Remove the word on the screen.",
            )
        _mean_choice(run)


def _mean_choice(run: AnyRun) -> None:
    """Draw the choice of the length whose mean map is tracked too; not on Masks, which shows no mean map."""
    lengths = run.task.corpus.mean_lengths
    if not lengths or session.page == MASKS:
        return
    run_id, typed = session.typed_word  # a mean map is not in the run's words before its thread has added it
    added = [run.task.tracked(typed)] if run_id == run.id else []
    means = [one for one in (*added, *run.questions) if one.words]
    st.session_state["mean_length"] = len(means[0].words[0]) if means else None

    def chosen() -> None:
        length = st.session_state.get("mean_length")  # any value: a visitor can send it
        if length in lengths:
            request("add_word", run.task.mean(length).text)
        elif length is None and means:
            request("drop_word", means[0].text)

    st.selectbox(
        "All words",
        lengths,
        index=None,
        key="mean_length",
        format_func="of {} letters".format,
        placeholder="of one length…",
        on_change=chosen,
        help="Show, beside the words, the mean map of 64 test words of one length: what each head does "
        "whatever the letters. Chosen after a run, it covers the steps whose weights are kept; chosen "
        "before, it makes recording slower, so that fewer steps are recorded.",
    )


def askable(run: AnyRun) -> list[str]:
    """The tracked words, without mean maps."""
    return [question.text for question in run.questions if not question.words]


def word_choice(run: AnyRun) -> str:
    """Draw the choice of a tracked word, for a page whose player has none; return the chosen word."""
    word = chosen_word(run, means=False)
    words = list(dict.fromkeys([*askable(run), word]))
    if run.task.corpus.same_length:
        st.pills(
            "Word",
            words,
            key="word",
            format_func=plain,
            required=True,
            persist_state="session",
            label_visibility="collapsed",
            help="The word whose maps are shown.",
        )
    else:  # sentences need more room than a row of buttons has
        st.selectbox(
            "Sentence",
            words,
            key="word",
            persist_state="session",
            label_visibility="collapsed",
            width=430,
            help="The sentence whose maps are shown.",
        )
    return word


def chosen_word(run: AnyRun, *, means: bool = True) -> str:
    """The word chosen in this session or else in the link; if it is not tracked, the first tracked word.

    A word that was just typed counts as tracked. Requests to add or drop words are carried out first.

    Args:
        means: whether the page shows mean maps too.
    """
    carry_out_word_requests(run)
    words = list(run.words) if means else askable(run)
    run_id, typed = session.typed_word
    if run_id == run.id and typed in words:
        session.typed_word = None, ""
    elif run_id == run.id and (means or not run.task.tracked(typed).words):
        words.append(typed)  # the run's thread adds it after the current step
    word = session.word or st.query_params.get("word")  # a shared link, or a reload
    session.word = word if word in words else words[0]
    return session.word


def input_help(run: AnyRun) -> str:
    """What can be typed for this run, as the help text of a box."""
    train = run.config.train
    if train.task in LETTER_TASKS:
        again = " Its last letter has to occur before." if train.task == "repeat" else ""
        longest = train.max_letters
        return f"Letters a to z, up to {2 * longest}; training words have at most {longest}.{again}"
    text, example = TASK_INFO[train.task].input_help, plain(run.questions[0].text)
    return f"{text}, such as: {example}. At most {run.task.max_question_tokens} tokens."


def _typed() -> None:
    """Callback: add the typed word; emptying the box only clears the problem of the last word."""
    if st.session_state.get("own_word"):
        _add()
    else:
        session.word_problem = None


def _add() -> None:
    request("add_word", st.session_state.get("own_word", ""))


def _drop() -> None:
    request("drop_word", session.word or "")


def carry_out_word_requests(run: AnyRun) -> None:
    """Send requests to add or drop a tracked word to the run; store a refusal as `session.word_problem`."""
    for what, word in take_requests("drop_word", "add_word"):
        try:
            if what == "drop_word":
                await_effect(ownership.command(run).drop_word(word))
            else:
                session.word = ownership.command(run).add_word(word)
                session.typed_word = run.id, session.word
                st.session_state["own_word"] = ""
        except InputError as error:
            session.word_problem = str(error), error.suggestion


def _problem() -> None:
    """Draw why the word was refused, and a valid one to use instead, if any, until the next request."""
    if session.word_problem:
        message, suggestion = session.word_problem
        with st.container(key="word_problem", horizontal=True, vertical_alignment="center"):
            show_error(message)
            if suggestion:
                label = f"Ask “{plain(suggestion)}”"
                st.button(label, key="offered_word", on_click=request, args=("add_word", suggestion))


def remember_boxes(*more: str) -> Callable[[], None]:
    """Remember what the word's box, and any further boxes, contain in this full run of the page.

    A slow browser may rerun a fragment with earlier contents of these boxes. The fragments of such a page
    first call the returned function, which restores the boxes and `session.word_problem`, and drops a
    request to add a word that was not there in the full run. No fragment may change the boxes.

    Args:
        more: keys of the further boxes.
    """
    standing = {key: st.session_state.get(key) for key in ("own_word", *more)}
    asked, problem = "add_word" in session.requests, session.word_problem

    def restore() -> None:
        for key, value in standing.items():
            if st.session_state.get(key) != value:
                st.session_state[key] = value
        if not asked:  # a slow browser refills the box, which would add the word again
            session.requests.pop("add_word", None)
        session.word_problem = problem

    return restore
