"""A race: the choice of its two runs, their start, and how they are shown side by side."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from pages.controls.commands import PACE_NAMES, await_effect
from pages.runs import drafts
from pages.runs.run_list import known_runs, labels
from pages.settings.races import DEFAULT_RACE, RACES
from pages.shared import ownership, selection
from pages.shared.session import DRAFTS, RACE, request, session, take_requests
from pages.shared.wording import (
    SETTING_NAMES,
    differences,
    differing_settings,
    distinguishing_labels,
    format_value,
)
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.figures.race import race_curves, race_look
from transformer.insight.names import examples_of
from transformer.recording.view import IDLE, PAUSED
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched

CHANGES = (
    *("causal_mask", "padding_mask", "n_heads", "n_encoder_layers", "n_decoder_layers", "norm_placement"),
    *("score_scale", "positions", "d_model", "dropout", "learning_rate", "label_smoothing", "batch_size"),
    "seed",
)
"""Settings in which a new run may differ."""


def runs_of_race() -> tuple[Watched, Watched]:
    """The two runs that the link or this session names, or else the drafts of a prepared race."""
    asked = selection.named_in_link("race") or session.race
    right = REGISTRY.get(asked)
    if asked and right is None:
        session.lost_run, session.race = True, None
    if right is not None and (left := selection.chosen_run()) is not None:
        session.race = right.id
        return left, right
    for name in ("run", "race"):
        st.query_params.pop(name, None)
    if session.prepared is None:
        _prepare(DEFAULT_RACE)
    race = RACES[session.prepared]
    return drafts.draft(race.left, entry="left_draft"), drafts.draft(race.right, entry="right_draft")


def untrained_pair(left: Watched, right: Watched) -> tuple[Watched, Watched]:
    """Return untrained runs to race: these two, or, if either has begun, new ones with their settings."""
    if left.view.state == right.view.state == IDLE:
        return left, right
    REGISTRY.admit(session.visitor.name)
    return drafts.new_draft(left.config, left), drafts.new_draft(right.config, right)


def start_race(left: Watched, right: Watched, steps: int | None = None) -> None:
    """Train those of the two runs that this visitor owns and that have not ended.

    Args:
        steps: how many steps an untrained run takes; by default, all of them.

    Raises:
        InputError: the visitor has as many unfinished runs as the limits allow.
    """
    own = [ownership.command(run) for run in (left, right) if ownership.owns(run)]
    if len(own) == 2:
        REGISTRY.race(own)
    for run in own:
        if run.view.state == IDLE and steps is not None:
            REGISTRY.adopt(run)
            await_effect(run.advance(steps))
        elif run.view.state == IDLE:
            run.set_pace(PACE_NAMES.get(st.session_state.get("pace")))
            REGISTRY.start(run, after=left.id if run is right else None)
        elif run.view.state == PAUSED:
            await_effect(run.resume())
    for entry in DRAFTS:
        if getattr(session, entry) in (left.id, right.id):
            setattr(session, entry, None)
    selection.choose(left)
    session.race = right.id
    selection.look_at(None)


def race(left: Watched, against: str | tuple[str, Any] | RunConfig) -> None:
    """Race a run against another one, and open the page Race; an error is stored in the session.

    Args:
        against: the id of a run; or, for a new run, a setting and its other value, or a configuration.
    """
    try:
        if isinstance(against, str):
            right = REGISTRY.get(against)
        else:
            REGISTRY.admit(session.visitor.name)
            config = against if isinstance(against, RunConfig) else left.config.changed(*against)
            right = drafts.new_draft(config, left)
        if right is None:
            raise InputError("That run is no longer on this server. Choose another one.")
        session.requests.clear()
        session.prepared = None
        start_race(left, right)
    except InputError as error:
        session.problem = str(error)
    else:
        word, session.page = session.word, RACE  # from here on the selection is that of the race
        session.word, session.pinned = word, None
        session.kind, session.kind_chosen = None, False
        st.switch_page("race.py", query_params={})


def race_against(run: Watched) -> None:
    """Draw the menu that starts a race of the run on the screen against another one."""
    with st.popover(
        "Race against…",
        icon=":material/compare_arrows:",
        help="Train a second run beside this one, with one difference.",
        key="race_menu",
        width="stretch",
    ):
        others = [one for one in known_runs(run) if one.id != run.id]
        named = dict(zip((one.id for one in others), labels(others), strict=True))
        own = run.view.own is not None
        if own and not named:
            st.caption("Open another run first: this one is compared with it.")
            return
        against = st.selectbox(
            "The other run",
            [*named] if own else ["", *named],
            key="race_other",
            help="A run of the list is shown beside this one; a new run trains.",
            format_func=lambda id_: named.get(id_, "a new run with one change"),
        )
        asked: Any = against
        if not against:
            name = st.selectbox(
                "What differs",
                CHANGES,
                key="race_setting",
                format_func=SETTING_NAMES.__getitem__,
                help="Everything else stays the same.",
            )
            asked = name, _value(run, name)
        st.button(
            "Start the race" if not against else "Show the race",
            key="race_start",
            type="primary",
            on_click=request,
            args=("race",),
            width="stretch",
        )
    pressed = False
    for _ in take_requests("race"):  # here, so that `asked` includes a change made just before the press
        race(run, asked)
        pressed = True
    if pressed:
        st.rerun()  # the problem is shown above


def _value(run: Watched, name: str) -> Any:
    """Draw the widget for the new run's value of a setting; return the value."""
    now, limit = run.config.flat()[name], RunConfig.limit_of(name)
    key = f"race_value_{name}"
    label = f"{SETTING_NAMES[name]}: {format_value(name, now)} →"
    if name in ("causal_mask", "padding_mask"):
        other = not run.config.model.masks[name.removesuffix("_mask")]
        st.caption(f"{label} {format_value(name, other)}")
        return other
    if options := [one for one in getattr(limit, "options", ()) if one != now]:
        return st.selectbox(label, options, key=key, format_func=partial(format_value, name))
    step = 1 if isinstance(now, int) else 0.001
    return st.number_input(
        label, value=now, step=step, key=key, help=str(limit), format=None if step == 1 else "%.4g"
    )


