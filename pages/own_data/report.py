"""The report on uploaded pairs: how many were read and kept, and a button that trains on them."""

from __future__ import annotations

import streamlit as st

from pages.own_data.caps import chosen_caps
from pages.own_data.in_use import own_data, use
from pages.own_data.pairs import Upload, heading_switch
from pages.own_data.unknown import auto_line
from pages.settings.beginnings import OWN, reset
from pages.shared.plain import plain, show_error
from pages.shared.session import request, session
from transformer.errors import InputError
from transformer.tasks.pairs.caps import Caps, select_pairs
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.reading import Reading, remarks
from transformer.tasks.pairs.store import intern_pairs
from transformer.tasks.pairs.text import shortened

N_FIRST = 3
"""Most pairs that the report shows."""


def pairs_report(upload: Upload | None, refusal: str) -> None:
    """Draw the report, and use its pairs for the task; without pairs, invite to upload some.

    Args:
        upload: the last upload that was read, if there is one.
        refusal: why a later upload could not be used; empty if none was refused.
    """
    if refusal:
        show_error(refusal)
        if upload is not None:
            st.caption(f"The pairs of {upload.name} stay in use.")
    own = own_data().pairs
    if upload is not None:
        counted = st.container()
        _first_pairs(upload.reading)
        caps = chosen_caps()
        own = None if caps is None else _made(upload.reading, caps)
        if own is not None:
            use(pairs=own)
        counted.markdown(_counted(upload, own))
    elif own is None:
        if not refusal:
            _invite()
        return
    else:
        st.markdown(_counted(upload, own))
    if own is not None:
        st.markdown(auto_line(own))
    train_button(disabled=own is None)


def train_button(*, disabled: bool) -> None:
    """Draw the button that trains on the examples of this page."""
    st.button(
        "Train on this",
        key="data_train",
        type="primary",
        icon=":material/play_arrow:",
        disabled=disabled,
        on_click=_to_training,
        help="Train on these examples with settings that fit them, and open Watch.",
    )


def go_to_watch() -> None:
    """Switch to the page Watch if that was asked for; call it before any widget is drawn."""
    if st.session_state.pop("pairs_to_watch", False):
        session.page = "Watch"  # which carries out the request to start
        # Not None: Streamlit cannot clear the link while widgets of this page are bound to its parameters.
        st.switch_page("watch.py", query_params={})


def _invite() -> None:
    st.info(
        "Upload sentences with their translations, or words with their transformed forms. A small "
        "Transformer learns them in minutes. About 100 different sentences are enough to learn "
        "something; a few thousand short ones are learned well.",
        icon=":material/upload_file:",
    )


def _made(reading: Reading, caps: Caps) -> OwnPairs | None:
    """The pairs that these caps keep, cached between reruns of the page; None, with an error, if too few."""
    kept = st.session_state.get("pairs_made")
    if kept is None or kept[0] is not reading or kept[1] != caps:
        made: OwnPairs | InputError
        try:
            with st.spinner("Counting words…"):
                made = intern_pairs(OwnPairs(select_pairs(reading, caps)))
        except InputError as error:
            made = error
        kept = st.session_state["pairs_made"] = reading, caps, made
    if isinstance(kept[2], OwnPairs):
        return kept[2]
    show_error(kept[2])
    return None


def _first_pairs(reading: Reading) -> None:
    """Show the first pairs that were read, and the switch for the heading."""
    first = [map(plain, map(shortened, pair)) for pair in reading.pairs[:N_FIRST]]
    st.markdown("  \n".join(f":small[{source} → **{target}**]" for source, target in first))
    heading_switch()


def _counted(upload: Upload | None, own: OwnPairs | None) -> str:
    """The numbers of pairs read and kept; after a reload, only the number kept is known."""
    kept = "" if own is None else f"**{len(own.capped.pairs):,}** kept"
    if upload is None:
        return f"{kept}, as they were read. To read them in another way, upload or paste them again."
    reading = upload.reading
    sentence = f"**{plain(reading.format)}**, {upload.name}: **{reading.read:,}** pairs read"
    if own is not None:
        fewer = len(own.capped.pairs) < reading.read
        sentence += f", {kept}{'; loosen the limits below to keep more' if fewer else ''}"
    return "  \n".join([f"{sentence}.", *map(plain, remarks(reading))])


def _to_training() -> None:
    """Callback: request a run of the task, and the page Watch. Own pairs are never learned encoder-only."""
    if st.session_state.get("task") == "pairs" and st.session_state.get("topology") == "encoder-only":
        # An encoder writes as many tokens as it reads, which does not fit own pairs.
        st.session_state.update(recipe=OWN, topology="encoder-decoder")
        reset()
    st.session_state["pairs_to_watch"] = session.settings_filled = True  # skip a linked run's settings
    request("start")
