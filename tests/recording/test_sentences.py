"""Frames of a task whose answers differ in length from their questions, and may be unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer import tasks
from transformer.asking.model import SnapshotModel
from transformer.decoding.greedy import Written
from transformer.insight.scores import head_scores
from transformer.recording.activations import record
from transformer.recording.weights import Snapshot
from transformer.recording.words import encode_answered
from transformer.shared.attention_info import reading_sites
from transformer.shared.interventions import NO_INTERVENTIONS
from transformer.tasks.corpus import Corpus, Pair
from transformer.tasks.writing import Writing
from transformer.training.state import TrainState

PAIRS = [
    Pair("the cat sees the dog", "le chat voit", ((0,), (1,), (2,))),
    Pair("the dog", "l'un le voit là", ((), (0, 1), (1,), (), (0,))),
    Pair("a cat", "chat", ((0, 1),)),
]
HELD_OUT = [replace(PAIRS[1], held_out=True), replace(PAIRS[0], held_out=True)]
TOPOLOGIES = ["encoder-decoder", "decoder-only"]
BIAS = {"encoder-decoder": 8.0, "decoder-only": 3.0}
"""Bias of [EOS] at which some outputs end in time and others never end."""
LATER = ["the cat sees the dog", "dog sees cat", "the dog", "a dog"]  # the 2nd and 4th have no known answer


class Sentences(Corpus):
    name = "sentences"
    src = tgt = Writing()
    same_length = False
    translates = True
    size = len(PAIRS)

    def drawn(self, rng, count):
        return list(PAIRS)

    def held_out(self):
        return HELD_OUT

    def tracked_words(self):
        return ["the dog"]

    def everyday(self):
        return []

    def read(self, text):
        return self.src.clean(text)

    def find(self, source):
        return next((pair for pair in PAIRS if pair.source == source), None)

    def references(self, source):
        return [pair.target for pair in PAIRS if pair.source == source]


@pytest.fixture
def state(monkeypatch, tiny, fill):
    """Return the state of a model with random weights that writes no special token but [EOS]."""

    def make(corpus=None, bias=0.0, **settings):
        monkeypatch.setattr(tasks, "corpus_of", lambda config: corpus or Sentences())
        made = TrainState.begin(tiny(task="en-fr", batch_size=2, **settings))
        fill(made.model, 0.7)
        with torch.no_grad():
            made.model.to_logits.bias[[0, 1, 3]] = -1e9
            made.model.to_logits.bias[2] = bias
        return made

    return make


@pytest.fixture
def frame_of(frame_of):
    return lambda state, words=LATER: frame_of(state, words)


def shown(state, batch, row):
    """Return the tokens that the decoder reads for one row, without padding."""
    tokens = state.task.tgt_tokenizer.tokens(batch.tgt_in[row].tolist())
    return tuple(token for token in tokens if token != "[PAD]")


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("endless", [False, True])
def test_maps_of_an_unknown_answer_run_over_the_output_of_the_model(state, topology, endless, frame_of):
    made = state(topology=topology, bias=-1e9 if endless else BIAS[topology])
    frame = frame_of(made)
    assert [tracked.forced for tracked in frame.words] == [True, False, True, False]
    sep = ("[SEP]",) if topology == "decoder-only" else ()
    batch = encode_answered(made.model, made.task, [made.task.question(one.text) for one in frame.words])
    for row, tracked in enumerate(frame.words):
        assert (tracked.answer is None) is (row in (1, 3))
        question = tracked.text.split()
        assert tracked.n_read == len(question)
        if tracked.forced:
            continue
        written = tuple(piece.strip() for piece in tracked.pieces)
        assert "".join(tracked.pieces) == tracked.output
        assert tracked.tgt_tokens == ("[SOS]", *(question if sep else ()), *sep, *written)
        assert tracked.expected[-len(written) - 1 :] == (*written, "[EOS]")
        assert shown(made, batch, row) == tracked.tgt_tokens
        assert (tracked.wanted, tracked.links, tracked.right) == ((), None, False)
        assert tracked.n_written == len(tracked.pieces)
        # Reading its own output, the model predicts the same output again, token by token.
        places = tracked.predicted[-len(written) - 1 :]
        assert places[: len(written)] == written
        assert (places[len(written)] == "[EOS]") is tracked.stopped
        for site, axes in frame.axes.items():
            shown_map = frame.map(row, site)
            assert shown_map.shape[1:] == (len(tracked.tokens(axes.query)), len(tracked.tokens(axes.key)))
            np.testing.assert_allclose(np.nansum(shown_map, axis=-1), 1.0, atol=2e-4)
    assert [tracked.stopped for tracked in frame.words if not tracked.forced].count(True) == (
        0 if endless else 1
    )
    assert any(tracked.pieces for tracked in frame.words if not tracked.forced)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_tracked_word_is_recorded_as_if_it_were_alone(state, topology, frame_of):
    made = state(topology=topology, bias=BIAS[topology])
    frame = frame_of(made)
    for row, tracked in enumerate(frame.words):
        ids = made.task.tgt_tokenizer.encode([tracked.output])[0]
        batch = made.task.encode([tracked.text], own=[ids[1:-1]])
        assert shown(made, batch, 0) == tracked.tgt_tokens
        with record(made.model) as cache:
            made.model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
        for site, weights in cache.weights.items():
            np.testing.assert_allclose(np.nan_to_num(frame.map(row, site)), weights[0], atol=2e-4)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_tracked_words_with_a_known_answer_have_its_pieces_and_alignment(state, topology, frame_of):
    frame = frame_of(state(topology=topology))
    first, _, third, _ = frame.words
    assert first.wanted == ("le", " chat", " voit")
    assert (first.n_read, first.n_written) == (5, 3)
    assert first.links == ((1,), (2,), (3,))
    assert third.wanted == ("l'", "un", " le", " voit", " là")
    assert (third.n_read, third.n_written) == (2, 5)
    assert third.links == ((), (1, 2), (2,), (), (1,))
    assert [tracked.held_out for tracked in frame.words] == [True, False, True, False]


def tokens_of(task, batch, axes):
    """Return the ids of a self-attention, None for [PAD], [SOS], [EOS], [UNK] and [SEP]; None for others."""
    if axes.query != axes.key:
        return None
    special = [task.tgt_tokenizer.encode([""])[0][0], task.tgt_tokenizer.encode([""])[0][-1], 0, 3]
    special.append(task.tgt_tokenizer.sep_id)
    ids = batch.src if axes.query == "src" else batch.tgt_in
    return [[None if id_ in special else id_ for id_ in row] for row in ids.tolist()]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_heads_are_scored_on_the_gold_alignment_of_held_out_sentences(state, topology, frame_of):
    made = state(topology=topology)
    frame = frame_of(made)
    assert frame.target_score == "gold"
    batch = made.task.encode([pair.source for pair in HELD_OUT])
    with record(made.model) as cache:
        made.model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
    links = [made.task.links(pair.source) for pair in HELD_OUT]
    for site in frame.axes:
        scores = head_scores(
            cache.weights[site],
            frame.axes[site].kind,
            [2, 5],
            answers=[5, 3],
            links=links if site in reading_sites(frame.axes) else None,
            tokens=tokens_of(made.task, batch, frame.axes[site]),
        )
        assert frame.head_scores[site].keys() == scores.keys()
        for name, values in scores.items():
            np.testing.assert_allclose(frame.head_scores[site][name], values, atol=1e-5)
            assert "mirror" not in scores
    assert list(frame.scores) == reading_sites(frame.axes)
    best_site, best_head = frame.best[0]
    assert frame.best[1] == pytest.approx(max(scores.max() for scores in frame.scores.values()))
    assert frame.scores[best_site][best_head] == frame.head_scores[best_site]["gold"][best_head]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_without_an_alignment_heads_are_scored_by_their_focus(state, topology, monkeypatch, frame_of):
    monkeypatch.setattr(Sentences, "held_out", lambda self: [replace(pair, links=None) for pair in HELD_OUT])
    frame = frame_of(state(topology=topology))
    assert frame.target_score == "focus"
    assert all("gold" not in scores for scores in frame.head_scores.values())
    for site, scores in frame.scores.items():
        assert scores is frame.head_scores[site]["focus"]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("endless", [False, True])
def test_a_snapshot_that_is_asked_later_answers_as_recorded(state, topology, endless, frame_of):
    made = state(topology=topology, bias=-1e9 if endless else BIAS[topology])
    weights = {name: weight.numpy() for name, weight in made.model.state_dict().items()}
    model, compared = SnapshotModel(made.config, Snapshot(step=3, source=weights), NO_INTERVENTIONS), 0
    for text in LATER:
        frame = frame_of(made, [text])  # alone, since the longest word of a batch limits endless outputs
        (tracked,), answer = frame.words, model.answer(text)
        assert (answer.output, answer.stopped, answer.right) == (
            tracked.output,
            tracked.stopped,
            tracked.right,
        )
        assert (answer.pieces, answer.n_read) == (tracked.pieces, tracked.n_read)
        assert (answer.n_written, answer.links) == (tracked.n_written, tracked.links)
        if not (tracked.forced or tracked.stopped):
            continue  # Ask reads the last token too, though nothing is written after it
        compared += 1
        assert answer.forced.tgt_tokens == tracked.tgt_tokens
        for site, weights in answer.forced.maps.items():
            np.testing.assert_allclose(weights, frame.map(0, site), atol=2e-4, equal_nan=True)
        assert model.head_scores.keys() == frame.head_scores.keys()
    assert compared == (2 if endless else 3)


# Marks of right and wrong tokens.


@pytest.fixture
def marked(state, frame_of):
    """Return the marks of an output for "the dog", whose right answer is "l'un le voit là"."""

    def of(**facts):
        (tracked,) = frame_of(state(), ["the dog"]).words
        return replace(tracked, **{"stopped": True, "right": False, **facts}).marked

    return of


def test_each_token_is_marked_by_its_own_position_whatever_precedes_it(marked):
    pieces = ("l'", " le", " le", " voit", " voit")
    assert marked(pieces=pieces) == (
        *[("l'", True), (" le", False), (" le", True), (" voit", True), (" voit", False)],
    )


def test_a_word_is_right_with_or_without_a_space_before_it(marked):
    assert marked(pieces=("le", " un"))[:2] == (("le", False), (" un", True))


def test_missing_tokens_are_dots_and_an_unfinished_output_has_an_ellipsis(marked):
    assert marked(pieces=("l'", "un")) == (("l'", True), ("un", True), ("···", False))
    assert marked(pieces=("l'", "un"), stopped=False) == (("l'", True), ("un", True), ("…", False))
    long = ("l'", "un", " le", " voit", " là", " le")
    assert marked(pieces=long) == (*((piece, True) for piece in long[:-1]), (" le", False))
    assert marked(pieces=()) == (("·····", False),)


def test_no_token_of_another_right_answer_is_marked_wrong(marked):
    assert marked(pieces=("le", " chat"), right=True) == (("le", True), (" chat", True))


def test_no_token_is_marked_wrong_where_the_answer_is_unknown(marked):
    unknown = {"answer": None, "wanted": ()}
    assert marked(pieces=("le", " chat"), **unknown) == (("le", True), (" chat", True))
    assert marked(pieces=("le",), stopped=False, **unknown) == (("le", True), ("…", False))
    assert marked(pieces=(), **unknown) == ()


@pytest.mark.parametrize(("output", "right"), [("le chat", True), ("chat", True), ("le", False)])
def test_every_reference_of_the_corpus_counts_as_right(state, monkeypatch, output, right, frame_of):
    made = state()
    ids = torch.tensor([made.task.tgt_tokenizer.encode([output])[0][1:]])
    monkeypatch.setattr(
        "transformer.recording.words.write", lambda *_, **__: Written(ids, torch.tensor([ids.shape[1]]))
    )
    monkeypatch.setattr(Sentences, "references", lambda self, source: ["chat", "le chat"])
    (tracked,) = frame_of(made, ["a cat"]).words
    assert (tracked.output, tracked.stopped, tracked.answer) == (output, True, "chat")
    assert tracked.right is right
    assert all(of_piece for _, of_piece in tracked.marked) is right
