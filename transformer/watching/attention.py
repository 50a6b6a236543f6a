"""The attention weights of any PyTorch model, from forward passes that leave the model as it was."""

from __future__ import annotations

import dataclasses
import math
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parameter import is_lazy

from transformer.errors import InputError
from transformer.watching.ablation import Ablating, Head, Measure, number_of
from transformer.watching.layout import EXAMPLES, UNKNOWN, Layout, Sizes, Split, changed, parts_of
from transformer.watching.operations import Call, Observing

Array = np.ndarray[Any, np.dtype[np.float32]]
Weights = dict[str, Array]
Function = Callable[[nn.Module, Any], Mapping[str, Tensor]]
Part = tuple[slice, slice]
"""The queries and the keys of a part of a map."""
_T = TypeVar("_T")

PART = " part"
"""The end of the name of a part of an attention."""
MOST_OF_PART = 128
"""Maximum number of queries and of keys of a part."""
MOST_SIZES = 32
"""Maximum number of calls of `measure` for one head; after each, the axes for inputs of one size are told."""
MOST_WINDOWS = 4
"""Maximum number of windows of an example that are shown."""
_ROUNDING = 1e-2
"""How far outside of 0 to 1 the weights of a given function may be, since they may be of half precision."""
_LOCK = threading.RLock()
"""Held during looks and measures, which change switches of the whole process."""
_COMPILING = {"torch._dynamo", "torch.nn.attention.flex_attention"}
"""Modules that are imported where something is compiled."""
_EMPTY = (
    "rows without an allowed key, whose weights are not numbers (NaN): they are drawn as blocked, but the "
    "model goes on with them. Fused attention gives 0 for such rows."
)
_NOT_NUMBERS = (
    "weights that are not numbers (NaN), drawn as blocked, though no mask blocks their rows: look for NaN or "
    "infinity in the parameters and inputs of the model."
)
_SUM, _HALF_SUM = 1e-3, 2e-2
"""How far from 1 the sum of a row may be, in float32 and in half precision."""
_PROOF = 1e-5
"""Largest difference between the output of an attention and the output computed from its weights, as a share
of the largest number of the output, in float32."""


class Seen(NamedTuple):
    """The weights of one attention as they are shown."""

    weights: Array
    """(B, H, Q, K); NaN in cells that a mask blocks, unless a function of the user's gave the weights."""
    rest: bool = False
    """Whether the last column is 1 minus the sum of the others: the share that goes to no position shown."""
    relative: bool = False
    """Whether columns are positions relative to the query."""
    size: tuple[int, int] = (0, 0)
    """Number of queries and of keys; 0 where a function of the user's gave the weights."""
    pooled: tuple[int, int] = (1, 1)
    """Queries in a row and keys in a column; a cell is the mean over its rows of the sum over its columns."""
    heads: tuple[Head, ...] = ()
    """Where each head is computed; empty where a function of the user's gave the weights."""
    ranges: tuple[range, range] | None = None
    """The queries and the keys of a part of a map; the last column is then what goes elsewhere."""


def attention_of(
    model: nn.Module, inputs: Any, attention: Function | None = None, sites: Sequence[str] = ("*",)
) -> Weights:
    """The attention weights of a model for some inputs.

    The model is called in eval mode and without gradients. Afterwards its mode, buffers, hooks, gradients and
    random streams are as before, even if a call fails. Of a compiled model, the original is called.

    Args:
        model: any model; its attention may be fused (`F.scaled_dot_product_attention`, `flex_attention`), or
            a softmax whose result is multiplied with values.
        inputs: a tensor, a tuple of positional arguments, or a mapping of keyword arguments.
        attention: for any other model, a function that returns weights by name, of shape (B, H, Q, K).
        sites: patterns of the names of the attentions, such as "decoder.*"; others are left alone.

    Returns:
        Weights of each attention by its name, (B, H, Q, K) float32, in the order of their calls; 0
        in cells that a mask blocks. An attention has the name of the innermost module that was running; the
        second one in a module adds "#2", and each window of a local attention " window 1" and so on. Modules
        of one `ModuleList` with one head each, called with the same input, are one attention, whose name
        leaves out their index.

    Raises:
        InputError: no attention weights were found; the model has lazy parameters that are not initialised,
            or gives another output while it is observed; or `attention` returns weights of another shape or
            outside of 0 to 1.
    """
    weights = Observer(model, attention, sites).look(inputs)
    return {
        name: np.nan_to_num(seen.weights[..., :-1] if seen.rest else seen.weights)
        for name, seen in weights.items()
    }


