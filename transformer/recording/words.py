"""Batches of tracked words, their free-running outputs, and the words that training has drawn."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from transformer.decoding.beam import GREEDY, Decoding
from transformer.decoding.spelling import write
from transformer.model.transformer import PAD_ID, Transformer
from transformer.recording.frame import Output, Word
from transformer.shared.attention_info import AttentionInfo
from transformer.tasks import Batch, Question, Task

MOST_EXTRA = 3
"""Maximum number of tokens by which an output may exceed the right answer and its [EOS]."""
MOST_DRAWN = 2**20
"""Maximum number of remembered words (12 MiB): 16,384 steps of 64. Later steps are not searched."""


@dataclass(frozen=True)
class WordBatch:
    """Words that go through the model together."""

    batch: Batch
    words: tuple[Word, ...]
    """A word per row of the batch; or a single one, whose maps are the mean over the batch."""

    def n_cells(self, axes: Mapping[str, AttentionInfo]) -> int:
        """Number of cells of one head's maps, summed over the sites and the rows of the batch."""
        n_src, n_tgt = self.batch.src.shape[1], self.batch.tgt_in.shape[1]
        sizes = {"src": n_src, "tgt": n_tgt, "seq": n_tgt}
        return len(self.batch.src) * sum(sizes[one.query] * sizes[one.key] for one in axes.values())


def word_batch(
    task: Task, questions: Sequence[Question], outputs: Mapping[str, Output], step: int, *, hidden: bool
) -> WordBatch:
    """Encode words as a model reads them; its own output replaces a right answer that is unknown.

    Args:
        outputs: the model's output for each word that it has answered, by the text of the word. A word
            with an unknown answer that is not among them gets an empty answer.
        step: the step of these outputs.
        hidden: whether [PAD] is masked; otherwise it receives attention and is shown on the maps.
    """
    own = [list(outputs[question.text].ids) if question.text in outputs else [] for question in questions]
    batch, tokenizer = (
        task.encode([question.text for question in questions], filled=not hidden, own=own),
        task.tgt_tokenizer,
    )
    words = []
    for i, question in enumerate(questions):
        n_src, n_tgt = (
            int((ids[i] != PAD_ID).sum()) if hidden else ids.shape[1] for ids in (batch.src, batch.tgt_in)
        )
        has_answer = question.answer is not None
        answer = batch.answers[i][batch.answers[i] != PAD_ID].tolist()[:-1]
        words.append(
            Word(
                text=question.text,
                answer=question.answer,
                written_at=None if has_answer else step,
                src_tokens=task.src_tokenizer.tokens(batch.src[i, :n_src].tolist()),
                tgt_tokens=tokenizer.tokens(batch.tgt_in[i, :n_tgt].tolist()),
                expected=expected_tokens(task, batch.tgt_out[i, :n_tgt].tolist()),
                held_out=question.held_out,
                too_long=question.too_long,
                too_short=question.too_short,
                wanted=tokenizer.pieces(answer) if has_answer else (),
                n_read=task.n_tokens(question.text),
                links=task.links(question.text),
            )
        )
    return WordBatch(batch, tuple(words))


def mean_batch(task: Task, mean: Question, *, hidden: bool) -> WordBatch:
    """Encode the words of a mean map. Its tokens are the places of letters, and the special tokens.

    Args:
        mean: a question with `words`, all of one length.
        hidden: as in `word_batch`.
    """
    every = word_batch(task, [task.question(word) for word in mean.words], {}, 0, hidden=hidden)
    first, links = every.words[0], {word.links for word in every.words}
    n_before = 0 if task.topology == "encoder-decoder" else first.n_read  # letters before the output
    place = replace(
        first,
        text=mean.text,
        answer=None,
        wanted=(),
        src_tokens=_places(first.src_tokens, first.n_read),
        tgt_tokens=_places(first.tgt_tokens, n_before),
        expected=_places(first.expected, 0),
        links=first.links if len(links) == 1 else None,
        n_words=len(mean.words),
    )
    return WordBatch(every.batch, (place,))


def _places(tokens: Sequence[str], n_letters: int) -> tuple[str, ...]:
    """Replace letters by their places: `letter 1` to `letter n_letters`, then `output 1` and so on."""
    names: list[str] = []
    i = 0
    for token in tokens:
        i += len(token) == 1
        place = f"letter {i}" if i <= n_letters else f"output {i - n_letters}"
        names.append(place if len(token) == 1 else token)
    return tuple(names)


def in_batches(questions: Sequence[Question], *, hidden: bool) -> list[list[Question]]:
    """Group words into batches: a single batch if padding is masked.

    A model that attends to padding has learned only the padded length of training. Each word that is too
    long then has its own batch, because it would lengthen the others.
    """
    short = [question for question in questions if hidden or not question.too_long]
    alone = [[question] for question in questions if question.too_long and not hidden]
    return [some for some in (short, *alone) if some]


