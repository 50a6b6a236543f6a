"""The initial settings: one of the app's presets, or a recipe in a topology."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st

from pages.own_data.in_use import own_data
from pages.settings.form import SETTING_OF_WIDGET, Form
from pages.settings.presets import DEFAULT_PRESET, PRESETS, SHORT
from pages.settings.task_settings import task_choice
from pages.shared.session import Put, came_back, session
from transformer.config import KINDS_OF, TASK_INFO, TASKS, RunConfig
from transformer.config.recipes import RECIPES, recipe_config
from transformer.config.tasks import for_pairs, with_task
from transformer.runs.any_run import AnyRun

GOALS = {"none": None, "90%": 0.9, "95%": 0.95, "99%": 0.99, "100%": 1.0}
OWN = "default"
"""The app's own recipe, which the presets vary."""
DELIVERED_SECONDS = 1.0
"""Seconds after which the browser is assumed to have received values that were put into drawn widgets."""


def values_of(config: RunConfig) -> dict[str, Any]:
    """The values of the widgets for a configuration, by key."""
    values = config.flat()
    return {key: values[name] for key, name in SETTING_OF_WIDGET.items()} | {
        "goal": next((name for name, share in GOALS.items() if share == config.train.goal), "99%"),
        "recipe": config.recipe if config.recipe in RECIPES else OWN,
        "as_published": config.published,
    }


def base_of(config: RunConfig) -> RunConfig:
    """The settings from which a configuration began: its preset, or its recipe in its topology and task."""
    if config.recipe in PRESETS:
        return PRESETS[config.recipe].config
    name = config.recipe if config.recipe in RECIPES else OWN
    return with_task(
        recipe_config(name, config.model.topology, published=config.published), config.train.task
    )


def put(values: dict[str, Any]) -> None:
    """Put values into the widgets, before these are drawn."""
    session.put = Put({key: st.session_state.get(key) for key in values}, values)
    st.session_state.update(values)


def _put_again() -> None:
    """Put the values of the last `put` again, as long as the browser may not have received them.

    Streamlit sends them once, with the script run that follows. A request of the browser that interrupts this
    run, or was sent before its end, still contains the earlier values and would restore them.
    """
    if (last := _undelivered()) is None or came_back():
        session.put = None
        return
    for key, value in last.values.items():
        if st.session_state.get(key) in (last.earlier[key], value):
            st.session_state[key] = value
    last.drawn = last.drawn or time.monotonic()


def _undelivered() -> Put | None:
    """The last `put`, if the browser may not have received its values; else None."""
    last = session.put
    if last is None or last.drawn is None or time.monotonic() - last.drawn < DELIVERED_SECONDS:
        return last
    return None


def _unless_outdated(callback: Callable[[], None]) -> Callable[[], None]:
    """Skip a callback that a request causes only because it still contains the earlier values."""

    @wraps(callback)
    def called() -> None:
        if (last := _undelivered()) is not None:
            replaced = {key: value for key, value in last.earlier.items() if value != last.values[key]}
            if replaced and all(st.session_state.get(key) == value for key, value in replaced.items()):
                return
        callback()

    return called


def fill(run: AnyRun) -> None:
    """Put the settings of a run into the widgets, before these are drawn; an own model has no settings."""
    if run.view.own is not None:
        return
    config = run.config
    preset = config.recipe if config.recipe in PRESETS else DEFAULT_PRESET
    put(values_of(config) | {"preset": preset})


def fill_once(run: AnyRun | None) -> None:
    """Put the settings of the run into the widgets, once in a session: a link may have named the run."""
    if run is not None and not session.settings_filled:
        fill(run)
    session.settings_filled = True


def _state(key: str, known: Any, otherwise: Any) -> Any:
    """The value of a widget, or else of the link, if it is a known choice, else `otherwise`.

    A client may send anything.
    """
    value = st.session_state.get(key, st.query_params.get(key))
    return value if value in known else otherwise


def default_settings() -> RunConfig:
    """The initial settings of the widgets: one of the app's presets, or a recipe in a topology.

    Preset, recipe, topology and task are those chosen in the widgets, or else named in the link. For own
    pairs, the settings are adapted to them.
    """
    recipe = _state("recipe", RECIPES, OWN)
    preset = PRESETS[_state("preset", PRESETS, DEFAULT_PRESET)].config
    task = _state("task", TASKS, preset.train.task)
    if preset.train.task != task:
        preset = PRESETS[TASK_INFO[task].title].config
    usual = (preset if recipe == OWN else RECIPES[recipe]).model.topology
    topology = _state("topology", KINDS_OF, usual)
    if (recipe, topology) == (OWN, preset.model.topology):
        begun = preset
    else:
        published = bool(_state("as_published", (True, "true"), False))
        begun = with_task(recipe_config(recipe, topology, published=published), task)
    own = own_data().pairs if task == "pairs" else None
    return begun if own is None else for_pairs(begun, in_characters=own.in_characters)


