"""Settings that work, to begin with: each has a name and a sentence on what to look for."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.config import RunConfig


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A named beginning."""

    config: RunConfig
    look_for: str
    """One sentence for whoever is about to press Start."""


_DEFAULT = RunConfig().with_changes(goal=0.99)

PRESETS = {
    "Reverse words": Preset(
        config=_DEFAULT,
        look_for="Soon heads of the last decoder layer turn anti-diagonal: to write a word backwards is to "
        "read it backwards.",
    ),
    "One head": Preset(
        config=_DEFAULT.with_changes(n_heads=1, recipe="One head"),
        look_for="With a single head per layer there is nobody to share the work: one head of the decoder "
        "must do all the reading.",
    ),
    "One layer each": Preset(
        config=_DEFAULT.with_changes(
            n_encoder_layers=1, n_decoder_layers=1, steps=600, recipe="One layer each"
        ),
        look_for="The smallest that learns: its heads stay more smeared than with a second decoder layer, "
        "and it needs more steps.",
    ),
    "A long look": Preset(
        config=_DEFAULT.with_changes(goal=None, steps=2000, recipe="A long look"),
        look_for="No goal stops this one: see what the heads go on doing after every word is already right.",
    ),
}
DEFAULT_PRESET = "Reverse words"
