"""Chunks as a browser reads them, through an independent decoder, and the looks that their steps share."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from transformer.figures.labels import map_axes
from transformer.player.chunks import encoded, look_name, look_of, name_of
from transformer.recording.chunk import BLOCKED, ONE, joined
from transformer.runs.run import Run
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions


def decoded(data):
    """Return the facts of a chunk and the codes of each site, (N, H, Q, K)."""
    line, _, numbers = data.partition(b"\n")
    facts = json.loads(line)
    low, high = np.frombuffer(numbers, np.uint8).astype(np.int64).reshape(2, -1)
    left = low + 256 * high
    codes = {}
    for site, shape in facts["sites"].items():
        n = len(facts["steps"]) * int(np.prod(shape))
        moves, left = left[:n].reshape(*shape, -1), left[n:]
        values = np.where(moves % 2, -(moves + 1) // 2, moves // 2).cumsum(axis=-1)
        values[:, :, 0] -= values[:, :, 1:].sum(axis=2)
        codes[site] = np.moveaxis(values % 65_536, -1, 0)
    assert len(left) == 0
    return facts, codes


def with_any_codes(chunk):
    """Return the chunk with random codes: differences over the whole range, in both directions."""
    rng = np.random.default_rng(1)
    maps = {
        site: rng.choice([0, 1, 300, ONE, BLOCKED], size=codes.shape).astype(np.uint16)
        for site, codes in chunk.maps.items()
    }
    return replace(chunk, maps=maps)


def copied(chunk):
    """Return an equal chunk with arrays of its own."""
    maps = {site: codes.copy() for site, codes in chunk.maps.items()}
    return replace(chunk, maps=maps, predicted=chunk.predicted.copy())


@pytest.fixture
def chunk(recorded):
    """The chunk of "cat" before any intervention."""
    return joined([one for one in recorded.frames.chunks_of("cat") if not one.interventions])


@pytest.fixture
def changed(recorded):
    """The chunk of "cat" after a head was switched off and a cell blocked."""
    return joined([one for one in recorded.frames.chunks_of("cat") if one.interventions])


@pytest.mark.parametrize("places", [None, [0], [3], [0, 1, 2], [1, 4, 5], [5, 2, 0]])
def test_decoding_returns_the_codes_of_the_chosen_steps_whatever_they_are(chunk, places):
    for one in (chunk, with_any_codes(chunk)):
        before = copied(one)
        facts, codes = decoded(encoded(one, places))
        chosen = list(range(len(one.steps))) if places is None else places
        assert facts["steps"] == [one.steps[i] for i in chosen]
        assert list(codes) == list(one.axes) == list(one.maps)
        for site, found in codes.items():
            np.testing.assert_array_equal(found, before.maps[site][chosen])
            np.testing.assert_array_equal(one.maps[site], before.maps[site])  # the recording is unchanged


def test_a_browser_reads_every_recorded_step_of_every_word(recorded):
    for word in recorded.frames.words:
        read = {}
        for chunk in recorded.frames.chunks_of(word):
            facts, codes = decoded(encoded(chunk))
            assert facts["word"] == word
            read |= {step: {site: codes[site][i] for site in codes} for i, step in enumerate(facts["steps"])}
        assert sorted(read) == list(range(41))
        for step in (0, 14, 15, 40):
            frame = recorded.frames.of_step(step)
            for site, codes in read[step].items():
                weights = np.where(codes == 65_535, np.nan, codes / 65_534)
                np.testing.assert_allclose(frame.map(frame.row_of(word), site), weights, atol=1e-6)


def test_each_step_lists_its_wrong_predictions_with_the_predicted_token(chunk):
    """The right tokens for "cat" are t, a, c and [EOS]."""
    vocabulary = ("t", "a", "c", "[EOS]", "<x>")
    predicted = np.array([[0, 1, 2, 3], [0, 0, 2, 3], [4, 1, 2, 0]], dtype=np.uint16)
    three = replace(chunk.only({*chunk.steps[:3]}.__contains__), vocabulary=vocabulary, predicted=predicted)
    assert decoded(encoded(three))[0]["wrong"] == [{}, {"1": "t"}, {"0": "&lt;x&gt;", "3": "t"}]
    assert decoded(encoded(three, [2, 0]))[0]["wrong"] == [{"0": "&lt;x&gt;", "3": "t"}, {}]


def test_no_prediction_is_wrong_where_the_answer_is_unknown(chunk):
    asked = replace(chunk, word=replace(chunk.word, answer=None, written_at=3))
    assert decoded(encoded(asked))[0]["wrong"] == []
    assert json.loads(look_of(asked)[1])["fed"] == "free-running"
    assert json.loads(look_of(asked)[1])["over"] == 3
    assert json.loads(look_of(chunk)[1])["fed"] == "teacher-forced"


# Looks: what all steps of a chunk share.


def test_the_labels_and_titles_of_a_look_are_those_of_a_still_figure(chunk, changed):
    for one in (chunk, changed):
        kinds = json.loads(look_of(one)[1])["kinds"]
        assert list(kinds) == list(dict.fromkeys(sides.kind for sides in one.axes.values()))
        for kind, look in kinds.items():
            sites = [site for site, sides in one.axes.items() if sides.kind == kind]
            sides, word = one.axes[sites[0]], one.word
            axes = map_axes(sides, word.src_tokens, word.tgt_tokens, word.expected)
            assert (tuple(look["rows"]), tuple(look["columns"])) == (axes.rows, axes.columns)
            assert look["rowTitle"] == axes.row_title
            assert look["columnTitle"] == f"looks at: {axes.column_title}"
            assert (look["writes"], look["causal"]) == (sides.writes, axes.causal)
            assert look["layers"] == [str(i + 1) for i in range(len(sites))]


def test_a_look_has_the_gold_alignment_only_for_attention_from_answer_to_question(chunk):
    """Row i writes letter i of "tac"; the letters of "cat" are in columns 1 to 3."""
    kinds = json.loads(look_of(chunk)[1])["kinds"]
    assert list(kinds) == ["encoder", "decoder", "cross"]
    assert kinds["cross"]["gold"] == [[0, 3], [1, 2], [2, 1]]
    assert kinds["encoder"]["gold"] == kinds["decoder"]["gold"] == []
    assert kinds["cross"]["rows"] == ["[SOS] → t", "t → a", "a → c", "c → [EOS]"]
    assert kinds["encoder"]["rows"] == ["[SOS]", "c", "a", "t", "[EOS]"]
    assert kinds["cross"]["to"] == kinds["decoder"]["to"] == ["t", "a", "c", "[EOS]"]
    assert kinds["encoder"]["to"] == []
    assert [kind for kind, one in kinds.items() if one["causal"]] == ["decoder"]
    nobody_knows = replace(chunk, word=replace(chunk.word, links=None))
    assert json.loads(look_of(nobody_knows)[1])["kinds"]["cross"]["gold"] == []


def test_an_encoder_only_model_is_neither_teacher_forced_nor_free_running(tiny, make_run, until):
    run = make_run(tiny(topology="encoder-only", task="copy"), words=("cat",))
    until(lambda: run.view.frame)
    look = json.loads(look_of(run.view.frames.chunks_of("cat")[0])[1])
    assert look["fed"] == ""
    assert look["kinds"]["encoder"]["writes"]


def test_a_look_names_the_heads_that_are_off(chunk, changed):
    assert json.loads(look_of(chunk)[1])["off"] == []
    assert json.loads(look_of(changed)[1])["off"] == [["decoder.1.cross", 2]]


# Names of chunks.


def one_code_more(chunk):
    made = copied(chunk)
    list(made.maps.values())[-1].flat[-1] += np.uint16(1)
    return made


def another_prediction(chunk):
    made = copied(chunk)
    made.predicted[1, 2] = (made.predicted[1, 2] + 1) % len(made.vocabulary)
    return made


CHANGES = {
    "a code": one_code_more,
    "a step": lambda chunk: replace(chunk, steps=(*chunk.steps[:-1], chunk.steps[-1] + 1)),
    "a step less": lambda chunk: chunk.only(lambda step: step < chunk.steps[-1]),
    "a prediction": another_prediction,
    "what was predicted": lambda chunk: replace(chunk, vocabulary=(*chunk.vocabulary[:-1], "another")),
    "the word": lambda chunk: replace(chunk, word=replace(chunk.word, text="dog")),
    "a label": lambda chunk: replace(chunk, word=replace(chunk.word, src_tokens=tuple("vwxyz"))),
    "what is right": lambda chunk: replace(chunk, word=replace(chunk.word, expected=tuple("wxyz"))),
    "the alignment": lambda chunk: replace(chunk, word=replace(chunk.word, links=((1,), (1,), (1,)))),
    "what is off": lambda c: replace(c, interventions=Interventions(ablated=(("encoder.0", 0),))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_chunks_of_different_content_have_different_names(chunk, change):
    other = CHANGES[change](chunk)
    assert name_of(other) != name_of(chunk)


def test_chunks_of_equal_content_have_the_same_name(chunk):
    again = copied(chunk)
    assert again is not chunk
    assert name_of(again) == name_of(chunk)
    assert encoded(again) == encoded(chunk)


def test_no_two_chunks_share_a_name_and_chunks_share_a_look_until_an_intervention(recorded):
    chunks = [one for word in recorded.frames.words for one in recorded.frames.chunks_of(word)]
    assert len({name_of(one) for one in chunks}) == len(chunks)
    looks = {(one.word.text, one.interventions != NO_INTERVENTIONS): look_name(one) for one in chunks}
    assert len(set(looks.values())) == len(looks) == 6  # three words, before and after the intervention
    for one in chunks:
        assert (
            look_name(one) == look_of(one)[0] == looks[one.word.text, one.interventions != NO_INTERVENTIONS]
        )
        assert decoded(encoded(one))[0]["look"] == look_name(one)


def test_two_equal_trainings_give_chunks_the_same_names(tiny):
    """This lets a browser find the chunks that it has cached."""
    names = []
    for _ in range(2):
        run = Run(tiny(), words=("frog", "ox"))
        run.start()
        assert run.wait(60)
        frames = run.view.frames
        names.append([name_of(joined(frames.chunks_of(word))) for word in frames.words])
        run.close()
        run.join()
    assert names[0] == names[1]


def test_markup_in_words_and_labels_is_escaped_wherever_a_look_draws_it(chunk, said):
    signs = "<zqx> &zqx;"
    word = replace(
        chunk.word,
        text=signs,
        src_tokens=tuple(f"{signs}{i}" for i in range(5)),
        tgt_tokens=tuple(f"{signs}{i}" for i in range(4)),
        expected=(signs,) * 4,
    )
    drawn = [text for text in said(json.loads(look_of(replace(chunk, word=word))[1])) if "zqx" in text]
    assert len(drawn) == 36  # rows and columns of three kinds of attention, what two write, and the word
    assert [text for text in drawn if "<zqx" in text or "&zqx" in text] == []
    facts, _ = decoded(encoded(replace(chunk, word=word, vocabulary=(signs,) * len(chunk.vocabulary))))
    assert facts["wrong"] == [{}] * len(chunk.steps)  # every prediction is the expected token
