"""Presets: sets of all settings, each with a name and a few sentences on what to look for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from transformer.config import TASK_INFO, RunConfig
from transformer.config.recipes import DECODER_ONLY, ENCODER_ONLY, RECIPES, recipe_config
from transformer.config.tasks import with_task


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A named set of all settings to begin with."""

    config: RunConfig
    shows: str
    """A few words on what the run shows."""
    look_for: str
    """What to look for, in a few sentences, shown with the untrained model."""
    reaches: int | None = None
    """The step at which the run usually meets its goal, by `python -m benchmarks.tasks`; None: unknown."""


def _of_task(name: str, config: RunConfig) -> Preset:
    """The preset of a task: these settings, with the words of its entry in `TASK_INFO`."""
    task = TASK_INFO[name]
    return Preset(config=config, shows=task.shows, look_for=task.look_for, reaches=task.reaches)


_DEFAULT = RECIPES["default"].small
DEFAULT_PRESET = TASK_INFO["reverse"].title

PRESETS = {
    DEFAULT_PRESET: _of_task("reverse", _DEFAULT),
    "One head": Preset(
        shows="one head does all the reading",
        config=_DEFAULT.with_changes(n_heads=1, recipe="One head"),
        look_for="With one head per layer, one head of the decoder does all the reading.",
    ),
    "One layer each": Preset(
        shows="the smallest model that learns",
        config=_DEFAULT.with_changes(
            n_encoder_layers=1, n_decoder_layers=1, steps=600, recipe="One layer each"
        ),
        look_for="The smallest model that learns. Its heads are less sharp than with a second "
        "decoder layer, and it needs more steps.",
    ),
    "A long look": Preset(
        shows="2,000 steps without a goal",
        config=_DEFAULT.with_changes(goal=None, steps=2000, recipe="A long look"),
        look_for="No goal ends this run: watch how the heads change after every word is right.",
    ),
    "No causal mask": Preset(
        shows="the decoder reads ahead and fails",
        config=_DEFAULT.with_changes(goal=None, causal_mask=False, recipe="No causal mask"),
        look_for="The decoder can read ahead, so each row copies the letter that it has to write. "
        "The loss falls to zero, but the loss of free-running outputs (dashed) rises and no "
        "word is right. The “Decoder” maps show where it looks.",
    ),
    "No padding mask": Preset(
        shows="attention to padding",
        config=_DEFAULT.with_changes(padding_mask=False, recipe="No padding mask"),
        look_for="[PAD] can be attended to. Choose a short word and see how much weight the padding "
        "columns get. The model still learns, but later.",
    ),
    **{
        task.title: _of_task(
            name, replace(with_task(recipe_config("default", task.topology), name), recipe=task.title)
        )
        for name, task in TASK_INFO.items()
        if name != "reverse"
    },
}
SHORT = tuple(TASK_INFO[name].title for name in ("reverse", "en-it", "zh-en"))
"""Presets that are offered even while All settings is closed."""
_TOPOLOGIES = {
    ENCODER_ONLY.recipe: (
        "One stack reads the question and writes in its place.",
        " Its self-attention reads backwards: each letter needs the one on the opposite side.",
    ),
    DECODER_ONLY.recipe: (
        "Question, [SEP] and answer are one sequence; rows after [SEP] write the answer.",
        " They soon read backwards: a diagonal in the lower left.",
    ),
}
"""By recipe: what the model is, and what to look for if it reverses words."""


def look_for(config: RunConfig) -> str:
    """What to look for in a run of these settings, by the name of their preset or recipe; may be empty."""
    if config.recipe in PRESETS:
        return PRESETS[config.recipe].look_for
    if config.published:
        return "The size and training of the paper; slow on a CPU."
    reverses = config.train.task == "reverse"
    if config.recipe in _TOPOLOGIES:
        what, sees = _TOPOLOGIES[config.recipe]
        return what + sees * reverses
    recipe = RECIPES.get(config.recipe)
    measured = recipe is not None and reverses and recipe.model.topology == config.model.topology
    return recipe.look_for if recipe is not None and measured else ""
