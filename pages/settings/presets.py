"""Presets: settings that work, each with a name and a sentence on what to look for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from transformer.config import RunConfig
from transformer.config.recipes import DECODER_ONLY, ENCODER_ONLY, RECIPES
from transformer.config.task_defaults import with_task


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A named set of all settings to begin with."""

    config: RunConfig
    shows: str
    """A few words on what the run shows."""
    look_for: str
    """A sentence on what to look for, shown with the untrained model."""
    reaches: int | None = None
    """The step at which the run usually meets its goal, by the benchmarks; None if unknown."""


_DEFAULT = RECIPES["default"].small

PRESETS = {
    "Reverse words": Preset(
        shows="a head learns to read backwards",
        config=_DEFAULT,
        look_for=RECIPES["default"].look_for,
        reaches=225,
    ),
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
        name: Preset(
            config=replace(with_task(DECODER_ONLY if task == "repeat" else _DEFAULT, task), recipe=name),
            shows=shows,
            look_for=sentence,
            reaches=reaches,
        )
        for name, task, reaches, shows, sentence in (
            (
                "Copy words",
                "copy",
                175,
                "each letter is read in its place",
                "A head soon becomes diagonal: each letter is read in its own place.",
            ),
            (
                "Sort letters",
                "sort",
                475,
                "each word has its own pattern",
                "Attention depends on the letters, not on their places, so every word has its own pattern.",
            ),
            (
                "Caesar's cipher",
                "caesar",
                175,
                "a diagonal; letters change on the way",
                "A diagonal: each letter is read in its own place, and the feed-forward layers change it.",
            ),
            (
                "Repeat what came before",
                "repeat",
                None,
                "two heads together: induction",
                "In layer 1 a head looks one token back; then a head of layer 2 finds what came after the "
                "letter that was read last: an induction head.",
            ),
            (
                "Dates",
                "dates",
                475,
                "the year moves from the end to the front",
                "The year moves from the end to the front, the month is looked up from its letters, "
                "and the weekday gets no weight, because it decides nothing.",
            ),
            (
                "English to French",
                "en-fr",
                375,
                "adjectives and nouns change places",
                "Adjectives and nouns change places, so the diagonal is crossed. “it” moves before "
                "the verb, and its row also attends to the noun that decides between le and la.",
            ),
            (
                "English to Italian",
                "en-it",
                None,
                "colours change places with nouns",
                "Most words keep their order. Colours change places with their nouns, and articles "
                "attend to the next word, which decides between il, lo and l'.",
            ),
            (
                "Chinese to English",
                "zh-en",
                275,
                "first in Chinese, last in English",
                "Relative clauses and places move from the front to the end, and measure words get "
                "no weight. 纽约是一座城市 is never trained on.",
            ),
            (
                "Your own pairs",
                "pairs",
                None,
                "upload them on Your data",
                "No gold alignment is known: see which tokens each row attends to.",
            ),
        )
    },
}
DEFAULT_PRESET = "Reverse words"
SHORT = (DEFAULT_PRESET, "English to Italian", "Chinese to English")
"""Presets that are shown without opening All settings."""
OF_TASK = {"reverse": DEFAULT_PRESET} | {
    preset.config.train.task: name
    for name, preset in PRESETS.items()
    if preset.config.train.task != "reverse"
}
"""Maps each task to its preset."""

_TOPOLOGIES = {
    ENCODER_ONLY.recipe: "One stack reads the word and writes in its place. Its self-attention reads "
    "backwards, because each letter needs the letter on the opposite side.",
    DECODER_ONLY.recipe: "Word, [SEP] and answer are one sequence. The rows after [SEP] soon read the word "
    "backwards: a diagonal line in the lower left.",
}


def look_for(config: RunConfig) -> str:
    """A sentence on what to look for in a run of these settings, by the name of their preset."""
    if config.recipe in PRESETS:
        return PRESETS[config.recipe].look_for
    if config.published:
        return "The size and training of the paper; slow on a CPU."
    if config.recipe in _TOPOLOGIES:
        return _TOPOLOGIES[config.recipe]
    recipe = RECIPES.get(config.recipe)
    own = recipe is None or recipe.model.topology == config.model.topology
    return recipe.look_for if recipe is not None and own else ""