class Observer:
    """Looks at the attention of a model again and again.

    The first look at inputs of given sizes also proves that what is shown is the model that trains: the
    output of the observed pass equals that of an ordinary one, and at every attention that is shown, weights
    times values are its output. Weights that `attention` returns are shown without such a proof.

    Args:
        model, attention, sites: as in `attention_of`.
        most: maps are pooled to at most this number of rows and of columns, except those that `attention`
            returns; None pools none.
    """

    def __init__(
        self,
        model: nn.Module,
        attention: Function | None = None,
        sites: Sequence[str] = ("*",),
        most: int | None = None,
    ) -> None:
        self.most = most
        self._part: Part | None = None
        self._modules: dict[str, nn.Module] = {}
        self._devices: list[int] = []
        self.model, self._attention, self._sites = unwrapped(model), attention, sites
        self._layouts: dict[Any, Layout | None] = {}
        self._settled: dict[tuple[str, Layout], Layout | None] = {}  # None: left out
        self._siblings: dict[str, tuple[str, int]] = {}  # by module: its list, and a number for its input
        self._looks: dict[Sizes, int] = {}  # looks so far, by sizes of inputs
        self._unsettled: set[Sizes] = set()
        self.unmeasured: dict[str, str] = {}
        """Attentions whose heads could not be switched off: the reason, in a sentence, by name."""
        self.left: dict[str, str] = {}
        """Attentions that are left out: the reason, by name; by name and " NaN", a note on its rows."""

    def look(self, inputs: Any, part: Part | None = None) -> dict[str, Seen]:
        """The attentions of the model for these inputs, in the order of their calls.

        Args:
            part: queries and keys whose weights are given in full as well where maps are pooled, the first
                MOST_OF_PART of each, under the name of the attention and " part".

        Raises:
            InputError: as by `attention_of`. Errors of the model itself are passed on.
        """
        parameters = list(self.model.parameters())
        if any(map(is_lazy, parameters)):
            name = type(self.model).__name__
            raise InputError(f"{name} has lazy parameters: it is looked at when they are initialised.")
        self._devices = sorted(
            {parameter.device.index or 0 for parameter in parameters if parameter.device.type == "cuda"}
        )
        with _LOCK:
            self._part = part
            return self._looked(inputs)

    def _looked(self, inputs: Any) -> dict[str, Seen]:
        self._modules = dict(self.model.named_modules())
        with _as_before(self.model, self._modules.values()), torch.no_grad():
            if self._attention is not None:
                given = dict(self._attention(self.model, inputs))
                seen = {
                    name: Seen(_checked(name, weights))
                    for name, weights in given.items()
                    if matches(name, self._sites)
                }
            else:
                seen = self._observed(inputs)
        if not seen:
            raise InputError(self._nothing())
        return seen

    def ablations(self, measure: Measure, heads: Iterable[Head]) -> Iterator[float]:
        """The number that `measure` gives for the model, then with each of the heads switched off.

        Each time, the model is in eval mode and the random streams begin alike. A number is NaN where
        `measure` gives none that is finite; also where the head did not run or its axes are not known, and
        `unmeasured` then says so. `look` must have been called before.

        Raises:
            InputError: `measure` fails, returns anything but one number, or gives none that is finite for the
                model as it is.
        """
        self.unmeasured.clear()
        with _LOCK:
            whole = self._number(measure)
            if not math.isfinite(whole):
                raise InputError(f"measure gave {whole}; expected is a number.", "measure")
            yield whole
            for head in heads:
                yield self._without(measure, head)

    def is_steady(self, measure: Measure, number: float) -> bool:
        """Whether `measure` gives this number again, up to rounding. Raises InputError: it fails."""
        with _LOCK:
            return math.isclose(self._number(measure), number, rel_tol=1e-4, abs_tol=1e-9)

    def _number(self, measure: Measure, mode: Ablating | None = None) -> float:
        modules = self._modules.values()
        kept = [(parameter, parameter.grad) for parameter in self.model.parameters()]
        try:
            for one, _ in kept:
                one.grad = None
            with _as_before(self.model, modules), _same_random(modules, self._devices), torch.no_grad():
                with mode or nullcontext():
                    return number_of(measure(self.model))
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"measure failed with {type(error).__name__}: {error}.", "measure") from error
        finally:
            for one, grad in kept:
                one.grad = grad

    def _without(self, measure: Measure, head: Head) -> float:
        """The number without a head; NaN where it is not finite or not known."""
        for _ in range(MOST_SIZES):
            mode = Ablating(self.model, self._modules, head, self._settled, self._layouts)
            number = self._number(measure, mode)
            if mode.unsettled is None:
                break
            with _as_before(self.model, self._modules.values()), torch.no_grad():
                self._settle_site(mode.unsettled, head.site)
        if mode.unknown:
            self.unmeasured[head.site] = (
                f"measure: which axes of {head.site} are heads is not known for its inputs; call the model "
                "itself in it, and watch two examples or more."
            )
        elif not mode.n_found:
            self.unmeasured[head.site] = f"measure does not run {head.site}, so its heads have no number."
        return number if mode.n_found and not mode.unknown and math.isfinite(number) else math.nan

    def _settle_site(self, inputs: Any, site: str) -> None:
        """Tell the axes of the attentions of one module for these inputs, as at a first look."""
        sizes = Sizes.of(inputs)
        calls, _ = self._pass(inputs, sizes, self._proved, (site,))
        self._settle(inputs, sizes, calls, (site,))

    def _nothing(self) -> str:
        if self.left:
            return next(iter(self.left.values()))
        named = "" if tuple(self._sites) == ("*",) else f" and matches {', '.join(self._sites)}"
        return (
            f"{type(self.model).__name__} has no attention that can be observed{named}: neither a fused one "
            "of PyTorch, nor a softmax whose result is multiplied with values. Pass a function "
            "attention(model, inputs) that returns weights of shape (B, H, Q, K) by name."
        )

    def _observed(self, inputs: Any) -> dict[str, Seen]:
        sizes = Sizes.of(inputs)
        if (n := self._looks.get(sizes, 0)) and not (sizes in self._unsettled and (n + 1) & n == 0):
            self._looks[sizes] = n + 1
            return self._assembled(self._pass(inputs, sizes, self._taken)[0])
        calls, output = self._pass(inputs, sizes, self._proved)
        self._settle(inputs, sizes, calls)
        ordinary = self._ordinary(inputs)
        if not _equal(output, ordinary):
            steady = _equal(ordinary, self._ordinary(inputs))
            why = (
                "gives another output while it is observed"
                if steady
                else "gives another output at every call"
            )
            raise InputError(f"{type(self.model).__name__} {why}, so its attention is not shown.")
        self._looks[sizes] = n + 1
        return self._assembled([self._taken(call) for call in calls])

    def _ordinary(self, inputs: Any) -> Any:
        with _same_random(self._modules.values(), self._devices):
            return _call(self.model, inputs)

    def _pass(
        self, inputs: Any, sizes: Sizes, take: Callable[[Call], _T], sites: Sequence[str] | None = None
    ) -> tuple[list[_T], Any]:
        """Call the model; return what `take` makes of every attention, and the output.

        Args:
            sites: the attentions that are looked at; None stands for those of this object.
        """
        taken: dict[int, _T] = {}

        def found(call: Call) -> None:
            taken[call.order] = take(call)

        wanted = lambda name: matches(name, self._sites if sites is None else sites)  # noqa: E731
        mode = Observing(self.model, self._modules, sizes, found, wanted, self._layouts)
        with _same_random(self._modules.values(), self._devices), self._same_inputs(), mode:
            output = _call(self.model, inputs)
        for name, why in mode.unseen.items():
            self.left[name] = f"{name} is left out: {why}."
        return [taken[order] for order in sorted(taken)], output

    @contextmanager
    def _same_inputs(self) -> Iterator[None]:
        """At the first look, find modules of a `ModuleList` that get the same tensor: each may be a head."""
        if self._looks:
            yield
            return
        given: dict[str, Any] = {}
        with ExitStack() as hooks:
            for parent, modules in self._modules.items():
                for i, module in enumerate(modules if isinstance(modules, nn.ModuleList) else ()):
                    if module is None or isinstance(module, torch.jit.ScriptModule):
                        continue  # takes no such hook

                    def before(_: nn.Module, args: Any, kwargs: Any, name: str = f"{parent}.{i}") -> None:
                        given[name] = next(iter((*args, *kwargs.values())), None)

                    hooks.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
            yield
        for name, tensor in given.items():
            self._siblings[name] = name.rpartition(".")[0], id(tensor)

    def _proved(self, call: Call) -> Call:
        """The call with its weights on the CPU; it is left out where they do not give the model's output."""
        call = dataclasses.replace(call, weights=call.all_weights())
        arranged = call.layout.arranged(call.all_weights().float())
        if any(kind == UNKNOWN for kind, _ in call.layout.split):
            self._settled[_key(call)] = None
            self.left[call.site] = f"{call.site} is left out: which of its axes are heads is not known."
        off = max(_off(again(call.layout.back(arranged)), output) for again, output in call.outputs)
        if off > max(_PROOF, 4 * torch.finfo(call.outputs[0][1].dtype).eps):
            self._settled[_key(call)] = None
            self.left[call.site] = (
                f"{call.site} is left out: what was read does not give the output of this attention (it is "
                f"off by {off:.1%})."
            )
        blocked = None if call.blocked is None else call.blocked.cpu()
        return dataclasses.replace(call, weights=call.all_weights().cpu(), blocked=blocked)

    def _settle(
        self, inputs: Any, sizes: Sizes, calls: Sequence[Call], sites: Sequence[str] | None = None
    ) -> None:
        """Tell examples from heads where sizes do not: by looks at the examples in reverse order.

        Where several arrangements fit, as while all weights are alike, the most likely one is shown, and the
        looks 2, 4, 8 and so on at inputs of these sizes try again.
        """
        self._unsettled.discard(sizes)
        open_ones = [
            i
            for i, call in enumerate(calls)
            if call.layout.others and self._settled.get(_key(call), call.layout) is not None
        ]
        if not open_ones:
            return
        counts = {n for i in open_ones for split in calls[i].layout.splits for n in _examples(split)}
        reverse = [
            (n, made)
            for n in sorted(counts)
            for way in _ways(inputs, n)
            if (made := self._reverse(_reversed(inputs, n, way), sizes, sites)) and len(made) == len(calls)
        ]
        for i in open_ones:
            call, weights = calls[i], calls[i].all_weights()
            layouts = [dataclasses.replace(call.layout, split=split) for split in call.layout.splits]
            fitting = [
                layout for layout in layouts if _fits(layout, weights, [(n, made[i]) for n, made in reverse])
            ]
            ranks = [
                (one.sizes[0] == (sizes.batches or (1,))[0], len(_examples(one.split))) for one in fitting
            ]
            best = [one for one, rank in zip(fitting, ranks, strict=True) if rank == max(ranks)]
            if not best and call.fused:
                best = layouts[:1]  # the model may keep a mask of its examples, which stays as it is
            self._settled[_key(call)] = best[0] if best else None
            if len(best) > 1 and max(ranks)[1]:
                self._unsettled.add(sizes)
            if not best:
                why = f"{call.site} is left out: its examples cannot be told from its heads."
                self.left[call.site] = why

    def _reverse(self, inputs: Any, sizes: Sizes, sites: Sequence[str] | None) -> list[Tensor]:
        """The weights of every call for these inputs; none if the model does not take them."""
        try:
            return self._pass(inputs, sizes, lambda call: call.all_weights().cpu(), sites)[0]
        except Exception:  # the model's own, of any kind
            return []

    def _taken(self, call: Call) -> _Taken | None:
        """The weights of a call as (B, windows, H, Q, K); None where it is left out."""
        layout = self._settled.get(_key(call), call.layout)
        if layout is None:
            return None
        n_queries, n_keys = layout.whole
        pooled = _block(n_queries, self.most), _block(n_keys, self.most)
        ranges = None if self._part is None or pooled == (1, 1) else _ranges(self._part, layout.whole)
        inner, whole_blocked = None, None
        blocked = None if call.blocked is None else _array(_unrepeated(layout.arranged(call.blocked)))
        if pooled == (1, 1):
            weights = _array(layout.arranged(call.all_weights()).float())
            sums = weights.sum(-1)
            none = np.isnan(sums) | (sums == 0)  # rows without an allowed key
            if blocked is not None:
                none = none | blocked.all(-1)
        else:
            rows, whole_blocked = None if blocked is None else blocked.all(-1), blocked
            weights, none, inner = _pooled(call, layout, pooled, rows, ranges)
            sums = weights.sum(-1)
            if blocked is not None:
                blocked = _blocks(_blocks(blocked, -1, pooled[1], True).all(-1), -2, pooled[0], True).all(-1)
        if (nan := np.isnan(sums)).any():
            empty = blocked is not None and np.broadcast_to(blocked.all(-1), nan.shape)[nan].all()
            self.left[f"{call.site} NaN"] = f"{call.site} has {_EMPTY if empty else _NOT_NUMBERS}"
        half = torch.finfo(call.outputs[0][1].dtype).bits < 32 or call.half
        most = _HALF_SUM if half else _SUM
        if (sums[~none] > 1 + most).any():
            self.left[call.site] = f"{call.site} is left out: its rows add up to {sums[~none].max():.2f}."
            return None
        if (lowest := np.nanmin(weights, initial=0)) < -most:
            self.left[call.site] = (
                f"{call.site} is left out: some of its weights are negative ({lowest:.2f})."
            )
            return None
        rest = bool((sums[~none] < 1 - most).any())
        if rest:
            weights = np.concatenate([weights, (1 - sums)[..., None]], -1)
            blocked = None if blocked is None else np.pad(blocked, [(0, 0)] * 4 + [(0, 1)])
        hidden = none[..., None] if blocked is None else none[..., None] | blocked
        weights = np.where(hidden, np.float32(np.nan), weights.clip(0, 1))
        seen = Seen(weights, rest, layout.relative, layout.whole, pooled)
        part = None
        if ranges is not None and inner is not None:
            if whole_blocked is not None:
                hidden = whole_blocked[
                    ..., ranges[0].start : ranges[0].stop, ranges[1].start : ranges[1].stop
                ]
                inner = np.where(hidden, np.float32(np.nan), inner)
            elsewhere = (1 - np.nansum(inner, -1, keepdims=True)).clip(0, 1)
            none = np.isnan(inner).all(-1, keepdims=True)
            inner = np.concatenate([inner, np.where(none, np.float32(np.nan), elsewhere)], -1)
            part = Seen(inner, True, layout.relative, layout.whole, ranges=ranges)
        return _Taken(call.site, call.place, layout, seen, part)

    def _assembled(self, taken: Sequence[_Taken | None]) -> dict[str, Seen]:
        """The attentions by name: calls with one query as rows of a map, modules of one head as its heads."""
        of_site: dict[str, list[_Taken]] = {}
        for one in taken:
            if one is not None:
                of_site.setdefault(one.site, []).append(one)
        for site, series in of_site.items():
            loops = [
                list(group)
                for _, group in groupby(series, lambda one: (one.place, one.seen.weights.shape[3] == 1))
            ]
            of_site[site] = []
            for loop in loops:
                if len(loop) == 1 or loop[0].seen.weights.shape[3] > 1:
                    of_site[site] += loop
                elif len({one.seen.weights.shape[:3] for one in loop}) > 1:
                    why = "it is called for different numbers of examples; give inputs of one length"
                    self.left[site] = f"{site} is left out: {why}."
                else:
                    of_site[site].append(_joined(loop))
            of_site[site] = [
                one.of_heads(None if len(of_site[site]) == 1 else number)
                for number, one in enumerate(of_site[site], 1)
            ]
        heads: dict[Any, list[str]] = {}
        for site, series in of_site.items():
            first = series[0].seen if len(series) == 1 else None
            if first is not None and first.weights.shape[2] == 1 and (key := self._head_of(site)):
                heads.setdefault((*key, first.weights.shape, first.rest), []).append(site)
        for (parent, _, suffix, *_), sites in heads.items():
            if len(sites) > 1:
                together = np.concatenate([of_site[site][0].seen.weights for site in sites], 2)
                one = of_site[sites[0]][0]
                members = tuple(head for site in sites for head in of_site[site][0].seen.heads)
                whole = one._replace(seen=one.seen._replace(weights=together, heads=members), part=None)
                of_site = {
                    parent + suffix if site == sites[0] else site: [whole] if site == sites[0] else series
                    for site, series in of_site.items()
                    if site not in sites[1:]
                }
        seen: dict[str, Seen] = {}
        for site, series in of_site.items():
            for number, one in enumerate(series, 1):
                name = site if number == 1 else f"{site}#{number}"
                weights = one.seen.weights
                for window in range(min(weights.shape[1], MOST_WINDOWS)):
                    place = f" window {window + 1}" if weights.shape[1] > 1 else ""
                    seen[name + place] = one.seen._replace(weights=weights[:, window])
                    if one.part is not None:
                        inner = one.part.weights[:, window]
                        seen[name + place + PART] = one.part._replace(weights=inner)
        return seen

    def _head_of(self, site: str) -> tuple[str, int, str] | None:
        """The list of modules that a site is in, a number for the input, and the rest of the name."""
        parts = site.split(".")
        for n in range(len(parts), 0, -1):
            if (sibling := self._siblings.get(".".join(parts[:n]))) is not None:
                return *sibling, "".join(f".{part}" for part in parts[n:])
        return None


