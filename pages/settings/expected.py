"""What to expect of a run before it is started: the size of its model, and the time that it takes here."""

from __future__ import annotations

from dataclasses import replace

from pages.settings.presets import PRESETS
from transformer.config import RunConfig
from transformer.config.size import parameter_count, training_bytes
from transformer.player.sentences import rounded
from transformer.runs.machine import has_gpu
from transformer.runs.speed import run_seconds
from transformer.tasks import resolved

TALK_SECONDS = 180.0
"""Longest training time that suits a live talk."""
BUILT_AT_ONCE = 3_000_000
"""Most parameters of a model that is shown as soon as it is chosen; a larger one is built at Start."""


def expected(config: RunConfig | None, pace: float | None = None) -> tuple[str, bool]:
    """How long a run will take, in words, and whether this is a warning; empty where it is not known.

    The time is known for CPUs only. The number of steps to the goal is known only for settings that equal a
    preset with `reaches`, apart from seed, device and threads; for others, all planned steps count.

    Args:
        pace: in steps per second, which the owner may raise at any time; None: full pace.
    """
    if config is None or not (config.device == "cpu" or (config.device == "auto" and not has_gpu())):
        return "", False
    reached = [
        preset.reaches for preset in PRESETS.values() if preset.reaches and _same(config, preset.config)
    ]
    if reached and config.train.goal is not None:
        steps, what = reached[0], ""
    else:
        steps, what = config.train.steps, f" for {config.train.steps:,} steps"
    seconds = run_seconds(config, steps)
    if pace is not None and seconds < steps / pace:
        return f"about {rounded(steps / pace)}{what} at this pace", False
    text = f"about {rounded(seconds)}{what} on this machine"
    if seconds <= TALK_SECONDS:
        return text, False
    return f"Too long for a talk: {text}. Choose fewer steps or a narrower model.", True


def _same(config: RunConfig, preset: RunConfig) -> bool:
    """Whether a configuration learns like the preset: seed, device and threads make little difference."""
    return replace(config, seed=preset.seed, device=preset.device, threads=preset.threads) == preset


def at_once(config: RunConfig | None) -> RunConfig | None:
    """The configuration if its untrained model is small enough to be shown before Start; else None.

    Raises:
        InputError: as `resolved`.
    """
    if config is None or parameter_count(resolved(config).model) > BUILT_AT_ONCE:
        return None
    return config


def model_size(config: RunConfig) -> str:
    """Describe the parameters, the memory, and the number of epochs over a finite training set.

    Raises:
        InputError: as `resolved`.
    """
    full = resolved(config)
    sentence = f"{parameter_count(full.model):,} parameters, about {_bytes(training_bytes(full))} to train"
    if at_once(config) is None:
        sentence += "; built when you press Start"
    if config.train.epochs is not None:
        sentence += f". {config.train.epochs:g} epochs of {config.train.examples:,} words"
    return f"{sentence}."


def _bytes(n: int) -> str:
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.0f} MB"
