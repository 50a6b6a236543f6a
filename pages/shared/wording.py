"""Settings in words: their names, their values, and the differences between configurations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from transformer.config import TASK_INFO, RunConfig
from transformer.runs.any_run import AnyRun

MOST_CHANGED = 4
"""Most changed settings that are named; more would not fit in two lines."""
MOST_NAMED = 4
"""Most settings that are named to distinguish runs in a list; more would not fit."""
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
    "cuda_graphs": "CUDA graphs",
    "tokenizer": "tokens",
    "vocabulary": "most tokens",
    "min_frequency": "least frequency",
    "decoding": "written by",
    "beam_width": "beams",
    "length_penalty": "length penalty",
    "goal": "stop at goal",
} | {
    name: name
    for name in (
        *("topology", "steps", "seed", "dropout", "device", "task", "shift"),
        *("patterns", "adjectives", "pairs", "precision", "threads", "positions"),
    )
}
"""Maps each setting that users choose to its name in sentences, which is close to the label of its widget."""
_NAMED = re.compile(rf"\b({'|'.join(SETTING_NAMES)})=")


def changed(run: AnyRun, config: RunConfig | None) -> dict[str, tuple[Any, Any]]:
    """Settings of a configuration that differ from those of a run, by name: (the run's, the configuration's).

    Empty without a configuration. A learning rate with which the run already trains does not count.
    """
    if config is None:
        return {}
    changes = differing_settings(run.config, config)
    if config.train.learning_rate == run.view.learning_rate:
        changes.pop("learning_rate", None)  # the run already trains with it
    return changes


def differing_settings(one: RunConfig, other: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Settings that differ, by name: (one's, other's).

    Left out are the recipe's name, whether it is as published, and settings that follow from another.
    """
    changes = one.differences(other)
    follow = {"recipe", "published", "max_len", "src_vocab_size", "tgt_vocab_size"}
    if "d_model" in changes:
        follow.add("d_ff")
    if "causal_mask" in changes:  # None is on or off by the topology
        changes["causal_mask"] = one.model.masks["causal"], other.model.masks["causal"]
        if len({*changes["causal_mask"]}) == 1:
            follow.add("causal_mask")
    return {name: change for name, change in changes.items() if name not in follow}


def distinguishing_labels(configs: Sequence[RunConfig]) -> list[str]:
    """For each of one or more runs, up to `MOST_NAMED` settings in which any of them differs from the first.

    If there are none, several runs are told apart by their seeds. The task is in a run's name already.
    """
    changes = [differing_settings(configs[0], config) for config in configs]
    first = {name: before for change in changes for name, (before, _) in change.items()}
    named = [name for name in first if name in SETTING_NAMES and name not in ("task", "pairs")][:MOST_NAMED]

    def value(change: dict[str, tuple[Any, Any]], name: str) -> str:
        return format_value(name, change[name][1] if name in change else first[name])

    return [
        ", ".join(f"{SETTING_NAMES[name]} {value(change, name)}" for name in named)
        or (f"seed {config.seed}" if len(configs) > 1 else "")
        for config, change in zip(configs, changes, strict=True)
    ]


def differences(changes: dict[str, tuple[Any, Any]], most: int = MOST_CHANGED) -> str:
    """Settings that differ, as "width 32 → 64, seed 0 → 3, 2 more".

    Args:
        changes: by name, the values before and after.
        most: number of settings that are named; those without a name in `SETTING_NAMES` are only counted.
    """
    named = [
        f"{SETTING_NAMES[name]} {format_value(name, before)} → {format_value(name, after)}"
        for name, (before, after) in changes.items()
        if name in SETTING_NAMES
    ]
    others = len(changes) - len(named[:most])
    more = [f"{others} more"] if others else []
    return ", ".join([*named[:most], *more])


def format_value(name: str, value: Any) -> str:
    """The value of a setting in words."""
    if name == "pairs":
        return "none" if value is None else "your own"
    if name == "task":
        return TASK_INFO[value].title
    if name == "goal" and value is not None:
        return f"{100 * value:g}%"
    if name == "score_scale":
        return {"sqrt_d_head": "√ head width", "sqrt_d_model": "√ width"}.get(value, "1")
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def in_words(problem: str) -> str:
    """An error message with the name of each setting in words: "d_model=7 ..." becomes "Width: 7 ..."."""

    def named(found: re.Match[str]) -> str:
        name = SETTING_NAMES[found[1]]
        return f"{name} " if found.start() else f"{name[0].upper()}{name[1:]}: "

    return _NAMED.sub(named, problem)
