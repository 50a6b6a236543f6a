"""The settings in the sidebar: read from widgets into a checked configuration; errors are shown there."""

from __future__ import annotations

import streamlit as st

from pages.settings.beginnings import (
    GOALS,
    default_settings,
    draw_beginnings,
    fill_defaults,
    preset_choice,
    reset,
    values_of,
)
from pages.settings.expected import model_size
from pages.settings.form import SETTING_OF_WIDGET, Form, differs
from pages.settings.task_settings import task_settings, tokenizer_settings
from pages.shared.session import session
from pages.shared.wording import SETTING_NAMES
from transformer.config import DEVICES, PRECISIONS, RunConfig
from transformer.errors import InputError
from transformer.runs.machine import check_machine
from transformer.runs.registry import REGISTRY
from transformer.tasks import resolved

_IN_SIGHT = ("n_encoder_layers", "n_decoder_layers", "n_heads", "d_model")
"""Settings whose widgets are always visible."""


def settings() -> RunConfig | None:
    """Draw the settings and read them.

    Returns:
        The configuration, or None if a setting cannot be used; a message then says why. The session keeps it.
    """
    fill_defaults()
    form = Form(values_of(default_settings()))
    with st.sidebar:
        preset_choice()
        layers = st.container(key="model_settings")
        problems = st.container(key="settings_problem")
        with st.expander(_all_settings(), key="more_settings"):
            draw_beginnings(form)
            task_settings(form)
            size = st.container(key="model_size")
            _training(form)
            form.number("batch_size", "Batch", "Examples per step, up to {limits.high:,}.")
            form.place()
            smoothed = "Share of each target spread over all tokens, {limits}."
            form.number("label_smoothing", "Label smoothing", smoothed, step=0.05)
            form.place()
            dropped = "Share of activations dropped in training, {limits}."
            form.number("dropout", "Dropout", dropped, step=0.05)
            form.place()
            tokenizer_settings(form)
            _decoding(form)
            _machine(form)
            st.button(
                "Reset to the preset",
                key="run_reset",
                on_click=reset,
                icon=":material/restart_alt:",
                width="stretch",
            )
        with layers:
            _layers_and_heads(form)
    try:
        config = _checked(form)
    except InputError as problem:
        config = None
        if problem.field not in _IN_SIGHT:  # its widget may be folded away
            form.places[problem.field or ""] = problems
        form.show_error(problem)
    size.caption(model_size(config) if config else "")
    session.settings = config
    return config


def _all_settings() -> str:
    """The title of the folded settings, with the changed ones, or from three on with their number."""
    begun = values_of(default_settings())
    names = [SETTING_NAMES[name] for key, name in SETTING_OF_WIDGET.items() if differs(key, begun[key])]
    if len(names) > 2:
        return f"All settings · **{len(names)} changed**"
    return f"All settings · changed: **{', '.join(names)}**" if names else "All settings"


def _layers_and_heads(form: Form) -> None:
    """Draw layers, heads and width; a number of layers is disabled where the topology lacks that stack."""
    st.caption(
        "A Transformer, as behind chatbots: layer by layer the encoder reads, the decoder writes; heads "
        "decide where to look. Width: numbers per letter or word. In each training step it sees examples and "
        "is corrected."
    )
    topology = st.session_state.get("topology")
    left, right = st.columns(2, gap="small")
    form.number(
        "layers_encoder",
        "Encoder layers",
        "Layers that read the word, {limits}.",
        at=left,
        disabled=topology == "decoder-only",
    )
    form.number(
        "layers_decoder",
        "Decoder layers",
        "Layers that write the answer, {limits}. With a second one, heads read backwards more clearly.",
        at=right,
        disabled=topology == "encoder-only",
    )
    form.place()
    left, right = st.columns(2, gap="small")
    form.number("heads", "Heads", "Attention heads in each layer. Must divide the width.", at=left)
    form.number(
        "width",
        "Width",
        "d_model, the numbers per token: up to {limits.high:,}. 32 to 128 learn within seconds. "
        "The width of the feed-forward layers follows it, as in the recipe.",
        at=right,
    )
    form.place()


def _training(form: Form) -> None:
    left, right = st.columns(2, gap="small")
    form.number(
        "steps",
        "Steps",
        "Planned steps. The learning rate falls to zero over them; the goal may end the run sooner.",
        at=left,
    )
    form.number(
        "seed",
        "Seed",
        "Sets the first weights and every batch: the same seed gives the same run. Which head turns "
        "depends on the seed.",
        at=right,
    )
    form.place()
    left, right = st.columns(2, gap="small")
    form.number(
        "learning_rate",
        "Learning rate",
        "The highest rate, reached after the warm-up; any positive number.",
        at=left,
        step=0.001,
        format="%.4g",
    )
    stops = "Stop when this share of 1,000 test words, which are never trained on, is exactly right."
    form.choice("goal", "Stop at goal", list(GOALS), stops, at=right)
    form.values["goal"] = GOALS.get(form.values["goal"], 0.99)
    form.place()


def _decoding(form: Form) -> None:
    form.choice(
        "decoding",
        "Outputs are written by",
        ("greedy", "beam"),
        "greedy: the most probable token each time. beam: the best of several hypotheses; evaluations "
        "take longer.",
    )
    if form.values["decoding"] == "beam":
        form.number("beams", "Beams", "{limits}.")
        penalised = "0 favours short outputs; {limits}."
        form.number("length_penalty", "Length penalty", penalised, step=0.1)
    form.place()


def _machine(form: Form) -> None:
    form.choice("device", "Device", DEVICES, "auto uses a GPU if there is one, otherwise the CPU.")
    left, right = st.columns(2, gap="small")
    form.choice(
        "precision",
        "Precision",
        PRECISIONS,
        "Precision of the matrix products in training. bfloat16 is faster on most GPUs, rarely on a CPU. "
        "Weights are kept and maps computed in float32.",
        at=left,
    )
    form.number(
        "threads",
        "CPU threads",
        "Empty: one. More may be faster for a wide model, and change the last digits of its losses. At most "
        "one per processor.",
        at=right,
        placeholder="1",
    )
    form.toggle(
        "cuda_graphs",
        "CUDA graphs",
        "On a CUDA GPU: capture a training step once and replay it, which saves kernel launches. No "
        "effect elsewhere.",
    )
    form.place()


def _checked(form: Form) -> RunConfig:
    """The configuration that the widgets describe.

    Raises:
        InputError: a setting is invalid, or beyond the limits of the server or the machine.
    """
    begun = default_settings()
    config = begun.with_changes(**form.values)
    config = config.with_changes(d_ff=begun.model.d_ff // begun.model.d_model * config.model.d_model)
    full = resolved(config)
    REGISTRY.limits.check(full)
    check_machine(full)
    return config
