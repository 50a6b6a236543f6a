"""The size of a model and the memory of its training, calculated without building the model."""

from __future__ import annotations

from transformer.config import LETTER_TASKS, ModelConfig, RunConfig
from transformer.errors import InputError


def parameter_count(model: ModelConfig) -> int:
    """Number of trainable parameters of the model that these settings would build."""
    d = model.d_model
    norm = 2 if model.norm == "scalar" else 2 * d
    attention = 4 * d * d + 3 * d * model.qkv_bias + d * model.output_bias
    feed_forward = 2 * d * model.d_ff + model.d_ff + d
    self_only = attention + feed_forward + 2 * norm
    reads, writes = model.topology != "decoder-only", model.topology != "encoder-only"
    total = d * model.tgt_vocab_size + model.tgt_vocab_size  # to logits
    if reads:
        total += d * model.src_vocab_size + model.n_encoder_layers * self_only + norm * model.final_norm
    if writes:
        layer = self_only + attention + norm if reads else self_only
        total += model.n_decoder_layers * layer + norm * model.final_norm
        if not (reads and model.embedding_tables == "one"):
            total += d * model.tgt_vocab_size
    return total + d * model.max_len * (model.positions == "learned")


def training_bytes(config: RunConfig) -> int:
    """Approximate bytes of a training: weights, gradients, Adam's two averages, activations of a batch.

    Args:
        config: with the sizes that its task determines.
    """
    model, train = config.model, config.train
    sides = 2 if model.topology == "decoder-only" else 1
    # A model has positions for examples about twice as long as those that it is trained on.
    length = sides * (train.max_letters + 2) if train.task in LETTER_TASKS else model.max_len // 2 + 1
    layers = sum(model.n_layers(kind) for kind in set(model.kinds) - {"cross"})
    per_token = 16 * model.d_model + 3 * model.d_ff + 6 * model.n_heads * length
    activations = train.batch_size * length * (layers * per_token + 3 * model.tgt_vocab_size)
    return 16 * parameter_count(model) + 4 * activations


def check_memory(config: RunConfig, available: int) -> None:
    """Refuse a configuration whose training would not fit into memory.

    Args:
        available: bytes of memory that are free.

    Raises:
        InputError: the message says what is needed, what is free, and what to choose.
    """
    needed = training_bytes(config)
    if needed > available:
        raise InputError(
            f"This model has {parameter_count(config.model):,} parameters and needs about "
            f"{needed / 1e9:.1f} GB to train; {available / 1e9:.1f} GB of memory are free. Choose a smaller "
            "width, fewer layers or a smaller batch.",
            "d_model",
        )
