"""What beam search makes of one question, in words: the tree, all that it finished, and greedy's answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from transformer.decoding.tree import BeamTree, beam_tree
from transformer.model.transformer import Transformer
from transformer.tasks import Batch, Question, Task


@dataclass(frozen=True, kw_only=True)
class Output:
    """One way to answer."""

    text: str
    stopped: bool
    """Whether it ended by itself."""
    right: bool | None
    """Whether it is right to the last token and stops; None where the answer is not known."""
    score: float
    probability: float
    """Of all its tokens, one after the other."""


@dataclass(frozen=True, kw_only=True)
class Beams:
    """What beam search makes of one question."""

    step: int
    """Of the snapshot that answers."""
    question: Question
    width: int
    """Most beams; an encoder alone has one, whatever was asked for."""
    length_penalty: float
    tree: BeamTree
    tokens: tuple[str, ...]
    """The token of each node of the tree, as it is shown."""
    outputs: tuple[Output, ...]
    """All that have ended, the answer first; where none has, the answer alone, which is the likeliest."""
    greedy: Output
    """What greedy decoding answers, with the score that it has here."""

    @property
    def found_more(self) -> bool:
        """Whether the answer is another than greedy decoding's."""
        return (self.outputs[0].text, self.outputs[0].stopped) != (self.greedy.text, self.greedy.stopped)


def beams_of(
    model: Transformer,
    task: Task,
    question: Question,
    batch: Batch,
    max_tokens: int,
    *,
    width: int,
    length_penalty: float,
    step: int,
) -> Beams:
    """Search for the answer to one question, with beams and greedily.

    Args:
        model: in eval mode.
        batch: the question alone.
        max_tokens: most tokens to write.
        step: of the model.
    """
    eos_id = task.tgt_tokenizer.eos_id
    width = 1 if model.writes_at_once else width

    def searched(width: int) -> BeamTree:
        return beam_tree(model, batch, eos_id, max_tokens, width=width, length_penalty=length_penalty)

    tree, alone = searched(width), searched(1)
    return Beams(
        step=step,
        question=question,
        width=width,
        length_penalty=length_penalty,
        tree=tree,
        tokens=task.tgt_tokenizer.tokens([node.token for node in tree.nodes]),
        outputs=tuple(_output(task, question, tree, end) for end in tree.finished or (tree.winner,)),
        greedy=_output(task, question, alone, alone.winner),
    )


def _output(task: Task, question: Question, tree: BeamTree, end: int) -> Output:
    text, stopped = task.tgt_tokenizer.text([tree.nodes[i].token for i in tree.path(end)])
    known = question.answer is not None
    return Output(
        text=text,
        stopped=stopped,
        right=stopped and task.accepts(question.text, text) if known else None,
        score=tree.nodes[end].score,
        probability=math.exp(tree.nodes[end].total),
    )
