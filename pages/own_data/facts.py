"""Facts about a task's data, in sentences: the number of examples, and what is kept from training."""

from __future__ import annotations

from pages.settings.presets import OF_TASK, PRESETS
from transformer.config import LETTER_TASKS, TrainConfig
from transformer.tasks import PATTERNS
from transformer.tasks.about import ABOUT
from transformer.tasks.corpus import Corpus
from transformer.tasks.dates import FORMS
from transformer.tasks.grammars.chinese import NEW_YORK_IS_A_CITY

_COMBINATIONS = (
    "One **combination** of words in ten, such as an adjective with a noun or a verb with its object, is "
    "held out: no training sentence contains it, but each of its words is trained on elsewhere."
)


def what_it_is(task: str) -> str:
    """A description of a task, and one sentence on what to look for in attention."""
    preset = OF_TASK[task]
    return f"**{preset}**: {ABOUT[task].what}. **Look for:** {PRESETS[preset].look_for}"


def supply(corpus: Corpus, settings: TrainConfig) -> str:
    """The number of examples."""
    n_held_out = len(corpus.held_out())
    if corpus.size is not None:
        trained = f"**{corpus.size:,}** training pairs, reshuffled in every epoch"
    elif settings.examples is not None:
        trained = f"**{settings.examples:,}** training examples, generated once"
    else:
        trained = "**Endless** training examples: every batch is generated anew"
    return f"{trained}; **{n_held_out:,}** different held-out examples, the same in every run."


def held_out(settings: TrainConfig) -> str:
    """The examples that are kept from training, and the rule."""
    task = settings.task
    if task in LETTER_TASKS:
        return (
            "One **word** in ten is held out, chosen by a hash of its letters. There are too few words "
            "of one or two letters to hold any out."
        )
    if task == "dates":
        return (
            "One **day of a month** in ten, such as 12 march, is held out in all years and all "
            f"{len(FORMS)} formats; training has every day, month, year and format in other combinations."
        )
    if task == "zh-en":
        return f"{_COMBINATIONS} {NEW_YORK_IS_A_CITY} is always held out."
    if task in PATTERNS:
        return f"{_COMBINATIONS} The first tracked words of a run are always held out."
    return (
        "One **source** in ten is held out with all its translations, chosen by a hash. Words that occur "
        "only in held-out pairs are never trained on."
    )


def unaligned() -> str:
    """One sentence on what to look for in attention when the user's own pairs are learned."""
    return f"**Look for:** {PRESETS[OF_TASK['pairs']].look_for}"