def draw_prepared_races() -> None:
    """Draw the prepared races in the sidebar."""
    st.session_state["prepared_race"] = session.prepared
    st.radio(
        "Prepared races",
        list(RACES),
        key="prepared_race",
        on_change=_prepared_chosen,
    )


def _prepared_chosen() -> None:
    chosen = st.session_state.get("prepared_race")
    if chosen in RACES and chosen != session.prepared:
        st.query_params.pop("race", None)
        _prepare(chosen)


def _prepare(name: str) -> None:
    """Show a prepared race, at the word, head and kind that its sentence is about."""
    race = RACES[name]
    session.prepared, session.race, session.problem = name, None, None
    session.word, session.pinned = race.word, race.pinned
    selection.choose_kind(race.kind)


def names_of(left: RunConfig, right: RunConfig) -> list[str]:
    """Names that distinguish the two runs."""
    names = distinguishing_labels([left, right])
    if left.recipe != right.recipe and len(differing_settings(left, right)) > 2:
        names = [left.recipe, right.recipe]
    return names if names[0] != names[1] else _by_side(names)


def _by_side(names: Sequence[str]) -> list[str]:
    return [f"{side}: {name}" for side, name in zip(("left", "right"), names, strict=True)]


def differs_in(left: RunConfig, right: RunConfig) -> str:
    """The difference between two runs, in one line."""
    found = differing_settings(left, right)
    batches = "the same batches" if left.sees_batches_of(right) else "other batches"
    line = differences(found, most=4 if len(found) <= 4 else 2)
    return f"{line or 'nothing differs'} · {batches}"


def player_data(left: Watched, right: Watched) -> dict[str, Any]:
    """The data with which a player shows two runs side by side."""
    if not (left.view.own or right.view.own):
        return data_of(left.config, right.config)
    views = left.view, right.view
    names = _by_side([view.name or (view.own.name if view.own else view.config.recipe) for view in views])
    return _data(names, "<b>Two recordings beside each other.</b> How their settings differ is not known.")


def data_of(left: RunConfig, right: RunConfig) -> dict[str, Any]:
    """As `player_data`, for two runs with these settings."""
    known = [race.look_for for race in RACES.values() if (race.left, race.right) == (left, right)]
    differs = html.escape(differs_in(left, right))
    what = f"<b>{differs[0].upper()}{differs[1:]}.</b>"
    examples = examples_of(left.train.task)
    asks = f"{what} Which of the two learns the {examples}, and which sooner? Guess, then watch."
    return _data(names_of(left, right), f"{what} {''.join(known)}", examples) | {"asks": asks}


def _data(names: Sequence[str], says: str, examples: str | None = None) -> dict[str, Any]:
    return {
        "names": [html.escape(name) for name in names],
        "says": says,
        "look": race_look(),
        "curves": race_curves(examples),
    }
