"""What became of the pairs that somebody brought: what was read, what is kept, and on to training."""

from __future__ import annotations

import streamlit as st

from pages.own_data.brought import bring_pairs, brought
from pages.own_data.caps import chosen_caps
from pages.own_data.pairs import Upload
from pages.own_data.unknown import auto_line
from pages.settings.beginnings import OWN, reset, task_chosen
from pages.shared.plain import plain, refuse
from pages.shared.session import ask, session
from transformer.errors import InputError
from transformer.tasks.pairs.caps import Caps, capped
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.store import keep


def pairs_report(upload: Upload | None, refusal: str) -> None:
    """Draw the report; the pairs that it ends with are those of the task from then on.

    Args:
        upload: what was read last.
        refusal: why what came after it could not be used.
    """
    if refusal:
        refuse(refusal)
        if upload is not None:
            st.caption(f"The pairs of {upload.name} stay in use.")
    own = brought().pairs
    if upload is not None:
        _say_what_was_read(upload)
        caps = chosen_caps()
        own = None if caps is None else _made(upload.reading, caps)
        if own is not None:
            bring_pairs(own)
    elif own is None:
        if not refusal:
            _invite()
        return
    if own is not None:
        st.markdown(f"{kept_line(own)}\n\n{auto_line(own)}")
    st.button(
        "Train on these",
        key="pairs_train",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        disabled=own is None,
        on_click=_to_training,
        help="Train on these pairs with settings that fit them, and open Watch.",
    )


def go_to_watch() -> None:
    """Leave for Watch if that was asked for; call it before any widget is drawn."""
    if st.session_state.pop("pairs_to_watch", False):
        # Widgets of this page are bound to the link: it can be replaced, but not emptied.
        st.switch_page("train.py", query_params={})


def _invite() -> None:
    st.info(
        "Upload sentences with their translations, or words with their transformed forms. A small "
        "Transformer learns them in minutes. About 100 different sentences are enough to learn "
        "something; a few thousand short ones are learned well.",
        icon=":material/upload_file:",
    )


def _say_what_was_read(upload: Upload) -> None:
    reading = upload.reading
    st.markdown(
        f"**{plain(reading.format)}**, {upload.name}: **{reading.read:,}** pairs read of {reading.seen:,} "
        f"{'line' if reading.seen == 1 else 'lines'}."
    )
    if not reading.skipped:
        return
    n_skipped = sum(some.count for some in reading.skipped)
    others = len(reading.skipped) - 1
    more = f" and {others} other reason{'s' if others > 1 else ''}" if others else ""
    with st.expander(f"{n_skipped:,} skipped: {plain(reading.skipped[0].reason)}{more}", key="pairs_skipped"):
        st.table(
            {
                "skipped because of": [plain(some.reason) for some in reading.skipped],
                "lines": [f"{some.count:,}" for some in reading.skipped],
                "such as": [
                    " · ".join(f"line {one.line:,}: {plain(one.text)}" for one in some.examples)
                    for some in reading.skipped
                ],
            }
        )


def _made(reading: Reading, caps: Caps) -> OwnPairs | None:
    """What these caps leave, made once and not at every turn of the page; None where that is too little."""
    kept = st.session_state.get("pairs_made")
    if kept is None or kept[0] is not reading or kept[1] != caps:
        made: OwnPairs | InputError
        try:
            with st.spinner("Counting words…"):
                made = keep(OwnPairs(capped(reading, caps)))
        except InputError as error:
            made = error
        kept = st.session_state["pairs_made"] = reading, caps, made
    if isinstance(kept[2], OwnPairs):
        return kept[2]
    refuse(kept[2])
    return None


def kept_line(own: OwnPairs) -> str:
    """From what was read to what is kept, cap by cap."""
    steps = [f"{step.left:,} {step.cap}" for step in own.capped.steps]  # none of a run that was opened again
    kept = f"**{len(own.capped.pairs):,} kept**"
    n_sources = len({source for source, _ in own.capped.pairs})
    return (
        f"{' → '.join([*steps, kept])}.\n\n**{n_sources:,}** different sources, of which "
        f"**{len(own.held_out()):,}** are held out with all their translations; **{own.size:,}** training "
        f"pairs; vocabulary **{own.capped.src_words:,}** {own.src.named} / **{own.capped.tgt_words:,}** "
        f"{own.tgt.named}."
    )


def _to_training() -> None:
    """Start with the task "pairs", and with the settings that fit it where they are not there already."""
    if st.session_state.get("topology") == "encoder-only":  # it writes as many words as it reads
        st.session_state.update(recipe=OWN, topology="encoder-decoder")
        reset()
    if st.session_state.get("task") != "pairs":
        st.session_state["task"] = "pairs"
        task_chosen()
    st.session_state["pairs_to_watch"] = session.settings_filled = True  # not from a run's link
    ask("start")
