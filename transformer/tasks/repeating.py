"""Repeating: the answer begins with the last letter, and goes on as after its earlier place (induction)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from transformer.tasks.corpus import HELD_OUT_SEED, Links, Pair
from transformer.tasks.letters import ALPHABET, HOLD_OUT_FROM, Letters, is_held_out

SHORTEST, LONGEST = 3, 8
"""Minimum and maximum number of letters between the two occurrences, where the word has room for them."""
_TRACKED = ("sunflowers", "foxhunterh", "myplanetp", "dynamited")


class Repeat(Letters):
    """Read a word whose last letter has occurred before; write the letters from there on, without the last.

    The place of the earlier letter and the length of the answer are random where the word has room, so that
    places alone do not tell which letters to write: the sequence has to be searched for the letter that was
    read last (Olsson et al., 2022, "In-context Learning and Induction Heads").
    """

    name = "repeat"
    same_length = False

    def __init__(self, shortest: int, longest: int) -> None:
        """Words have L // 2 or more letters, at least three: in short ones, places tell almost everything."""
        super().__init__(max(shortest, HOLD_OUT_FROM, longest // 2), longest)

    def answer(self, word: str) -> str:
        """The letters from the last earlier occurrence of the final letter on, without the final letter.

        Empty if the final letter has not occurred before.
        """
        return word[word.rfind(word[-1], 0, len(word) - 1) : -1] if word[-1] in word[:-1] else ""

    def links(self, word: str) -> Links:
        """The first letter comes from the earlier occurrence, the next ones from the places after it."""
        begin = len(word) - 1 - len(self.answer(word))
        return tuple((i,) for i in range(begin, len(word) - 1))

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Words to train on: lengths, distances of the two occurrences and letters uniform, none held out."""
        words: list[str] = []
        lengths = rng.integers(self.shortest, self.longest + 1, count)
        for n in lengths.tolist():
            word = _word(rng, n)
            while is_held_out(word):
                word = _word(rng, n)
            words.append(word)
        return [self._pair(word) for word in words]

    def held_out_draws(self) -> Iterator[Pair]:
        """Held-out words, lengths about uniform."""
        rng = np.random.default_rng(HELD_OUT_SEED)
        while True:
            word = _word(rng, int(rng.integers(self.shortest, self.longest + 1)))
            if is_held_out(word):
                yield self._pair(word)

    def tracked_words(self) -> Sequence[str]:
        """Up to four words made of real ones, of trained lengths; three held-out words if there are none."""
        return tuple(filter(self._fits, _TRACKED)) or [pair.source for pair in self.held_out()[:3]]

    def everyday(self) -> Sequence[str]:
        """Empty: few real words repeat their last letter at the right distance."""
        return ()

    def find(self, source: str) -> Pair | None:
        """A word with its answer; None if its last letter has not occurred before, or if it is no word."""
        return super().find(source) if source and self.answer(source) else None

    def words_of_length(self, length: int, count: int) -> list[str]:
        """`count` fixed held-out words of one length, which may repeat; none of fewer than three letters."""
        rng = np.random.default_rng([HELD_OUT_SEED, length])
        words: list[str] = []
        while len(words) < count and length >= HOLD_OUT_FROM:
            if is_held_out(word := _word(rng, length)):
                words.append(word)
        return words

    def hardest(self, tokens: Sequence[str]) -> list[str]:
        """Words of one blocked letter (a if none is) and one other letter, of every reported length."""
        letters = sorted(token for token in tokens if len(token) == 1) or ["a"]
        other = {letter: "b" if letter == "a" else "a" for letter in letters}
        lengths = self.report_lengths()
        return [letter * (n - 2) + other[letter] + letter for letter in letters for n in lengths]


def _word(rng: np.random.Generator, n: int) -> str:
    """A word of n letters whose last one occurs once before; the others differ while there are enough."""
    most = n - 2
    m = int(rng.integers(min(SHORTEST, most), min(LONGEST, most) + 1))
    letters = rng.permutation(26)
    others = letters[1:] if n - 2 < 26 else letters[1:][rng.integers(0, 25, n - 2)]
    word = np.concatenate([others[: most - m], letters[:1], others[most - m : most], letters[:1]])
    text: str = ALPHABET[word].tobytes().decode()
    return text
