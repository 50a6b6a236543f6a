"""The tokenizers of both sides of a run, from its settings and its own data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from transformer.config import LETTER_TASKS, TrainConfig
from transformer.errors import InputError
from transformer.tasks.corpus import Pair
from transformer.tasks.pairs.store import tokenizer_of
from transformer.tasks.pairs.units import in_words
from transformer.tasks.tokenizer import SPECIALS, TextTokenizer, byte_pairs, characters, from_file, words
from transformer.tasks.writing import CHARACTERS, Writing


def tokenizers_of(
    config: TrainConfig, src: Writing, tgt: Writing, sample: Sequence[Pair], *, separator: bool, one: bool
) -> tuple[TextTokenizer, TextTokenizer]:
    """The tokenizers of questions and answers.

    Args:
        sample: training pairs from which tokens are counted and byte pairs learned.
        separator: whether the vocabulary includes [SEP].
        one: whether both sides share one vocabulary, as one stack or one embedding table needs.

    Raises:
        InputError: the tokenizer file is missing, cannot be read or has no token for the texts; the tokenizer
            would join the letters of a letter task; or no word is frequent enough.
    """
    if config.task in LETTER_TASKS:
        if config.tokenizer in ("bpe", "file"):
            raise InputError(
                f"The task {config.task} needs a token for each letter, but {config.tokenizer} would "
                "join letters; choose auto or characters.",
                "tokenizer",
            )
        both = characters(separator=separator)
        return both, both
    questions, answers = [pair.source for pair in sample], [pair.target for pair in sample]
    if config.tokenizer in ("bpe", "file"):
        groups = [questions + answers] if one else [questions, answers]
        made = [_learned(config, texts, separator) for texts in groups]
        return made[0], made[-1]
    if config.task == "pairs" and config.tokenizer == "words":
        src, tgt = in_words(src), in_words(tgt)
    sides = [(src, questions), (tgt, answers)]
    counts = [_counts(config, writing, texts) for writing, texts in sides]
    if one:
        counts = [counts[0] + counts[1]] * 2
    read, written = (_ranked(of_side, config, separator) for of_side in counts)
    return _of_units(config, src, read, separator), _of_units(config, tgt, written, separator)


def _spelled(config: TrainConfig, writing: Writing) -> bool:
    """Whether each character is a token."""
    return config.tokenizer == "characters" or writing.unit == CHARACTERS


def _counts(config: TrainConfig, writing: Writing, texts: Sequence[str]) -> Counter[str]:
    split: Callable[[str], Iterable[str]] = tuple if _spelled(config, writing) else writing.units
    return Counter(unit for text in texts for unit in split(text))


def _of_units(config: TrainConfig, writing: Writing, tokens: Sequence[str], separator: bool) -> TextTokenizer:
    if _spelled(config, writing):
        return characters(tokens, separator=separator)
    return words(tokens, writing, separator=separator)


def _ranked(counts: Counter[str], config: TrainConfig, separator: bool) -> list[str]:
    """Units that are frequent enough, the most frequent first, as many as the vocabulary has room for.

    Raises:
        InputError: no unit is frequent enough.
    """
    enough = [unit for unit, n in counts.items() if n >= config.min_frequency]
    if not enough:
        raise InputError(
            f"No word occurs {config.min_frequency:,} times among {sum(counts.values()):,} words; choose "
            "a lower least frequency.",
            "min_frequency",
        )
    ranked = sorted(enough, key=lambda unit: (-counts[unit], unit))
    room = len(ranked) if config.vocabulary is None else config.vocabulary - len(SPECIALS) - separator
    return ranked[:room]


def _learned(config: TrainConfig, texts: Sequence[str], separator: bool) -> TextTokenizer:
    if config.tokenizer == "bpe":
        return byte_pairs(texts, config.vocabulary, separator=separator)
    return from_file(
        tokenizer_of(config.tokenizer_file).content, texts, config.vocabulary, separator=separator
    )
