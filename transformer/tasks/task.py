"""A task is a corpus in tokens: batches to train on, held-out examples, questions with their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.shared.evaluation import N_LIVE
from transformer.tasks.arrange import Batch, arrange, sequence_limit
from transformer.tasks.corpus import Array, Corpus, Links, Pair, token_links
from transformer.tasks.vocabularies import tokenizers_of

SAMPLE = 6_000
"""Number of examples of an endless corpus from which tokens are counted: enough to contain its words."""
N_EQUAL_WORDS = 64
"""Maximum number of held-out examples of one length, over which maps are averaged and compared."""
KEPT_FINDS = 256
"""Maximum number of questions whose answers are cached: tracked words need theirs at every frame."""
_SAMPLED = 70_001
_FINITE = 50_021
"""Parts of seeds that keep the draws of a sample and of a finite set apart from those of batches."""


@dataclass(frozen=True)
class Question:
    """A checked question with its answer and properties, or the words of a mean map."""

    text: str
    answer: str | None
    """None where the right answer is not known."""
    held_out: bool
    """Kept from training."""
    too_long: bool
    """It has more tokens than `Task.longest`, the longest of the known training questions."""
    too_short: bool = False
    """It has fewer tokens than the `shortest` of its corpus."""
    words: tuple[str, ...] = ()
    """The words of one length whose mean map is tracked under this text; empty for a question."""


class Task:
    """A corpus in tokens. Pure: the same arguments give the same examples, without a global random state.

    Args:
        corpus: the examples as text.
        config: the batch size, the size of a finite training set, and the settings of the tokenizers.
        topology: of the model, for which batches are laid out.
        one_vocabulary: whether both sides share one vocabulary even in an encoder-decoder model.

    Raises:
        InputError: the tokenizers cannot be made; see `tokenizers_of`.
    """

    def __init__(self, corpus: Corpus, config: TrainConfig, topology: str, *, one_vocabulary: bool) -> None:
        self.corpus, self.topology, self.name = corpus, topology, corpus.name
        self.batch_size = config.batch_size
        sample = () if corpus.longest else sampled(corpus)
        self.src_tokenizer, self.tgt_tokenizer = tokenizers_of(
            config,
            corpus.src,
            corpus.tgt,
            sample,
            separator=topology == "decoder-only",
            one=one_vocabulary or topology != "encoder-decoder",
        )
        if corpus.longest:
            self.longest = longest_answer = corpus.longest
            least = 0, 0
        else:
            self.longest, longest_answer = self._longest_of(sample)
            least = self._longest_of(corpus.held_out())  # may be longer than twice the longest of the sample
        self.max_question_tokens = max(2 * self.longest, least[0])
        """Maximum number of tokens of a question, special ones left out."""
        self._longest_tokens = max(self.longest, longest_answer) + 2
        self.max_tokens = sequence_limit(
            topology, self.max_question_tokens, max(2 * longest_answer, least[1])
        )
        """Maximum length of a sequence, special tokens included."""
        self.examples = config.examples if corpus.size is None else corpus.size
        """Size of the finite training set; None where the supply is endless."""
        self.steps_per_epoch = None if self.examples is None else -(-self.examples // self.batch_size)
        self._find = lru_cache(maxsize=KEPT_FINDS)(corpus.find)
        self._finite_set = lru_cache(maxsize=1)(partial(_finite_set, corpus, self.examples or 0))
        self._order = lru_cache(maxsize=1)(partial(_order, self.examples or 0))

    @cached_property
    def target_score(self) -> str:
        """The score to judge a head by: mirror, prefix, gold, or focus where no alignment is known."""
        if self.name == "reverse":
            return "mirror"
        if self.name == "repeat" and self.topology == "decoder-only":
            return "prefix"
        return "focus" if self.corpus.held_out()[0].links is None else "gold"

    def pairs(self, seed: int, k: int) -> list[Pair]:
        """The examples of training batch k, none of them held out.

        Of a finite set, batch k is a slice of the set in the order of its epoch; the last batch of an
        epoch holds the rest.
        """
        if self.examples is None or self.steps_per_epoch is None:
            return self.corpus.drawn(np.random.default_rng([seed, k]), self.batch_size)
        epoch, part = divmod(k, self.steps_per_epoch)
        chosen = self._order(seed, epoch)[part * self.batch_size : (part + 1) * self.batch_size]
        every = self._finite_set(seed)
        return [every[i] for i in chosen.tolist()]

    def words(self, seed: int, k: int) -> list[str]:
        """The questions of training batch k, as text."""
        return [pair.source for pair in self.pairs(seed, k)]

    def batch(self, seed: int, k: int) -> Batch:
        """Training batch k of this seed, a pure function of both."""
        pairs = self.pairs(seed, k)
        return self._arranged([pair.source for pair in pairs], [pair.target for pair in pairs])

    @cached_property
    def _known(self) -> dict[str, Pair]:
        """Held-out examples by question, where they are drawn anyway: faster than `find`."""
        return {} if self.corpus.longest else {pair.source: pair for pair in self.corpus.held_out()}

    def held_out(self) -> list[str]:
        """Fixed questions that training never sees, in a fixed order."""
        return [pair.source for pair in self.corpus.held_out()]

    def live_words(self) -> list[str]:
        """The held-out questions that every evaluation asks: the first `N_LIVE`."""
        return self.held_out()[:N_LIVE]

    def pair(self, text: str) -> Pair | None:
        """A question with its answer and alignment; None where the answer is not known."""
        return self._known.get(text) or self._find(text)

    def answer(self, text: str) -> str | None:
        """The right answer to a question; None where it is not known."""
        pair = self.pair(text)
        return None if pair is None else pair.target

    def accepts(self, text: str, output: str) -> bool:
        """Whether an output is a right answer to a question: its answer, or another that counts as right."""
        return output == self.answer(text) or self.corpus.tgt.clean(output) in self.references(text)

    def references(self, text: str) -> Sequence[str]:
        """Every answer to a question that counts as right."""
        if self.corpus.size is not None:
            return self.corpus.references(text)
        answer = self.answer(text)  # an endless corpus has one for each question: no need to search
        return () if answer is None else (answer,)

    def question(self, text: str) -> Question:
        """Check and clean what a user typed.

        Raises:
            InputError: the text is not a question of this task, or is too long.
        """
        clean = self.corpus.read(text)
        n = self.n_tokens(clean)
        if n > self.max_question_tokens:
            raise InputError(
                f"The text has {n} tokens; this run learns up to {self.longest} and accepts up to "
                f"{self.max_question_tokens}. Type a shorter one.",
                "probe_words",
            )
        pair = self.pair(clean)
        short = n < self.corpus.shortest
        held_out = pair is not None and pair.held_out
        return Question(clean, None if pair is None else pair.target, held_out, n > self.longest, short)

    def mean(self, length: int) -> Question:
        """Held-out words of one of `corpus.mean_lengths`, to be tracked by the mean of their maps."""
        drawn = self.corpus.words_of_length(length, 2 * N_EQUAL_WORDS)  # a few of them may be equal
        words = tuple(dict.fromkeys(drawn))[:N_EQUAL_WORDS]
        text = f"mean of {len(words)} words of {length} letters"
        return Question(text, None, held_out=True, too_long=False, words=words)

    def tracked(self, text: str) -> Question:
        """What is tracked under this text: the mean map of that name (see `mean`), or a question.

        Raises:
            InputError: as `question`.
        """
        named = re.fullmatch(r"mean of \d+ words of (\d{1,2}) letters", text)
        length = int(named[1]) if named else 0
        if length in self.corpus.mean_lengths and text == (mean := self.mean(length)).text:
            return mean
        return self.question(text)

    def token_id(self, token: str, side: str) -> int:
        """The id of a token of a question (src), of an answer (tgt), or of both in one sequence (seq)."""
        return (self.src_tokenizer if side == "src" else self.tgt_tokenizer).id_of(token)

    def n_tokens(self, text: str) -> int:
        """Tokens of a question, special ones left out."""
        return len(self.src_tokenizer.encode([text])[0]) - 2

    def encode(
        self,
        words: Sequence[str],
        *,
        filled: bool = False,
        own: Sequence[Sequence[int]] = (),
    ) -> Batch:
        """Questions with their right answers, padded to the longest question and answer.

        Args:
            filled: whether to pad both sides at least to the longest known training question or answer, for a
                model that sees its padding: it knows only lengths near this one.
            own: for each question, ids without [SOS] and [EOS] to use as the answer where none is known;
                by default no ids.
        """
        least = self._longest_tokens if filled else None
        return self._arranged(words, [self.answer(word) for word in words], least, own)

    def _longest_of(self, pairs: Sequence[Pair]) -> tuple[int, int]:
        """Tokens of the longest question and of the longest answer."""
        read = self.src_tokenizer.encode([pair.source for pair in pairs])
        written = self.tgt_tokenizer.encode([pair.target for pair in pairs])
        return max(map(len, read)) - 2, max(map(len, written)) - 2

    def _arranged(
        self,
        words: Sequence[str],
        answers: Sequence[str | None],
        pad_to: int | None = None,
        own: Sequence[Sequence[int]] = (),
    ) -> Batch:
        """Questions with these answers; `own` as in `encode`.

        Args:
            pad_to: minimum length of each question and each answer, with [SOS] and [EOS]; some may be longer.
                None: each side has the length of its longest text.
        """
        read = self.src_tokenizer.encode(words)
        written = self.tgt_tokenizer.encode([answer or "" for answer in answers])
        for i, ids in enumerate(own):
            if answers[i] is None:
                written[i] = [written[i][0], *ids, written[i][-1]]
        return arrange(
            self.topology,
            read,
            written,
            sep_id=self.tgt_tokenizer.sep_id,
            words=words,
            pad_to=pad_to and max([pad_to, *map(len, read), *map(len, written)]),
            most=self.max_tokens,
        )

    def links(self, text: str) -> Links | None:
        """The gold alignment of a question by tokens: for each token of its answer the positions to read.

        [EOS] is left out; position 0 is [SOS]. None where no alignment is known.
        """
        pair = self.pair(text)
        if pair is None:
            return None
        corpus = self.corpus
        return token_links(pair, (corpus.src, self.src_tokenizer), (corpus.tgt, self.tgt_tokenizer))


def sampled(corpus: Corpus) -> list[Pair]:
    """Training examples: all of a finite corpus, or `SAMPLE` of an endless one."""
    return corpus.drawn(np.random.default_rng([_SAMPLED]), corpus.size or SAMPLE)


def _finite_set(corpus: Corpus, examples: int, seed: int) -> list[Pair]:
    return corpus.drawn(np.random.default_rng([seed, _FINITE]), examples)


def _order(examples: int, seed: int, epoch: int) -> Array:
    """(examples,), the indices of a finite set in the order of an epoch."""
    return np.random.default_rng([seed, _FINITE, epoch]).permutation(examples)
