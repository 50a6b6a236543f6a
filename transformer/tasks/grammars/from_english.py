"""A grammar that translates from English: which sentences it makes, and how difficult they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transformer.errors import InputError
from transformer.tasks.grammars.clause import Clause
from transformer.tasks.grammars.english import MORE, PATTERNS, PLAIN, Speaker
from transformer.tasks.grammars.lexicon import Lexicon
from transformer.tasks.grammars.telling import Telling

MOST_ADJECTIVES = 4


class FromEnglish:
    """Rules of a `Grammar`, bound to its difficulty.

    Args:
        lexicon: the words.
        translate: writes what a sentence says in the other language.
        known: the patterns that this language has.
        patterns: those to choose from, each as often; None: all. With "determiners" among them, "this", "my"
            and "three" may come in sentences of every pattern.
        adjectives: how many a sentence may have at most.

    Raises:
        InputError: a pattern that does not exist, or a number of adjectives that cannot be.
    """

    def __init__(
        self,
        lexicon: Lexicon,
        translate: Callable[[Telling, Clause], None],
        known: Sequence[str],
        patterns: Sequence[str] | None,
        adjectives: int,
    ) -> None:
        self._lexicon, self._translate, self._adjectives = lexicon, translate, adjectives
        self._patterns = _chosen(known, patterns, adjectives)
        self._determiners = PLAIN + MORE if "determiners" in self._patterns else PLAIN

    def __call__(self, telling: Telling) -> None:
        """Tell one sentence."""
        telling.pattern, _ = telling.pick(self._patterns)
        speaker = Speaker(telling, self._lexicon, self._determiners, self._adjectives)
        self._translate(telling, PATTERNS[telling.pattern](speaker))


def _chosen(known: Sequence[str], patterns: Sequence[str] | None, adjectives: int) -> tuple[str, ...]:
    """The patterns to draw from."""
    if not 0 <= adjectives <= MOST_ADJECTIVES:
        raise InputError(
            f"{adjectives} adjectives in a sentence are not possible; choose 0 to {MOST_ADJECTIVES}.",
            "adjectives",
        )
    if patterns is None:  # a sentence with "is" or "are" needs an adjective
        return tuple(name for name in known if adjectives or name != "copula")
    unknown = [name for name in patterns if name not in known]
    if unknown or not patterns:
        what = (
            f"The pattern {', '.join(unknown)} does not exist" if unknown else "There is no pattern to draw"
        )
        raise InputError(f"{what}; choose from: {', '.join(known)}.", "patterns")
    if "copula" in patterns and not adjectives:
        raise InputError(
            "The pattern copula says that something is old or red, and 0 adjectives are allowed; allow at "
            "least 1, or leave the pattern out.",
            "patterns",
        )
    return tuple(name for name in known if name in patterns)
