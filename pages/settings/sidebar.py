"""The settings in the sidebar: widgets in, a checked configuration out, mistakes answered in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.settings.beginnings import GOALS, base, begin, beginnings, reset, values_of
from pages.settings.model_size import model_size
from pages.settings.task_settings import say_what_is_wrong, task_settings, tokenizer_settings, whole
from transformer.config import DEVICES, PRECISIONS, RunConfig
from transformer.errors import InputError
from transformer.runs.calibration import speed
from transformer.runs.machine import check_machine
from transformer.runs.registry import REGISTRY
from transformer.tasks import completed


@dataclass(frozen=True)
class _Setting:
    """One widget: its key, the configuration's name of what it sets, and what a person reads."""

    key: str
    field: str
    label: str
    help: str


_WHOLE = (
    _Setting("layers_encoder", "n_encoder_layers", "Encoder layers", "They read the word. 1 to 12."),
    _Setting(
        "layers_decoder",
        "n_decoder_layers",
        "Decoder layers",
        "They write the answer. 1 to 12. A second one is what makes the anti-diagonal clean.",
    ),
    _Setting("heads", "n_heads", "Heads", "Attention heads in each layer. Must divide the width."),
    _Setting(
        "width",
        "d_model",
        "Width",
        "d_model, the numbers per token: up to 1,024; 32 to 128 learn live. "
        "The feed-forward part follows it, as the recipe has it.",
    ),
    _Setting(
        "steps",
        "steps",
        "Steps",
        "Planned steps. The learning rate falls to zero with them, so they shape the run; "
        "the goal may end it sooner.",
    ),
    _Setting(
        "seed",
        "seed",
        "Seed",
        "Fixes the first weights and every batch: the same seed gives the same run. "
        "Which head turns differs from seed to seed.",
    ),
)
_MAY_BE_EMPTY = ("goal", "vocabulary", "patterns", "pairs", "tokenizer_file", "threads")


def settings() -> RunConfig | None:
    """Draw the settings and read them.

    Returns:
        The configuration, or None where a setting cannot be used: a message then stands beside it.
    """
    begin()
    defaults = values_of(base())  # what differs from them is in the link, and a reload begins with the same
    with st.sidebar:
        values: dict[str, Any] = {}
        boxes: dict[str, Any] = {}
        boxes["topology"] = boxes["task"] = beginnings(values)
        task_settings(values["task"], defaults, values, boxes)
        _widgets(defaults, values, boxes)
        st.button(
            "Reset to the preset",
            key="run_reset",
            on_click=reset,
            icon=":material/restart_alt:",
            width="stretch",
        )
    config, problem = _checked(base(), values)
    if problem is not None:
        with boxes.get(problem.field or "", st.sidebar):
            say_what_is_wrong(problem, values)
    with boxes["size"]:
        st.caption(model_size(config) if config else "")
    return config


def _widgets(defaults: dict[str, Any], values: dict[str, Any], boxes: dict[str, Any]) -> None:
    """Draw every other setting; adds its value, and where its message goes, by field."""

    def pair(first: Callable[[], None], second: Callable[[], None], *fields: str) -> None:
        """Two widgets side by side, and room for their messages across the whole width."""
        for column, draw in zip(st.columns(2, gap="small"), (first, second), strict=True):
            with column:
                draw()
        boxes.update(dict.fromkeys(fields, st.container()))
        if "d_model" in fields:
            boxes["size"] = st.container(key="model_size")

    def box(setting: _Setting) -> Callable[[], None]:
        return lambda: values.__setitem__(setting.field, _of_a_stack(setting, defaults))

    for first, second in zip(_WHOLE[::2], _WHOLE[1::2], strict=True):
        pair(box(first), box(second), first.field, second.field)
    pair(lambda: _rate(values, defaults), lambda: _goal(values, defaults), "learning_rate", "goal")
    with st.expander("More settings", key="more_settings", on_change="ignore"):
        values["batch_size"] = whole("Batch", "batch_size", defaults, "Examples per step, up to 4,096.")
        boxes["batch_size"] = st.container()
        for key, label, text in (
            ("label_smoothing", "Label smoothing", "Share of each target spread over all tokens, 0 to 0.9."),
            ("dropout", "Dropout", "Share of activations dropped in training, 0 to 0.9."),
        ):
            values[key] = st.number_input(
                label, value=defaults[key], step=0.05, key=key, bind="query-params", help=text
            )
            boxes[key] = st.container()
        tokenizer_settings(defaults, values, boxes)
        _decoding(defaults, values, boxes)
        _device(values, defaults)
        boxes["device"] = boxes["precision"] = boxes["threads"] = st.container()


