"""An independent forward pass in plain NumPy, and models with random weights to compare it on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from transformer.anatomy.trace import trace
from transformer.config.recipes import RECIPES, with_topology
from transformer.model.transformer import Transformer
from transformer.recording.weights import Snapshot
from transformer.shared.interventions import NO_INTERVENTIONS
from transformer.tasks import resolved

PAD = 0
BASES = {
    "default": RECIPES["default"].small,
    "torres": RECIPES["torres"].small,
    "etienne": RECIPES["etienne"].small,
    "lin": RECIPES["lin"].small,
    "bloem": RECIPES["bloem"].small,
    "sengupta": RECIPES["sengupta"].small,
    "decoder alone": with_topology(RECIPES["default"].small, "decoder-only"),
    "etienne, decoder alone": with_topology(RECIPES["etienne"].small, "decoder-only"),
    "no positions": RECIPES["default"].small.with_changes(
        positions="none", activation="gelu", embedding_scale="encoder", embedding_tables="one"
    ),
}
"""Together these cover every topology, norm, norm placement, positions, scale, fill, activation and bias."""


@pytest.fixture
def made(fill):
    """Return a function from a name in `BASES` to its configuration and a snapshot of random weights."""

    def make(name, interventions=NO_INTERVENTIONS, **changes):
        config = resolved(BASES[name].with_changes(**changes))
        model = fill(Transformer(config.model), 0.3)
        weights = {key: w.numpy().copy() for key, w in model.state_dict().items()}
        return config, Snapshot(step=7, source=weights, interventions=interventions)

    return make


def softmax(scores):
    """Softmax over the last axis; NaN is ignored and stays NaN."""
    powers = np.exp(scores - np.nanmax(scores, axis=-1, keepdims=True))
    return powers / np.nansum(powers, axis=-1, keepdims=True)


def sinusoid(length, width):
    """Section 3.5 of the paper, cell by cell."""
    table = np.zeros((length, width))
    for pos in range(length):
        for f in range(width):
            angle = pos / 10_000 ** ((f - f % 2) / width)
            table[pos, f] = math.cos(angle) if f % 2 else math.sin(angle)
    return table


class ReferencePass:
    """Every number of a forward pass over one padded word, in float64, from the weights alone.

    Args:
        src: token ids that the encoder reads.
        tgt: token ids that the decoder reads.
    """

    def __init__(self, config, weights, src, tgt, causal=None, padding=None):
        self.model = config.model
        self.w = {name: array.astype(np.float64) for name, array in weights.items()}
        self.causal = self.model.masks["causal"] if causal is None else causal
        self.padding = self.model.masks["padding"] if padding is None else padding
        self.stacks, self.sites = {}, {}
        memory = None
        if self.model.topology != "decoder-only":
            scaled = self.model.embedding_scale in ("encoder", "both")
            alone = self.model.topology == "encoder-only"
            memory = self.run("encoder", "src_embedding", scaled, src, src, None, alone)
        if self.model.topology == "encoder-only":
            last = memory
        else:
            scaled = self.model.embedding_scale in (("both",) if memory is not None else ("encoder", "both"))
            last = self.run("decoder", "tgt_embedding", scaled, tgt, src, memory, True)
        self.logits = self.linear("to_logits", last)
        self.probabilities = softmax(self.logits)

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w.get(f"{name}.bias", 0.0)

    def norm(self, name, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        if self.model.norm == "scalar":
            size = np.sqrt((centred**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)) + self.model.norm_eps
        else:
            size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.model.norm_eps)
        return self.w[f"{name}.weight"] * centred / size + self.w[f"{name}.bias"]

    def residual(self, name, x, branch):
        """Return the stream after the residual, the branch's input and output, and the output of the norm."""
        placement, norm = self.model.norm_placement, f"{name}.norm"
        reads = self.norm(norm, x) if placement == "pre" else x
        gave = branch(reads)
        if placement == "pre":
            return x + gave, reads, gave, reads
        if placement == "post":
            after = self.norm(norm, x + gave)
            return after, reads, gave, after
        normed = self.norm(norm, gave)
        return x + normed, reads, gave, normed

    def attention(self, name, x, memory, open_to, kept):
        h, k = self.model.n_heads, self.model.d_head
        split = {}
        for part, source in (("query", x), ("key", memory), ("value", memory)):
            split[part] = self.linear(f"{name}.to_{part}", source).reshape(-1, h, k).swapaxes(0, 1)
        products = np.einsum("hqk,hsk->hqs", split["query"], split["key"])
        width = {"sqrt_d_model": self.model.d_model, "none": 1}.get(self.model.score_scale, k)
        scores = products / math.sqrt(width)
        masked = np.where(open_to, scores, np.nan)
        weights = softmax(masked)
        mixed = np.einsum("hqs,hsk->hqk", np.nan_to_num(weights), split["value"])
        joined = mixed.swapaxes(0, 1).reshape(len(x), h * k)
        kept.update(
            split, products=products, scores=scores, masked=masked, weights=weights, mixed=mixed,
            joined=joined, memory=memory, mask=np.broadcast_to(open_to, scores.shape),
        )  # fmt: skip
        return self.linear(f"{name}.to_output", joined)

    def attend(self, site, name, residual, x, memory, open_to):
        kept = {"stream": x}
        after, reads, gave, normed = self.residual(
            residual, x, lambda y: self.attention(name, y, y if memory is None else memory, open_to, kept)
        )
        self.sites[site] = {**kept, "after": after, "reads": reads, "output": gave, "normed": normed}
        return after

    def think(self, layer, x):
        kept = {}

        def branch(y):
            hidden = self.linear(f"{layer}.feed_forward.widen", y)
            bent = {
                "relu": lambda v: np.maximum(v, 0),
                "leaky_relu": lambda v: np.where(v > 0, v, 0.01 * v),
                "gelu": lambda v: v * (1 + np.vectorize(math.erf)(v / math.sqrt(2))) / 2,
            }[self.model.activation](hidden)
            kept["hidden"] = bent
            return self.linear(f"{layer}.feed_forward.narrow", bent)

        after, reads, gave, normed = self.residual(f"{layer}.feed_forward_residual", x, branch)
        return {**kept, "stream": x, "reads": reads, "output": gave, "normed": normed, "after": after}

    def run(self, stack, table, scaled, ids, src, memory, causal):
        model = self.model
        raw = self.w[f"{table}.weight"][list(ids)]
        embedded = raw * (math.sqrt(model.d_model) if scaled else 1.0)
        if model.positions == "sinusoid":
            positions = sinusoid(len(ids), model.d_model)
        elif model.positions == "learned":
            positions = self.w["learned_positions.weight"][: len(ids)]
        else:
            positions = np.zeros_like(embedded)
        entered = x = embedded + positions
        n, layers = len(ids), []
        own = np.ones((n, n), dtype=bool)
        if causal and self.causal:
            own &= np.arange(n)[None, :] <= np.arange(n)[:, None]
        if self.padding:
            own &= np.array(ids)[None, :] != PAD
        cross = np.ones((n, len(src)), dtype=bool)
        if self.padding:
            cross &= np.array(src)[None, :] != PAD
        for i in range(model.n_encoder_layers if stack == "encoder" else model.n_decoder_layers):
            layer = f"{stack}.{i}"
            if memory is None:
                site = layer if stack == "encoder" else f"{layer}.self"
                x = self.attend(site, f"{layer}.attention", f"{layer}.attention_residual", x, None, own)
            else:
                where = f"{layer}.self_attention", f"{layer}.self_residual"
                x = self.attend(f"{layer}.self", *where, x, None, own)
                where = f"{layer}.cross_attention", f"{layer}.cross_residual"
                x = self.attend(f"{layer}.cross", *where, x, memory, cross)
            layers.append(self.think(layer, x))
            x = layers[-1]["after"]
        output = self.norm(f"{stack}_norm", x) if model.final_norm else x
        self.stacks[stack] = {
            "raw": raw, "embedded": embedded, "positions": positions, "entered": entered, "layers": layers,
            "output": output,
        }  # fmt: skip
        return output


@pytest.fixture
def truth():
    """Return a function from a trace to an independent forward pass over its word."""

    def make(trace, snapshot, **masks):
        return ReferencePass(trace.config, snapshot.weights, trace.src_ids, trace.tgt_ids, **masks)

    return make


@pytest.fixture
def near():
    """Assert that numbers are equal to float32 precision, relative to the largest of them."""

    def check(found, expected):
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape
        size = max(1.0, float(np.nanmax(np.abs(expected)))) if expected.size else 1.0
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * size, equal_nan=True)

    return check


BESIDE = ("playground", "ox")


def opened(made, name, *taken, **changes):
    config, snapshot = made(name, *taken, **changes)
    return trace(config, snapshot, "frog", BESIDE), snapshot