class _Taken(NamedTuple):
    """One call of an attention."""

    site: str
    place: int
    layout: Layout
    seen: Seen
    """Its weights have an axis of windows after that of examples."""
    part: Seen | None = None
    """A part in full, with the same axes."""

    def of_heads(self, number: int | None) -> _Taken:
        """This call, which has this number among those of its site, with its heads."""
        heads = range(self.seen.weights.shape[2])
        every = tuple(Head(self.site, number, head, self.layout) for head in heads)
        part = None if self.part is None else self.part._replace(heads=every)
        return self._replace(seen=self.seen._replace(heads=every), part=part)


def _block(n: int, most: int | None) -> int:
    """Number of positions in a block, so that an axis of n has at most `most` blocks."""
    return 1 if most is None else max(1, -(-n // most))


def _blocks(array: Any, axis: int, size: int, filler: float = 0.0) -> Any:
    """Divide one of the last two axes in blocks; the positions of a block become the last axis."""
    missing = -array.shape[axis] % size
    ends = [(0, 0)] * (array.ndim + axis) + [(0, missing)] + [(0, 0)] * (-1 - axis)
    whole = np.pad(array, ends, constant_values=filler) if missing else array
    shape = whole.shape[:axis] + (-1, size) + (whole.shape[axis + 1 :] if axis < -1 else ())
    return np.moveaxis(whole.reshape(shape), axis, -1) if axis < -1 else whole.reshape(shape)


def _pooled(
    call: Call,
    layout: Layout,
    sizes: tuple[int, int],
    blocked: np.ndarray[Any, Any] | None,
    ranges: tuple[range, range] | None,
) -> tuple[Array, np.ndarray[Any, Any], Array | None]:
    """The weights of blocks of queries and keys: mean over rows with an allowed key, sum over columns.

    One head at a time: its weights stay in the cache of the processor.

    Args:
        sizes: queries and keys in a block.
        blocked: rows without an allowed key, broadcastable to (B, windows, H, Q).
        ranges: queries and keys whose weights are returned as they are; None for no such weights.

    Returns:
        The weights, (B, windows, H, blocks of Q, blocks of K); whether no row of a block has an allowed key,
        (B, windows, H, blocks of Q); and the weights of the ranges, (B, windows, H, queries, keys), NaN in
        rows without an allowed key, or None.
    """
    rows, columns = sizes
    lead = *layout.sizes, layout.whole[-2]
    blocked = None if blocked is None else np.broadcast_to(blocked, lead).reshape(-1, lead[-1])
    sums_of_maps, missing, inner = [], [], []
    for i, weights in enumerate(call.maps(layout)):
        sums = weights.sum(-1, dtype=torch.float32)
        none = sums.isnan() | (sums == 0)
        if blocked is not None:
            none |= torch.tensor(blocked[i], device=none.device)
        if none.any():
            weights = weights.masked_fill(none[:, None], 0)
        if ranges is not None:
            some = weights[ranges[0].start : ranges[0].stop, ranges[1].start : ranges[1].stop].float()
            inner.append(some.masked_fill(none[ranges[0].start : ranges[0].stop, None], math.nan))
        short = -weights.shape[0] % rows, -weights.shape[1] % columns
        if any(short):
            weights = functional.pad(weights, (0, short[1], 0, short[0]))
            none = functional.pad(none, (0, short[0]), value=True)
        counted = (~none).unflatten(0, (-1, rows)).sum(-1)
        whole = weights.unflatten(0, (-1, rows)).sum(1, dtype=torch.float32)
        sums_of_maps.append(whole.unflatten(1, (-1, columns)).sum(-1) / counted.clamp_min(1)[:, None])
        missing.append(counted == 0)
    shape = lead[:3]
    pooled = _array(torch.stack(sums_of_maps)).reshape(*shape, *sums_of_maps[0].shape)
    rest = _array(torch.stack(missing)).reshape(*shape, -1)
    return pooled, rest, _array(torch.stack(inner)).reshape(*shape, *inner[0].shape) if inner else None


def checked_part(given: Any) -> Part:
    """Two slices without steps, not empty. Anything else raises TypeError, ValueError or AttributeError."""
    queries, keys = given
    for one in (queries, keys):
        if one.step not in (None, 1) or not range(*one.indices(sys.maxsize)):
            raise ValueError("no part")
    return queries, keys


def _ranges(part: Part, whole: tuple[int, int]) -> tuple[range, range] | None:
    """The first MOST_OF_PART queries and keys of a part; None where it has no queries or no keys."""
    rows, columns = (range(*one.indices(n))[:MOST_OF_PART] for one, n in zip(part, whole, strict=True))
    return (rows, columns) if rows and columns else None


def _array(tensor: Tensor) -> Any:
    return tensor.cpu().numpy()


def _unrepeated(tensor: Tensor) -> Tensor:
    """The tensor with only the first of examples, windows and heads that share their memory."""
    for axis in range(3):
        if tensor.stride(axis) == 0:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _joined(series: Sequence[_Taken]) -> _Taken:
    """Calls with one query each as the rows of one map; keys that a row does not have are NaN."""
    calls = [one.seen for one in series]
    most = max(call.weights.shape[-1] - call.rest for call in calls)
    rest = any(call.rest for call in calls)
    rows = []
    for call in calls:
        keys = call.weights[..., : call.weights.shape[-1] - call.rest]
        row = np.pad(keys, [(0, 0)] * 4 + [(0, most - keys.shape[-1])], constant_values=np.nan)
        last = call.weights[..., -1:] if call.rest else np.zeros_like(keys[..., :1])
        rows.append(np.concatenate([row, last], -1) if rest else row)
    size = len(calls), max(call.size[1] for call in calls)
    whole = calls[0]._replace(weights=np.concatenate(rows, 3), rest=rest, size=size)
    return series[0]._replace(seen=whole, part=None)


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


def _checked(name: str, weights: object) -> Array:
    if not isinstance(weights, Tensor) or weights.dim() != 4:
        what = f"shape {tuple(weights.shape)}" if isinstance(weights, Tensor) else type(weights).__name__
        raise InputError(f"The attention weights {name!r} are of {what}; expected is a tensor (B, H, Q, K).")
    # A copy: the training loop may change the original.
    array: Array
    array = weights.detach().to("cpu", torch.float32, copy=True).numpy()
    if (array < -_ROUNDING).any() or (array > 1 + _ROUNDING).any():
        low, high = float(np.nanmin(array)), float(np.nanmax(array))
        raise InputError(
            f"The attention weights {name!r} go from {low:.3g} to {high:.3g}; expected are shares from 0 to "
            "1, as a softmax gives them."
        )
    if (most := np.nansum(array, -1).max(initial=0)) > 1 + _HALF_SUM:
        raise InputError(
            f"The rows of the attention weights {name!r} add up to {most:.3g}; expected is 1 or less. Divide "
            "each row by its sum."
        )
    return array.clip(0, 1)


def _call(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*(inputs if isinstance(inputs, tuple) else (inputs,)))


def _off(again: Tensor, output: Tensor) -> float:
    """The largest difference, as a share of the largest output; infinite where other cells are NaN."""
    again, output = again.float(), output.float()
    if not torch.equal(again.isnan(), output.isnan()):
        return math.inf
    off = (again - output).abs().nan_to_num().max() / output.abs().nan_to_num().max().clamp_min(1e-30)
    return float(off)


def _key(call: Call) -> tuple[str, Layout]:
    return call.site, call.layout


def _examples(split: Split) -> list[int]:
    """The sizes above 1 of the axes of examples in a split."""
    return [n for kind, n in split if kind == EXAMPLES and n > 1]


def _ways(inputs: Any, n: int) -> range:
    """The values of `way` for `_reversed`: two if both first axes of a tensor have the size n, else one."""
    twice = any(isinstance(one, Tensor) and one.shape[:2] == (n, n) for one in parts_of(inputs))
    return range(2 if twice else 1)


def _reversed(inputs: Any, n: int, way: int) -> Any:
    """The inputs with their n examples in reverse order; `way` selects the axis if both are of this size."""

    def reverse(one: Any) -> Any:
        if isinstance(one, list):
            return one[::-1] if len(one) == n else one
        axes = [i for i, size in enumerate(one.shape[:2]) if size == n]
        return one.flip(axes[min(way, len(axes) - 1)]) if axes else one

    return changed(inputs, reverse)


def _fits(layout: Layout, weights: Tensor, reverse: Sequence[tuple[int, Tensor]]) -> bool:
    """Whether, for each axis of examples, a look at reversed examples gave weights reversed on this axis."""
    near = _HALF_SUM if weights.dtype in (torch.float16, torch.bfloat16) else _PROOF
    apart = layout.apart(weights)
    return all(
        any(
            torch.allclose(apart.flip(place), layout.apart(other), atol=near, rtol=0, equal_nan=True)
            for n, other in reverse
            if n == size
        )
        for place, (kind, size) in enumerate(layout.split)
        if kind == EXAMPLES and size > 1
    )


def _equal(one: Any, other: Any) -> bool:
    """Whether the tensors of two outputs are the same: on the CPU bit for bit, elsewhere nearly."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or one.device.type == "cpu" or not one.is_floating_point():
            return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())
        return torch.allclose(one.float(), other.float(), rtol=1e-2, atol=1e-3, equal_nan=True)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return True


@contextmanager
def _same_random(modules: Iterable[nn.Module], devices: Sequence[int]) -> Iterator[None]:
    """Restore the random streams of Python, NumPy, torch (CPU, these GPUs) and the modules' generators."""
    own = [var for module in modules for var in vars(module).values() if type(var) is torch.Generator]
    states = random.getstate(), np.random.get_state(), [one.get_state() for one in own]
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
            for one, state in zip(own, states[2], strict=True):
                one.set_state(state)


@contextmanager
def _as_before(model: nn.Module, modules: Iterable[nn.Module]) -> Iterator[None]:
    """Put a model into eval mode; at the end restore each module's mode and buffers, and PyTorch's switches.

    Only the flag `training` is set: `eval()` of some modules does more, such as merging weights.
    """
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    modes = [(module, module.training) for module in modules]
    fast = torch.backends.mha.get_fastpath_enabled()
    with ExitStack() as stack:
        stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
        torch.backends.mha.set_fastpath_enabled(False)  # one operation for a whole layer; no training uses it
        if sys.modules.keys() & _COMPILING:  # something may be compiled: its operations would not be seen
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        try:
            for module, training in modes:
                if training:
                    module.training = False
            yield
        finally:
            for module, training in modes:
                if module.training != training:
                    module.training = training
            with torch.no_grad():
                for buffer, before in buffers:
                    if not torch.equal(buffer, before):
                        buffer.copy_(before)
