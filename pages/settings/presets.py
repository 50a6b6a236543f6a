"""Settings that work, to begin with: each has a name and a sentence on what to look for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from transformer.config import RunConfig
from transformer.fitting import with_task
from transformer.recipes import DECODER_ONLY, ENCODER_ONLY, RECIPES


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A named beginning."""

    config: RunConfig
    look_for: str
    """One sentence for whoever is about to press Start."""
    reaches: int | None = None
    """The step at which it usually meets its goal, by the benchmarks; none: unknown."""


_DEFAULT = RECIPES["default"].small

PRESETS = {
    "Reverse words": Preset(
        config=_DEFAULT,
        look_for=RECIPES["default"].look_for,
        reaches=225,
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
    "No causal mask": Preset(
        config=_DEFAULT.with_changes(goal=None, causal_mask=False, recipe="No causal mask"),
        look_for="The decoder may read ahead, so each row simply copies the letter that it is to write: the "
        "loss falls to nothing, but written freely (dashed) it rises, and no word comes out right. The map "
        "“Decoder” shows where it looks.",
    ),
    "No padding mask": Preset(
        config=_DEFAULT.with_changes(padding_mask=False, recipe="No padding mask"),
        look_for="[PAD] can be looked at: choose a short word, and see how much of its attention goes to "
        "columns that mean nothing. It learns all the same, only later.",
    ),
    **{
        name: Preset(
            config=replace(with_task(_DEFAULT, task), recipe=name), look_for=sentence, reaches=reaches
        )
        for name, task, reaches, sentence in (
            (
                "Copy words",
                "copy",
                175,
                "Nothing moves here: soon some head draws a diagonal, each letter read where it stands.",
            ),
            (
                "Sort letters",
                "sort",
                475,
                "What is read depends on which letters there are, not on where they stand: no two words draw "
                "the same picture.",
            ),
            (
                "Caesar's cipher",
                "caesar",
                175,
                "Each letter is read where it stands, a diagonal, and changed on the way: attention moves, "
                "the feed-forward part translates.",
            ),
            (
                "Dates",
                "dates",
                475,
                "The year goes from the end to the beginning, the month is looked up from its letters, and "
                "the weekday stays dark: it decides nothing.",
            ),
            (
                "Numbers",
                "numbers",
                275,
                "Each digit is read from its word; for a nought that nobody says there is no word to look "
                "at. In German the last digit is said before the tens.",
            ),
            (
                "English to French",
                "en-fr",
                375,
                "Adjectives and nouns change places: the diagonal is crossed. “it” is put before the verb, "
                "and its row also looks for the noun that decides between le and la.",
            ),
            (
                "English to Italian",
                "en-it",
                None,
                "Most words keep their order; colours change places with their nouns, and articles look "
                "ahead to the word that decides between il, lo and l'.",
            ),
            (
                "Chinese to English",
                "zh-en",
                275,
                "Relative clauses and places move from the front to the end; measure words are read by "
                "nobody. 纽约是一座城市 is never trained on.",
            ),
            (
                "Your own pairs",
                "pairs",
                None,
                "Nobody knows the right alignment here: which words does each row choose by itself?",
            ),
        )
    },
}
DEFAULT_PRESET = "Reverse words"
OF_TASK = {"reverse": DEFAULT_PRESET} | {
    preset.config.train.task: name
    for name, preset in PRESETS.items()
    if preset.config.train.task != "reverse"
}
"""Task to the preset that begins it."""

_TOPOLOGIES = {
    ENCODER_ONLY.recipe: "One stack reads the word and writes in its place: soon self-attention itself turns "
    "anti-diagonal, for each letter must fetch the one that stands opposite.",
    DECODER_ONLY.recipe: "Word, [SEP] and answer are one sequence. Look at the rows behind [SEP]: soon they "
    "read the word backwards, an anti-diagonal in the lower left.",
}


def look_for(config: RunConfig) -> str:
    """What to look for in a run of these settings, by the name with which they began."""
    if config.recipe in PRESETS:
        return PRESETS[config.recipe].look_for
    if config.published:
        return "At paper size and with the article's own training; on a CPU that takes patience."
    if config.recipe in _TOPOLOGIES:
        return _TOPOLOGIES[config.recipe]
    recipe = RECIPES.get(config.recipe)
    own = recipe is None or recipe.model.topology == config.model.topology
    return recipe.look_for if recipe is not None and own else ""
