"""Everything that training changes, in one place: what a checkpoint would have to hold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer.config import RunConfig, TrainConfig
from transformer.decoding import Decoding
from transformer.interventions import Interventions
from transformer.model.transformer import Transformer
from transformer.tasks import Batch, Task, completed, task_of
from transformer.training.device import resolve_device
from transformer.training.graphs import Graphs, cuda_capture
from transformer.training.schedule import SchedulePhase

if TYPE_CHECKING:  # torch.distributed comes with it, where a launcher has started several processes
    from transformer.training.distributed import Distributed


@dataclass(kw_only=True)
class TrainState:
    """One training in progress. Touched by one thread only."""

    config: RunConfig
    """As asked for, with the vocabulary sizes and max_len that the task needs filled in."""
    device: torch.device
    task: Task
    model: Transformer
    learner: nn.Module
    """The module that the steps call: the model itself, or its wrapper in distributed training."""
    optimizer: torch.optim.Optimizer
    dropout: torch.Generator
    stretch: SchedulePhase
    step: int = 0
    """Steps taken."""
    first_step_at: dict[str, int] = field(default_factory=dict)
    """Mark of held-out exact match ("0.5", "0.9", "0.99") to the step at which it was first reached."""
    goal_reached: bool = False
    unread: list[tuple[Tensor, float]] = field(default_factory=list)
    """Of each step since the last reading: its numbers, still on the device, and its learning rate."""
    graphs: Graphs | None = None
    """Steps as CUDA graphs, where the configuration asks for them; None: eager steps, kernel by kernel."""
    distributed: Distributed | None = None
    """The place of this process among those that train the model together; None: it trains alone."""
    interventions: list[tuple[int, str, Any]] = field(default_factory=list)
    """Changes in mid-run: (after which step, what, new value)."""

    @classmethod
    def begin(cls, config: RunConfig, distributed: Distributed | None = None) -> TrainState:
        """The untrained model of a configuration, ready for its first step.

        Raises:
            InputError: the device is not on this machine.
        """
        device = resolve_device(config.device) if distributed is None else distributed.device
        config = completed(config)
        task = task_of(config)
        # The first weights are drawn on the CPU, so that a seed means the same model on every device.
        model = Transformer(config.model, torch.Generator().manual_seed(config.seed)).to(device)
        # A stream of its own: with the same seed the first dropout masks would follow the first weights.
        # Processes that train together drop differently; the first one (0) as if it were alone.
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
            stretch=SchedulePhase(
                first=0,
                steps=train.steps,
                peak=train.learning_rate,
                warmup=train.warmup_steps,
                decay=train.schedule,
            ),
        )

    def set_learning_rate(self, peak: float) -> None:
        """Scale the plan to another highest rate, from the next step on."""
        self.stretch = replace(self.stretch, peak=peak)
        self.interventions.append((self.step, "learning_rate", peak))

    def continue_for(self, steps: int, peak: float) -> None:
        """Plan more steps from here, freshly warmed up to another rate and decayed to zero again.

        The goal is met or missed already, so it no longer stops the run.
        """
        self.stretch = SchedulePhase(
            first=self.step,
            steps=steps,
            peak=peak,
            warmup=max(1, min(self.config.train.warmup_steps, steps // 5)),
            decay=self.config.train.schedule,
        )
        self.goal_reached = False
        self.interventions.append((self.step, "continue", {"steps": steps, "learning_rate": peak}))

    def intervene(self, interventions: Interventions) -> None:
        """Train without these heads and looks from the next step on; `NOTHING` gives all back."""
        self.model.intervene(interventions, self.task.src_tokenizer.id_of)
        if self.graphs is not None:
            self.graphs.forget()
        self.interventions.append((self.step, "intervene", interventions.to_dict()))

    @property
    def decoding(self) -> Decoding:
        """The decoding of free-running outputs."""
        return Decoding.of(self.config.train)

    @property
    def n_parameters(self) -> int:
        """Numbers that training moves."""
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)

    def to_device(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """src, tgt_in and tgt_out of a batch as tensors on the device, which need not wait for them."""
        src, tgt_in, tgt_out = (
            self._moved(torch.from_numpy(ids)) for ids in (batch.src, batch.tgt_in, batch.tgt_out)
        )
        return src, tgt_in, tgt_out

    def _moved(self, ids: Tensor) -> Tensor:
        if self.device.type != "cuda":
            return ids.to(self.device)
        return ids.pin_memory().to(self.device, non_blocking=True)


def captures(train: TrainConfig, device: torch.device, distributed: Distributed | None) -> bool:
    """Whether steps are captured as CUDA graphs: only where that is asked for, and on one such GPU."""
    return train.cuda_graphs and device.type == "cuda" and distributed is None


def _optimizer(train: TrainConfig, model: Transformer, device: torch.device) -> torch.optim.Optimizer:
    """Adam or AdamW over all parameters; the loop sets the rate before each step."""
    kind = torch.optim.Adam if train.optimizer == "adam" else torch.optim.AdamW
    on_gpu = device.type == "cuda"  # there the rate is read where the optimiser is, so that a graph sees it
    return kind(
        model.parameters(),
        lr=torch.zeros((), device=device) if on_gpu else 0.0,
        betas=(train.betas[0], train.betas[1]),
        eps=train.adam_eps,
        weight_decay=train.weight_decay,
        fused=device.type in ("cpu", "cuda"),
        capturable=on_gpu,
    )
