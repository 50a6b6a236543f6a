"""How a player shows runs side by side: their names, what differs, what they have in common."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from pages.settings.races import RACES
from pages.shared.wording import differences, differing_settings, distinguishing_labels
from transformer.config import TASK_INFO, RunConfig
from transformer.figures.race import race_curves, race_look
from transformer.insight.seeds import Ending, in_common
from transformer.runs.any_run import AnyRun
from transformer.tasks import task_of


def names_of(configs: Sequence[RunConfig]) -> list[str]:
    """A name for each run, different from the other names."""
    names = distinguishing_labels(configs)
    if len(configs) == 2 and configs[0].recipe != configs[1].recipe and len(differing_settings(*configs)) > 2:
        names = [config.recipe for config in configs]
    if len({*names}) == len(names):
        return names
    if len(names) == 2:
        return _by_side(names)
    return [f"{number}: {name}" for number, name in enumerate(names, 1)]


def _by_side(names: Sequence[str]) -> list[str]:
    return [f"{side}: {name}" for side, name in zip(("left", "right"), names, strict=True)]


def differs_in(left: RunConfig, right: RunConfig) -> str:
    """The settings that differ between two runs, and whether they see the same batches, in one line."""
    settings = differing_settings(left, right)
    batches = "the same batches" if left.sees_batches_of(right) else "other batches"
    line = differences(settings, most=4 if len(settings) <= 4 else 2)
    return f"{line or 'nothing differs'} · {batches}"


def player_data(runs: Sequence[AnyRun]) -> dict[str, Any]:
    """The data with which a player shows runs side by side."""
    views = [run.view for run in runs]
    if not any(view.own for view in views):
        return data_of([view.config for view in views], [view.ending for view in views])
    names = _by_side([view.name or (view.own.name if view.own else view.config.recipe) for view in views])
    return _data(names, "<b>Two recordings beside each other.</b> How their settings differ is not known.")


def data_of(configs: Sequence[RunConfig], endings: Sequence[Ending] = ()) -> dict[str, Any]:
    """As `player_data`, for runs with these settings.

    Args:
        configs: settings of two or more runs.
        endings: what each run has shown, for the sentence about more than two runs of one task.
    """
    first, *others = configs
    examples = TASK_INFO[first.train.task].plural
    if len(configs) > 2:
        alike = all(other.with_changes(seed=first.seed) == first for other in others)
        how = "that differ in their seeds alone" if alike else "beside each other"
        what = f"<b>{len(configs)} runs {how}.</b>"
        one_task = len({config.train.task for config in configs}) == 1
        says = in_common(endings, task_of(first).target_score) if endings and one_task else what
        asks = "Does a head turn in each, at about the same step, and is it the same head? Guess, then watch."
        return _data(names_of(configs), says, examples) | {"asks": f"{what} {asks}"}
    left, right = configs
    sentences = [race.look_for for race in RACES.values() if (race.left, race.right) == (left, right)]
    differs = html.escape(differs_in(left, right))
    what = f"<b>{differs[0].upper()}{differs[1:]}.</b>"
    asks = f"{what} Which of the two learns the {examples}, and which sooner? Guess, then watch."
    return _data(names_of(configs), f"{what} {''.join(sentences)}", examples) | {"asks": asks}


def _data(names: Sequence[str], says: str, examples: str | None = None) -> dict[str, Any]:
    return {
        "names": [html.escape(name) for name in names],
        "says": says,
        "look": race_look(),
        "curves": race_curves(examples, tuple(names)),
    }
