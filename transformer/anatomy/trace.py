"""Record the forward pass of one word through the model of one step, with all its numbers."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from transformer.anatomy.passes import AttentionPass, FeedForwardPass, ForwardTrace, StackPass
from transformer.asking.model import QUESTION_CACHE, diverged, loaded
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.model.transformer import Transformer
from transformer.recording.activations import RECORDABLE, record
from transformer.recording.frame import Array
from transformer.recording.weights import Snapshot
from transformer.recording.words import encode_answered, expected_tokens
from transformer.shared.bounded import nbytes_of
from transformer.shared.interventions import check_interventions
from transformer.tasks import Question, task_of

Calls = dict[str, list[tuple[tuple[Any, ...], Tensor]]]
"""Forward calls of each module, by its name: (positional inputs, output) of each call."""


@contextmanager
def _recorded_calls(model: nn.Module) -> Iterator[Calls]:
    """Record positional inputs and output of each forward call of every module within the context.

    A module that has two names, such as a shared embedding, is recorded under its first name.
    """
    calls: Calls = {}

    def keep(name: str) -> Any:
        def hook(_module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
            calls.setdefault(name, []).append((inputs, output))

        return hook

    handles = [module.register_forward_hook(keep(name)) for name, module in model.named_modules()]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _array(tensor: Tensor) -> Array:
    """The first sequence of a batch, copied into an array."""
    return tensor[0].detach().float().numpy().copy()


def _residual(module: str, calls: Calls) -> dict[str, Any]:
    """The fields of `ResidualPass`, which attention and feed-forward share."""
    residual = f"{module.removesuffix('_attention')}_residual"
    (((reads, *_), output),) = calls[module]
    (((stream, *_), after),) = calls[residual]
    ((_, normed),) = calls[f"{residual}.norm"]
    arrays = {"stream": stream, "reads": reads, "output": output, "normed": normed, "after": after}
    return {"module": module} | {name: _array(tensor) for name, tensor in arrays.items()}


def _attention(module: str, calls: Calls, recorded: Mapping[str, Array]) -> AttentionPass:
    (((reads, *others), _),) = calls[module]
    (((joined,), _),) = calls[f"{module}.to_output"]
    memory = others[0] if others and others[0] is not None else reads
    heads = {name: values[0] for name, values in recorded.items()}
    return AttentionPass(**_residual(module, calls), **heads, memory=_array(memory), joined=_array(joined))


def _feed_forward(layer: str, calls: Calls) -> FeedForwardPass:
    module = f"{layer}.feed_forward"
    ((_, hidden),) = calls[f"{module}.activation"]
    return FeedForwardPass(**_residual(module, calls), hidden=_array(hidden))


def _stacks(model: Transformer, calls: Calls) -> dict[str, StackPass]:
    """The pass through each stack of the model, in the order of the forward pass."""
    config = model.config
    layers = {"encoder": model.encoder, "decoder": model.decoder}
    stacks: dict[str, StackPass] = {}
    for stack in (name for name in layers if len(layers[name])):
        table = "src_embedding" if stack == "encoder" else "tgt_embedding"
        shared = table not in calls  # a shared table is last called by the decoder
        _, embedded = calls["src_embedding" if shared else table][-1 if shared else 0]
        (entered,), _ = calls["embedding_dropout"][len(stacks)]
        n = entered.size(1)
        if config.positions == "sinusoid":
            positions = model.positions[:n]
        elif config.positions == "learned":
            positions = model.learned_positions.weight[:n]
        else:
            positions = torch.zeros_like(entered[0])
        stacks[stack] = StackPass(
            scaled=config.scales_embedding(stack),
            embedded=_array(embedded),
            positions=_array(positions[None]),
            entered=_array(entered),
            layers=tuple(_feed_forward(f"{stack}.{i}", calls) for i in range(len(layers[stack]))),
            output=_array(calls[f"{stack}_norm"][0][1]),
        )
    return stacks


@torch.inference_mode()
def _written_after(
    model: Transformer, attentions: Mapping[str, AttentionPass], stacks: Mapping[str, StackPass]
) -> dict[str, Array]:
    """`ForwardTrace.written_after`: (T, V) probabilities if the model ended after a box of the last stack."""
    name = "decoder" if "decoder" in stacks else "encoder"
    streams = {f"{name}.embedding": stacks[name].entered}
    streams |= {site: part.after for site, part in attentions.items() if site.startswith(name)}
    streams |= {layer.module: layer.after for layer in stacks[name].layers}
    norm = getattr(model, f"{name}_norm")
    return {
        box: model.to_logits(norm(torch.from_numpy(stream))).softmax(dim=-1).numpy()
        for box, stream in streams.items()
    }


def trace(config: RunConfig, snapshot: Snapshot, word: str, beside: tuple[str, ...] = ()) -> ForwardTrace:
    """Run a word through the model of a snapshot, teacher-forced.

    If the right answer is not known, the model reads its own output. The snapshot's interventions apply.

    Args:
        config: the run's, with what its task determines.
        beside: other words of the same batch; if a question or an answer of theirs is longer, the word or its
            answer is padded with [PAD].

    Raises:
        InputError: the word cannot be asked, an intervention leaves one of its rows without an open cell, the
            weights are not kept any more or do not fit the model, or the run has diverged.
    """
    key = "trace", config, weakref.ref(snapshot), word, beside  # weak: it keeps all weights of its run
    return QUESTION_CACHE.get(key, lambda: _trace(config, snapshot, word, beside), nbytes_of)


def _trace(config: RunConfig, snapshot: Snapshot, word: str, beside: tuple[str, ...]) -> ForwardTrace:
    # Building a model takes as long as its forward pass, and a replay traces one step after another.
    model, lock = QUESTION_CACHE.get(
        ("traced", config.model),
        lambda: (Transformer(config.model), threading.Lock()),
        lambda made: sum(tensor.nbytes for tensor in made[0].state_dict().values()),
    )
    with lock:
        return _traced(loaded(model, snapshot), config, snapshot, word, beside)


def _traced(
    model: Transformer, config: RunConfig, snapshot: Snapshot, word: str, beside: tuple[str, ...]
) -> ForwardTrace:
    task, taken = task_of(config), snapshot.interventions
    questions: list[Question] = [task.question(text) for text in (word, *beside)]
    model.intervene(taken, task.token_id)
    batch = encode_answered(model, task, questions)
    src_tokens = task.src_tokenizer.tokens(batch.src[0].tolist())
    tgt_tokens = task.tgt_tokenizer.tokens(batch.tgt_in[0].tolist())
    masks, n_heads = config.model.masks, config.model.n_heads
    check_interventions(taken, model.axes(), n_heads, src_tokens, tgt_tokens, masks=masks)
    with record(model, RECORDABLE) as cache, _recorded_calls(model) as calls:
        logits = model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
    if not torch.isfinite(logits).all():
        raise InputError(diverged(snapshot.step))
    tokenizer = task.tgt_tokenizer
    name_of = {module: name for name, module in model.named_modules()}
    attentions = {
        site: _attention(name_of[one], calls, cache.sites[site]) for site, one in model.attentions().items()
    }
    stacks = _stacks(model, calls)
    return ForwardTrace(
        config=config,
        src_tokens=src_tokens,
        tgt_tokens=tgt_tokens,
        src_ids=tuple(batch.src[0].tolist()),
        tgt_ids=tuple(batch.tgt_in[0].tolist()),
        vocabulary=tokenizer.tokens(range(tokenizer.size)),
        expected=expected_tokens(task, batch.tgt_out[0].tolist()),
        has_answer=questions[0].answer is not None,
        predicted=tokenizer.tokens(logits[0].argmax(dim=-1).tolist()),
        axes=model.axes(),
        attentions=attentions,
        stacks=stacks,
        written_after=_written_after(model, attentions, stacks),
        logits=_array(logits),
        probabilities=_array(logits.softmax(dim=-1)),
        parameters={name: w.float().numpy().copy() for name, w in model.state_dict().items()},
        interventions=taken,
    )
