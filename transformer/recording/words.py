"""Tracked words as batches for a model, and what it writes to them by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from transformer.axes import Axes
from transformer.decoding import GREEDY, Decoding, write
from transformer.model.transformer import PAD_ID, Transformer
from transformer.recording.frame import Output, Word
from transformer.tasks import Batch, Question, Task

TOO_MANY = 3
"""Most tokens by which an output may exceed the right answer."""


@dataclass(frozen=True)
class WordBatch:
    """Words that go through the model together."""

    batch: Batch
    words: tuple[Word, ...]

    def n_cells(self, axes: Mapping[str, Axes]) -> int:
        """Cells of all maps of one head, at every site."""
        n_src, n_tgt = self.batch.src.shape[1], self.batch.tgt_in.shape[1]
        sizes = {"src": n_src, "tgt": n_tgt, "seq": n_tgt}
        return len(self.words) * sum(sizes[one.query] * sizes[one.key] for one in axes.values())


def word_batch(
    task: Task, questions: Sequence[Question], outputs: Mapping[str, Output], step: int, *, hidden: bool
) -> WordBatch:
    """Words as a model reads them; over its own output where the right answer is not known.

    Args:
        outputs: what was written to a word, as far as it has been asked.
        step: the step of these outputs.
        hidden: whether [PAD] is; otherwise it is looked at, and belongs on the maps.
    """
    own = [list(outputs[one.text].ids) if one.text in outputs else [] for one in questions]
    batch, tokenizer = (
        task.encode([one.text for one in questions], filled=not hidden, own=own),
        task.tgt_tokenizer,
    )
    words = []
    for i, question in enumerate(questions):
        n_src, n_tgt = (
            int((ids[i] != PAD_ID).sum()) if hidden else ids.shape[1] for ids in (batch.src, batch.tgt_in)
        )
        known = question.answer is not None
        answer = batch.answers[i][batch.answers[i] != PAD_ID].tolist()[:-1]
        words.append(
            Word(
                text=question.text,
                answer=question.answer,
                written_at=None if known else step,
                src_tokens=task.src_tokenizer.tokens(batch.src[i, :n_src].tolist()),
                tgt_tokens=tokenizer.tokens(batch.tgt_in[i, :n_tgt].tolist()),
                expected=expected_tokens(task, batch.tgt_out[i, :n_tgt].tolist()),
                held_out=question.held_out,
                too_long=question.too_long,
                too_short=question.too_short,
                wanted=tokenizer.pieces(answer) if known else (),
                n_read=task.n_tokens(question.text),
                links=task.links(question.text),
            )
        )
    return WordBatch(batch, tuple(words))


def together(questions: Sequence[Question], *, hidden: bool) -> list[list[Question]]:
    """The batches in which a model is asked words: one of all, if its padding is hidden.

    A model that sees its padding knows no other length than that of training. So a longer word, which would
    lengthen the others, has a batch of its own then.
    """
    short = [one for one in questions if hidden or not one.too_long]
    alone = [[one] for one in questions if one.too_long and not hidden]
    return [some for some in (short, *alone) if some]


def expected_tokens(task: Task, labels: Sequence[int]) -> tuple[str, ...]:
    """The token that each position is to write, by its label; empty where that is none."""
    tokens = task.tgt_tokenizer.tokens(labels)
    return tuple("" if label == PAD_ID else token for label, token in zip(labels, tokens, strict=True))


# What a model writes.


def outputs_of(
    model: Transformer,
    task: Task,
    questions: Sequence[Question],
    decoding: Decoding = GREEDY,
    sure: Set[str] = frozenset(),
) -> dict[str, Output]:
    """The free-running outputs of a model; it is in eval mode from then on.

    Args:
        sure: words that it writes right, as is known already: they are not asked.
    """
    found, hidden = {}, model.masked("padding")
    for some in together([one for one in questions if one.text not in sure], hidden=hidden):
        batch, written = _written(model, task, some, decoding)
        for i, question in enumerate(some):
            ids = written[i]
            if question.answer is not None:  # padding makes room for longer words
                ids = ids[: int((batch.answers[i] != PAD_ID).sum()) + TOO_MANY]
            found[question.text] = _output(model, task, question, batch, ids)
    if known := [one for one in questions if one.text in sure]:
        batch = task.encode([one.text for one in known], filled=not hidden)
        for question, answer in zip(known, batch.answers, strict=True):
            found[question.text] = _output(model, task, question, batch, answer[answer != PAD_ID].tolist())
    return {one.text: found[one.text] for one in questions}


def answered(model: Transformer, task: Task, questions: Sequence[Question]) -> Batch:
    """Questions as a batch with their answers; where the right one is unknown, the model's own output."""
    texts, filled = [one.text for one in questions], not model.masked("padding")
    if all(one.answer is not None for one in questions):
        return task.encode(texts, filled=filled)
    batch, written = _written(model, task, questions, GREEDY)
    eos_id = task.tgt_tokenizer.eos_id
    own = [_readable(model, batch, [token for token in ids if token != eos_id]) for ids in written]
    return task.encode(texts, filled=filled, own=own)


def _written(
    model: Transformer, task: Task, questions: Sequence[Question], decoding: Decoding
) -> tuple[Batch, list[list[int]]]:
    """Questions as a batch, and the tokens that the model writes to each."""
    if model.training:
        model.eval()  # the next training step sets train mode again
    batch = task.encode([one.text for one in questions], filled=not model.masked("padding"))
    # An unknown answer may be longer than its question, but has an end.
    unknown = any(one.answer is None for one in questions)
    room = int(max(batch.answers.shape[1], batch.src.shape[1] if unknown else 0)) + TOO_MANY
    written = write(model, batch, task.tgt_tokenizer.eos_id, room, decoding=decoding)
    return batch, [written.tokens[i, :n].tolist() for i, n in enumerate(written.lengths.tolist())]


def _output(model: Transformer, task: Task, question: Question, batch: Batch, ids: list[int]) -> Output:
    """The output, from its tokens."""
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
    """Of an output the tokens that the model can read as an answer."""
    most = model.config.max_len - batch.prompt.shape[1]
    return [token for token in ids if token != PAD_ID][:most]
