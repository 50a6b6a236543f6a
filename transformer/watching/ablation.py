"""A head of any model, switched off while the model is called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple, Self

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from transformer.errors import InputError
from transformer.watching.layout import HEADS, Layout, Sizes, Split
from transformer.watching.operations import Call, Observing

Measure = Callable[[nn.Module], Any]
"""Calls a model and returns a number, such as its loss on a fixed batch."""


class Head(NamedTuple):
    """One head of an attention."""

    site: str
    """Name of the innermost module that was running."""
    number: int | None
    """Number of the attention among those of this module in a pass, from 1; None if there is only one."""
    head: int
    """Index of the head in the attention, from 0."""
    layout: Layout
    """How the weights were arranged when the head was found."""


class Ablating(Observing):
    """Replaces the output of one head by zero in every pass of a model inside this context.

    Args:
        model, modules, layouts: as for `Observing`.
        head: the head.
        settled: the arrangements that the looks of an `Observer` have found, by module and layout; None for
            an attention that is left out.
    """

    def __init__(
        self,
        model: nn.Module,
        modules: Mapping[str, nn.Module],
        head: Head,
        settled: Mapping[tuple[str, Layout], Layout | None],
        layouts: dict[Any, Layout | None],
    ) -> None:
        nothing = Sizes((), frozenset(), frozenset())
        super().__init__(model, modules, nothing, lambda call: None, lambda site: site == head.site, layouts)
        self._head, self._settled = head, settled
        self._given: Any = None  # inputs of the present pass
        self._number = 0  # of attentions of this module in the pass
        self._newest = 0, 0  # order and place of the last one
        self._hook: RemovableHandle | None = None
        self.n_found = 0
        """Number of products and fused attentions from which the head was removed."""
        self.unsettled: Any = None
        """Inputs for which a look has to tell which axes are heads, as several arrangements fit; or None."""
        self.unknown = False
        """Whether the head stayed on in some attention, because it is not known which axes are heads."""

    def __enter__(self) -> Self:
        if not isinstance(self._model, torch.jit.ScriptModule):  # takes no such hook
            self._hook = self._model.register_forward_pre_hook(self._begin, with_kwargs=True, prepend=True)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._hook is not None:
            self._hook.remove()

    def _begin(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Begin a pass of the model."""
        both = args and kwargs
        self._given = signature(model.forward).bind(*args, **kwargs).arguments if both else args or kwargs
        self._inputs = Sizes.of(self._given)
        self._number = 0

    def part(self, call: Call) -> None:
        if call.order != self._newest[0]:
            again = call.layout.whole[0] == 1 and call.place == self._newest[1] and self._number
            self._number += 0 if again else 1
            self._newest = call.order, call.place
        if self._head.number not in (None, self._number):
            return
        layout = self._layout(call)
        if layout is None:
            self.unknown = True
            return
        self.n_found += 1
        off = layout.head_numbers().to(call.outputs[-1][1].device) == self._head.head
        product, output = call.outputs[-1]
        if call.fused:
            output.masked_fill_(off, 0)
        else:
            output.copy_(product(call.all_weights().masked_fill(off, 0)))

    def _layout(self, call: Call) -> Layout | None:
        """How the weights of a call are arranged; None where that is not known."""
        key = call.site, call.layout
        if key in self._settled:
            return self._settled[key]
        shown = self._head.layout
        fitting = [split for split in call.layout.splits if _n_heads(split) == _n_heads(shown.split)]
        alike = [one for one in fitting if _kinds(one) == _kinds(shown.split)] or fitting
        if len(alike) > 1:
            self.unsettled = self._given
        return replace(call.layout, split=alike[0]) if len(alike) == 1 else None


def number_of(value: Any) -> float:
    """What the user's function has measured; may be infinite or NaN. Raises InputError: no number."""
    single = math.prod(getattr(value, "shape", ())) == 1
    try:
        return float(value.item() if single and hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError) as error:
        shape = getattr(value, "shape", None)
        what = repr(value)[:60] if shape is None else f"{type(value).__name__} of shape {tuple(shape)}"
        raise InputError(f"measure gave {what}; expected is a number.", "measure") from error


def _n_heads(split: Split) -> int:
    return math.prod(n for kind, n in split if kind == HEADS)


def _kinds(split: Split) -> list[str]:
    return [kind for kind, _ in split]
