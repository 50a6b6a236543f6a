"""Prepared races: two configurations, most of which differ in one setting, and what to look for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pages.settings.presets import PRESETS
from transformer.config import RunConfig
from transformer.config.recipes import RECIPES


@dataclass(frozen=True, kw_only=True)
class PreparedRace:
    """Two configurations, and what their race shows; `benchmarks/races.py` measures whether it holds."""

    look_for: str
    left: RunConfig
    right: RunConfig
    kind: str = "cross"
    """The kind of attention that is shown first."""
    pinned: tuple[str, int] | None = None
    """The head that is shown first; by default the clearest of each run."""
    word: str = "playground"
    story: str | None = None
    """Name of the shipped story that explains what the race shows."""


_REPEAT = PRESETS["Repeat what came before"].config.with_changes(goal=None)
_LEFT = RECIPES["default"].small.with_changes(goal=None)


def _against(look_for: str, changes: dict[str, Any], **look: Any) -> PreparedRace:
    """A race of the default, without a goal, against itself with these changes."""
    return PreparedRace(look_for=look_for, left=_LEFT, right=_LEFT.with_changes(**changes), **look)


RACES = {
    "With and without the causal mask": _against(
        "Without the mask, each row reads the letter that it has to write: the loss falls to zero, and no "
        "word is right.",
        {"causal_mask": False},
        kind="decoder",
        pinned=("decoder.0.self", 1),
    ),
    "With and without the padding mask": _against(
        "Without the mask, [PAD] gets more than a third of the attention in short words. The words are "
        "learned all the same.",
        {"padding_mask": False},
        kind="encoder",
        pinned=("encoder.0", 3),
        word="cat",
    ),
    "4 heads against 1": _against(
        "One wide head learns to read backwards like four narrow ones, and nine of ten words are right "
        "within 50 steps of each other.",
        {"n_heads": 1},
    ),
    "2 decoder layers against 1": _against(
        "With one decoder layer every word is learned too, but its clearest head stays more smeared.",
        {"n_decoder_layers": 1},
    ),
    "Pre-norm against post-norm": _against(
        "In this small model post-norm learns sooner: half of the words are right some 25 steps earlier.",
        {"norm_placement": "post"},
    ),
    "With and without √d": _against(
        "Scores that are not divided by √d make the softmax sharper: the clearest head ends with more "
        "weight on its letters.",
        {"score_scale": "none"},
    ),
    "Repeating: 2 layers against 1": PreparedRace(
        look_for="With two layers an induction head forms, and nine of ten words are right. With one layer "
        "none can form: no layer before it looks one token back. Hardly a word is right.",
        left=_REPEAT,
        right=_REPEAT.with_changes(n_decoder_layers=1),
        kind="sequence",
        word="sunflowers",
        story="induction",
    ),
    "Default against recipe etienne": PreparedRace(
        look_for="The default has learned every word by step 300. The recipe’s heads turn later, and stay "
        "smeared.",
        left=_LEFT,
        right=RECIPES["etienne"].small,
    ),
    "Sinusoidal against learned positions": _against(
        "Learned positions have to be found first: half of the words are right at least 50 steps later.",
        {"positions": "learned"},
    ),
}
DEFAULT_RACE = next(iter(RACES))
