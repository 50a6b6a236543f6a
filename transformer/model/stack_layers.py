"""The two kinds of layers in a stack, built from attention, residual connections and feed-forward."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.model.attention import KVCache, MultiHeadAttention
from transformer.model.layers import FeedForward, Residual
from transformer.model.packing import Packed


class SelfAttentionLayer(nn.Module):
    """Self-attention, then feed-forward: the layer of an encoder and of a decoder-only model."""

    def __init__(self, config: ModelConfig, *dropout_places: str) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.attention_residual = Residual(config, *dropout_places)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, mask: Tensor | None, packed: Packed | None = None) -> Tensor:
        """(B, S, D) to (B, S, D), with a mask broadcastable to (B, H, S, S); if packed, (N, D) to (N, D)."""
        x = self.attention_residual(x, lambda y: self.attention(y, mask=mask, packed=packed))
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]


@dataclass
class LayerKVCache:
    """The caches of both attentions of one decoder layer."""

    own: KVCache = field(default_factory=KVCache)
    cross: KVCache = field(default_factory=KVCache)


class DecoderLayer(nn.Module):
    """Masked self-attention over the target, cross-attention to the source, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.cross_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.self_residual = Residual(config)
        self.cross_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        cache: LayerKVCache | None = None,
        packed: tuple[Packed | None, Packed | None] = (None, None),
    ) -> Tensor:
        """(B, T, D) and memory (B, S, D) to (B, T, D).

        Args:
            self_mask: broadcastable to (B, H, T, T); with a cache, to (B, H, 1, T).
            cross_mask: broadcastable to (B, H, T, S).
            cache: in decoding; `x` is then the newest position alone, (B, 1, D).
            packed: in training, the places of the real tokens for self- and cross-attention; `x`, `memory`
                and the result then hold only real tokens, (N, D), with an N for each side.
        """
        own, cross = (cache.own, cache.cross) if cache else (None, None)
        for_own, for_cross = packed
        x = self.self_residual(x, lambda y: self.self_attention(y, mask=self_mask, cache=own, packed=for_own))
        x = self.cross_residual(
            x, lambda y: self.cross_attention(y, memory, cross_mask, cache=cross, packed=for_cross)
        )
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]
