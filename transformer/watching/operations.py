"""The attention of one forward pass, found among the operations that the model performs.

Below its modules, an attention is one of two things: a fused operation, whose weights are computed again from
its arguments, or a softmax whose result is multiplied with values: in a matrix product, or in a product that
is then summed. In the second case, the factor is followed from the softmax through views, permutations,
padding, casts, masks, dropout, means over heads, and the joining of several softmaxes (`stack`, `cat`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from transformer.watching.layout import Layout, Sizes, layout_of, plain_layout

BLOCKED = -1e4
"""A score up to this counts as masked: people write -inf, -1e9, -1e4, or the least number of the type."""
_MIXED = "a layer mixes the results of its softmax, as between heads, so they are no shares of attention"
_ATEN = torch.ops.aten
_PRODUCTS = {
    _ATEN.bmm: (0, 1),
    _ATEN.mm: (0, 1),
    _ATEN.baddbmm: (1, 2),
    _ATEN.addmm: (1, 2),
    _ATEN.mv: (1, 0),
}
"""The places of the left and the right factor among the arguments of a product; in mv the vector is left."""
_MOVES = {
    getattr(_ATEN, name)
    for name in (
        "view _unsafe_view expand permute transpose t unsqueeze squeeze select slice clone as_strided "
        "constant_pad_nd alias detach _reshape_alias unfold split split_with_sizes unbind flip roll"
    ).split()
}
"""Operations that move values and change none."""
_SMALL = 2**20
"""Up to this number, the weights of a fused attention are computed at once; more of them head by head."""
_OTHER, _SOFTMAX, _PRODUCT, _FUSED, _FLEX, _FOREIGN = range(6)


@cache
def _kind(func: Any) -> int:
    """What an operation is."""
    if func is torch.ops.higher_order.flex_attention:
        return _FLEX
    packet, name = getattr(func, "overloadpacket", None), func.name()
    if packet in (_ATEN._softmax, _ATEN._safe_softmax, _ATEN._log_softmax):
        return _SOFTMAX
    if packet in _PRODUCTS:
        return _PRODUCT
    if name.startswith("aten::_scaled_dot_product"):
        return _FUSED
    return _OTHER if name.startswith("aten::") or not _is_called_attention(name) else _FOREIGN


@cache
def _hides_attention(func: Any) -> bool:
    """Whether an attention may be in this function, by its name."""
    name = str(getattr(func, "__name__", func))
    return "softmax" in name or _is_called_attention(name)


def _is_called_attention(name: str) -> bool:
    return "attention" in name or "attn" in name


class _Operations(TorchDispatchMode):
    """Calls a function after every operation below the functions of PyTorch."""

    supports_higher_order_operators = True  # or `flex_attention` would fail

    def __init__(self, after: Callable[[Any, Any, Any, Any], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.after = after


def _dispatched(self: _Operations, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    if torch.is_inference_mode_enabled():  # where functions arrive that are made of operations
        with self:
            output = func.decompose(*args, **(kwargs or {})) if hasattr(func, "decompose") else NotImplemented
        if output is not NotImplemented:
            return output
    output = func(*args, **(kwargs or {}))
    self.after(func, args, kwargs or {}, output)
    return output


# Set after the class, since a method of its body is wrapped in `torch._disable_dynamo`: 16 of 25 µs a call.
_Operations.__torch_dispatch__ = _dispatched  # type: ignore[method-assign, assignment]


@dataclass
class Trace:
    """Where the values of a tensor come from."""

    site: str
    """The innermost module that was running at the softmax."""
    weights: Tensor
    """The result of the softmax, or of what was done to its values since then."""
    axis: int
    """The axis of the weights along which they add up to 1."""
    blocked: Tensor | None
    """Of the shape of the weights: cells that a mask blocks; None where there are none."""
    index: Tensor
    """For each value of the tensor, its place in the flattened weights; -1 for padding."""
    place: int
    """Hash of the places in the code that were running at the softmax."""
    order: int
    """Number of the attention in the pass."""
    gate: bool = False
    """Whether it is a softmax of the outputs of a linear layer, such as a router's."""
    logs: bool = False
    """Whether the values are logarithms of weights, as `log_softmax` gives them."""

    @property
    def moved_blocked(self) -> Tensor | None:
        """The blocked cells, moved as the values of the tensor are; None where there are none."""
        if self.blocked is None:
            return None
        return self.blocked.flatten()[self.index.clamp_min(0)] & (self.index >= 0)


