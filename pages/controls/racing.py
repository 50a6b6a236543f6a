"""A race: the choice of its runs, the menus that begin one, and the start of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from pages.controls.commands import PACE_NAMES, await_effect, store_error
from pages.runs import drafts
from pages.runs.known import labels, listed_runs
from pages.settings.races import DEFAULT_RACE, RACES
from pages.shared import ownership, selection
from pages.shared.session import CLOCKS, DRAFTS, RACE, request, rerun, session, take_requests
from pages.shared.wording import SETTING_NAMES, format_value
from transformer.config import TASK_INFO, RunConfig
from transformer.errors import InputError
from transformer.insight.seeds import LEAST_SEEDS, MOST_SEEDS
from transformer.recording.view import IDLE, PAUSED
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.stories.files import shipped

CHANGES = (
    *("causal_mask", "padding_mask", "n_heads", "n_encoder_layers", "n_decoder_layers", "norm_placement"),
    *("score_scale", "positions", "d_model", "dropout", "learning_rate", "label_smoothing", "batch_size"),
    "seed",
)
"""Settings from which the menu *Race against…* offers one to change."""
USUAL_SEEDS = 8
"""Default number of runs that differ in their seeds alone."""


def runs_of_race() -> tuple[AnyRun, ...]:
    """The runs of the race that the link or this session names, or else the drafts of a prepared race."""
    named = selection.named_in_link("race")
    asked = session.race if named is None else tuple(named.split(",")[: MOST_SEEDS - 1])
    others = [REGISTRY.get(id_) for id_ in asked]
    if None in others:
        session.lost_run, session.race = True, ()
    elif others and (first := selection.chosen_run()) is not None:
        runs = first, *filter(None, others)
        if any(run.view.own for run in runs):
            runs = runs[:2]  # more than two are compared only for models of the app
        session.race = tuple(run.id for run in runs[1:])
        return runs
    for name in ("run", "race"):
        st.query_params.pop(name, None)
    if session.prepared is None:
        _prepare(DEFAULT_RACE)
    race = RACES[session.prepared]
    try:
        return drafts.draft(race.left, entry="left_draft"), drafts.draft(race.right, entry="right_draft")
    except InputError as error:
        if session.prepared == DEFAULT_RACE:
            raise
        _prepare(DEFAULT_RACE)
        session.problem = str(error)
        return runs_of_race()


def untrained(runs: Sequence[AnyRun]) -> Sequence[AnyRun]:
    """Return untrained runs to race: these, or, if any has begun, new ones with their settings.

    Raises:
        InputError: the runs together exceed a limit of the server.
    """
    REGISTRY.admit(session.visitor.name, more=len(runs))
    if all(run.view.state == IDLE for run in runs):
        return runs
    return [drafts.new_draft(run.config, run) for run in runs]


def settle_clock(runs: Sequence[AnyRun]) -> None:
    """Compare the runs by steps if they cannot be compared on the chosen clock."""
    steps, seconds, moment = CLOCKS
    if session.clock not in (steps, moment if len(runs) > 2 else seconds):
        session.clock = steps


def start_race_if_asked(runs: Sequence[AnyRun]) -> Sequence[AnyRun]:
    """Start the race on the screen if Start or Step was pressed since the page was last drawn.

    Returns:
        The runs to show from now on: new ones if the present ones had begun.
    """
    if any(run.view.own is not None for run in runs):
        return runs  # the page cannot control their training
    for asked, _ in take_requests("start", "step"):
        with store_error():
            runs = untrained(runs)
            session.requests.pop(asked, None)
            start_race(runs, st.session_state.get("step_size") if asked == "step" else None)
    return runs


def start_race(runs: Sequence[AnyRun], steps: int | None = None, *, resumes: bool = True) -> None:
    """Show the runs as a race, and train those that this visitor owns and that have not ended.

    Args:
        runs: two or more, the first or left one first.
        steps: how many steps an untrained run takes before it pauses; by default, all planned ones.
        resumes: whether paused runs go on.

    Raises:
        InputError: the visitor has as many unfinished runs as the limits allow, or `steps` is invalid.
    """
    first, *others = runs
    own = [ownership.command(run) for run in runs if ownership.owns(run)]
    if len(own) > 1:
        REGISTRY.race(own)
    for run in own:
        if run.view.state == IDLE and steps is not None:
            REGISTRY.adopt(run)
            await_effect(run.advance(steps))
        elif run.view.state == IDLE:
            run.set_pace(PACE_NAMES.get(st.session_state.get("pace")))
            REGISTRY.start(run, after=None if run is first else first.id)
        elif run.view.state == PAUSED and resumes:
            await_effect(run.resume())
    for entry in DRAFTS:
        if getattr(session, entry) in [run.id for run in runs]:
            setattr(session, entry, None)
    selection.choose(first)
    session.race = tuple(run.id for run in others)
    selection.look_at(None)


def race(first: AnyRun, against: str | Sequence[RunConfig]) -> None:
    """Race a run against others, and open the page Race.

    Args:
        against: the id of a run, or the configurations of new runs.

    Raises:
        InputError: there is no such run, or the new runs exceed a limit of the server.
    """
    if isinstance(against, str):
        others = [REGISTRY.get(against)]
    else:
        idle = first.view.state == IDLE
        REGISTRY.admit(session.visitor.name, more=len(against) + idle)
        others = [drafts.new_draft(config, first) for config in against]
    if None in others:
        raise InputError("That run is no longer on this server. Choose another one.")
    session.requests.clear()
    session.prepared = None
    start_race([first, *filter(None, others)], resumes=not isinstance(against, str))
    word, session.page = session.word, RACE  # from here on `session` holds the selection of the race
    session.word, session.pinned = word, None
    session.kind, session.kind_chosen = None, False
    session.clock = CLOCKS[0]
    st.switch_page("race.py", query_params={})


def other_seeds(run: AnyRun) -> None:
    """Draw the menu that trains the settings of a run again with the seeds that follow its own."""
    seed, (least, most) = run.config.seed, (LEAST_SEEDS, MOST_SEEDS)
    with st.popover(
        "Again with other seeds…",
        icon=":material/grid_view:",
        help="Train the same settings from other random weights, all on one page: is it a law, or luck?",
        key="seeds_menu",
        width="stretch",
    ):
        st.caption(f"The run on the screen, {TASK_INFO[run.config.train.task].title}, and others like it.")
        n = st.number_input(
            "Runs in all",
            value=USUAL_SEEDS,
            step=1,
            key="seeds_number",
            help=f"From {least} to {most}, this one included.",
        )
        allowed = isinstance(n, int) and least <= n <= most
        if not allowed:
            st.error(f"{n} runs cannot be shown together; choose from {least} to {most}.")
        last = seed + n - 1 if allowed else seed
        if pressed := st.button(
            f"Train seeds {seed} to {last}",
            key="seeds_start",
            type="primary",
            width="stretch",
            disabled=not allowed,
        ):
            with store_error():
                race(run, [run.config.with_changes(seed=one) for one in range(seed + 1, last + 1)])
    if pressed:
        rerun()  # the problem is shown above


def race_against(run: AnyRun) -> None:
    """Draw the menu that races the run on the screen against another one, of the list or new."""
    with st.popover(
        "Race against…",
        icon=":material/compare_arrows:",
        help="Show another run beside this one"
        + ("." if run.view.own else ", or train one with one difference."),
        key="race_menu",
        width="stretch",
    ):
        mine, elsewhere = listed_runs(run)
        others = [one for one in (*mine, *elsewhere.values()) if one.id != run.id]
        files = {one.id: f"{name} · " for name, one in elsewhere.items()}
        named = {
            one.id: files.get(one.id, "") + label for one, label in zip(others, labels(others), strict=True)
        }
        own = run.view.own is not None
        if own and not named:
            st.caption("There is no other run yet: record one, or open its file.")
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
            "Show the race" if against and run.view.state != IDLE else "Start the race",
            key="race_start",
            type="primary",
            on_click=request,
            args=("race",),
            width="stretch",
        )
    pressed = False
    for _ in take_requests("race"):  # here, so that `asked` includes a change made just before the press
        with store_error():
            race(run, asked if isinstance(asked, str) else [run.config.changed(*asked)])
        pressed = True
    if pressed:
        rerun()  # the problem is shown above


def _value(run: AnyRun, name: str) -> Any:
    """Draw the widget for the new run's value of a setting, or a mask's opposite value; return the value."""
    now, limit = run.config.flat()[name], RunConfig.limit_of(name)
    is_mask = name in ("causal_mask", "padding_mask")
    if is_mask:  # the causal mask is None where it follows from the topology
        now = run.config.model.masks[name.removesuffix("_mask")]
    key = f"race_value_{name}"
    label = f"{SETTING_NAMES[name]}: {format_value(name, now)} →"
    if is_mask:
        st.caption(f"{label} {format_value(name, not now)}")
        return not now
    if options := [one for one in getattr(limit, "options", ()) if one != now]:
        return st.selectbox(label, options, key=key, format_func=partial(format_value, name))
    step = 1 if isinstance(now, int) else 0.001
    return st.number_input(
        label, value=now, step=step, key=key, help=str(limit), format=None if step == 1 else "%.4g"
    )


def draw_prepared_races() -> None:
    """Draw the choice of a prepared race, and a link to the story that explains it, if there is one."""
    st.session_state["prepared_race"] = session.prepared
    st.radio(
        "Prepared races",
        list(RACES),
        key="prepared_race",
        on_change=_prepared_chosen,
    )
    race = RACES.get(session.prepared)
    if race is not None and race.story is not None:
        label, query = f"Why? {shipped(race.story).title}", {"story": race.story}
        st.page_link("stories.py", label=label, icon=":material/school:", query_params=query)


def _prepared_chosen() -> None:
    chosen = st.session_state.get("prepared_race")
    if chosen in RACES and chosen != session.prepared:
        st.query_params.pop("race", None)
        _prepare(chosen)


def _prepare(name: str) -> None:
    """Show a prepared race, at the word, head and kind that its sentence is about."""
    race = RACES[name]
    session.prepared, session.race, session.problem = name, (), None
    session.word, session.pinned = race.word, race.pinned
    selection.choose_kind(race.kind)
