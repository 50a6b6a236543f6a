"""The attention weights of any PyTorch model, from a forward pass that leaves the model as it was."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer.errors import InputError

Weights = dict[str, np.ndarray[Any, np.dtype[np.float32]]]
Function = Callable[[nn.Module, Any], Mapping[str, Tensor]]

_CALL = inspect.signature(nn.MultiheadAttention.forward)
_LISTS = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
"""Where an output of the `transformers` library has its attention weights."""
_ROUNDING = 1e-2
"""How far outside 0 to 1 weights of half precision may be."""


def attention_of(
    model: nn.Module, inputs: Any, attention: Function | None = None, sites: Sequence[str] = ("*",)
) -> Weights:
    """The attention weights of a model for some inputs.

    The model is called once, in eval mode and without gradients. Afterwards its mode, hooks, gradients and
    random streams are as before, even if the call fails. Of a compiled model, the original is called.

    Args:
        model: with `nn.MultiheadAttention`, such as `nn.Transformer`, or of the `transformers` library.
        inputs: a tensor, a tuple of positional arguments, or a mapping of keyword arguments.
        attention: for any other model, a function that returns name to weights of shape (B, H, Q, K).
        sites: patterns of the names of attention modules, such as "decoder.*"; others are left alone.

    Returns:
        Name of each attention module to its weights, (B, H, Q, K), in the order in which they were called.
        A second call of a module adds "#2" to its name.

    Raises:
        InputError: no attention weights were found, or some have another shape or are not from 0 to 1.
    """
    model = unwrapped(model)
    with _as_before(model), _eager(model), torch.no_grad():
        if attention is not None:
            found = dict(attention(model, inputs))
        elif _is_of_transformers(model) and not attention_modules(model):
            found = _returned(model, inputs)
        else:
            found = _hooked(model, inputs, sites)
    found = {name: weights for name, weights in found.items() if matches(name, sites)}
    if not found:
        named = "" if tuple(sites) == ("*",) else f" and matches {', '.join(sites)}"
        raise InputError(
            f"{type(model).__name__} has no attention that can be observed: none of its modules is an "
            f"nn.MultiheadAttention that was called{named}. Pass a function attention(model, inputs) "
            "that returns name to weights of shape (B, H, Q, K); a model of the transformers library inside "
            "of it returns them with output_attentions."
        )
    return {name: _checked(name, weights) for name, weights in found.items()}


def unwrapped(model: nn.Module) -> nn.Module:
    """The model without the wrappers of torch.compile, DistributedDataParallel and DataParallel."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inner = model.module  # the wrapper's forward would communicate with other processes
        if inner is None:
            return model
        model = inner


def matches(name: str, sites: Sequence[str]) -> bool:
    """Whether the name of an attention, without the number of its call, matches one of these patterns."""
    return any(fnmatchcase(name.partition("#")[0], pattern) for pattern in sites)


def attention_modules(model: nn.Module) -> dict[str, nn.MultiheadAttention]:
    """Name to module of every `nn.MultiheadAttention`."""
    named = model.named_modules()
    return {name or type(one).__name__: one for name, one in named if isinstance(one, nn.MultiheadAttention)}


def _checked(name: str, weights: object) -> np.ndarray[Any, np.dtype[np.float32]]:
    if not isinstance(weights, Tensor) or weights.dim() != 4:
        what = f"shape {tuple(weights.shape)}" if isinstance(weights, Tensor) else type(weights).__name__
        raise InputError(f"The attention weights {name!r} are of {what}; expected is a tensor (B, H, Q, K).")
    # A copy: the training loop may change the original.
    array: np.ndarray[Any, np.dtype[np.float32]]
    array = weights.detach().to("cpu", torch.float32, copy=True).numpy()
    if (array < -_ROUNDING).any() or (array > 1 + _ROUNDING).any():
        low, high = float(np.nanmin(array)), float(np.nanmax(array))
        raise InputError(
            f"The attention weights {name!r} go from {low:.3g} to {high:.3g}; expected are shares from 0 to "
            "1, as a softmax gives them."
        )
    return array.clip(0, 1)


def _call(model: nn.Module, inputs: Any, **more: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**{**inputs, **more})
    return model(*(inputs if isinstance(inputs, tuple) else (inputs,)), **more)