@dataclass(frozen=True)
class Call:
    """One attention of the pass."""

    site: str
    layout: Layout
    weights: Tensor | Callable[[int, int], Tensor]
    """As the model arranges them; of a large fused attention, a function from example and head to (Q, K)."""
    blocked: Tensor | None
    """True in blocked cells, as the model arranges the weights; None where nothing is blocked."""
    outputs: tuple[tuple[Callable[[Tensor], Tensor], Tensor], ...]
    """Pairs: a function that computes the output of the attention from weights as the model arranges them,
    and the output that the model computed. Several pairs where parts of the weights are multiplied apart.
    """
    place: int
    """Hash of the places in the code that were running: the same for all turns of a loop."""
    order: int
    """Its number in the pass."""
    fused: bool = False

    def all_weights(self) -> Tensor:
        """The weights as the model arranges them."""
        if isinstance(self.weights, Tensor):
            return self.weights
        n, heads, *_ = self.layout.shape
        return torch.stack([torch.stack([self.weights(i, head) for head in range(heads)]) for i in range(n)])

    def maps(self, layout: Layout) -> Iterator[Tensor]:
        """(Q, K) weights of each head, of each window, of each example."""
        if isinstance(self.weights, Tensor):
            yield from layout.arranged(self.weights).flatten(0, 2)
            return
        n, heads, *_ = self.layout.shape
        places = torch.arange(n * heads).view(n, heads, 1, 1).expand(self.layout.shape[:-1])
        for place in layout.arranged(places)[..., 0, 0].flatten().tolist():
            yield self.weights(*divmod(place, heads))

    @property
    def half(self) -> bool:
        """Whether the weights have less than 32 bits."""
        return isinstance(self.weights, Tensor) and torch.finfo(self.weights.dtype).bits < 32


