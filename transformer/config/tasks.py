"""The tasks: their names and descriptions, and the settings with which each is learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.config.run import RunConfig


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """The words for a task, and the settings that it needs."""

    title: str
    """Its name on the pages, which is also the name of its preset."""
    examples: str
    """What it reads and writes."""
    shows: str
    """A few words on what its run shows."""
    look_for: str
    """One or two sentences on what to look for, shown with the untrained model."""
    held_out: str
    """Which examples are held out, and by which rule."""
    input_help: str = ""
    """What can be typed; empty for tasks on letters, where it depends on the number of letters."""
    plural: str = "sentences"
    """What its examples are called."""
    kind: str = ""
    """"letters": random strings of letters; "grammar": sentences that a grammar makes; empty: neither."""
    topology: str = "encoder-decoder"
    """The stacks that learn it, unless others are chosen."""
    reaches: int | None = None
    """The step at which its run usually meets its goal, by `python -m benchmarks.tasks`; None: unknown."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that differ from those of word reversal, with which it is learned live on two CPU cores."""

    @property
    def singular(self) -> str:
        """What an example is called."""
        return self.plural.removesuffix("s")

    @property
    def units(self) -> str:
        """What the parts of an answer are called."""
        return "letters" if self.kind == "letters" else "tokens"


_WORD = (
    "One **word** in ten is held out, chosen by a hash of its letters. There are too few words of one or two "
    "letters to hold any out."
)
_COMBINATION = (
    "One **combination** of words in ten, such as an adjective with a noun or a verb with its object, is "
    "held out: no training sentence contains it, but each of its words is trained on elsewhere."
)
_TRACKED = "The first tracked words of a run are always held out."
_INPUT = "Words of this grammar, in any order"
_SENTENCES: dict[str, Any] = {"d_model": 64, "d_ff": 256, "learning_rate": 3e-3, "steps": 400}

