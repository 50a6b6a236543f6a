"""The architecture of one Transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from transformer.config.limits import Number, OneOf, Settings, Whole, either
from transformer.errors import InputError

DROPOUT_PLACES = ("embedding", "attention_weights", "feed_forward", "residual", "encoder_attention")
KINDS_OF = {
    "encoder-decoder": ("cross", "encoder", "decoder"),
    "encoder-only": ("encoder",),
    "decoder-only": ("sequence",),
}
"""The kinds of attention of each topology; through the first the answer reads the question."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Settings):
    """The architecture of one Transformer; recipes differ in the values of these fields."""

    topology: Annotated[str, OneOf(tuple(KINDS_OF))] = "encoder-decoder"
    """Which stacks there are: encoder-decoder; encoder-only, which predicts a token at each position of the
    question; decoder-only, which goes on after the question and a separator. Sizes of an absent stack have
    no effect."""
    src_vocab_size: Annotated[int, Whole(5, 100_000)] = 30
    """Source tokens, special tokens included; a run takes it from its task."""
    tgt_vocab_size: Annotated[int, Whole(5, 100_000)] = 30
    """Target tokens, special tokens included; a run takes it from its task."""
    max_len: Annotated[int, Whole(4, 1024)] = 26
    """Longest sequence in tokens that has a position; a run takes it from its task and topology."""
    n_encoder_layers: Annotated[int, Whole(1, 12)] = 2
    """Layers of the encoder."""
    n_decoder_layers: Annotated[int, Whole(1, 12)] = 2
    """Layers of the decoder."""
    n_heads: Annotated[int, Whole(1, 64)] = 4
    """Heads of each attention (H); must divide d_model."""
    d_model: Annotated[int, Whole(2, 1024, "Widths of 32 to 128 learn live on a laptop.")] = 32
    """Width of the residual stream (D)."""
    d_ff: Annotated[int, Whole(1, 4096)] = 128
    """Width of the hidden layer of the feed-forward part."""
    dropout: Annotated[float, Number(0.0, 0.9)] = 0.0
    """Probability with which training sets an activation to zero, at the places that `dropout_on` names."""
    dropout_on: tuple[str, ...] = ("embedding", "attention_weights", "feed_forward", "residual")
    """Where dropout acts: embedding, attention_weights, feed_forward, residual, and encoder_attention: the
    attention branch of the encoder, or of the only stack."""
    qkv_bias: bool = True
    """Whether the projections to queries, keys and values have a bias."""
    output_bias: bool = True
    """Whether the projection of the concatenated heads back to d_model has a bias."""
    score_scale: Annotated[str, OneOf(("sqrt_d_head", "sqrt_d_model", "none"))] = "sqrt_d_head"
    """The divisor of the scores: sqrt_d_head (the paper), sqrt_d_model (softer) or none (sharper)."""
    norm_placement: Annotated[str, OneOf(("pre", "post", "branch"))] = "pre"
    """pre: x + f(norm(x)); post: norm(x + f(x)), the paper's; branch: x + norm(f(x))."""
    final_norm: bool = True
    """Whether a norm follows the last layer of each stack."""
    norm: Annotated[str, OneOf(("layer", "scalar"))] = "layer"
    """layer: a gain and a bias per feature; scalar: one gain and one bias, unbiased deviation plus eps."""
    norm_eps: Annotated[float, Number(0.0, 0.1, above=True)] = 1e-5
    """Keeps the norm from dividing by zero."""
    activation: Annotated[str, OneOf(("relu", "leaky_relu", "gelu"))] = "relu"
    """Between the two matrices of the feed-forward part: relu, leaky_relu or gelu."""
    embedding_scale: Annotated[str, OneOf(("none", "encoder", "both"))] = "both"
    """Embeddings that are multiplied by sqrt(d_model): none, encoder (the first stack only) or both."""
    positions: Annotated[str, OneOf(("sinusoid", "learned", "none"))] = "sinusoid"
    """Position vectors: sinusoid (the paper), learned or none."""
    embedding_tables: Annotated[str, OneOf(("two", "one"))] = "two"
    """two: source and target have a table each; one: they share it (equal vocabularies needed). A model with
    one stack has one table in either case."""
    padding_row: bool = False
    """Whether [PAD]'s embedding is zero and stays so, in the table of the stack that writes."""
    causal_mask: bool | None = None
    """Whether the self-attention of the stack that writes is masked so that it cannot read ahead; None: yes
    in a decoder, no in an encoder that stands alone."""
    padding_mask: bool = True
    """Whether attention to [PAD] is blocked."""
    mask_fill: Annotated[str, OneOf(("-inf", "-1e9"))] = "-inf"
    """What a blocked score becomes before the softmax: -inf or -1e9. They differ only in a row that is
    blocked entirely: with -inf its weights are all zero here, with -1e9 they are all equal."""
    initialisation: Annotated[str, OneOf(("xavier", "pytorch", "normal"))] = "pytorch"
    """Initial weights: xavier (uniform, every matrix), pytorch (its defaults) or normal (deviation 0.01)."""
    embedding_std: Annotated[float | None, Number(0.0, 10.0, above=True)] = 0.02
    """Standard deviation of initial token embeddings (small: positions dominate); None: `initialisation`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.n_heads:
            fitting = [str(n) for n in range(1, min(self.d_model, 16) + 1) if self.d_model % n == 0]
            raise InputError(
                f"d_model={self.d_model} cannot be split into {self.n_heads} equal heads; "
                f"choose {either(fitting)} heads, or another width.",
                "n_heads",
            )
        if not isinstance(self.dropout_on, tuple) or any(p not in DROPOUT_PLACES for p in self.dropout_on):
            raise InputError(
                f"dropout_on={self.dropout_on!r} names a place that does not exist; "
                f"choose from {', '.join(DROPOUT_PLACES)}.",
                "dropout_on",
            )
        two_sides = self.topology == "encoder-decoder"
        if two_sides and self.embedding_tables == "one" and self.src_vocab_size != self.tgt_vocab_size:
            raise InputError(
                f"One table cannot serve {self.src_vocab_size:,} source and {self.tgt_vocab_size:,} target "
                "tokens; choose two tables.",
                "embedding_tables",
            )

    @property
    def d_head(self) -> int:
        """Width of one head (K)."""
        return self.d_model // self.n_heads

    @property
    def score_width(self) -> int:
        """The number whose root divides the scores; 1 where they are not divided."""
        return {"sqrt_d_head": self.d_head, "sqrt_d_model": self.d_model, "none": 1}[self.score_scale]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention that the model has: cross, encoder, decoder or sequence."""
        return KINDS_OF[self.topology]

    @property
    def masks(self) -> dict[str, bool]:
        """Whether each mask, causal and padding, is on where no intervention switches it."""
        causal = self.topology != "encoder-only" if self.causal_mask is None else self.causal_mask
        return {"causal": causal, "padding": self.padding_mask}

    def scales_embedding(self, stack: str) -> bool:
        """Whether a stack, encoder or decoder, multiplies its embeddings by sqrt(d_model)."""
        first = "decoder" if self.topology == "decoder-only" else "encoder"
        return self.embedding_scale == "both" or (self.embedding_scale == "encoder" and stack == first)

    def n_layers(self, kind: str) -> int:
        """Layers of the stack that has this kind of attention."""
        return self.n_encoder_layers if kind == "encoder" else self.n_decoder_layers