def expected_tokens(task: Task, labels: Sequence[int]) -> tuple[str, ...]:
    """The token that each position is to write; an empty string where the label is [PAD]."""
    tokens = task.tgt_tokenizer.tokens(labels)
    return tuple("" if label == PAD_ID else token for label, token in zip(labels, tokens, strict=True))


# Free-running outputs.


def outputs_of(
    model: Transformer,
    task: Task,
    questions: Sequence[Question],
    decoding: Decoding = GREEDY,
    known_right: Set[str] = frozenset(),
) -> dict[str, Output]:
    """The free-running output of a model for each word, by its text. Decoding leaves the model in eval mode.

    Args:
        decoding: the settings of the search.
        known_right: words whose output is known to be right; they are not decoded.
    """
    outputs, hidden = {}, model.masked("padding")
    for some in in_batches(
        [question for question in questions if question.text not in known_right], hidden=hidden
    ):
        batch, written = _written(model, task, some, decoding)
        for i, question in enumerate(some):
            ids = written[i]
            if question.answer is not None:  # the limit of the batch is for its longest answer
                ids = ids[: int((batch.answers[i] != PAD_ID).sum()) + MOST_EXTRA]
            outputs[question.text] = _output(model, task, question, batch, ids)
    if answered := [question for question in questions if question.text in known_right]:
        batch = task.encode([one.text for one in answered], filled=not hidden)
        for question, answer in zip(answered, batch.answers, strict=True):
            outputs[question.text] = _output(model, task, question, batch, answer[answer != PAD_ID].tolist())
    return {question.text: outputs[question.text] for question in questions}


def encode_answered(model: Transformer, task: Task, questions: Sequence[Question]) -> Batch:
    """Encode questions with their right answers, or with the model's greedy output where these are unknown.

    Leaves the model in eval mode if an answer is unknown.
    """
    texts, filled = [question.text for question in questions], not model.masked("padding")
    if all(question.answer is not None for question in questions):
        return task.encode(texts, filled=filled)
    batch, written = _written(model, task, questions, GREEDY)
    eos_id = task.tgt_tokenizer.eos_id
    own = [_readable(model, batch, [token for token in ids if token != eos_id]) for ids in written]
    return task.encode(texts, filled=filled, own=own)


def _written(
    model: Transformer, task: Task, questions: Sequence[Question], decoding: Decoding
) -> tuple[Batch, list[list[int]]]:
    """Encode questions, and decode the token ids that the model writes for each."""
    if model.training:
        model.eval()  # the next training step sets train mode again
    batch = task.encode([question.text for question in questions], filled=not model.masked("padding"))
    # An unknown answer sets no limit: then that of the longest question counts too.
    unknown = any(question.answer is None for question in questions)
    room = int(max(batch.answers.shape[1], batch.src.shape[1] if unknown else 0)) + MOST_EXTRA
    written = write(model, batch, task.tgt_tokenizer.eos_id, room, decoding=decoding)
    return batch, [written.tokens[i, :n].tolist() for i, n in enumerate(written.lengths.tolist())]


def _output(model: Transformer, task: Task, question: Question, batch: Batch, ids: list[int]) -> Output:
    """An `Output` from its token ids."""
    text, stopped = task.tgt_tokenizer.text(ids)
    own = ids[:-1] if stopped else ids
    return Output(
        text=text,
        stopped=stopped,
        right=question.answer is not None and stopped and task.accepts(question.text, text),
        pieces=task.tgt_tokenizer.pieces(own),
        ids=tuple(_readable(model, batch, own)),
    )


def _readable(model: Transformer, batch: Batch, ids: Sequence[int]) -> list[int]:
    """Ids of an output without [PAD], cut to the length that the model can read as an answer."""
    most = model.config.max_len - batch.prompt.shape[1]
    return [token for token in ids if token != PAD_ID][:most]


# Words that training has drawn.


class DrawnWords:
    """Remembers up to `MOST_DRAWN` words that training draws, in order: hash and step, 12 bytes for each."""

    def __init__(self) -> None:
        self.steps = 0
        """Number of steps that are remembered: all from step 1 to this one."""
        self.full = False
        """Whether no further step can be remembered."""
        self._hashes, self._steps = array("q"), array("i")

    def note(self, step: int, words: Sequence[str]) -> None:
        """Remember the words of a step's batch, if it follows the remembered steps and there is room."""
        self.full |= len(self._hashes) + len(words) > MOST_DRAWN
        if self.full or step != self.steps + 1:
            return  # a gap begins here: `steps` stays at the last step before it
        self._hashes.extend(map(hash, words))
        self._steps.extend([step] * len(words))
        self.steps = step

    def first_step(self, word: str) -> int | None:
        """The first remembered step whose batch had this word; None if there is none."""
        matches = np.flatnonzero(np.asarray(self._hashes) == hash(word))
        return self._steps[int(matches[0])] if len(matches) else None
