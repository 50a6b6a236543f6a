"""The encoder-decoder Transformer: embeddings, two stacks, logits, and a name for every attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.interventions import NOTHING, Interventions, forbidden
from transformer.model.attention import KeyValues, MultiHeadAttention
from transformer.model.layers import Dropout, FeedForward, Residual, embedding, linear, norm
from transformer.model.masks import causal_mask, padding_mask
from transformer.model.positions import sinusoid

PAD_ID = 0
"""Id of [PAD] in every vocabulary of this package."""


@dataclass(frozen=True)
class Site:
    """One attention of the model, and what its two axes are."""

    name: str
    """encoder.0, decoder.0.self, decoder.0.cross, ..."""
    attention: MultiHeadAttention
    query: str
    """Whose positions are the rows: src or tgt."""
    key: str
    """Whose positions are the columns: src or tgt."""
    causal: bool
    """Whether rows are kept from looking at later columns."""


class EncoderLayer(nn.Module):
    """Self-attention over the source, then the feed-forward part."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.attention_residual = Residual(config, "encoder_attention")
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, S, D) to (B, S, D), with the source padding mask (B, 1, 1, S)."""
        x = self.attention_residual(x, lambda y: self.attention(y, mask=mask))
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]


@dataclass
class LayerMemory:
    """What decoding keeps of one decoder layer."""

    own: KeyValues = field(default_factory=KeyValues)
    cross: KeyValues = field(default_factory=KeyValues)


class DecoderLayer(nn.Module):
    """Masked self-attention over the target, cross-attention to the source, then the feed-forward part."""

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
        cross_mask: Tensor,
        kept: LayerMemory | None = None,
    ) -> Tensor:
        """(B, T, D) and memory (B, S, D) to (B, T, D)."""
        own, cross = (kept.own, kept.cross) if kept else (None, None)
        x = self.self_residual(x, lambda y: self.self_attention(y, mask=self_mask, kept=own))
        x = self.cross_residual(x, lambda y: self.cross_attention(y, memory, cross_mask, kept=cross))
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """Reads a source and, given the target so far, predicts each next target token.

    Args:
        config: the architecture.
        generator: where the first weights are drawn from; by default a generator seeded with 0. No global
            random state is read or moved.
    """

    positions: Tensor

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.src_embedding = embedding(config.src_vocab_size, config.d_model)
        self.tgt_embedding = (
            self.src_embedding
            if config.embedding_tables == "one"
            else embedding(config.tgt_vocab_size, config.d_model)
        )
        if config.positions == "sinusoid":
            self.register_buffer("positions", sinusoid(config.max_len, config.d_model), persistent=False)
        elif config.positions == "learned":
            self.learned_positions = embedding(config.max_len, config.d_model)
        self.embedding_dropout = Dropout(config, "embedding")
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.encoder_norm = norm(config) if config.final_norm else nn.Identity()
        self.decoder_norm = norm(config) if config.final_norm else nn.Identity()
        self.to_logits = linear(config.d_model, config.tgt_vocab_size, True)
        self.interventions = NOTHING
        """What is taken away at present; set by `intervene` alone."""
        self._id_of: Callable[[str], int] = int
        with torch.no_grad():
            self._initialise(generator or torch.Generator().manual_seed(0))

    def _initialise(self, generator: torch.Generator) -> None:
        """Draw every matrix and table anew; norms and biases begin at one and zero, except in `pytorch`."""
        kind = self.config.initialisation
        for module in self.modules():
            if not isinstance(module, nn.Linear | nn.Embedding):
                continue
            weight = module.weight
            if kind == "normal":
                nn.init.normal_(weight, std=0.01, generator=generator)
            elif kind == "xavier":
                nn.init.xavier_uniform_(weight, generator=generator)
            elif isinstance(module, nn.Linear):
                nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
            else:
                nn.init.normal_(weight, generator=generator)
            if isinstance(module, nn.Linear) and module.bias is not None:
                bound = 1.0 / math.sqrt(module.in_features) if kind == "pytorch" else 0.0
                nn.init.uniform_(module.bias, -bound, bound, generator=generator)
        if self.config.embedding_std is not None:
            for table in dict.fromkeys([self.src_embedding, self.tgt_embedding]):
                nn.init.normal_(table.weight, std=self.config.embedding_std, generator=generator)
        if self.config.padding_row:
            self.tgt_embedding.weight[PAD_ID] = 0.0
            self.tgt_embedding.padding_idx = PAD_ID  # keeps its gradient at zero too

    def draw_from(self, generator: torch.Generator) -> None:
        """Let every dropout draw from this generator, which must live on the model's device."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.generator = generator

    def sites(self) -> list[Site]:
        """Every attention of the model, in the order of the forward pass."""
        found = []
        for i, layer in enumerate(self.encoder):
            assert isinstance(layer, EncoderLayer)  # a ModuleList forgets what it holds
            found.append(Site(f"encoder.{i}", layer.attention, "src", "src", causal=False))
        for i, layer in enumerate(self.decoder):
            assert isinstance(layer, DecoderLayer)
            found.append(Site(f"decoder.{i}.self", layer.self_attention, "tgt", "tgt", causal=True))
            found.append(Site(f"decoder.{i}.cross", layer.cross_attention, "tgt", "src", causal=False))
        return found

    def intervene(self, interventions: Interventions, id_of: Callable[[str], int]) -> None:
        """From now on do without these heads and looks; `NOTHING` gives all back. No weight is changed.

        Args:
            interventions: have been checked against this model's sites.
            id_of: the id of a token.
        """
        self.interventions, self._id_of = interventions, id_of
        for site in self.sites():
            off = interventions.heads_off_at(site.name)
            gain = None
            if off:
                gain = torch.ones(self.config.n_heads, 1, 1, device=self.to_logits.weight.device)
                gain[list(off)] = 0.0
            site.attention.head_gain = gain

    def _less(self, mask: Tensor, site: str, keys: Tensor, rows: range) -> Tensor:
        """A site's mask (broadcastable to (B, H, Q, K)) without the looks that an intervention forbids.

        Args:
            keys: (B, K) token ids.
            rows: positions of the queries.
        """
        blocks = self.interventions.blocks_at(site)
        if not blocks:
            return mask
        device = keys.device
        taken = forbidden(
            blocks,
            torch.arange(self.config.n_heads, device=device)[:, None, None],
            torch.arange(rows.start, rows.stop, device=device)[:, None],
            torch.arange(keys.size(1), device=device),
            keys[:, None, None, :],
            self._id_of,
        )
        return mask & ~taken  # type: ignore[no-any-return]

    def _embed(self, table: nn.Embedding, tokens: Tensor, scaled: bool, start: int = 0) -> Tensor:
        """Token ids (B, Q) to vectors (B, Q, D) that know their positions start, start + 1, ..."""
        x = table(tokens)
        if scaled:
            x = x * math.sqrt(self.config.d_model)
        end = start + tokens.size(1)
        if end > self.config.max_len:
            raise ValueError(f"{end} tokens do not fit max_len={self.config.max_len}.")
        if self.config.positions == "sinusoid":
            x = x + self.positions[start:end]
        elif self.config.positions == "learned":
            x = x + self.learned_positions.weight[start:end]
        return self.embedding_dropout(x)  # type: ignore[no-any-return]

    def encode(self, src: Tensor) -> Tensor:
        """Token ids (B, S) to memory (B, S, D)."""
        mask = padding_mask(src, PAD_ID)
        x = self._embed(self.src_embedding, src, self.config.embedding_scale in ("encoder", "both"))
        for i, layer in enumerate(self.encoder):
            x = layer(x, self._less(mask, f"encoder.{i}", src, range(src.size(1))))
        return self.encoder_norm(x)  # type: ignore[no-any-return]

    def decode(self, memory: Tensor, src: Tensor, tgt: Tensor) -> Tensor:
        """Target so far (B, T) and memory (B, S, D) to logits of each next token, (B, T, V)."""
        self_mask = causal_mask(tgt.size(1), tgt.device) & padding_mask(tgt, PAD_ID)  # (B, 1, T, T)
        cross_mask = padding_mask(src, PAD_ID)  # (B, 1, 1, S)
        x = self._embed(self.tgt_embedding, tgt, self.config.embedding_scale == "both")
        rows = range(tgt.size(1))
        for i, layer in enumerate(self.decoder):
            own = self._less(self_mask, f"decoder.{i}.self", tgt, rows)
            x = layer(x, memory, own, self._less(cross_mask, f"decoder.{i}.cross", src, rows))
        return self.to_logits(self.decoder_norm(x))  # type: ignore[no-any-return]

    def decode_next(self, memory: Tensor, src: Tensor, tgt: Tensor, kept: list[LayerMemory]) -> Tensor:
        """One more target token for each sequence, using the keys and values of the earlier ones.

        The same numbers as the last row of `decode` over the whole target so far.

        Args:
            memory: (B, S, D).
            src: (B, S).
            tgt: (B, T), the target so far, of which only the newest token is new to `kept`.
            kept: one `LayerMemory` per decoder layer, empty at the first token; it grows.

        Returns:
            Logits of the next token, (B, V).
        """
        newest, start = tgt[:, -1:], tgt.size(1) - 1
        x = self._embed(self.tgt_embedding, newest, self.config.embedding_scale == "both", start)
        self_mask, cross_mask = padding_mask(tgt, PAD_ID), padding_mask(src, PAD_ID)  # (B, 1, 1, T or S)
        rows = range(start, tgt.size(1))
        for i, (layer, layer_kept) in enumerate(zip(self.decoder, kept, strict=True)):
            own = self._less(self_mask, f"decoder.{i}.self", tgt, rows)
            x = layer(x, memory, own, self._less(cross_mask, f"decoder.{i}.cross", src, rows), layer_kept)
        return self.to_logits(self.decoder_norm(x))[:, -1]  # type: ignore[no-any-return]

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Source ids (B, S) and target so far (B, T) to logits of each next token, (B, T, V)."""
        return self.decode(self.encode(src), src, tgt)
