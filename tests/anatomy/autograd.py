"""A reference for a step: loss and gradient by PyTorch's own functions, boxes by parameter names."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transformer.model.transformer import Transformer
from transformer.recording.weights import Snapshot
from transformer.shared.interventions import NO_INTERVENTIONS
from transformer.tasks import task_of


def kept(model, step, taken=NO_INTERVENTIONS):
    """Return a snapshot of the current weights of a model."""
    weights = {name: w.numpy().copy() for name, w in model.state_dict().items()}
    return Snapshot(step=step, source=weights, interventions=taken)


def box_of(name, topology):
    """Return the box of a parameter, from its name alone."""
    first, *rest = name.split(".")
    if first in ("src_embedding", "tgt_embedding", "learned_positions"):
        begins = "decoder" if topology == "decoder-only" else "encoder"
        return {"src": "encoder", "tgt": "decoder"}.get(first[:3], begins) + ".embedding"
    if first in ("to_logits", "decoder_norm", "encoder_norm"):
        writes = "encoder" if topology == "encoder-only" else "decoder"
        return {"encoder_norm": "encoder"}.get(first, writes) + ".output"
    own = ".self" if first == "decoder" else ""
    kind = {"feed": ".feed_forward", "cross": ".cross"}.get(rest[1].split("_")[0], own)
    return f"{first}.{rest[0]}{kind}"


def in_boxes(config, tensors):
    """Return the norm of all numbers in each box, for approximate comparison."""
    rows = {}
    for name, tensor in tensors.items():
        rows.setdefault(box_of(name, config.model.topology), []).append(
            np.asarray(tensor, dtype=float).ravel()
        )
    return {box: pytest.approx(np.linalg.norm(np.concatenate(some)), rel=1e-4) for box, some in rows.items()}


def by_autograd(config, snapshot):
    """Return the mean loss, the loss of each token and the gradient of each parameter, in float64."""
    batch, smooth = task_of(config).batch(config.seed, snapshot.step), config.train.label_smoothing
    src, tgt_in, labels = map(torch.from_numpy, (batch.src, batch.tgt_in, batch.tgt_out))
    model = Transformer(config.model).double().eval()
    weights = {
        name: torch.tensor(snapshot.weights[name], dtype=torch.float64, requires_grad=True)
        for name, _ in model.named_parameters()
    }
    scores = torch.func.functional_call(model, weights, (src, tgt_in))[labels != 0]
    each = F.cross_entropy(scores, labels[labels != 0], reduction="none", label_smoothing=smooth)
    gradients = torch.autograd.grad(each.mean(), [*weights.values()])
    return each.mean().item(), each.tolist(), dict(zip(weights, gradients, strict=True))


def total(found):
    """Return the norm of the gradient over all boxes."""
    return math.hypot(*(box.gradient for box in found.boxes.values()))
