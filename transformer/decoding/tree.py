"""Beam search for one question as a tree: every hypothesis that was in the beam, and every answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from transformer.decoding.beam import Decoding, search
from transformer.model.transformer import Transformer
from transformer.shared.hypothesis import CHOSEN, FINISHED, KEPT, PRUNED, Hypothesis
from transformer.tasks import Batch, Question, Task


@dataclass(frozen=True, kw_only=True)
class BeamTree:
    """Every hypothesis that was ever in the beam of one question."""

    nodes: tuple[Hypothesis, ...]
    """Step by step, the likeliest of a step first; at most `width` for each step."""
    winner: int
    """The node at which the answer ends."""

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the first token to this one."""
        passed, at = [], self.nodes[node].parent
        while at is not None:
            passed.append(at)
            at = self.nodes[at].parent
        return (*reversed(passed), node)

    @property
    def finished(self) -> tuple[int, ...]:
        """The nodes at which a beam ended, the best score first."""
        ends = [i for i, node in enumerate(self.nodes) if node.ended]
        return tuple(sorted(ends, key=lambda i: -self.nodes[i].score))


def beam_tree(model: Transformer, batch: Batch, eos_id: int, max_tokens: int, decoding: Decoding) -> BeamTree:
    """Search as `beam` does, and keep all levels. Arguments as of `search`; the batch has one question.

    Raises:
        ValueError: the batch has another number of questions.
    """
    if len(batch.src) != 1:
        raise ValueError(f"A tree is of 1 question, not of {len(batch.src)}.")
    result = search(model, batch, eos_id, max_tokens, decoding)
    nodes: list[Hypothesis] = []
    at: dict[tuple[int, int], int] = {}  # level and place to node
    for n, level in enumerate(result.levels):
        for place in range(int(level.there.sum())):
            at[n, place] = len(nodes)
            nodes.append(
                Hypothesis(
                    step=n + 1,
                    parent=at[n - 1, int(level.parents[0, place])] if n else None,
                    token=int(level.tokens[0, place]),
                    log_probability=float(level.log_probabilities[0, place]),
                    total=float(level.totals[0, place]),
                    score=float(level.scores[0, place]),
                    rank=place + 1,
                    ended=bool(level.ended[0, place]),
                    fate=PRUNED,
                )
            )
    winning_level, winning_place = result.winners[0].tolist()
    tree = BeamTree(nodes=tuple(nodes), winner=at[winning_level, winning_place])
    return replace(tree, nodes=_with_fates(tree))


def _with_fates(tree: BeamTree) -> tuple[Hypothesis, ...]:
    last = tree.nodes[-1].step
    lasting = {i for i, node in enumerate(tree.nodes) if node.ended or node.step == last}
    kept, chosen = {i for end in lasting for i in tree.path(end)}, set(tree.path(tree.winner))
    return tuple(
        replace(
            node,
            fate=CHOSEN if i in chosen else FINISHED if node.ended else KEPT if i in kept else PRUNED,
        )
        for i, node in enumerate(tree.nodes)
    )


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One answer that a search found."""

    text: str
    stopped: bool
    """Whether it ended by itself."""
    right: bool | None
    """Whether it is right to the last token and stops; None where the answer is not known."""
    score: float
    probability: float
    """The product of the probabilities of its tokens."""


@dataclass(frozen=True, kw_only=True)
class Beams:
    """The beam search for one question."""

    step: int
    """The step of the snapshot that answers."""
    question: Question
    width: int
    """Most beams; an encoder alone has one, whatever was asked for."""
    length_penalty: float
    tree: BeamTree
    tokens: tuple[str, ...]
    """The token of each node of the tree, as it is shown."""
    outputs: tuple[Candidate, ...]
    """All finished hypotheses, best score first; if none is finished, only the likeliest one."""
    greedy: Candidate
    """The greedy answer, with its score by the length penalty of this search."""

    @property
    def differs_from_greedy(self) -> bool:
        """Whether the answer differs from that of greedy decoding."""
        return (self.outputs[0].text, self.outputs[0].stopped) != (self.greedy.text, self.greedy.stopped)


def beams_of(
    model: Transformer,
    task: Task,
    question: Question,
    batch: Batch,
    max_tokens: int,
    decoding: Decoding,
    *,
    step: int,
) -> Beams:
    """Search for the answer to one question, with beams and greedily.

    Args:
        model: in eval mode.
        batch: the question alone.
        max_tokens: most tokens to write.
        decoding: the settings of the search; an encoder alone has one beam.
        step: the step of the model.

    Raises:
        ValueError: the batch has another number of questions than one.
    """
    eos_id = task.tgt_tokenizer.eos_id
    one = replace(decoding, width=1)
    if model.writes_at_once:
        decoding = one
    tree = beam_tree(model, batch, eos_id, max_tokens, decoding)
    alone = beam_tree(model, batch, eos_id, max_tokens, one)
    return Beams(
        step=step,
        question=question,
        width=decoding.width,
        length_penalty=decoding.length_penalty,
        tree=tree,
        tokens=task.tgt_tokenizer.tokens([node.token for node in tree.nodes]),
        outputs=tuple(_candidate(task, question, tree, end) for end in tree.finished or (tree.winner,)),
        greedy=_candidate(task, question, alone, alone.winner),
    )


def _candidate(task: Task, question: Question, tree: BeamTree, end: int) -> Candidate:
    text, stopped = task.tgt_tokenizer.text([tree.nodes[i].token for i in tree.path(end)])
    has_answer = question.answer is not None
    return Candidate(
        text=text,
        stopped=stopped,
        right=stopped and task.accepts(question.text, text) if has_answer else None,
        score=tree.nodes[end].score,
        probability=math.exp(tree.nodes[end].total),
    )
