"""The runs that a visitor knows, and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

import streamlit as st

from pages.runs import keyring
from pages.settings.beginnings import fill
from pages.shared import selection
from pages.shared.plain import plain
from pages.shared.session import session
from pages.shared.wording import distinguishing_labels
from transformer.config import TASK_INFO
from transformer.player.sentences import STATE_SIGNS
from transformer.recording.view import ENDED, QUEUED, TRAINING, RunFacts
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY


def parent_of(view: RunFacts) -> RunFacts | None:
    """The run that this one was started from; None if there is none, or this visitor may not see it.

    The owner of this run may see it; others only if they know it already, such as from a link.
    """
    if view.after is None:
        return None
    started_here = REGISTRY.owners.is_owner(view.id, keyring.token_of(view.id))
    if not started_here and view.after not in session.known_runs:
        return None
    return REGISTRY.facts_of_run(view.after)


def parents(view: RunFacts) -> Iterator[RunFacts]:
    """The parent of a run, the parent's parent, and so on, as long as this visitor may see them."""
    while (parent := parent_of(view)) is not None:
        yield (view := parent)


def known_runs(run: AnyRun | None) -> Iterator[RunFacts]:
    """Runs that this visitor started or opened, and the parents of `run`; those opened last come first.

    No other run of another visitor is listed: such a run is known by its link.
    """
    ids = session.known_runs
    ids[:0] = [parent.id for parent in parents(run.view) if parent.id not in ids][::-1] if run else []
    every = [*(id_ for id_ in keyring.own_runs() if id_ not in ids), *ids]
    return (facts for id_ in reversed(every) if (facts := REGISTRY.facts_of_run(id_)) is not None)


def listed_runs(current: AnyRun) -> tuple[list[RunFacts], dict[str, RunFacts]]:
    """The visitor's runs, and those trained elsewhere by the name of their file, as lists show them.

    In both, runs that train or wait to come first. The visitor's are in the order of `known_runs`. Of those
    trained elsewhere, the first are sorted by name, and the others begin with the last written.
    """
    watched: dict[str, RunFacts] = {run.id: run.view for run in REGISTRY.listed()}
    published = REGISTRY.library.published()  # an open run: as it is now
    elsewhere = [(name, watched.get(run.id, run)) for name, run in published.items()]
    ids = {run.id for _, run in elsewhere}
    own = (run for run in known_runs(current) if run.id not in ids)
    # By name: by the time of their last change, the live ones would change places with every step.
    live = sorted((one for one in elsewhere if not stands_still(one[1])), key=itemgetter(0))
    return sorted(own, key=stands_still), dict(live + [one for one in elsewhere if stands_still(one[1])])


def stands_still(run: RunFacts) -> bool:
    """Whether a run neither trains nor waits to."""
    return run.state not in (TRAINING, QUEUED)


def labels(runs: Sequence[RunFacts]) -> list[str]:
    """A label for each run: sign of its state, name, settings that differ among these runs, and progress."""
    return [_label(run, differs) for run, differs in zip(runs, differing(runs), strict=True)]


def differing(runs: Sequence[RunFacts]) -> list[str]:
    """For each run, the settings that differ among these runs; for an own model, its number of parameters."""
    ours = [run for run in runs if run.own is None]
    settings = iter(distinguishing_labels([run.config for run in ours]) if ours else ())
    return [f"{run.parameters:,} parameters" if run.own else next(settings) for run in runs]


def _label(view: RunFacts, differs: str) -> str:
    right = ""
    if view.right:
        right = f" · {view.right[0]:,} of {view.right[1]:,} right"
    now = f"{view.state} at {view.step:,}{right}" if view.state in ENDED else view.state
    recipe, task = view.config.recipe, view.config.train.task
    # The preset of a task has the task's name.
    named = [] if recipe in ("default", TASK_INFO[task].title) else [plain(recipe)]
    what = plain(view.own.name) if view.own else ", ".join([*named, TASK_INFO[task].title])
    name = f"**{plain(view.name)}**" if view.name else what
    return f"{STATE_SIGNS[view.state]} {' · '.join(filter(None, (name, plain(differs), now)))}"


def show_run(id_: str) -> None:
    """Callback: show this run and its settings, if it still exists."""
    if run := REGISTRY.get(id_):
        if session.run is None:  # the step on the screen is one of a draft or recording
            selection.look_at(None)
            st.query_params.pop("step", None)
        selection.choose(run)
        fill(run)
