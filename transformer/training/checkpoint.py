"""The state of a training run as plain arrays and values, from which it resumes: on a CPU bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions
from transformer.training.state import SchedulePhase, TrainState

Array = np.ndarray[Any, np.dtype[Any]]

MODEL, OPTIMIZER, DROPOUT = "model/", "optimizer/", "dropout"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a training: all of its state that is no array."""

    step: int
    stretch: SchedulePhase
    """The phase of the learning rate."""
    first_step_at: dict[str, int]
    goal_reached: bool
    interventions: list[tuple[int, str, Any]]
    """The log of what a user changed."""
    in_force: Interventions
    """The present interventions."""


def packed(state: TrainState) -> tuple[dict[str, Array], Progress]:
    """Copies of everything that the next steps depend on; batches follow from seed and step.

    Unread numbers of past steps are not included: call `read_numbers` first.
    """
    arrays = {MODEL + name: _copied(tensor) for name, tensor in state.model.state_dict().items()}
    for name, parameter in state.model.named_parameters():
        for kind, value in state.optimizer.state.get(parameter, {}).items():
            arrays[f"{OPTIMIZER}{name}/{kind}"] = _copied(torch.as_tensor(value))
    arrays[DROPOUT] = _copied(state.dropout.get_state())
    return arrays, Progress(
        step=state.step,
        stretch=state.phase,
        first_step_at=dict(state.first_step_at),
        goal_reached=state.goal_reached,
        interventions=list(state.change_log),
        in_force=state.model.interventions,
    )


def unpacked(config: RunConfig, arrays: Mapping[str, Array], progress: Progress) -> TrainState:
    """The state restored from `packed`, on the device of its configuration.

    Raises:
        InputError: the arrays do not fit this model, the device is not on this machine, or the task cannot be
            made (see `task_of`).
    """
    state = TrainState.begin(config)
    try:
        weights = {name: torch.from_numpy(arrays[MODEL + name]) for name in state.model.state_dict()}
        state.model.load_state_dict(weights)
        of_all: dict[int, dict[str, Any]] = {}
        for i, (name, parameter) in enumerate(state.model.named_parameters()):
            start = f"{OPTIMIZER}{name}/"
            kinds = {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}
            for kind, values in kinds.items():
                if values.shape not in ((), tuple(parameter.shape)):
                    raise ValueError(f"{kind} of {name} has shape {values.shape}")
            if progress.step > 0:  # before the first step, the optimiser has no state
                of_all[i] = {kind: torch.from_numpy(values) for kind, values in kinds.items()}
            if of_all and of_all[i].keys() != of_all[0].keys() or bool(kinds) != (progress.step > 0):
                raise ValueError(f"the optimiser state of {name} holds {', '.join(kinds) or 'nothing'}")
        groups = state.optimizer.state_dict()["param_groups"]
        state.optimizer.load_state_dict({"state": of_all, "param_groups": groups})
        state.dropout.set_state(torch.from_numpy(arrays[DROPOUT]))
        if progress.in_force != NO_INTERVENTIONS:
            state.model.intervene(progress.in_force, state.task.token_id)
    except (KeyError, IndexError, ValueError, RuntimeError, TypeError) as error:
        raise InputError(f"The saved training does not fit its own configuration ({error}).") from error
    state.step, state.phase = progress.step, progress.stretch
    state.first_step_at, state.goal_reached = dict(progress.first_step_at), progress.goal_reached
    state.change_log = list(progress.interventions)
    return state


def _copied(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().numpy().copy()
