"""Five published from-scratch Transformers and the app's own, as settings of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from transformer.config import TASK_INFO, ModelConfig, RunConfig, TrainConfig


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A named set of architecture and training settings."""

    name: str
    source: str
    """Where it was published: title, author, year; of the app's own, what is special about it."""
    model: ModelConfig
    """The architecture at paper size: the sizes of the article, where it gives them."""
    train: TrainConfig
    """The training settings of the article; the app's own if the article has none."""
    small: RunConfig
    """The same architecture at sizes fit for two CPU cores, trained the app's own way except for steps,
    learning rate and warm-up."""
    look_for: str
    """One or two sentences on what to expect, shown before the start."""

    @property
    def published(self) -> RunConfig:
        """Paper size and the article's training, on the reversal of words."""
        return RunConfig(model=self.model, train=self.train, recipe=self.name, published=True)


def with_topology(config: RunConfig, topology: str) -> RunConfig:
    """The same settings for another topology, with its default causal mask unless the mask was off."""
    if topology == config.model.topology:
        return config
    off = config.model.causal_mask is False
    return config.with_changes(topology=topology, causal_mask=False if off else None)


def _small(model: ModelConfig, name: str, **changes: Any) -> RunConfig:
    """An architecture and the app's own training, both with these changes."""
    model = replace(model, src_vocab_size=30, tgt_vocab_size=30, max_len=26)
    return RunConfig(model=model, recipe=name).with_changes(goal=0.99, **changes)


_OWN = RunConfig().with_changes(goal=0.99)

_PAPER = ModelConfig(
    n_encoder_layers=6,
    n_decoder_layers=6,
    n_heads=8,
    d_model=512,
    d_ff=2048,
    dropout=0.0,
    qkv_bias=True,
    output_bias=True,
    score_scale="sqrt_d_head",
    norm_placement="post",
    final_norm=False,
    norm="layer",
    activation="relu",
    embedding_scale="none",
    positions="sinusoid",
    embedding_tables="one",
    causal_mask=True,
    padding_mask=False,
    mask_fill="-inf",
    initialisation="pytorch",
    embedding_std=None,
)
"""What most articles build, after "Attention Is All You Need" (Vaswani et al., 2017)."""

_ETIENNE = replace(
    _PAPER,
    src_vocab_size=128,
    tgt_vocab_size=128,
    n_encoder_layers=1,
    n_decoder_layers=1,
    n_heads=4,
    d_model=128,
    d_ff=128,
    dropout=0.1,
    dropout_on=("encoder_attention",),
    qkv_bias=False,
    output_bias=False,
    norm_placement="branch",
    embedding_scale="encoder",
    embedding_tables="two",
    padding_row=True,
    padding_mask=True,
    initialisation="xavier",
)

_BLOEM = replace(
    _PAPER,
    topology="encoder-only",
    n_heads=4,
    d_model=128,  # the notes give neither width nor depth: both are our choice
    d_ff=4 * 128,
    qkv_bias=False,
    score_scale="sqrt_d_model",
    positions="learned",
    causal_mask=None,  # none in the encoder, causal in the decoder-only model of the same author
)

_SENGUPTA = replace(
    _PAPER,
    topology="encoder-only",
    qkv_bias=False,
    output_bias=False,
    activation="leaky_relu",
    causal_mask=None,  # the causal mask in part 2 of the article is the decoder's
    initialisation="normal",
)

_LIN = replace(_PAPER, mask_fill="-1e9")

_TORRES = replace(
    _PAPER,
    src_vocab_size=15_698,
    tgt_vocab_size=22_463,
    max_len=350,
    dropout=0.1,
    norm_placement="pre",
    final_norm=True,
    norm="scalar",
    norm_eps=1e-6,
    embedding_scale="both",
    embedding_tables="two",
    padding_mask=True,
    mask_fill="-1e9",
    initialisation="xavier",
)

_ADAM = TrainConfig(optimizer="adam", weight_decay=0.0, schedule="constant", clip=None)
"""What the articles with training settings share: Adam, without weight decay, clipping or a decaying rate."""