class Observing(TorchFunctionMode):
    """Calls `found` for every wanted attention of the forward pass that runs inside this context.

    Functions of PyTorch that cannot hide an attention run as usual. The operations of the others, and of all
    functions between a softmax and its product, are looked at one by one, which takes about as long as they
    do.

    Args:
        model: the model; a softmax times one of its parameters is no attention.
        modules: its modules, which name the attentions.
        inputs: sizes of the model's inputs.
        found: called with an attention as soon as it is known; at the end of the pass if parts of its weights
            are multiplied apart.
        wanted: whether the attentions of a module are looked at, by its name.
        layouts: the layouts known from earlier passes; this pass adds to them.
    """

    def __init__(
        self,
        model: nn.Module,
        modules: Mapping[str, nn.Module],
        inputs: Sizes,
        found: Callable[[Call], None],
        wanted: Callable[[str], bool],
        layouts: dict[Any, Layout | None],
    ) -> None:
        super().__init__()
        self._modules = {id(module): (name, module) for name, module in modules.items()}
        self._root = type(model).__name__
        self._model = model
        self._inputs, self._found, self._wanted, self._layouts = inputs, found, wanted, layouts
        self._places: dict[Any, Tensor] = {}
        self._traced: dict[int, tuple[Tensor, Trace]] = {}  # by id; the tensor keeps its id taken
        # By id: a softmax times values, which may be added up; its place in the arguments; and these.
        self._weighted: dict[int, tuple[Tensor, Trace, int, Any]] = {}
        self._parts: dict[int, Call] = {}  # what is known of the parts of a softmax, by its order
        self._order = 0
        self._operations = _Operations(self._operation)
        self._layer: Tensor | None = None
        """The result of the newest linear layer."""
        self.unseen: dict[str, str] = {}
        """By module, the reason why an attention in it is not seen."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        follows = self._traced or (_hides_attention(func) and self._wanted(self._site()[0]))
        with self._operations if follows else nullcontext():
            output = func(*args, **(kwargs or {}))
        if func is functional.linear:
            self._layer = output
        return output

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for call in self._parts.values():
            self._found(call)

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _operation(self, func: Any, args: Any, kwargs: Any, output: Any) -> None:
        what = _kind(func)
        if what == _OTHER:
            if self._weighted and getattr(func, "overloadpacket", None) is _ATEN.sum:
                self._sum(func, args, kwargs, output)
            elif self._traced:
                self._follow(func, args, kwargs, output)
        elif what == _PRODUCT:
            if self._traced:
                self._product(func, args, kwargs, output)
        elif what == _FOREIGN:
            self.unseen[self._site()[0]] = f"the weights of {func.name()} cannot be computed"
        else:
            {_SOFTMAX: self._softmax, _FUSED: self._fused, _FLEX: self._flex}[what](
                func, args, kwargs, output
            )

    def part(self, call: Call) -> None:
        """Called with every fused attention and every product of weights and values, once it is computed."""

    def _give(self, call: Call) -> None:
        self.part(call)
        self._found(call)

    # Fused attention.

    def _fused(self, func: Any, args: Any, kwargs: Any, output: Any) -> None:
        site, module_id, place = self._site()
        if not self._wanted(site):
            return
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | kwargs
        mask = given.get("attn_mask")
        mask = given.get("attn_bias") if mask is None else mask
        query, key, value = given["query"], given["key"], given["value"]
        causal, scale = given.get("is_causal", False), given.get("scale")
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        group = query.shape[1] // key.shape[1]
        shape = *query.shape[:3], key.shape[2]
        blocked = _blocked_cells(shape[2:], mask, causal, query.device)
        own = None if mask is None else mask.expand(shape)

        def weights(i: int, head: int) -> Tensor:
            return fused_weights(
                query[i, head], key[i, head // group], None if own is None else own[i, head], causal, scale
            )

        packed = self._is_packed(module_id, shape)
        small = packed or math.prod(shape) <= _SMALL
        self._give(
            Call(
                site=site,
                layout=plain_layout(shape, self._inputs, packed),
                weights=fused_weights(query, grouped(key, shape[1]), mask, causal, scale)
                if small
                else weights,
                blocked=None if blocked is None else blocked.expand(shape),
                outputs=((lambda of: of.to(value.dtype) @ grouped(value, of.shape[1]), output[0]),),
                place=place,
                order=self._next(),
                fused=True,
            )
        )

    def _is_packed(self, module_id: int, shape: Sequence[int]) -> bool:
        """Whether a module of `transformers` decodes one query, whose heads that share keys are the rows."""
        _, module = self._modules.get(module_id, ("", None))
        group = getattr(module, "num_key_value_groups", 1)
        heads = getattr(getattr(module, "config", None), "num_attention_heads", 0)
        return shape[2] == group > 1 and shape[1] * group == heads

    def _flex(self, func: Any, args: Any, kwargs: Any, output: Any) -> None:
        """Read the weights of `flex_attention`: with the identity for values, its output is its weights."""
        site, _, place = self._site()
        if not self._wanted(site):
            return
        query, key, value, score_mod, block_mask, *others = args
        from torch.nn.attention.flex_attention import create_mask  # slow to import, and used by few models

        n_keys = key.shape[-2]
        identity = torch.eye(n_keys, dtype=query.dtype, device=query.device).expand(*key.shape[:2], -1, -1)
        weights = func(query, key, identity, score_mod, block_mask, *others, **kwargs)[0]
        n, heads, n_queries, _ = query.shape
        mask = create_mask(block_mask[-1], n, heads, n_queries, n_keys, device=str(query.device))
        self._give(
            Call(
                site=site,
                layout=plain_layout(weights.shape, self._inputs),
                weights=weights,
                blocked=None if mask.all() else ~mask,
                outputs=((lambda of: of.to(value.dtype) @ grouped(value, of.shape[1]), output[0]),),
                place=place,
                order=self._next(),
                fused=True,
            )
        )

    # A softmax and a product.

    def _softmax(self, func: Any, args: Any, kwargs: Any, output: Tensor) -> None:
        scores: Tensor = args[0]
        site, _, place = self._site()
        if not scores.dim() or not output.numel() or not self._wanted(site):
            return
        axis = (args[1] if len(args) > 1 else kwargs["dim"]) % scores.dim()
        low = scores <= BLOCKED
        logs, blocked = func.overloadpacket is _ATEN._log_softmax, None
        if low.any():  # a row whose scores are all that low is blocked, whatever its softmax is
            weights = output.exp() if logs else output
            blocked = low & ((weights == 0) | low.all(axis, keepdim=True))
        gate = scores is self._layer and axis == scores.dim() - 1
        index = self._places_of(output)
        self._trace(output, Trace(site, output, axis, blocked, index, place, self._next(), gate, logs))

    def _places_of(self, tensor: Tensor) -> Tensor:
        """For each cell of a tensor its place when flattened; it has the strides of the tensor."""
        key = tensor.shape, tensor.stride(), tensor.device
        if key not in self._places:
            count = torch.arange(tensor.numel(), dtype=torch.int32, device=tensor.device)
            places = torch.empty_strided(*key[:2], dtype=torch.int32, device=tensor.device)
            self._places[key] = places.copy_(count.view(tensor.shape))
        return self._places[key]

    def _trace(self, tensor: Tensor, trace: Trace) -> None:
        self._traced[id(tensor)] = tensor, trace

    def _traces(self, args: Sequence[Any]) -> Iterator[tuple[int, Trace]]:
        for i, one in enumerate(args):
            if isinstance(one, Tensor) and (trace := self._traced.get(id(one))) is not None:
                yield i, trace[1]

    def _follow(self, func: Any, args: Any, kwargs: Any, output: Any) -> None:
        """Follow the values of a softmax through an operation."""
        packet = getattr(func, "overloadpacket", None)
        if packet in (_ATEN.cat, _ATEN.stack):
            self._join(func, args, kwargs, output)
            return
        place, trace = next(self._traces(args), (None, None))
        if place is None or trace is None:
            return
        if packet in _MOVES:
            if place == 0:
                moved = (
                    func(trace.index, *args[1:2], -1)
                    if packet is _ATEN.constant_pad_nd
                    else func(trace.index, *args[1:], **kwargs)
                )
                for tensor, index in zip(*map(_listed, (output, moved)), strict=True):
                    self._trace(tensor, replace(trace, index=index))
            return
        if packet is _ATEN.convolution:
            self.unseen[trace.site] = _MIXED
            return
        result = output[0] if packet is _ATEN.native_dropout else output
        if not isinstance(result, Tensor) or not result.is_floating_point():
            return
        if packet is _ATEN.mean:
            self._average(args, kwargs, trace, result)
        elif (
            packet is _ATEN.mul and result.shape != trace.index.shape and isinstance(args[1 - place], Tensor)
        ):
            self._weighted[id(result)] = result, trace, place, args
        elif result.shape == trace.index.shape and isinstance(axis := _axis_of(trace), int):
            logs = trace.logs and packet is not _ATEN.exp
            self._restart(replace(trace, logs=logs), result, axis, trace.moved_blocked)

    def _restart(self, trace: Trace, result: Tensor, axis: int, blocked: Tensor | None) -> None:
        """Follow a result of other values, or of another shape, as weights of the same attention."""
        index = self._places_of(result)
        self._trace(result, replace(trace, weights=result, axis=axis, blocked=blocked, index=index))

    def _join(self, func: Any, args: Any, kwargs: Any, output: Tensor) -> None:
        """Follow softmaxes that are stacked or concatenated, such as those of heads computed in a loop."""
        tensors, *rest = args
        traces = dict(self._traces(tensors))
        axes = {_axis_of(trace) for trace in traces.values()}
        if not traces or len(axes) > 1 or (axis := axes.pop()) is None:
            return
        if output.dim() > tensors[0].dim():
            dim = (rest[0] if rest else kwargs.get("dim", 0)) % output.dim()
            axis += dim <= axis
        blocked = None
        if any(trace.blocked is not None for trace in traces.values()):
            cells = [traces[i].moved_blocked if i in traces else None for i in range(len(tensors))]
            blocked = func(
                [
                    torch.zeros_like(one, dtype=torch.bool) if of is None else of
                    for one, of in zip(tensors, cells, strict=True)
                ],
                *rest,
                **kwargs,
            )
        self._restart(next(iter(traces.values())), output, axis, blocked)

    def _average(self, args: Any, kwargs: Any, trace: Trace, result: Tensor) -> None:
        """Follow a mean over heads."""
        dims = args[1] if len(args) > 1 else kwargs.get("dim")
        axis = _axis_of(trace)
        if (
            not dims
            or axis is None
            or (len(args) > 2 and args[2])
            or trace.index.shape != trace.weights.shape
        ):
            return
        gone = {dim % trace.index.dim() for dim in dims}
        if axis in gone:
            return
        blocked = trace.blocked
        for dim in sorted(gone, reverse=True):
            blocked = None if blocked is None else blocked.all(dim)
        self._restart(trace, result, axis - sum(dim < axis for dim in gone), blocked)

    def _product(self, func: Any, args: Any, kwargs: Any, output: Tensor) -> None:
        """Look whether a product is that of an attention."""
        factors = _PRODUCTS[func.overloadpacket]
        for place, trace in self._traces(args):
            if place not in factors:
                continue
            index = trace.index if place == factors[0] or trace.index.dim() == 1 else trace.index.mT
            while index.dim() < 3:
                index = index.unsqueeze(0)
            factor = args[place]

            def again(
                of: Tensor, place: int = place, places: Tensor = trace.index, factor: Tensor = factor
            ) -> Tensor:
                product: Tensor = func(
                    *args[:place], _moved(of, places, factor), *args[place + 1 :], **kwargs
                )
                return product

            values = args[factors[1 - factors.index(place)]]
            if self._attention(trace, index, values, again, output):
                return

    def _sum(self, func: Any, args: Any, kwargs: Any, output: Tensor) -> None:
        """Look whether a softmax times values, added up, is an attention."""
        if not args or (pending := self._weighted.pop(id(args[0]), None)) is None:
            return
        weighted, trace, place, (one, other, *_) = pending
        dims = args[1] if len(args) > 1 else kwargs.get("dim")
        if not dims or len(dims) != 1:
            return
        axis = dims[0] % weighted.dim()
        missing = weighted.dim() - trace.index.dim()
        shape = (1,) * missing + tuple(trace.index.shape)
        index = trace.index.reshape(shape).expand(weighted.shape).movedim(axis, -1)
        rest = [i for i in range(weighted.dim()) if i != axis]
        for i in reversed(range(len(rest))):
            if shape[rest[i]] == 1:
                index = index.select(i, 0)
        values = other if place == 0 else one

        def again(of: Tensor) -> Tensor:
            factor = one if place == 0 else other
            added: Tensor = func(_moved(of, trace.index, factor) * values, *args[1:], **kwargs)
            return added

        self._attention(trace, index.reshape(-1, 1, index.shape[-1]), values, again, output)

    def _attention(
        self, trace: Trace, index: Tensor, values: Tensor, again: Callable[[Tensor], Tensor], output: Tensor
    ) -> bool:
        """Whether a product is an attention's; if so, call `found` (for parts, at the end of the pass)."""
        if trace.logs:
            return False
        key = trace.site, trace.weights.shape, trace.axis, index.shape, index.stride(), self._inputs
        if key not in self._layouts:
            _, module = self._modules.get(self._site()[1], ("", None))
            heads = module.num_heads if isinstance(module, nn.MultiheadAttention) else None
            layout = layout_of(index, trace.weights.shape, trace.axis, self._inputs, heads)
            if self._is_parameter(values):
                if layout is None and not trace.gate:
                    self.unseen[trace.site] = _MIXED
                layout = None  # a layer, a gate or a table
            self._layouts[key] = layout
        layout = self._layouts[key]
        if layout is None or (trace.gate and layout.relative):
            return False
        call = Call(
            trace.site, layout, trace.weights, trace.blocked, ((again, output),), trace.place, trace.order
        )
        self.part(call)
        before = self._parts.get(trace.order)
        if before is not None:
            call = replace(
                call, layout=layout.with_columns_of(before.layout), outputs=before.outputs + call.outputs
            )
        if before is not None or layout.columns is not None:
            self._parts[trace.order] = call
            return True
        self._found(call)
        self._traced = {key: pair for key, pair in self._traced.items() if pair[1].order != trace.order}
        return True

    def _is_parameter(self, tensor: Tensor) -> bool:
        address = tensor.untyped_storage().data_ptr()
        return any(
            parameter.untyped_storage().data_ptr() == address for parameter in self._model.parameters()
        )

    def _site(self) -> tuple[str, int, int]:
        """Name and id of the innermost module whose method is running, and a hash of the places in the code.

        They are read from the stack: hooks would change the model, and would not see a module of which
        another method than `forward` is called. `nn.Softmax` and `nn.Dropout` are passed over.
        """
        frame = sys._getframe(2)
        name, module_id, place = self._root, 0, []
        while frame is not None:
            if (
                not module_id
                and (named := self._modules.get(me := id(frame.f_locals.get("self")))) is not None
            ):
                if not isinstance(named[1], nn.Softmax | nn.Dropout):
                    parts = (part for part in named[0].split(".") if part != "_orig_mod")
                    name, module_id = ".".join(parts) or self._root, me
            if module_id:
                place.append((id(frame.f_code), frame.f_lasti))
            frame = frame.f_back  # type: ignore[assignment]
        return name, module_id, hash(tuple(place))


