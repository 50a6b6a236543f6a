"""Where a score of an attention comes from: which parts of the residual streams make it.

The stream before an attention is a sum: token, position, and what each sublayer before it has written. A norm
is linear, except for its bias, once its deviation is taken as it is. So every query and every key is the sum
of what comes from each of these parts, and of biases; and a score is the sum of all products of a query part
and a key part ("A Mathematical Framework for Transformer Circuits", Elhage et al., 2021). The sum is exact up
to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from transformer.anatomy.boxes import with_numbers
from transformer.anatomy.passes import ForwardTrace, ResidualPass
from transformer.insight.names import site_name
from transformer.recording.frame import Array

Parts = dict[str, Array]
"""What each part adds at each position, by its name: (T, D) in a stream, (H, T, K) in queries or keys."""
BIASES = "biases"
MOST = 8
"""If a stream has more parts than this, the sublayers of each layer are added up."""


def score_parts(trace: ForwardTrace, site: str) -> tuple[Parts, Parts]:
    """The parts of all scores of an attention, before the mask.

    Args:
        trace: a forward pass.
        site: the attention, such as decoder.1.cross.

    Returns:
        What each part adds to the queries, (H, Q, K) and divided as the scores are, and to the keys,
        (H, S, K). The products of all pairs add up to the scores.
    """
    attention = trace.attentions[site]
    own = _before(trace, site.split(".")[0], attention.module)
    reads = _normed(trace, own, attention) if trace.config.model.norm_placement == "pre" else own
    memory = _output(trace, "encoder") if site.endswith(".cross") else reads
    scale = 1 / math.sqrt(trace.config.model.score_width)
    queries = _projected(trace, reads, f"{attention.module}.to_query")
    keys = _projected(trace, memory, f"{attention.module}.to_key")
    return {name: scale * query for name, query in queries.items()}, keys


def packed_parts(trace: ForwardTrace, sites: Iterable[str]) -> bytes:
    """A line of JSON with the names of the parts, by site; after it, for each site, the parts of its queries
    and then of its keys as float32, little-endian."""
    parts_of_site = {site: score_parts(trace, site) for site in sites}
    names = {
        site: {"query": list(queries), "key": list(keys)} for site, (queries, keys) in parts_of_site.items()
    }
    return with_numbers(
        names, (one for sides in parts_of_site.values() for side in sides for one in side.values())
    )


def _before(trace: ForwardTrace, stack: str, module: str | None) -> Parts:
    """The parts of a stack's stream before a module; None: after the last one."""
    passed = trace.stacks[stack]
    scale = math.sqrt(trace.config.model.d_model) if passed.scaled else 1.0
    parts: Parts = {"token": (scale * passed.embedded).astype(np.float64)}
    if trace.config.model.positions != "none":
        parts["position"] = passed.positions.astype(np.float64)
    for sublayer in _sublayers(trace, stack):
        if sublayer.module == module:
            break
        name = _named(sublayer)
        if trace.config.model.norm_placement == "post":
            parts = _normed(trace, parts | {name: sublayer.output.astype(np.float64)}, sublayer)
        else:
            parts[name] = (
                sublayer.output if trace.config.model.norm_placement == "pre" else sublayer.normed
            ).astype(np.float64)
    return _fewer(parts)


def _sublayers(trace: ForwardTrace, stack: str) -> list[ResidualPass]:
    """The sublayers of a stack, in order."""
    sublayers: list[ResidualPass] = []
    for i, layer in enumerate(trace.stacks[stack].layers):
        here = (one for site, one in trace.attentions.items() if _is_of(site, stack, i))
        sublayers += [*here, layer]
    return sublayers


def _is_of(site: str, stack: str, layer: int) -> bool:
    return site.split(".")[:2] == [stack, str(layer)]


def _named(one: ResidualPass) -> str:
    """The name of what a sublayer writes: "decoder layer 1, cross"."""
    stack, layer, module = one.module.split(".")
    what = module.removesuffix("_attention").replace("_", "-")
    return f"{site_name(f'{stack}.{layer}')}, {what}"


def _fewer(parts: Parts) -> Parts:
    """The parts, with those of a layer added up where there are more than MOST."""
    if len(parts) <= MOST:
        return parts
    grouped: Parts = {}
    for name, values in parts.items():
        layer = name.split(",")[0]
        grouped[layer] = grouped[layer] + values if layer in grouped else values
    return grouped


def _output(trace: ForwardTrace, stack: str) -> Parts:
    """The parts of a stack's output, after its final norm if it has one."""
    parts = _before(trace, stack, None)
    name = f"{stack}_norm"
    return _through(trace, parts, name) if f"{name}.weight" in trace.parameters else parts


def _normed(trace: ForwardTrace, parts: Parts, one: ResidualPass) -> Parts:
    return _through(trace, parts, one.norm)


def _through(trace: ForwardTrace, parts: Parts, norm: str) -> Parts:
    """The parts after a norm: each minus its mean, divided by the deviation of their sum; and the biases."""
    model = trace.config.model
    whole = np.sum(list(parts.values()), axis=0)
    if model.norm == "scalar":
        deviation = whole.std(axis=-1, ddof=1, keepdims=True) + model.norm_eps
    else:
        deviation = np.sqrt(whole.var(axis=-1, keepdims=True) + model.norm_eps)
    gain, bias = (trace.parameters[f"{norm}.{name}"].astype(np.float64) for name in ("weight", "bias"))
    normalised = {
        name: gain * (one - one.mean(axis=-1, keepdims=True)) / deviation for name, one in parts.items()
    }
    normalised[BIASES] = normalised.get(BIASES, 0.0) + np.broadcast_to(bias, whole.shape)
    return normalised


def _projected(trace: ForwardTrace, parts: Parts, module: str) -> Parts:
    """What each part becomes in the queries or the keys, (H, T, K) each."""
    weight = trace.parameters[f"{module}.weight"].astype(np.float64)
    projected = {name: one @ weight.T for name, one in parts.items()}
    bias = trace.parameters.get(f"{module}.bias")
    if bias is not None:
        projected[BIASES] = projected.get(BIASES, 0.0) + np.broadcast_to(
            bias.astype(np.float64), projected["token"].shape
        )
    if BIASES in projected:
        projected[BIASES] = projected.pop(BIASES)  # the last one
    n_heads = trace.config.model.n_heads
    return {name: one.reshape(len(one), n_heads, -1).swapaxes(0, 1) for name, one in projected.items()}
