"""The Transformer: embeddings, one stack or two, logits, and a name for every attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.model.attention import MultiHeadAttention, causal_mask, padding_mask
from transformer.model.layers import Dropout, embedding, initialise, linear, norm, sinusoid
from transformer.model.packing import Packed, Packing
from transformer.model.stack_layers import DecoderLayer, LayerKVCache, SelfAttentionLayer
from transformer.shared.attention_info import AttentionInfo
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions, blocked_cells

PAD_ID = 0
"""Id of [PAD] in every vocabulary of this package."""


class Transformer(nn.Module):
    """A model that predicts the answer's tokens, from source and target so far or from one sequence alone.

    Args:
        config: the architecture.
        generator: draws the initial weights; by default one that is seeded with 0. Building the model
            neither reads nor changes the global random state.
    """

    positions: Tensor

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        reads, writes = config.topology != "decoder-only", config.topology != "encoder-only"
        if reads:
            self.src_embedding = embedding(config.src_vocab_size, config.d_model)
        if writes:
            shared = reads and config.embedding_tables == "one"
            self.tgt_embedding = (
                self.src_embedding if shared else embedding(config.tgt_vocab_size, config.d_model)
            )
        if config.positions == "sinusoid":
            self.register_buffer("positions", sinusoid(config.max_len, config.d_model), persistent=False)
        elif config.positions == "learned":
            self.learned_positions = embedding(config.max_len, config.d_model)
        self.embedding_dropout = Dropout(config, "embedding")
        self.encoder = nn.ModuleList(
            SelfAttentionLayer(config, "encoder_attention")
            for _ in range(config.n_encoder_layers if reads else 0)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(config) if reads else SelfAttentionLayer(config, "encoder_attention")
            for _ in range(config.n_decoder_layers if writes else 0)
        )
        self.encoder_norm = norm(config) if config.final_norm and reads else nn.Identity()
        self.decoder_norm = norm(config) if config.final_norm and writes else nn.Identity()
        self.to_logits = linear(config.d_model, config.tgt_vocab_size, True)
        self.interventions = NO_INTERVENTIONS
        """The current interventions; set only by `intervene`."""
        self.packs = True
        """Whether training on a CPU leaves out padding that is masked.

        Without dropout, the logits of real tokens and the gradients of their loss stay the same, up to
        rounding.
        """
        self._id_of: Callable[[str, str], int] = lambda token, side: int(token)
        initialise(self, config, PAD_ID, generator or torch.Generator().manual_seed(0))

    def draw_from(self, generator: torch.Generator) -> None:
        """Let every dropout draw from this generator, which must live on the model's device."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.generator = generator

    def attentions(self) -> dict[str, MultiHeadAttention]:
        """Every attention of the model by its site, in the order of the forward pass."""
        modules = {}
        for i, layer in enumerate(self.encoder):
            assert isinstance(layer, SelfAttentionLayer)  # a ModuleList has no element type
            modules[f"encoder.{i}"] = layer.attention
        for i, layer in enumerate(self.decoder):
            if isinstance(layer, SelfAttentionLayer):
                modules[f"decoder.{i}.self"] = layer.attention
            else:
                assert isinstance(layer, DecoderLayer)
                modules[f"decoder.{i}.self"] = layer.self_attention
                modules[f"decoder.{i}.cross"] = layer.cross_attention
        return modules

    def axes(self) -> dict[str, AttentionInfo]:
        """The axes of every attention by its site, with the masks that are on now."""
        causal, padding = self.masked("causal"), self.masked("padding")
        alone = self.config.topology == "encoder-only"
        own = "seq" if self.config.topology == "decoder-only" else "tgt"
        reads = AttentionInfo(query="src", key="src", writes=alone, causal=alone and causal, padding=padding)
        writes = {
            "self": AttentionInfo(query=own, key=own, writes=True, causal=causal, padding=padding),
            "cross": AttentionInfo(query="tgt", key="src", writes=True, causal=False, padding=padding),
        }
        return {site: writes.get(site.rpartition(".")[2], reads) for site in self.attentions()}

    def masked(self, mask: str) -> bool:
        """Whether the causal or the padding mask is on now."""
        return dict(self.interventions.masks).get(mask, self.config.masks[mask])

    def intervene(self, interventions: Interventions, id_of: Callable[[str, str], int]) -> None:
        """Apply these interventions to all later forward passes; `NO_INTERVENTIONS` ends them.

        No weight is changed.

        Args:
            interventions: already checked by `check_interventions`.
            id_of: returns the id of a token on a side, src, tgt or seq: id_of(token, side).
        """
        self.interventions, self._id_of = interventions, id_of
        for site, attention in self.attentions().items():
            off = interventions.heads_off_at(site)
            gain = None
            if off:
                gain = torch.ones(self.config.n_heads, 1, 1, device=self.to_logits.weight.device)
                gain[list(off)] = 0.0
            attention.head_gain = gain

    def _mask(self, keys: Tensor, rows: range, *, causal: bool) -> Tensor | None:
        """The mask of an attention, broadcastable to (B, H, Q, S); None allows everything.

        Args:
            keys: (B, S) token ids.
            rows: positions of the queries.
            causal: whether the causal mask applies to this attention, if that mask is on.
        """
        mask = padding_mask(keys, PAD_ID) if self.masked("padding") else None  # (B, 1, 1, S)
        if causal and self.masked("causal"):
            future = causal_mask(keys.size(1), keys.device)[rows.start : rows.stop]  # (Q, S)
            mask = future if mask is None else mask & future
        return mask

    def _with_blocks(self, mask: Tensor | None, site: str, keys: Tensor, rows: range) -> Tensor | None:
        """The mask of a site, combined with the cells that interventions block; arguments as in `_mask`."""
        blocks = self.interventions.blocks_at(site)
        if not blocks:
            return mask
        device = keys.device
        taken = blocked_cells(
            blocks,
            torch.arange(self.config.n_heads, device=device)[:, None, None],
            torch.arange(rows.start, rows.stop, device=device)[:, None],
            torch.arange(keys.size(1), device=device),
            keys[:, None, None, :],
            lambda token: self._id_of(token, self.axes()[site].key),
        )
        return ~taken if mask is None else mask & ~taken  # type: ignore[no-any-return]

    def _embed(
        self,
        table: nn.Embedding,
        tokens: Tensor,
        scaled: bool,
        *,
        start: int = 0,
        packing: Packing | None = None,
    ) -> Tensor:
        """Vectors (B, Q, D) of token ids (B, Q) at the positions start, start + 1, ...

        Args:
            packing: of these tokens; if given, only the real tokens are embedded, (N, D).
        """
        x = table(tokens if packing is None else packing.tokens)
        if scaled:
            x = x * math.sqrt(self.config.d_model)
        end = start + tokens.size(1)
        if end > self.config.max_len:
            raise ValueError(f"{end} tokens do not fit max_len={self.config.max_len}.")
        where = slice(start, end) if packing is None else packing.positions
        if self.config.positions == "sinusoid":
            x = x + self.positions[where]
        elif self.config.positions == "learned":
            x = x + self.learned_positions.weight[where]
        return self.embedding_dropout(x)  # type: ignore[no-any-return]

    def encode(self, src: Tensor, read: Packing | None = None) -> Tensor:
        """Token ids (B, S) to memory (B, S, D); if `read` is given, to memory of real tokens only, (N, D).

        Raises:
            ValueError: there are more tokens than `max_len`.
        """
        scaled = self.config.scales_embedding("encoder")
        x = self._embed(self.src_embedding, src, scaled, packing=read)
        packed = None
        if read is not None:
            src, packed = read.wide, Packed(read, read)
        alone, rows = self.config.topology == "encoder-only", range(src.size(1))
        mask = self._mask(src, rows, causal=alone)
        for i, layer in enumerate(self.encoder):
            x = layer(x, self._with_blocks(mask, f"encoder.{i}", src, rows), packed)
        return self.encoder_norm(x)  # type: ignore[no-any-return]

    def decode(
        self,
        memory: Tensor | None,
        src: Tensor,
        tgt: Tensor,
        read: Packing | None = None,
        written: Packing | None = None,
        cache: Sequence[LayerKVCache] = (),
    ) -> Tensor:
        """Target so far (B, T) and memory (B, S, D) to logits of each next token, (B, T, V).

        Without an encoder there is no memory, and the target is question, separator and answer in one.

        Args:
            read: packing of the source, if the memory is packed, (N, D).
            written: packing of the target; if it is given, only real tokens get logits, (N, V).
            cache: if `supports_kv_cache`, one `LayerKVCache` per decoder layer, empty at the first token and
                extended by each call. Only the newest token is then read; logits are (B, 1, V).

        Raises:
            ValueError: there are more tokens than `max_len`.
        """
        rows = range(tgt.size(1) - 1 if cache else 0, tgt.size(1))
        x = self._embed(
            self.tgt_embedding,
            tgt[:, rows.start :],
            self.config.scales_embedding("decoder"),
            start=rows.start,
            packing=written,
        )
        src = src if read is None else read.wide
        packed_own, packed_cross = None, None
        if written is not None:
            tgt = written.wide
            causal = self.masked("causal") and not self.interventions.blocked
            packed_own = Packed(written, written, causal)
            packed_cross = None if read is None else Packed(written, read)
            rows = range(tgt.size(1))
        self_mask, cross_mask = self._mask(tgt, rows, causal=True), self._mask(src, rows, causal=False)
        for i, layer in enumerate(self.decoder):
            own = self._with_blocks(self_mask, f"decoder.{i}.self", tgt, rows)
            if memory is None:
                x = layer(x, own, packed_own)
            else:
                cross = self._with_blocks(cross_mask, f"decoder.{i}.cross", src, rows)
                x = layer(x, memory, own, cross, cache[i] if cache else None, (packed_own, packed_cross))
        return self.to_logits(self.decoder_norm(x))  # type: ignore[no-any-return]

    @property
    def writes_at_once(self) -> bool:
        """Whether one forward pass over the question gives the whole answer."""
        return self.config.topology == "encoder-only"

    @property
    def supports_kv_cache(self) -> bool:
        """Whether `decode` accepts a cache: in an encoder-decoder whose causal mask is on.

        Only then do later tokens not change the results of earlier ones. Decoder-only has no cache here.
        """
        return self.config.topology == "encoder-decoder" and self.masked("causal")

    def forward(self, src: Tensor, tgt: Tensor | None = None) -> Tensor:
        """Token ids to logits of each next token, (B, T, V); of an encoder-only model, of each token.

        In training on a CPU, masked padding is left out, if `packs` is True: its logits are zeros.

        Args:
            src: (B, S), the question; not read by a decoder-only model.
            tgt: (B, T), the target so far, or question, separator and answer so far; not read by an
                encoder-only model, whose logits are (B, S, V).

        Raises:
            ValueError: `tgt` is missing, or there are more tokens than `max_len`.
        """
        packs = self.packs and self.training and src.device.type == "cpu" and self.masked("padding")
        read = Packing(src, PAD_ID) if packs and len(self.encoder) else None
        if self.writes_at_once:
            logits = self.to_logits(self.encode(src, read))
            return logits if read is None else read.pad(logits)[:, : src.size(1)]
        if tgt is None:
            raise ValueError("This topology needs the target so far.")
        written = Packing(tgt, PAD_ID) if packs else None
        memory = self.encode(src, read) if len(self.encoder) else None
        logits = self.decode(memory, src, tgt, read, written)
        return logits if written is None else written.pad(logits)[:, : tgt.size(1)]
