"""The widgets of the settings: they start from preset, recipe, topology and task, and show errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared import ownership
from pages.shared.plain import plain, show_error
from pages.shared.session import rerun
from pages.shared.wording import in_words
from transformer.config import RunConfig
from transformer.errors import InputError

SETTING_OF_WIDGET = {
    "layers_encoder": "n_encoder_layers",
    "layers_decoder": "n_decoder_layers",
    "heads": "n_heads",
    "width": "d_model",
    "letters": "max_letters",
    "tokenizer_kind": "tokenizer",
    "beams": "beam_width",
} | {
    name: name
    for name in (
        *("dropout", "steps", "task", "shift", "adjectives", "vocabulary"),
        *("min_frequency", "decoding", "length_penalty", "batch_size", "learning_rate", "label_smoothing"),
        *("goal", "seed", "device", "precision", "cuda_graphs", "threads", "topology"),
    )
}
"""Maps the key of a widget, which also appears in links, to the setting that the widget sets."""

_FILES = {
    "task": ("pairs", "learns its owner's own pairs, which are", "task"),
    "tokenizer": ("tokenizer_file", "reads its owner's own tokenizer, which is", "kind of tokenizer"),
}
"""By the setting beside which a missing file is reported: the setting that holds it, and words for it."""


class Form:
    """Draws the widgets of settings, and holds their values and the place for a message about each of them.

    Number boxes have no limits: the configuration checks the value, and the error states the limits.
    """

    def __init__(self, begun: dict[str, Any]) -> None:
        """
        Args:
            begun: the initial values of the widgets, by key. Streamlit puts values that differ into the link.
        """
        self._begun = begun
        self.values: dict[str, Any] = {}
        """The values of the widgets, by the configuration's names."""
        self.places: dict[str, DeltaGenerator] = {}
        """The place for a message about each setting, by the configuration's names."""
        self._placeless: list[str] = []

    def number(self, key: str, label: str, text: str, *, at: Any = st, step: float = 1, **more: Any) -> None:
        """Draw a number box, for whole numbers if `step` is an int.

        Args:
            text: the help text, in which "{limits}" is replaced by what the configuration allows.
            at: the column in which the box is drawn.
            more: further arguments of `st.number_input`.
        """
        if isinstance(step, int):
            drop_infinite(key)
        help_text = text.format(limits=RunConfig.limit_of(SETTING_OF_WIDGET[key]))
        shown = at.number_input(
            self._marked(key, label), value=self._begun[key], step=step, **_of(key, help_text), **more
        )
        self._note(key, shown)

    def choice(self, key: str, label: str, options: Sequence[str], text: str, *, at: Any = st) -> None:
        """Draw a list from which one option is chosen."""
        index = options.index(self._begun[key])
        self._note(key, at.selectbox(self._marked(key, label), options, index=index, **_of(key, text)))

    def toggle(self, key: str, label: str, text: str) -> None:
        """Draw a switch."""
        self._note(key, st.toggle(self._marked(key, label), value=self._begun[key], **_of(key, text)))

    def _marked(self, key: str, label: str) -> str:
        """The label of a widget, marked if its value differs from its initial one."""
        return f"**{label}** ●" if differs(key, self._begun[key]) else label

    def place(self) -> None:
        """Reserve a place for messages about the widgets drawn since the last call."""
        self.places |= dict.fromkeys(self._placeless, st.container())
        self._placeless = []

    def _note(self, key: str, value: Any) -> None:
        self.values[SETTING_OF_WIDGET[key]] = value
        self._placeless.append(SETTING_OF_WIDGET[key])

    def show_error(self, problem: InputError) -> None:
        """Show why the settings cannot be used; as information, not as an error, while a file is missing."""
        setting, what, other = _FILES.get(problem.field or "", ("", "", ""))
        with self.places.get(problem.field or "", st.sidebar):
            if self.values.get(setting, "") is not None:
                show_error(in_words(str(problem)))
            elif ownership.only_watches():
                st.info(
                    f"This run {what} not shared. Upload your own on the page Your data, or choose another "
                    f"{other}."
                )
            else:
                st.info(plain(str(problem)))


def differs(key: str, begun: Any) -> bool:
    """Whether the widget with this key has a value other than its initial one."""
    return key in st.session_state and st.session_state[key] != begun


def _of(key: str, text: str) -> dict[str, Any]:
    """The arguments that all widgets share: a key, which also appears in links, and a help text."""
    return {"key": key, "bind": "query-params", "help": text}


def drop_infinite(key: str) -> None:
    """Drop an infinite number, such as 1e999, from the link: Streamlit fails to make a whole number of it."""
    with suppress(ValueError):
        if math.isinf(float(st.query_params.get(key, ""))):
            del st.query_params[key]
            rerun()  # the initial values have already been read from the link