@contextmanager
def _as_before(model: nn.Module) -> Iterator[None]:
    """Put the model into eval mode; at the end restore each module's mode and torch's random streams.

    Only the flag `training` is set: `eval()` of some modules does more, such as merging weights.
    """
    modes = [(module, module.training) for module in model.modules()]
    devices = {one.device.index or 0 for one in model.parameters() if one.device.type == "cuda"}
    with torch.random.fork_rng(sorted(devices)):
        try:
            for module, _ in modes:
                module.training = False
            yield
        finally:
            for module, training in modes:
                module.training = training


# nn.MultiheadAttention.


def _hooked(model: nn.Module, inputs: Any, sites: Sequence[str]) -> dict[str, Tensor]:
    """The weights of every `nn.MultiheadAttention`, requested by hooks for this pass only."""
    found: dict[str, Tensor] = {}
    fast = torch.backends.mha.get_fastpath_enabled()
    with ExitStack() as hooks:
        hooks.callback(torch.backends.mha.set_fastpath_enabled, fast)
        torch.backends.mha.set_fastpath_enabled(False)  # it skips modules or returns no weights
        for name, module in attention_modules(model).items():
            if matches(name, sites):
                _hook(hooks, name, module, found)
        _call(model, inputs)
    return found


def _hook(hooks: ExitStack, name: str, module: nn.MultiheadAttention, found: dict[str, Tensor]) -> None:
    asked: list[tuple[bool, bool]] = []  # whether the caller wants weights, and their mean over heads

    def before(_: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        call = _CALL.bind(module, *args, **kwargs)
        call.apply_defaults()
        values = dict(call.arguments)
        values.pop("self")
        asked.append((values["need_weights"], values["average_attn_weights"]))
        return (), values | {"need_weights": True, "average_attn_weights": False}

    def after(_: nn.Module, args: Any, kwargs: Any, output: Any) -> tuple[Tensor, Tensor | None]:
        result, weights = output
        wanted, mean = asked.pop()
        batched = weights if weights.dim() == 4 else weights.unsqueeze(0)
        found[_free(name, found)] = batched
        if not wanted:
            return result, None
        return result, weights.mean(dim=-3) if mean else weights

    hooks.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
    hooks.callback(module.register_forward_hook(after, with_kwargs=True).remove)


def _free(name: str, found: Mapping[str, Tensor]) -> str:
    """The name, with a number behind it if it is taken."""
    number = 1
    while (numbered := name if number == 1 else f"{name}#{number}") in found:
        number += 1
    return numbered


# The `transformers` library.


def _is_of_transformers(model: nn.Module) -> bool:
    return any(base.__module__.split(".")[0] == "transformers" for base in type(model).__mro__)


@contextmanager
def _eager(model: nn.Module) -> Iterator[None]:
    """Use eager attention in all parts from the library: other implementations return no weights."""
    parts: list[Any] = [one for one in model.modules() if hasattr(one, "set_attn_implementation")]
    before = [part.config._attn_implementation for part in parts]
    if not set(before) - {"eager"}:
        yield
        return
    try:
        for part in parts:
            part.set_attn_implementation("eager")
        yield
    finally:
        for part, one in zip(parts, before, strict=True):  # parents first: they set their children too
            part.set_attn_implementation(one)


def _returned(model: Any, inputs: Any) -> dict[str, Tensor]:
    """The weights that the model returns; each has the name of the innermost module that returned it."""
    makers: dict[int, str] = {}  # id of a tensor to the module
    kept: list[Any] = []  # so that no id is reused

    def note(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def returned(_: nn.Module, args: Any, output: Any) -> None:
            for one in output if isinstance(output, tuple) else ():
                if isinstance(one, Tensor) and one.dim() == 4:
                    kept.append(one)
                    makers.setdefault(id(one), name)

        return returned

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            hooks.callback(module.register_forward_hook(note(name)).remove)
        output = _call(model, inputs, output_attentions=True, return_dict=True)
    found: dict[str, Tensor] = {}
    for kind in _LISTS:
        for layer, weights in enumerate(getattr(output, kind, None) or ()):
            if weights is not None:
                found[_free(makers.get(id(weights), f"{kind}.{layer}"), found)] = weights
    return found