TASK_INFO = {
    "reverse": TaskInfo(
        title="Reverse words",
        examples="random letters, written backwards",
        shows="a head learns to read backwards",
        look_for="Soon cross-attention heads of the last layer read backwards: to write a word backwards is "
        "to read it backwards.",
        held_out=_WORD,
        plural="words",
        kind="letters",
        reaches=225,
    ),
    "copy": TaskInfo(
        title="Copy words",
        examples="random letters, written as they are",
        shows="each letter is read in its place",
        look_for="A head soon becomes diagonal: each letter is read in its own place.",
        held_out=_WORD,
        plural="words",
        kind="letters",
        reaches=175,
    ),
    "sort": TaskInfo(
        title="Sort letters",
        examples="random letters, in alphabetical order",
        shows="each word has its own pattern",
        look_for="Attention depends on the letters, not on their places, so every word has its own pattern.",
        held_out=_WORD,
        plural="words",
        kind="letters",
        reaches=475,
        settings={"steps": 500},
    ),
    "caesar": TaskInfo(
        title="Caesar's cipher",
        examples="random letters, each shifted in the alphabet",
        shows="a diagonal; letters change on the way",
        look_for="A diagonal: each letter is read in its own place, and the feed-forward layers change it.",
        held_out=_WORD,
        plural="words",
        kind="letters",
        reaches=175,
    ),
    "repeat": TaskInfo(
        title="Repeat what came before",
        examples="random letters; those from the last letter's earlier place on",
        shows="two heads together: induction",
        look_for="In layer 1 a head looks one token back. Then a head of layer 2 finds what came after the "
        "letter that was read last: an induction head.",
        held_out=_WORD,
        plural="words",
        kind="letters",
        topology="decoder-only",
        # With the sinusoid, or smaller embeddings, induction forms hundreds of steps later, or not at all.
        settings={
            "max_letters": 16,
            "n_heads": 2,
            "d_model": 64,
            "d_ff": 64,
            "positions": "learned",
            "embedding_std": 0.1,
            "schedule": "cosine",
            "warmup_steps": 20,
            "steps": 500,
        },
    ),
    "dates": TaskInfo(
        title="Dates",
        examples="English dates, written as 2021-03-12",
        shows="the year moves from the end to the front",
        look_for="The year moves from the end to the front, the month is looked up from its letters, "
        "and the weekday gets no weight: it decides nothing.",
        held_out="One **day of a month** in ten, such as 6 june, is held out in all years and all formats; "
        "training has every day, month, year and format in other combinations.",
        input_help="An English date",
        plural="dates",
        reaches=475,
        # Small embeddings let positions dominate: 12 and 21 differ only in position.
        settings={"steps": 550, "embedding_std": 0.01},
    ),
    "en-fr": TaskInfo(
        title="English to French",
        examples="English sentences, in French",
        shows="adjectives and nouns change places",
        look_for="Adjectives and nouns change places, so the diagonal is crossed. “it” moves before the "
        "verb; its row also attends to the noun, for le or la.",
        held_out=f"{_COMBINATION} {_TRACKED}",
        input_help=_INPUT,
        kind="grammar",
        reaches=375,
        settings=_SENTENCES,
    ),
    "en-it": TaskInfo(
        title="English to Italian",
        examples="English sentences, in Italian",
        shows="colours change places with nouns",
        look_for="Most words keep their order. Colours change places with nouns, and articles attend to "
        "the next word, which decides between il and lo.",
        held_out=f"{_COMBINATION} {_TRACKED}",
        input_help=_INPUT,
        kind="grammar",
        settings=_SENTENCES | {"steps": 500},
    ),
    "zh-en": TaskInfo(
        title="Chinese to English",
        examples="Chinese sentences, in English",
        shows="first in Chinese, last in English",
        look_for="Relative clauses and places move from the front to the end, and measure words get "
        "no weight. 纽约是一座城市 is never trained on.",
        held_out=f"{_COMBINATION} 纽约是一座城市 is always held out.",
        input_help=_INPUT,
        kind="grammar",
        reaches=275,
        settings=_SENTENCES,
    ),
    "pairs": TaskInfo(
        title="Your own pairs",
        examples="your own pairs of sentences",
        shows="upload them on Your data",
        look_for="No gold alignment is known: see which tokens each row attends to.",
        held_out="One **source** in ten is held out with all its translations, chosen by a hash. Words that "
        "occur only in test pairs are never trained on.",
        input_help="Any text in the language of your sources",
        # A few thousand pairs are seen again and again: the last three settings reduce overfitting.
        settings=_SENTENCES | {"steps": 800, "dropout": 0.1, "label_smoothing": 0.1, "weight_decay": 0.3},
    ),
}
"""The tasks by name, in the order of the lists that show them; "pairs" is last."""
TASKS = tuple(TASK_INFO)
LETTER_TASKS = tuple(name for name, task in TASK_INFO.items() if task.kind == "letters")
GRAMMARS = tuple(name for name, task in TASK_INFO.items() if task.kind == "grammar")
_IN_CHARACTERS: dict[str, Any] = {"weight_decay": 1.0}
"""Further change for own pairs read in characters: it keeps the model from memorising whole words."""


def for_pairs(config: RunConfig, *, in_characters: bool) -> RunConfig:
    """The settings for own pairs, read in characters or in words; published settings do not change.

    Args:
        config: settings of the task "pairs".
        in_characters: whether both sides are read in characters.
    """
    return config.with_changes(**_IN_CHARACTERS) if in_characters and not config.published else config


def with_task(config: RunConfig, task: str) -> RunConfig:
    """The same settings for another task, with the sizes and the training that it needs.

    The sizes and training of a published recipe stay as they are.

    Raises:
        InputError: there is no such task, or the new settings cannot be used.
    """
    if task == config.train.task:
        return config
    settings = TASK_INFO[task].settings if task in TASK_INFO and not config.published else {}
    return config.with_changes(task=task, **settings)
