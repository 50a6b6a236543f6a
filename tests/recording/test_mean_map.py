"""The mean map of words of one length: the numpy mean of the maps of separate passes, by place."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.insight.scores import gold_cells
from transformer.recording.activations import record
from transformer.recording.chunk import ONE
from transformer.recording.recording import Recording
from transformer.shared.interventions import Block, Interventions
from transformer.training.loop import train
from transformer.training.state import TrainState

ROUNDED = 0.5 / ONE + 1e-6
"""Largest error of a weight in 16 bits, and 1e-6."""


@pytest.fixture
def recorded(recorder_of, evaluation):
    """Return the frame of a state that tracks a word and the mean map of words of 5 letters."""

    def make(state, length=5):
        recorder, step = recorder_of(state, ["frog"]), state.step
        recorder.add(state.task.mean(length))
        seen = [evaluation(step), recorder.measure(step), recorder.write(step)]
        recorder.buffer.copy(step)
        return Recording([*seen, *recorder.compute()], target_score=state.task.target_score)[-1]

    return make


def mean_of_passes(state, length):
    """Site to the (H, Q, K) mean over separate passes of the words, computed by numpy."""
    words, maps = state.task.mean(length).words, []
    assert len(words) == len({*words}) == 64
    assert all(len(word) == length and state.task.question(word).held_out for word in words)
    for word in words:
        src, tgt_in, _ = state.to_device(state.task.encode([word], filled=not state.model.masked("padding")))
        state.model.eval()
        with record(state.model) as cache:
            state.model(src, tgt_in)
        maps.append(
            {site: np.asarray(weights[0], dtype=np.float64) for site, weights in cache.weights.items()}
        )
    return {site: np.mean([one[site] for one in maps], axis=0) for site in maps[0]}


@pytest.mark.parametrize("topology", ["encoder-decoder", "encoder-only", "decoder-only"])
@pytest.mark.parametrize("padding", [True, False], ids=["padding masked", "padding seen"])
def test_the_mean_map_is_the_mean_over_the_maps_of_its_words_before_and_after_a_step(
    tiny, recorded, topology, padding
):
    state = TrainState.begin(
        tiny(topology=topology, padding_mask=padding, learning_rate=0.03, warmup_steps=0)
    )
    before = None
    for _ in range(2):
        frame, expected = recorded(state), mean_of_passes(state, 5)
        shown = frame.map(1, list(frame.axes)[-1])
        assert before is None or np.nanmax(np.abs(shown - before)) > 100 * ROUNDED, "it must have learned"
        before = shown
        for site in frame.axes:
            shown, blocked = frame.map(1, site), np.isnan(frame.map(1, site))
            assert shown.shape == expected[site].shape
            np.testing.assert_allclose(np.nan_to_num(shown), expected[site], rtol=0, atol=ROUNDED)
            assert not expected[site][blocked].any()
            np.testing.assert_allclose(np.nansum(shown, axis=-1), 1.0, atol=shown.shape[-1] * ROUNDED)
        next(train(state))


def test_a_letter_that_is_blocked_counts_as_zero_in_the_words_that_have_it(tiny, recorded):
    state = TrainState.begin(tiny())
    state.intervene(Interventions(blocked=(Block(site="decoder.1.cross", token="e"),)))
    shown = recorded(state).map(1, "decoder.1.cross")
    np.testing.assert_allclose(shown, mean_of_passes(state, 5)["decoder.1.cross"], rtol=0, atol=ROUNDED)
    np.testing.assert_allclose(shown.sum(axis=-1), 1.0, atol=shown.shape[-1] * ROUNDED)


@pytest.mark.parametrize(
    ("topology", "src", "tgt", "expected"),
    [
        (
            "encoder-decoder",
            "[SOS] letter 1|letter 2|letter 3 [EOS]",
            "[SOS] output 1|output 2|output 3",
            "output 1|output 2|output 3 [EOS]",
        ),
        (
            "encoder-only",
            "[SOS] letter 1|letter 2|letter 3 [EOS]",
            "[SOS] letter 1|letter 2|letter 3 [EOS]",
            "_ output 1|output 2|output 3 [EOS]",
        ),
        (
            "decoder-only",
            "[SOS] letter 1|letter 2|letter 3 [SEP] output 1|output 2|output 3",
            "[SOS] letter 1|letter 2|letter 3 [SEP] output 1|output 2|output 3",
            "_ _ _ _ output 1|output 2|output 3 [EOS]",
        ),
    ],
)
def test_its_tokens_are_places(tiny, recorded, topology, src, tgt, expected):
    def split(text):
        parts = text.replace("|", " ").replace("letter ", "letter~").replace("output ", "output~").split()
        return tuple("" if part == "_" else part.replace("~", " ") for part in parts)

    frame = recorded(TrainState.begin(tiny(topology=topology)), 3)
    mean = frame.words[1]
    assert (mean.text, mean.heading, mean.n_words) == (*["mean of 64 words of 3 letters"] * 2, 64)
    assert (mean.src_tokens, mean.tgt_tokens, mean.expected) == (split(src), split(tgt), split(expected))
    assert frame.asked == frame.words[:1]
    assert not mean.marked
    assert not any(mean.predicted)


@pytest.mark.parametrize(("task", "shared"), [("reverse", True), ("copy", True), ("sort", False)])
def test_it_has_gold_cells_only_where_those_of_all_its_words_are_the_same(tiny, recorded, task, shared):
    mean = recorded(TrainState.begin(tiny(task=task))).words[1]
    assert (mean.links is not None) == shared
    if task == "reverse":
        assert gold_cells("cross", 5, mean.links) == [(i, 5 - i) for i in range(5)]
