"""The settings in the sidebar: widgets in, a checked configuration out, mistakes answered in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.parts.model_size import model_size
from pages.parts.presets import DEFAULT_PRESET, PRESETS
from transformer.config import DEVICES, KINDS_OF, RunConfig
from transformer.errors import InputError
from transformer.recipes import RECIPES, beginning
from transformer.runs.machine import check_machine

GOALS = {"none": None, "90 %": 0.9, "95 %": 0.95, "99 %": 0.99, "100 %": 1.0}
TASKS = ("reverse",)
OWN = "default"
"""The app's own recipe, which the presets vary."""


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
_MORE = (
    _Setting(
        "letters",
        "max_letters",
        "Longest word (L)",
        "Training words have 1 to L letters, 3 to 40. Nothing longer than L is learned.",
    ),
    _Setting("batch_size", "batch_size", "Batch", "Words per step, up to 4,096."),
)
KEYS = [s.key for s in (*_WHOLE, *_MORE)] + [
    *("learning_rate", "label_smoothing", "dropout", "goal", "device", "recipe", "topology", "as_published")
]


def values_of(config: RunConfig) -> dict[str, Any]:
    """What the widgets show for a configuration."""
    model, train = config.model, config.train
    goal = next((name for name, share in GOALS.items() if share == train.goal), "99 %")
    return {
        "layers_encoder": model.n_encoder_layers,
        "layers_decoder": model.n_decoder_layers,
        "heads": model.n_heads,
        "width": model.d_model,
        "dropout": model.dropout,
        "steps": train.steps,
        "letters": train.max_letters,
        "batch_size": train.batch_size,
        "learning_rate": train.learning_rate,
        "label_smoothing": train.label_smoothing,
        "goal": goal,
        "seed": config.seed,
        "device": config.device,
        "recipe": config.recipe if config.recipe in RECIPES else OWN,
        "topology": model.topology,
        "as_published": _is_published(config),
    }


def _is_published(config: RunConfig) -> bool:
    """Whether these settings began at paper size, with the article's own training where it has one."""
    recipe = RECIPES.get(config.recipe)
    if recipe is None or recipe.name == OWN:
        return False
    trained = config.train.optimizer == recipe.train.optimizer != recipe.small.train.optimizer
    return trained or config.model.d_model == recipe.model.d_model


def base_of(config: RunConfig) -> RunConfig:
    """The settings with which a configuration began, by its name."""
    if config.recipe in PRESETS:
        return PRESETS[config.recipe].config
    name = config.recipe if config.recipe in RECIPES else OWN
    return beginning(name, config.model.topology, published=_is_published(config))


def fill(config: RunConfig) -> None:
    """Put a configuration into the widgets; call it before they are drawn."""
    st.session_state.update(values_of(config))
    st.session_state["preset"] = config.recipe if config.recipe in PRESETS else DEFAULT_PRESET


def _state(key: str, known: Any, otherwise: Any) -> Any:
    """What a widget says, where that exists: any client may send anything."""
    value = st.session_state.get(key, st.query_params.get(key))
    return value if value in known else otherwise


def _base() -> RunConfig:
    """The settings that the boxes begin with: a preset of the app's own, or a recipe in a topology."""
    recipe = _state("recipe", RECIPES, OWN)
    topology = _state("topology", KINDS_OF, RECIPES[recipe].model.topology)
    if (recipe, topology) == (OWN, RECIPES[OWN].model.topology):
        return PRESETS[_state("preset", PRESETS, DEFAULT_PRESET)].config
    return beginning(recipe, topology, published=_state("as_published", (True, "true"), False) is not False)


def _reset() -> None:
    st.session_state.update(values_of(_base()))


def _preset_chosen() -> None:
    preset = PRESETS[_state("preset", PRESETS, DEFAULT_PRESET)]
    st.session_state.update(values_of(preset.config))


def _recipe_chosen() -> None:
    """With its own topology, at sizes fit for two cores."""
    recipe = RECIPES[_state("recipe", RECIPES, OWN)]
    st.session_state.update(preset=DEFAULT_PRESET, topology=recipe.model.topology, as_published=False)
    _reset()


def _topology_chosen() -> None:
    st.session_state["preset"] = DEFAULT_PRESET
    _reset()


def settings() -> RunConfig | None:
    """Draw the settings and read them.

    Returns:
        The configuration, or None where a setting cannot be used: a message then stands beside it.
    """
    if (
        "preset" not in st.session_state
    ):  # the first run: what the link does not say follows from what it says
        for key, value in values_of(_base()).items():
            if key not in st.query_params:
                st.session_state.setdefault(key, value)
    defaults = values_of(PRESETS[DEFAULT_PRESET].config)
    with st.sidebar:
        st.selectbox(
            "Preset",
            list(PRESETS),
            key="preset",
            bind="query-params",
            on_change=_preset_chosen,
            help="A beginning that works. Changing it fills in the settings below.",
        )
        values: dict[str, Any] = {}
        boxes: dict[str, Any] = {"topology": _architecture(values)}
        _widgets(defaults, values, boxes)
        st.button(
            "Reset to the preset",
            key="run_reset",
            on_click=_reset,
            icon=":material/restart_alt:",
            width="stretch",
        )
    base = _base()
    config, problem = _checked(base, values)
    if problem is not None:
        with boxes.get(problem.field or "", st.sidebar):
            st.error(str(problem))
    with boxes["size"]:
        st.caption(model_size(config) if config else "")
    return config


