"""What a person takes away from a run, refused where it cannot be before its thread hears of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.interventions import Interventions, check_interventions
from transformer.runs.view import FAILED, RunView
from transformer.tasks import Task


def switched(now: Interventions, configured: Mapping[str, bool], mask: str, on: bool) -> Interventions:
    """What is taken away once a mask is switched; whatever else is taken away stays so."""
    masks = {**configured, **dict(now.masks), mask: on}
    differing = tuple((name, state) for name, state in masks.items() if state != configured.get(name))
    return replace(now, masks=differing)


def check_change(interventions: Interventions, view: RunView, config: RunConfig, task: Task) -> None:
    """Refuse what cannot be taken away from a run now.

    Raises:
        InputError: there is no model, something is not in it, or some word that the run trains on would have
            a row with nothing left to look at.
    """
    if view.frame is None or view.state == FAILED:
        advice = "start a new one" if view.state == FAILED else "wait until its untrained model is built"
        raise InputError(f"This run cannot be changed ({view.state}); {advice}.", "intervene")
    for word in task.hardest([block.token for block in interventions.blocked if block.token]):
        batch = task.encode([word])
        check_interventions(
            interventions,
            view.frame.axes,
            config.model.n_heads,
            task.src_tokenizer.tokens(batch.src[0].tolist()),
            task.tgt_tokenizer.tokens(batch.tgt_in[0].tolist()),
            masks=config.model.masks,
        )
