"""The estimated time of a run on this machine, before it is started."""

from __future__ import annotations

from dataclasses import replace

from pages.settings.presets import PRESETS
from transformer.config import RunConfig
from transformer.runs import calibration

TALK_SECONDS = 180.0
"""The longest wait for a picture in a live talk."""


def expected(config: RunConfig | None, pace: float | None = None) -> tuple[str, bool]:
    """The estimate in words, and whether it is a warning; empty where nothing is known.

    The speed is known for CPUs only, and the number of steps to the goal for presets only.

    Args:
        pace: in steps per second, which may be raised at any time; None: as fast as this machine can.
    """
    speed = calibration.speed()
    if config is None or speed is None or config.device not in speed.devices:
        return "", False
    known = [preset.reaches for preset in PRESETS.values() if preset.reaches and _same(config, preset.config)]
    if known and config.train.goal is not None:
        steps, what = known[0], f"to {100 * config.train.goal:g}%"
    else:
        steps, what = config.train.steps, f"for {config.train.steps:,} steps"
    seconds = speed.run_seconds(config, steps)
    if pace is not None and seconds < steps / pace:
        return f"about {_rounded(steps / pace)} {what} at this pace", False
    text = f"about {_rounded(seconds)} {what} on this machine"
    if seconds <= TALK_SECONDS:
        return text, False
    return f"Too long for a talk: {text}. Choose fewer steps or a narrower model.", True


def _same(config: RunConfig, preset: RunConfig) -> bool:
    """Whether it learns as the preset does: the seed and where it is computed make little difference."""
    return replace(config, seed=preset.seed, device=preset.device, threads=preset.threads) == preset


def _rounded(seconds: float) -> str:
    if seconds < 10:
        return f"{max(round(seconds), 1)} s"
    if seconds < 90:
        return f"{5 * round(seconds / 5)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