def fused_weights(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """The weights of PyTorch's fused attention, in float32.

    Args:
        query: (..., Q, E).
        key: (..., K, E).
        mask: (..., Q, K), added to the scores; or boolean, True where a key is allowed.
        causal: whether query i sees the first i + 1 keys only.

    Returns:
        (..., Q, K); rows without an allowed key are 0.
    """
    scores = (query.float() * scale) @ key.float().mT
    if mask is not None:
        scores = scores.masked_fill_(~mask, -math.inf) if mask.dtype == torch.bool else scores.add_(mask)
    if causal:
        scores = scores.add_(_future(*scores.shape[-2:], scores.device))
    weights = scores.softmax(-1)
    return weights if mask is None else weights.nan_to_num_(0.0)


def _blocked_cells(
    shape: Sequence[int], mask: Tensor | None, causal: bool, device: torch.device
) -> Tensor | None:
    """(..., Q, K): cells that the masks block; None where that is none."""
    low = None
    if mask is not None:
        low = ~mask if mask.dtype == torch.bool else mask <= BLOCKED
    if causal:
        later = _future(shape[0], shape[1], device) < 0
        low = later if low is None else low | later
    return low if low is not None and low.any() else None


@lru_cache(maxsize=4)
def _future(n_rows: int, n_columns: int, device: torch.device) -> Tensor:
    """(Q, K): -inf above the diagonal, else 0."""
    return torch.full((n_rows, n_columns), -math.inf, device=device).triu(1)


def grouped(heads: Tensor, n: int) -> Tensor:
    """Keys or values (B, H, K, E) for n heads of queries, (B, n, K, E): each serves n/H neighbours."""
    return heads if heads.shape[1] == n else heads.repeat_interleave(n // heads.shape[1], 1)


def _axis_of(trace: Trace) -> int | None:
    """The axis of the moved tensor along which it adds up to 1; None where there is none."""
    after = trace.weights.shape[trace.axis + 1 :]
    size, step = trace.weights.shape[trace.axis], math.prod(after)
    for axis in range(trace.index.dim()):
        if trace.index.shape[axis] == size > 1:
            first, second = trace.index.select(axis, 0).flatten()[0], trace.index.select(axis, 1).flatten()[0]
            if int(second - first) == step:
                return axis
    return None


def _moved(weights: Tensor, index: Tensor, factor: Tensor) -> Tensor:
    """Weights as the model arranges them, moved to where they are multiplied; 0 for padding."""
    return weights.flatten()[index.clamp_min(0)].masked_fill(index < 0, 0).to(factor.dtype)


def _listed(one: Any) -> list[Any]:
    return list(one) if isinstance(one, tuple | list) else [one]
