"""What a task's data are, in sentences: how many there are, and what is kept from training."""

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
    "kept from training wherever it would stand; each of its words is trained on elsewhere. A sentence with "
    "such a combination is held out."
)


def what_it_is(task: str) -> str:
    """What a task is, and one sentence on what to look for in attention."""
    preset = OF_TASK[task]
    return f"**{preset}**: {ABOUT[task].what}. **Look for:** {PRESETS[preset].look_for}"


def supply(corpus: Corpus, settings: TrainConfig) -> str:
    """How many examples there are."""
    n_held_out = len(corpus.held_out())
    if corpus.size is not None:
        trained = f"**{corpus.size:,}** pairs to train on, seen again and again in other orders"
    elif settings.examples is not None:
        trained = f"**{settings.examples:,}** examples to train on, drawn once from an endless supply"
    else:
        trained = "An **endless** supply to train on: every batch is drawn anew"
    return f"{trained}; **{n_held_out:,}** different held-out examples, the same in every run."


def held_out(settings: TrainConfig) -> str:
    """What is kept from training, and by which rule."""
    task = settings.task
    if task in LETTER_TASKS:
        return (
            "One **word** in ten is kept from training, by a hash of its letters, from three letters on. "
            "Words of one or two letters are too few to hold any out."
        )
    if task == "dates":
        return (
            "One **day of a month** in ten, such as 12 march, is kept from training in all years and in all "
            f"{len(FORMS)} ways of writing; every day, month, year and way by itself is trained on."
        )
    if task == "numbers":
        return (
            "One **number** in ten is kept from training, by a hash, of those that are put together from "
            "others. Numbers up to twenty and whole tens are the words that the others are made of: they are "
            "all trained on."
        )
    if task == "zh-en":
        return f"{_COMBINATIONS} {NEW_YORK_IS_A_CITY} is always held out."
    if task in PATTERNS:
        return f"{_COMBINATIONS} The examples that a run begins with are always held out."
    return (
        "One **source** in ten is kept from training, by a hash, with all its translations: another "
        "translation of a sentence that was trained on would be no test. A word that stands in held-out "
        "pairs alone is never trained on."
    )


def nobody_knows() -> str:
    """Why no alignment is drawn for a person's own pairs, and what to look for all the same."""
    return f"**Look for:** {PRESETS[OF_TASK['pairs']].look_for} So there are no lines to draw either."
