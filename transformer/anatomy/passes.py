"""The recorded forward pass of one word: the numbers that the model computed, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from transformer.asking.answers import ForwardPass
from transformer.config import RunConfig
from transformer.recording.frame import Array
from transformer.shared.interventions import Interventions


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualPass:
    """One part of a layer, from the residual stream before it to the one after it."""

    module: str
    """Name of its module, such as decoder.0.cross_attention or encoder.0.feed_forward."""
    stream: Array
    """(Q, D), the residual stream before it."""
    reads: Array
    """(Q, D), what it reads: the stream, or its norm where the norm comes first."""
    output: Array
    """(Q, D), its output."""
    normed: Array
    """(Q, D), the output of the norm of this part, wherever it is placed."""
    after: Array
    """(Q, D), the residual stream after it."""

    @property
    def norm(self) -> str:
        """Name of the module of its norm."""
        return f"{self.module.removesuffix('_attention')}_residual.norm"


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionPass(ResidualPass):
    """One attention, with everything that its heads computed."""

    memory: Array
    """(S, D), the input of keys and values; in self-attention the same as `reads`."""
    query: Array
    """(H, Q, K)."""
    key: Array
    """(H, S, K)."""
    value: Array
    """(H, S, K)."""
    scores: Array
    """(H, Q, S), scaled, before the mask."""
    mask: Array
    """(H, Q, S) bool, True where attention is allowed."""
    weights: Array
    """(H, Q, S)."""
    mixed: Array
    """(H, Q, K), the weighted mean of the values in each head."""
    joined: Array
    """(Q, D), the heads concatenated, a switched-off head as zeros."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FeedForwardPass(ResidualPass):
    """The feed-forward part of one layer; the stream after it is also the stream after the layer."""

    hidden: Array
    """(Q, d_ff), after the activation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StackPass:
    """One stack, from its tokens to its output."""

    scaled: bool
    """Whether token vectors are multiplied by the root of d_model."""
    embedded: Array
    """(Q, D), the rows of the table."""
    positions: Array
    """(Q, D), the position vectors; zeros if there are none."""
    entered: Array
    """(Q, D), what enters the first layer."""
    layers: tuple[FeedForwardPass, ...]
    """The feed-forward part of each layer; its `after` is the stream after that layer."""
    output: Array
    """(Q, D), after the final norm, if there is one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ForwardTrace(ForwardPass):
    """A forward pass with all its numbers, float32; its tokens are those of a batch, with any [PAD]."""

    config: RunConfig
    src_ids: tuple[int, ...]
    tgt_ids: tuple[int, ...]
    vocabulary: tuple[str, ...]
    """(V,) the tokens that can be written, in the order of the logits."""
    expected: tuple[str, ...]
    """(T,) the token that each position should write, or has written if the right answer is not known; empty
    where there is none."""
    has_answer: bool
    """Whether the right answer is known."""
    attentions: Mapping[str, AttentionPass]
    """By site."""
    stacks: Mapping[str, StackPass]
    """encoder, decoder, or both."""
    written_after: Mapping[str, Array]
    """The logit lens: (T, V) probabilities of the next token, by the box after which the model would end.

    It has the boxes of the last stack, except its output.
    """
    logits: Array
    """(T, V)."""
    parameters: Mapping[str, Array]
    """The model's weights, by their names in the state dictionary."""
    interventions: Interventions
    """The interventions of that step, applied in this pass."""

    def ids(self, side: str) -> tuple[int, ...]:
        """The token ids of one side: src, tgt or seq."""
        return self.src_ids if side == "src" else self.tgt_ids

    def rows(self, side: str) -> tuple[str, ...]:
        """The tokens of the side that writes, each with its token in `expected`, if it has one."""
        pairs = zip(self.tokens(side), self.expected, strict=True)
        return tuple(f"{read} → {to}" if to else read for read, to in pairs)