_ALL = (
    Recipe(
        name="default",
        source="this app: quiet token embeddings let positions lead, so heads turn within 200 steps",
        model=_OWN.model,
        train=_OWN.train,
        small=_OWN,
        look_for=TASK_INFO["reverse"].look_for,
    ),
    Recipe(
        name="etienne",
        source="A Complete Guide to Write your own Transformers (B. Etienne, 2024)",
        model=_ETIENNE,
        train=replace(
            _ADAM,
            min_letters=10,
            max_letters=19,
            examples=50_000,
            batch_size=256,
            steps=588,  # three epochs
            learning_rate=1e-3,
            betas=(0.9, 0.98),
            adam_eps=1e-9,
            warmup_steps=0,
            evaluate_every=196,
        ),
        small=_small(
            _ETIENNE, "etienne", d_model=64, d_ff=64, steps=1200, learning_rate=3e-3, warmup_steps=100
        ),
        look_for="One layer each, and nothing ever normalises the residual stream. Heads of the decoder's "
        "cross-attention learn to read backwards slowly, from step 400 or so on, and stay smeared.",
    ),
    Recipe(
        name="bloem",
        source="Transformers from Scratch (P. Bloem, 2019), notes on it",
        model=_BLOEM,
        train=replace(
            _ADAM,
            learning_rate=1e-4,
            betas=(0.9, 0.999),
            adam_eps=1e-8,
            warmup_steps=10_000,
            steps=20_000,
            evaluate_every=500,
        ),
        small=_small(
            _BLOEM,
            "bloem",
            n_encoder_layers=2,
            n_decoder_layers=2,  # used with another topology
            d_model=64,  # at 32 some seeds never learn the longest words' first letter
            d_ff=256,
            steps=800,
            learning_rate=2e-3,
            warmup_steps=100,
        ),
        look_for="At first all attention is even. Near step 160 the heads of encoder layer 2 learn to "
        "read backwards together. Scores divided by the root of the whole width end up sharp all the same.",
    ),
    Recipe(
        name="sengupta",
        source="No-Questions Asked Guide to PyTorch: Transformers, Part 1 (A. Sen Gupta, 2022)",
        model=_SENGUPTA,
        train=TrainConfig(),
        small=_small(
            _SENGUPTA,
            "sengupta",
            n_encoder_layers=2,
            n_decoder_layers=2,  # used with another topology
            d_model=32,
            d_ff=128,
            steps=1500,
            learning_rate=3e-3,
            warmup_steps=200,
        ),
        look_for="Every matrix begins almost at zero, so nothing happens for 300 steps. From step 450 on one "
        "head of encoder layer 2 after another learns to read backwards, the clearest without any smear.",
    ),
    Recipe(
        name="lin",
        source="Implement Transformers from Scratch (F. Lin, 2025)",
        model=_LIN,
        train=TrainConfig(),
        small=_small(
            _LIN,
            "lin",
            n_encoder_layers=2,
            n_decoder_layers=2,
            n_heads=4,
            d_model=32,
            d_ff=128,
            steps=600,
            learning_rate=3e-3,
            warmup_steps=100,
        ),
        look_for="No padding mask: in short words the first layers give [PAD] a third of their attention and "
        "more. Cross-attention layer 2 gives it none, and reads backwards near step 250.",
    ),
    Recipe(
        name="torres",
        source="Transformer From Scratch With PyTorch (L. F. Torres, 2024, after U. Jamil)",
        model=_TORRES,
        train=replace(
            _ADAM,
            learning_rate=1e-4,
            betas=(0.9, 0.999),
            adam_eps=1e-9,
            batch_size=8,
            label_smoothing=0.1,
            warmup_steps=0,
            steps=10_000,
            evaluate_every=500,
        ),
        small=_small(
            _TORRES,
            "torres",
            n_encoder_layers=2,
            n_decoder_layers=2,
            n_heads=4,
            d_model=64,
            d_ff=256,
            steps=1000,
            learning_rate=4e-3,
            warmup_steps=100,
        ),
        look_for="Dropout in four places makes it slow: the heads of cross-attention layer 2 learn to read "
        "backwards near step 300, side by side. It is 600 steps more until almost every word is right.",
    ),
)

RECIPES: Mapping[str, Recipe] = MappingProxyType({recipe.name: recipe for recipe in _ALL})
"""The recipes by name; the app's own is first."""

ENCODER_ONLY: RunConfig = with_topology(_OWN, "encoder-only").with_changes(
    recipe="Encoder only", steps=500, learning_rate=3e-3
)
"""The app's own architecture with an encoder alone: the self-attention of its last layer reads backwards.

At the default learning rate it gets stuck: after 800 steps only 6% of the words are right."""
DECODER_ONLY: RunConfig = with_topology(_OWN, "decoder-only").with_changes(recipe="Decoder only", steps=500)
"""The app's own architecture with a decoder alone: one stack reads the word and then writes the answer.

It needs about twice as many steps as two stacks; some heads of its last layer learn to read backwards."""


def recipe_config(name: str, topology: str | None = None, *, published: bool = False) -> RunConfig:
    """The initial settings of a recipe.

    Args:
        topology: by default the recipe's own.
        published: True for paper size and the article's training; False for sizes fit for two cores and the
            app's own training. The recipe "default" is the same in both cases.
    """
    recipe = RECIPES[name]
    own = {"encoder-only": ENCODER_ONLY, "decoder-only": DECODER_ONLY}
    if name == "default":
        return own.get(topology or "", recipe.small)
    config = recipe.published if published else recipe.small
    return with_topology(config, topology or config.model.topology)