def reset() -> None:
    put(values_of(default_settings()))


@_unless_outdated
def _preset_chosen() -> None:
    preset = PRESETS[_state("preset", PRESETS, DEFAULT_PRESET)]
    put(values_of(preset.config))


@_unless_outdated
def _recipe_chosen() -> None:
    """Fill in the recipe in its own topology, at sizes fit for two cores."""
    recipe = RECIPES[_state("recipe", RECIPES, OWN)]
    preset = TASK_INFO[_state("task", TASKS, "reverse")].title
    st.session_state.update(preset=preset, topology=recipe.model.topology, as_published=False)
    reset()


@_unless_outdated
def _topology_chosen() -> None:
    st.session_state["preset"] = TASK_INFO[_state("task", TASKS, "reverse")].title
    reset()


@_unless_outdated
def task_chosen() -> None:
    """Callback: fill in the sizes and training that the task needs, in the chosen recipe and topology.

    With the app's own recipe, the topology becomes that of the task, unless the user chose another one than
    that of the task before, and the new task can do with it.
    """
    task = _state("task", TASKS, "reverse")
    before = PRESETS[_state("preset", PRESETS, DEFAULT_PRESET)].config.model.topology
    chosen = _state("topology", KINDS_OF, before) != before
    st.session_state["preset"] = TASK_INFO[task].title
    needed = TASK_INFO[task].topology
    usual = RECIPES[OWN].model.topology
    if _state("recipe", RECIPES, OWN) == OWN and (needed != usual or not chosen):
        st.session_state["topology"] = needed
    reset()
    st.session_state["task"] = task


def fill_defaults() -> None:
    """If the widgets have no values yet, derive those that the link omits from those that it names."""
    _put_again()
    if "preset" not in st.session_state:
        config = default_settings()
        if "preset" not in st.query_params and config.recipe in PRESETS:
            st.session_state["preset"] = config.recipe
        for key, value in values_of(config).items():
            if key not in st.query_params or key == "task":
                st.session_state.setdefault(key, value)


def preset_choice() -> None:
    """Draw the main presets and the chosen one, each with what it shows."""
    chosen = _state("preset", PRESETS, DEFAULT_PRESET)
    offered = [*SHORT, *([chosen] if chosen not in SHORT else [])]
    st.session_state["preset_short"] = chosen
    st.radio(
        "What it learns",
        offered,
        key="preset_short",
        captions=[PRESETS[name].shows for name in offered],
        on_change=_short_preset_chosen,
        help="A preset fills in all settings. More presets are under All settings.",
    )


@_unless_outdated
def _short_preset_chosen() -> None:
    st.session_state["preset"] = _state("preset_short", PRESETS, DEFAULT_PRESET)
    _preset_chosen()


def draw_beginnings(form: Form) -> None:
    """Draw the choices of preset, task, recipe, topology and, for a published recipe, of its size."""
    st.selectbox(
        "Preset",
        list(PRESETS),
        key="preset",
        bind="query-params",
        on_change=_preset_chosen,
        help="A preset fills in all settings.",
    )
    form.values["task"] = task_choice(task_chosen)
    recipe = st.selectbox(
        "Recipe",
        list(RECIPES),
        key="recipe",
        bind="query-params",
        on_change=_recipe_chosen,
        help="The architecture of a published from-scratch Transformer, or the app's own. Choosing one "
        "fills in a size and training for two cores.",
    )
    st.selectbox(
        "Topology",
        list(KINDS_OF),
        key="topology",
        bind="query-params",
        on_change=_topology_chosen,
        help="encoder-decoder: one stack reads, one writes. encoder-only: each position predicts the letter "
        "that belongs there. decoder-only: word, separator and answer are one sequence. Choosing one "
        "fills in all settings.",
    )
    recipe = recipe if recipe in RECIPES else OWN
    if recipe != OWN:
        st.toggle(
            "As published: paper size and training",
            key="as_published",
            bind="query-params",
            on_change=reset,
            help="The paper's size, and its training where given. Large models are slow on a CPU.",
        )
        st.caption(RECIPES[recipe].source)
    form.places["task"] = form.places["topology"] = st.container()