def _architecture(values: dict[str, Any]) -> Any:
    """Draw recipe, task and topology; returns where a message about them goes."""
    left, right = st.columns(2, gap="small")
    with left:
        recipe = st.selectbox(
            "Recipe",
            list(RECIPES),
            key="recipe",
            bind="query-params",
            on_change=_recipe_chosen,
            help="The architecture of a published from-scratch Transformer, or the app's own. Choosing one "
            "fills in sizes and training that fit two cores.",
        )
    with right:
        _task(values)
    st.selectbox(
        "Topology",
        list(KINDS_OF),
        key="topology",
        bind="query-params",
        on_change=_topology_chosen,
        help="encoder-decoder: one stack reads, one writes. encoder-only: a letter is predicted in the "
        "place of each. decoder-only: word, separator and answer in one sequence.",
    )
    recipe = recipe if recipe in RECIPES else OWN
    if recipe != OWN:
        st.toggle(
            "As published: paper size and training",
            key="as_published",
            bind="query-params",
            on_change=_reset,
            help="The article's own sizes, and its own training where it has one. Large ones are slow on a "
            "CPU.",
        )
        st.caption(RECIPES[recipe].source)
    return st.container()


def _widgets(defaults: dict[str, Any], values: dict[str, Any], boxes: dict[str, Any]) -> None:
    """Draw every other setting; adds its value, and where its message goes, by field."""

    def pair(first: Callable[[], None], second: Callable[[], None], *fields: str) -> None:
        """Two widgets side by side, and room for their messages across the whole width."""
        for column, draw in zip(st.columns(2, gap="small"), (first, second), strict=True):
            with column:
                draw()
        boxes.update({name: st.container() for name in fields})
        if "d_model" in fields:
            boxes["size"] = st.container(key="model_size")

    def whole(setting: _Setting) -> Callable[[], None]:
        return lambda: values.__setitem__(setting.field, _whole(setting, defaults))

    for first, second in zip(_WHOLE[::2], _WHOLE[1::2], strict=True):
        pair(whole(first), whole(second), first.field, second.field)
    pair(lambda: _rate(values, defaults), lambda: _goal(values, defaults), "learning_rate", "goal")
    with st.expander("More settings", key="more_settings", on_change="ignore"):
        for setting in _MORE:
            values[setting.field] = _whole(setting, defaults)
            boxes[setting.field] = st.container()
        for key, label, text in (
            ("label_smoothing", "Label smoothing", "Share of each target spread over all tokens, 0 to 0.9."),
            ("dropout", "Dropout", "Share of activations dropped in training, 0 to 0.9."),
        ):
            values[key] = st.number_input(
                label, value=defaults[key], step=0.05, key=key, bind="query-params", help=text
            )
            boxes[key] = st.container()
        _device(values)
        boxes["device"] = st.container()


def _task(values: dict[str, Any]) -> None:
    values["task"] = st.selectbox(
        "Task",
        TASKS,
        key="task",
        bind="query-params",
        help="What is learned: from random letters to the same letters backwards.",
    )


def _device(values: dict[str, Any]) -> None:
    values["device"] = st.selectbox(
        "Device",
        list(DEVICES),
        key="device",
        bind="query-params",
        help="auto takes a GPU if there is one, and the CPU otherwise.",
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


def _whole(setting: _Setting, defaults: dict[str, Any]) -> int:
    # No limits in the widget: they are said by the configuration, in words, to any value that is sent.
    absent = {"layers_encoder": "decoder-only", "layers_decoder": "encoder-only"}.get(setting.key)
    return st.number_input(
        setting.label,
        value=defaults[setting.key],
        step=1,
        key=setting.key,
        bind="query-params",
        help=setting.help,
        disabled=absent is not None and st.session_state.get("topology") == absent,
    )


def _checked(base: RunConfig, values: dict[str, Any]) -> tuple[RunConfig | None, InputError | None]:
    missing = next((name for name, value in values.items() if value is None and name != "goal"), None)
    if missing is not None:
        return None, InputError("This setting is empty; type a number.", missing)
    if isinstance(values["d_model"], int) and 0 < values["d_model"] <= base.model.MAX_WIDTH:
        ratio = base.model.d_ff // base.model.d_model
        values = {**values, "d_ff": ratio * values["d_model"]}
    try:
        config = base.with_changes(**values)
        check_machine(config)
        return config, None
    except InputError as error:
        return None, error
