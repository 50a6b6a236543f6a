"""The change that one training step made: loss, gradient and update, from the weights before and after it."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace

import torch

from transformer.asking.model import QUESTION_CACHE, diverged, model_of
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.model.transformer import Transformer
from transformer.recording.weights import Snapshot
from transformer.shared.interventions import check_interventions
from transformer.tasks import task_of
from transformer.training.evaluation import sum_of_losses

ROWS = 4
"""Maximum number of rows shown, from the start of the batch."""


@dataclass(frozen=True, kw_only=True)
class BoxChange:
    """The change of one box of the picture of the model: Euclidean norms over its parameters."""

    gradient: float
    """Norm of the gradient of the loss (nats per target token and unit of weight), before clipping."""
    update: float
    """Norm of the difference: the weights after the step minus those before it."""
    weight: float
    """Norm of the weights before the step."""

    @property
    def ratio(self) -> float:
        """The update as a share of the weights before it; 0.0 where these are all zero."""
        return self.update / self.weight if self.weight else 0.0


@dataclass(frozen=True, kw_only=True)
class BatchRow:
    """One row of the batch; [PAD] is left out."""

    reads: tuple[str, ...]
    """Tokens of the question, with the special ones around it."""
    writes: tuple[str, ...]
    """Tokens that are to be written, with [EOS]."""
    losses: tuple[float, ...]
    """Cross-entropy of each of `writes` in nats, with the run's label smoothing."""


@dataclass(frozen=True, kw_only=True)
class StepChange:
    """The first rows that one training step read, the loss of its batch, and the change of the weights."""

    step: int
    """The training step, which changed the weights of `step` - 1 into those of `step`."""
    loss: float
    """Loss of the whole batch, in nats per target token."""
    n_rows: int
    """Number of rows of the whole batch (B)."""
    rows: tuple[BatchRow, ...]
    """The first `ROWS` rows of the batch."""
    boxes: Mapping[str, BoxChange]
    """The change of each box, under its name in `boxes_of` and in that order."""
    without: tuple[str, ...]
    """Settings of training that the recomputation leaves out: "dropout", "bfloat16"."""


def boxes_of(model: Transformer) -> dict[str, tuple[str, ...]]:
    """Map each box that has parameters to their names, in the order of the forward pass.

    A box is a stack's embedding, a site with its residual norm, a layer's feed-forward part with its
    residual norm, or a stack's output: its final norm and, in the last stack, the map to logits. A parameter
    that several boxes share is listed in the first of them.
    """
    parts: dict[str, tuple[str, ...]] = {}  # modules by box
    name_of = {module: name for name, module in model.named_modules()}
    both = ("encoder", "src", model.encoder), ("decoder", "tgt", model.decoder)
    stacks = [(stack, side, len(layers)) for stack, side, layers in both if len(layers)]
    for stack, side, n_layers in stacks:
        parts[f"{stack}.embedding"] = (f"{side}_embedding", "learned_positions")
        for layer in (f"{stack}.{i}" for i in range(n_layers)):
            for site, attention in model.attentions().items():
                if f"{site}.".startswith(f"{layer}."):
                    name = name_of[attention]
                    parts[site] = (name, f"{name.removesuffix('_attention')}_residual")
            parts[f"{layer}.feed_forward"] = (f"{layer}.feed_forward", f"{layer}.feed_forward_residual")
        parts[f"{stack}.output"] = (f"{stack}_norm",)
    parts[f"{stacks[-1][0]}.output"] += ("to_logits",)
    boxes: dict[str, tuple[str, ...]] = dict.fromkeys(parts, ())
    for name, _ in model.named_parameters():
        home = next(box for box, some in parts.items() if name.startswith(tuple(f"{one}." for one in some)))
        boxes[home] += (name,)
    return {box: names for box, names in boxes.items() if names}


def step_change(config: RunConfig, before: Snapshot, after: Snapshot) -> StepChange:
    """Recompute what one training step did, in a separate model, without dropout and in float32.

    Args:
        config: the configuration of the run, with what its task determines.

    Raises:
        InputError: the weights are not of two consecutive steps, are not kept any more, do not fit the model,
            or give numbers that are not finite; or the data of the task cannot be used.
    """
    if after.step != before.step + 1:
        missing = f"The weights of step {before.step + 1:,} are not kept, so the change from step"
        raise InputError(f"{missing} {before.step:,} cannot be shown; choose another step.")
    key = "step_change", config, *map(weakref.ref, (before, after))  # weak: each holds all weights of its run
    return QUESTION_CACHE.get(
        key, lambda: _step_change(config, before, after), lambda _: 2**16
    )  # approximate bytes


def _step_change(config: RunConfig, before: Snapshot, after: Snapshot) -> StepChange:
    task, smoothing = task_of(config), config.train.label_smoothing
    model, later = model_of(config, before), model_of(config, after)
    taken = before.interventions  # those set after a step are stored with the weights of that step
    check_interventions(replace(taken, blocked=()), model.axes(), config.model.n_heads, (), ())
    model.intervene(taken, task.token_id)
    batch, pad_id = task.batch(config.seed, before.step), task.tgt_tokenizer.pad_id
    src, tgt_in, labels = map(torch.from_numpy, (batch.src, batch.tgt_in, batch.tgt_out))
    logits = model(src, tgt_in)  # (B, T, V)
    loss = sum_of_losses(logits, labels, pad_id, smoothing) / (labels != pad_id).sum()
    loss.backward()
    boxes, norm_of = {}, torch.nn.utils.get_total_norm
    for box, names in boxes_of(model).items():
        old = [model.get_parameter(name) for name in names]
        moved = [later.get_parameter(name) - one for name, one in zip(names, old, strict=True)]
        gradients = [one.grad for one in old if one.grad is not None]
        gradient, update, weight = (norm_of(some).item() for some in (gradients, moved, old))
        boxes[box] = BoxChange(gradient=gradient, update=update, weight=weight)
    numbers = [number for box in boxes.values() for number in astuple(box)]
    if not all(map(math.isfinite, [loss.item(), *numbers])):
        raise InputError(diverged(before.step))
    asked = batch.prompt if config.model.topology == "decoder-only" else batch.src  # there src has the answer
    rows = []
    for reads, label, row_logits in zip(asked[:ROWS], labels, logits.detach(), strict=False):
        real = label != pad_id  # (T,)
        places = zip(row_logits[None, real].split(1, dim=1), label[None, real].split(1, dim=1), strict=True)
        losses = tuple(sum_of_losses(*place, pad_id, smoothing).item() for place in places)
        read = task.src_tokenizer.tokens(reads[reads != pad_id].tolist())
        written = task.tgt_tokenizer.tokens(label[real].tolist())
        rows.append(BatchRow(reads=read, writes=written, losses=losses))
    drops = bool(config.model.dropout and config.model.dropout_on)
    without = ("dropout",) * drops + ("bfloat16",) * (config.train.precision == "bfloat16")
    return StepChange(
        step=after.step, loss=loss.item(), n_rows=len(labels), rows=tuple(rows), boxes=boxes, without=without
    )
