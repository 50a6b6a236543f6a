"""What the pages say in words, from the numbers of the run: heads, states, the sentence of the moment."""

from __future__ import annotations

from typing import Any

from transformer.config import RunConfig
from transformer.runs.watched import Watched

SETTING_NAMES = {
    "n_encoder_layers": "encoder layers",
    "n_decoder_layers": "decoder layers",
    "n_heads": "heads",
    "d_model": "width",
    "max_letters": "longest word",
    "batch_size": "batch",
    "learning_rate": "learning rate",
    "label_smoothing": "label smoothing",
    "n_layers": "layers",
    "causal_mask": "causal mask",
    "padding_mask": "padding mask",
    "norm_placement": "place of the norm",
    "score_scale": "scores divided by",
    "to_words": "from digits to words",
    "cuda_graphs": "CUDA graphs",
    "tokenizer": "tokens",
    "vocabulary": "most tokens",
    "min_frequency": "least frequency",
    "decoding": "written by",
    "beam_width": "beams",
    "length_penalty": "length penalty",
}
_AS_THEY_ARE = (
    *("topology", "steps", "seed", "goal", "dropout", "device", "task", "shift", "language", "digits"),
    *("patterns", "adjectives", "pairs", "precision", "threads"),
)
"""Settings that are called by their own names."""


def changed(run: Watched, config: RunConfig | None) -> dict[str, tuple[Any, Any]]:
    """Settings that differ from a run's, without the preset's name and what follows from another setting."""
    if config is None:
        return {}
    changes = run.config.differences(config)
    changes.pop("recipe", None)
    changes.pop("published", None)
    if "d_model" in changes:
        changes.pop("d_ff", None)
    for follows in ("max_len", "src_vocab_size", "tgt_vocab_size"):  # from the task; a saved run has them
        changes.pop(follows, None)
    if config.train.learning_rate == run.view.learning_rate:
        changes.pop("learning_rate", None)  # it has been taken over in mid-run
    return changes


def differences(changes: dict[str, tuple[Any, Any]]) -> str:
    """Settings that differ, as "width 32 → 64, seed 0 → 3"."""
    named = [
        f"{SETTING_NAMES.get(name, name)} {_short(before)} → {_short(after)}"
        for name, (before, after) in changes.items()
        if name in SETTING_NAMES or name in _AS_THEY_ARE
    ]
    others = len(changes) - len(named)
    more = [f"{others} more of the recipe's"] if others else []
    return ", ".join([*named, *more])


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