def _decoding(defaults: dict[str, Any], values: dict[str, Any], boxes: dict[str, Any]) -> None:
    values["decoding"] = st.selectbox(
        "Outputs are written by",
        ("greedy", "beam"),
        key="decoding",
        bind="query-params",
        help="greedy: the most probable token each time. beam: the best of several tried beside each other; "
        "evaluations take longer.",
    )
    if values["decoding"] == "beam":
        values["beam_width"] = whole("Beams", "beams", defaults, "1 to 16.")
        values["length_penalty"] = st.number_input(
            "Length penalty",
            value=defaults["length_penalty"],
            step=0.1,
            key="length_penalty",
            bind="query-params",
            help="0: short outputs are favoured; 0 to 2.",
        )
    boxes["beam_width"] = boxes["length_penalty"] = st.container()


def _device(values: dict[str, Any], defaults: dict[str, Any]) -> None:
    values["device"] = st.selectbox(
        "Device",
        list(DEVICES),
        key="device",
        bind="query-params",
        help="auto takes a GPU if there is one, and the CPU otherwise.",
    )
    left, right = st.columns(2, gap="small")
    with left:
        values["precision"] = st.selectbox(
            "Precision",
            PRECISIONS,
            key="precision",
            bind="query-params",
            help="Of the products in a training step. bfloat16 is faster on most GPUs, seldom on a CPU. "
            "Weights and whatever is looked at stay float32.",
        )
    with right:
        known = speed()
        values["threads"] = whole(
            "CPU threads",
            "threads",
            defaults,
            "Empty: the number that has been measured to be fastest on this machine, among those that leave "
            "a core to the page. At most as many as the machine has.",
            placeholder=f"{known.threads}, measured" if known else "measured",
        )
    values["cuda_graphs"] = st.toggle(
        "CUDA graphs",
        key="cuda_graphs",
        bind="query-params",
        help="On a CUDA GPU: capture a whole training step once and replay it, which saves launching kernel "
        "after kernel. Elsewhere it changes nothing.",
    )


def _rate(values: dict[str, Any], defaults: dict[str, Any]) -> None:
    values["learning_rate"] = st.number_input(
        "Learning rate",
        value=defaults["learning_rate"],
        step=0.001,
        format="%.4g",
        key="learning_rate",
        bind="query-params",
        help="The highest rate, reached after the warm-up; any positive number.",
    )


def _goal(values: dict[str, Any], defaults: dict[str, Any]) -> None:
    goal = st.selectbox(
        "Stop at goal",
        list(GOALS),
        index=list(GOALS).index(defaults["goal"]),
        key="goal",
        bind="query-params",
        help="Stop as soon as this share of 1,000 held-out words is exactly right.",
    )
    values["goal"] = GOALS.get(goal, 0.99)


def _of_a_stack(setting: _Setting, defaults: dict[str, Any]) -> int:
    """The layers of a stack that the topology does not have cannot be chosen."""
    absent = {"layers_encoder": "decoder-only", "layers_decoder": "encoder-only"}.get(setting.key)
    disabled = absent is not None and st.session_state.get("topology") == absent
    return whole(setting.label, setting.key, defaults, setting.help, disabled=disabled)


def _checked(begun: RunConfig, values: dict[str, Any]) -> tuple[RunConfig | None, InputError | None]:
    missing = next(
        (name for name, value in values.items() if value is None and name not in _MAY_BE_EMPTY), None
    )
    if missing is not None:
        return None, InputError("This setting is empty; type a number.", missing)
    try:
        RunConfig.limit_of("d_model").check("d_model", values["d_model"])
        ratio = begun.model.d_ff // begun.model.d_model
        config = begun.with_changes(**values, d_ff=ratio * values["d_model"])
        full = completed(config)
        REGISTRY.limits.check(full)
        check_machine(full)
        return config, None
    except InputError as error:
        return None, error
