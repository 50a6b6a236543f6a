"""Beam search on request, and in every answer of a run that is configured for it."""

from __future__ import annotations

import pytest

from tests.asking.conftest import WORDS, snapshot_of
from transformer.asking.model import KEPT_TREES, SnapshotModel
from transformer.decoding.beam import Decoding
from transformer.decoding.spelling import spell
from transformer.errors import InputError
from transformer.recording.map_recorder import MapRecorder
from transformer.shared.interventions import NO_INTERVENTIONS


@pytest.fixture(scope="module")
def asked_with_beams(half_trained):
    config = half_trained.config.with_changes(decoding="beam", beam_width=4, length_penalty=0.6)
    return SnapshotModel(config, snapshot_of(half_trained), NO_INTERVENTIONS)


def test_beams_belong_to_the_cleaned_word_and_have_the_requested_width(half_asked):
    for word in WORDS:
        found = half_asked.beams(word.upper() + " ", 3, 0.25)
        assert (found.step, found.question.text) == (half_asked.step, word)
        assert (found.width, found.length_penalty) == (3, 0.25)
        assert max(node.rank for node in found.tree.nodes) == 3
        answer = half_asked.answer(word)
        assert (found.greedy.text, found.greedy.stopped) == (answer.output, answer.stopped)
        assert found.greedy.right == answer.right
        one = half_asked.beams(word, 1, 0.25)
        assert (one.outputs[0].text, one.outputs[0].stopped) == (answer.output, answer.stopped)
        assert not one.differs_from_greedy


def test_the_same_search_runs_once_and_old_searches_are_discarded(half_asked):
    first = half_asked.beams("robin", 2, 0.5)
    assert half_asked.beams("robin", 2, 0.5) is first
    others = [("robin", 3, 0.5), ("robin", 2, 0.25), ("heron", 2, 0.5)]
    assert all(half_asked.beams(*other) is not first for other in others)
    for i in range(KEPT_TREES):
        half_asked.beams("robin", 1, i / 100)
    again = half_asked.beams("robin", 2, 0.5)
    assert again is not first
    assert again == first


@pytest.mark.parametrize(
    ("word", "width", "penalty", "named"),
    [("frog", 17, 0.6, "beam_width=17"), ("frog", 4, -0.1, "length_penalty=-0.1"), ("猫", 4, 0.6, "“猫”")],
)
def test_invalid_words_and_settings_of_beam_search_are_refused(half_asked, word, width, penalty, named):
    with pytest.raises(InputError, match=named):
        half_asked.beams(word, width, penalty)


def test_interventions_affect_the_search(half_asked, ask_without):
    heads = tuple((f"decoder.0.{kind}", head) for kind in ("cross", "self") for head in (0, 1))
    without = ask_without(ablated=heads)
    assert without.beams("frog", 4, 0.6).tree != half_asked.beams("frog", 4, 0.6).tree


def test_a_run_with_beam_search_uses_it_for_every_answer(half_trained, half_asked, asked_with_beams):
    words = half_trained.task.held_out()[:60]
    recorder = MapRecorder(half_trained.model, half_trained.task, Decoding(4, 0.6))
    differing = 0
    for word in words:
        found, answer = asked_with_beams.beams(word, 4, 0.6), asked_with_beams.answer(word)
        best = found.outputs[0]
        assert (answer.output, answer.stopped, answer.right) == (best.text, best.stopped, best.right)
        # The letters of the best beam, each at the place where it was written.
        end = ("[EOS]",) if answer.stopped else ()
        assert answer.free.written == (*answer.output, *end)
        assert answer.free.tgt_tokens == ("[SOS]", *answer.output)
        differing += answer.output != half_asked.answer(word).output
        recorder.add(half_trained.task.question(word))
    assert differing, "somewhere it must have gone through a letter that was not the likeliest"
    written = recorder.write(0).by_word
    same = sum(written[word].text == asked_with_beams.answer(word).output for word in words)
    assert same >= len(words) - 2  # the length limit is that of the longest word in the batch
    right, n = asked_with_beams.exact
    every = half_trained.task.held_out()[:n]
    assert right == sum(spell(half_trained.model, half_trained.task, every, decoding=Decoding(4, 0.6)).exact)
    report, greedy = asked_with_beams.by_length, half_asked.by_length
    assert report.exact.tolist() != greedy.exact.tolist()
