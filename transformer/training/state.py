"""The state of a training: everything that its steps read and change, and the plan of its learning rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer.config import RunConfig, TrainConfig
from transformer.decoding.beam import Decoding
from transformer.model.transformer import Transformer
from transformer.shared.interventions import Interventions
from transformer.tasks import Batch, Task, resolved, task_of
from transformer.training.device import resolve_device
from transformer.training.graphs import Graphs, cuda_capture

if TYPE_CHECKING:  # imports torch.distributed, which only distributed training needs
    from transformer.training.distributed import Distributed


@dataclass(frozen=True, kw_only=True)
class SchedulePhase:
    """Consecutive steps with one plan: the run as configured, or a continuation of a finished run."""

    first: int
    """The last step before this phase."""
    steps: int
    """Number of planned steps."""
    peak: float
    """Highest learning rate."""
    warmup: int
    """Steps over which the rate rises from zero."""
    decay: str
    """linear, cosine or constant."""

    @property
    def last(self) -> int:
        """The last step of this phase."""
        return self.first + self.steps

    def rate(self, step: int) -> float:
        """Learning rate of a step, `first < step <= last`."""
        done = step - self.first
        warmup = min(self.warmup, self.steps)
        if done <= warmup:
            return self.peak * done / warmup
        if self.decay == "constant":
            return self.peak
        left = (self.steps - done + 1) / (self.steps - warmup + 1)  # 1 where warm-up ends, above 0 at the end
        if self.decay == "cosine":
            return self.peak * 0.5 * (1.0 - math.cos(math.pi * left))
        return self.peak * left


@dataclass(kw_only=True)
class TrainState:
    """The state of one run in training. Used by one thread only."""

    config: RunConfig
    """The requested configuration, with the vocabulary sizes and max_len of its task."""
    device: torch.device
    task: Task
    model: Transformer
    learner: nn.Module
    """The module that the steps call: the model itself, or its wrapper in distributed training."""
    optimizer: torch.optim.Optimizer
    dropout: torch.Generator
    phase: SchedulePhase
    step: int = 0
    """Steps taken."""
    first_step_at: dict[str, int] = field(default_factory=dict)
    """Mark of held-out exact match ("0.5", "0.9", "0.99") to the step at which it was first reached."""
    goal_reached: bool = False
    unread: list[tuple[Tensor, float]] = field(default_factory=list)
    """For each step not read yet: its metrics, still on the device, and its learning rate."""
    graphs: Graphs | None = None
    """Steps as CUDA graphs, where the configuration asks for them; None: eager steps, kernel by kernel."""
    distributed: Distributed | None = None
    """The part of this process in distributed training; None if it trains alone."""
    change_log: list[tuple[int, str, Any]] = field(default_factory=list)
    """Changes during the run, each (step after which it was made, what, new value)."""

    @classmethod
    def begin(cls, config: RunConfig, distributed: Distributed | None = None) -> TrainState:
        """The state of an untrained run, ready for its first step.

        Raises:
            InputError: the device is not on this machine, or the task cannot be made (see `task_of`).
        """
        device = resolve_device(config.device) if distributed is None else distributed.device
        config = resolved(config)
        task = task_of(config)
        # The first weights are drawn on the CPU, so that a seed means the same model on every device.
        model = Transformer(config.model, torch.Generator().manual_seed(config.seed)).to(device)
        # Dropout has a seed of its own: with the run's seed, its first masks would be drawn from the same
        # random numbers as the first weights. In distributed training, each process has another seed;
        # process 0 has the one of a process that trains alone.
        rank = 0 if distributed is None else distributed.rank
        own_seed = int(np.random.SeedSequence([config.seed, 1, rank]).generate_state(1)[0])
        dropout = torch.Generator(device).manual_seed(own_seed)
        model.draw_from(dropout)
        train = config.train
        return cls(
            config=config,
            device=device,
            task=task,
            model=model,
            learner=model if distributed is None else distributed.wrap(model),
            optimizer=_optimizer(train, model, device),
            dropout=dropout,
            graphs=Graphs(cuda_capture(dropout)) if captures(train, device, distributed) else None,
            distributed=distributed,
            phase=SchedulePhase(
                first=0,
                steps=train.steps,
                peak=train.learning_rate,
                warmup=train.warmup_steps,
                decay=train.schedule,
            ),
        )

    def set_learning_rate(self, peak: float) -> None:
        """Change the peak learning rate from the next step on; warm-up and decay stay as planned."""
        self.phase = replace(self.phase, peak=peak)
        self.change_log.append((self.step, "learning_rate", peak))

    def continue_for(self, steps: int, peak: float) -> None:
        """Plan more steps from here, with a new warm-up to `peak` and the configured decay.

        The goal does not stop the steps of a continuation.
        """
        self.phase = SchedulePhase(
            first=self.step,
            steps=steps,
            peak=peak,
            warmup=max(1, min(self.config.train.warmup_steps, steps // 5)),
            decay=self.config.train.schedule,
        )
        self.goal_reached = False
        self.change_log.append((self.step, "continue", {"steps": steps, "learning_rate": peak}))

    def intervene(self, interventions: Interventions) -> None:
        """Apply these interventions from now on, in evaluations too, in place of earlier ones."""
        self.model.intervene(interventions, self.task.token_id)
        if self.graphs is not None:
            self.graphs.forget()
        self.change_log.append((self.step, "intervene", interventions.to_dict()))

    @property
    def decoding(self) -> Decoding:
        """The decoding of free-running outputs."""
        return Decoding.of(self.config.train)

    @property
    def n_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)

    def to_device(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """src (B, S), tgt_in (B, T) and tgt_out (B, T) of a batch as tensors on the device.

        Copies to a CUDA GPU do not block.
        """
        src, tgt_in, tgt_out = (
            self._moved(torch.from_numpy(ids)) for ids in (batch.src, batch.tgt_in, batch.tgt_out)
        )
        return src, tgt_in, tgt_out

    def _moved(self, ids: Tensor) -> Tensor:
        if self.device.type != "cuda":
            return ids.to(self.device)
        return ids.pin_memory().to(self.device, non_blocking=True)


def captures(train: TrainConfig, device: torch.device, distributed: Distributed | None) -> bool:
    """Whether steps are captured as CUDA graphs: only if this is configured, on a single CUDA GPU."""
    return train.cuda_graphs and device.type == "cuda" and distributed is None


def _optimizer(train: TrainConfig, model: Transformer, device: torch.device) -> torch.optim.Optimizer:
    """Adam or AdamW over all parameters; the loop sets the rate before each step."""
    kind = torch.optim.Adam if train.optimizer == "adam" else torch.optim.AdamW
    on_gpu = device.type == "cuda"  # there the rate is a tensor, so that CUDA graphs read its current value
    return kind(
        model.parameters(),
        lr=torch.zeros((), device=device) if on_gpu else 0.0,
        betas=(train.betas[0], train.betas[1]),
        eps=train.adam_eps,
        weight_decay=train.weight_decay,
        fused=device.type in ("cpu", "cuda"),
        capturable=on_gpu,
    )
