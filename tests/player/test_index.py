"""What a player is told of a run: as its frames say it, and kept whole by what is new alone."""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_right
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest

from tests.player.conftest import CONFIG, PAIRS, SIGNS
from transformer.fitting import with_task
from transformer.insight.moments import Moment
from transformer.insight.scores import THRESHOLD
from transformer.interventions import Block, Interventions
from transformer.player import index as module
from transformer.player.chunks import look_name, look_of, name_of
from transformer.player.index import Index
from transformer.player.outputs import by_length, output_row, samples
from transformer.player.sentences import looking_back, narration, words_right
from transformer.recording.chunk import Chunk
from transformer.recording.frames import Frames
from transformer.recording.metrics import COLUMNS, Metrics
from transformer.tasks.pairs.caps import Caps, capped
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.store import keep


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """A new version whenever anything is new, however little time has passed."""
    monkeypatch.setattr(module, "CURVES_SECONDS", 0.0)


def sent(document):
    """As it comes out of a browser's JSON.parse."""
    return json.loads(json.dumps(document, allow_nan=False))


def renewed(index, news, version):
    """What a player makes of its index and what is new; as `renew` in sources.js does it."""
    index = dict(index)
    for name, fresh in news.items():
        if name == "looks":
            index["looks"] = index["looks"] | fresh
        elif name in ("curves", "mass"):
            index[name] = grown(index[name], fresh)
        else:
            index[name] = index[name][: fresh["from"]] + fresh["more"]
    return index | {"version": version}


def grown(before, fresh):
    if "spec" in fresh:
        return fresh
    arrays = dict(before["arrays"])
    for name, part in fresh["arrays"].items():
        arrays[name] = arrays[name][: part["from"]] + part["more"]
    return before | {"arrays": arrays, "layout": fresh["layout"], "step": fresh["step"]}


class Follower:
    """A player that fetches the index once, and from then on is told what is new."""

    def __init__(self, config, look_for=""):
        self.made = Index(config, look_for)
        self.index = None
        self.fetched = self.told = 0

    def see(self, view):
        """Follow to a view; returns whether there was anything new."""
        if not self.made.update(view):
            return False
        whole = sent(self.made.whole(view))
        if self.index is None or self.made.news == {"whole": True}:
            self.index, self.fetched = whole, self.fetched + 1
        else:
            self.index = renewed(self.index, sent(self.made.news), self.made.version)
            self.told += 1
        # But for the addresses of chunks, which a player fetches when it misses one.
        assert self.index | {"chunks": None} == whole | {"chunks": None}
        return True


def grows(view):
    """A run as it was after each step: the views that its records make one after the other."""
    rows = list(zip(*view.metrics.columns(*COLUMNS), strict=True))
    frames = Frames(aim=view.frames[-1].aim)
    first, *others = together(view.frames.records)
    while not frames.steps:
        frames = frames.extended(first)
        first, *others = others
    for records in (first, *others):
        frames = frames.extended(records)
        metrics, newest = Metrics(), frames.steps[-1]
        for row in rows:
            if row[0] <= newest:
                metrics.append(**dict(zip(COLUMNS, row, strict=True)))
        yield replace(
            view,
            frames=frames.extended((), metrics.at),
            metrics=metrics,
            moments=tuple(moment for moment in view.moments if moment.step <= newest),
            state="training",
        )


def together(records):
    """Records in the order in which they were made; maps step by step, those of all words at once."""
    for are_chunks, some in groupby(records, lambda one: isinstance(one, Chunk)):
        if not are_chunks:
            yield list(some)
            continue
        by_step = {}
        for chunk in some:
            for i, step in enumerate(chunk.steps):
                by_step.setdefault(step, []).append(chunk.at([i]))
        yield from (by_step[step] for step in sorted(by_step))


def in_words(index, segment):
    """A segment with its texts instead of their places."""
    texts = index["texts"]
    places = {name: texts[segment[name]] for name in ("right", "lengths", "samples")}
    return segment | places | {"outputs": {word: texts[at] for word, at in segment["outputs"].items()}}


def segment_of(index, step):
    """The segment that a step stands in."""
    begins = [segment["from"] for segment in index["segments"]]
    assert begins == sorted(set(begins))
    return in_words(index, index["segments"][bisect_right(begins, step) - 1])


def tells_every_frame(view, index):
    """Whether it says of every recorded step what the frame of that step says."""
    task = view.config.train.task
    assert index["steps"] == list(view.frames.steps)
    for step in view.frames.steps:
        frame, segment = view.frames.of_step(step), segment_of(index, step)
        begins = segment["from"] == step
        assert segment["right"] == words_right(frame, task), step
        assert segment["outputs"] == {probe.text: output_row(probe) for probe in frame.probes}, step
        assert segment["written"] == max(probe.output_step or 0 for probe in frame.probes), step
        assert tuple(segment["clearest"]) == frame.clearest, step
        assert segment["lengths"] == by_length(frame), step
        assert segment["samples"] == samples(frame), step
        taken = frame.interventions
        assert segment["taken"] == (taken.text().replace('"', "&quot;") if taken else ""), step
        for site in frame.axes:
            roles = [frame.role(site, head) for head in range(3)]
            assert segment["roles" if begins else "later"][site] == roles, step
        assert list(segment["lit"]) == list(frame.scores), step
        for site, scores in frame.scores.items():
            off = [head for where, head in taken.ablated if where == site]
            lit = [bool(score >= THRESHOLD) and head not in off for head, score in enumerate(scores)]
            assert segment["lit"][site] == lit, step
        said = segment["said"][0 if begins else 1].replace("{step}", f"{step:,}")
        assert said == looking_back(frame), step
    return True


# Segments.


def test_a_segment_says_of_every_recorded_step_what_its_frame_says(recorded):
    """Through a head and a look that were taken away, and a word that came, at step 14."""
    index = sent(Index(recorded.config).whole(recorded))
    assert tells_every_frame(recorded, index)
    assert [moment["step"] for moment in index["moments"]] == [moment.step for moment in recorded.moments]
    begins = {segment["from"] for segment in index["segments"]}
    assert {0, 10, 14, 20, 30, 40} <= begins
    assert len(begins) < 30  # not every step
    before, after = segment_of(index, 13), segment_of(index, 39)
    assert before["taken"] == ""
    assert after["taken"] == (
        "ablated decoder layer 2 (cross), head 3; blocked row 2, column 4 in decoder layer 1 (cross), head 1"
    )
    assert before["roles"]["decoder.1.cross"][2] == "no clear pattern"
    assert after["roles"]["decoder.1.cross"][2] == "switched off"
    assert after["roles"]["decoder.0.cross"][0] == "no clear pattern"
    assert after["later"]["decoder.0.cross"][0] == f"no clear pattern at step {after['from']}"
    assert list(after["outputs"]) == list(before["outputs"]) == ["banana", "cat", "ox"]
    assert "not asked yet" in before["outputs"]["ox"]
    assert "not asked yet" not in after["outputs"]["ox"]


def test_a_head_that_is_off_is_not_lit_however_high_it_once_scored(recorded):
    measured = recorded.frames.measurements[-1]
    high = {
        site: scores | {"mirror": np.ones(3, dtype=np.float32)}
        for site, scores in measured.head_scores.items()
    }
    frames = recorded.frames.extended([replace(measured, head_scores=high)])
    lit = Index(CONFIG).whole(replace(recorded, frames=frames))["segments"][-1]["lit"]
    assert lit == {"decoder.0.cross": [True, True, True], "decoder.1.cross": [True, True, False]}


def test_a_word_that_training_draws_is_said_to_be_drawn_from_that_step_on(recorded):
    """In the middle between two measurements, where nothing else changes."""
    records = [
        replace(one, drawn_at=33) if isinstance(one, Chunk) and one.steps[-1] >= 33 else one
        for one in recorded.frames.records
    ]
    frames = Frames(records, numbers=recorded.metrics.at, aim=recorded.frames[-1].aim)
    view = replace(recorded, frames=frames)
    index = sent(Index(CONFIG).whole(view))
    assert tells_every_frame(view, index)
    assert "<small>unseen</small>" in segment_of(index, 32)["outputs"]["cat"]
    assert "<small>step 33</small>" in segment_of(index, 34)["outputs"]["cat"]


def test_where_steps_are_thinned_out_the_next_that_stays_tells_of_the_change(recorded):
    frames = recorded.frames.thinned({0, 40}, recorded.frames.nbytes // 6)
    assert len(frames) < len(recorded.frames)
    view = replace(recorded, frames=frames)
    assert tells_every_frame(view, sent(Index(CONFIG).whole(view)))


def test_texts_stand_once_however_often_they_are_said(recorded):
    index = Index(CONFIG).whole(recorded)
    texts = index["texts"]
    assert len(set(texts)) == len(texts)
    used = set()
    for segment in index["segments"]:
        used |= {segment["right"], segment["lengths"], segment["samples"], *segment["outputs"].values()}
    assert used == set(range(len(texts)))
    assert 4 * len(index["segments"]) > len(texts) > 5


# The rest of an index.


def test_an_index_is_json_and_names_every_chunk_and_every_look_that_a_player_may_meet(recorded):
    index = sent(Index(CONFIG).whole(recorded))
    assert list(index["chunks"]) == index["words"] == ["banana", "cat", "ox"]
    for word, entries in index["chunks"].items():
        chunks = recorded.frames.chunks_of(word)
        assert entries == [[one.steps[0], one.steps[-1], len(one.steps), name_of(one)] for one in chunks]
        assert {look_name(one) for one in chunks} <= set(index["looks"])
        assert all(index["looks"][look_name(one)] == json.loads(look_of(one)[1]) for one in chunks)
    assert index["losses"][0] is None  # nothing was trained yet
    assert index["losses"][1:] == pytest.approx(recorded.metrics.column("loss").tolist(), abs=1e-5)
    assert {kind: one["name"] for kind, one in index["kinds"].items()} == {
        "encoder": "Encoder",
        "decoder": "Decoder",
        "cross": "Cross",
    }
    assert index["kinds"]["cross"]["sites"] == ["decoder.0.cross", "decoder.1.cross"]
    assert index["heads"]["decoder.1.cross"] == [f"decoder 2 · head {n}" for n in (1, 2, 3)]
    assert (index["seed"], index["run"], index["version"]) == (5, recorded.id, 1)


def test_before_anything_is_recorded_there_is_no_version(recorded):
    index = Index(CONFIG)
    assert not index.update(replace(recorded, frames=Frames()))
    assert index.version == 0


# News.


def test_what_is_new_makes_the_index_of_the_version_before_that_of_this_one(recorded):
    follower, versions = Follower(CONFIG), []
    for view in grows(recorded):
        if follower.see(view):
            versions.append(follower.made.version)
    assert versions == list(range(1, len(versions) + 1))
    assert follower.told > 50
    whole = sent(Index(CONFIG).whole(recorded))
    follower.see(recorded)
    assert tells_every_frame(recorded, follower.index)
    index = follower.index
    assert [in_words(index, one) for one in index["segments"]] == [
        in_words(whole, one) for one in whole["segments"]
    ]  # as if it had been made at once
    made_here = ("version", "texts", "segments", "chunks")
    assert {n: v for n, v in index.items() if n not in made_here} == {
        n: v for n, v in whole.items() if n not in made_here
    }


def test_a_run_that_is_watched_while_it_trains_is_told_whole(tiny, make_run, until):
    run = make_run(tiny(steps=50, evaluate_every=15), words=("frog", "cat"))
    until(lambda: run.view.frame)
    follower, asked = Follower(run.config), threading.Event()
    follower.see(run.view)
    run.set_pace(20.0)
    run.start()
    while run.view.state != "finished":
        if run.view.step > 20 and not asked.is_set():
            run.add_word("sheep")
            asked.set()
        follower.see(run.view)
        time.sleep(0.02)
    until(lambda: len(run.view.frames.steps_of("sheep")) == len(run.view.frames.steps))
    follower.see(run.view)
    assert tells_every_frame(run.view, follower.index)
    assert asked.is_set()
    assert follower.told >= 3
    assert follower.fetched == 2  # at first, and with the word


def test_news_are_small_where_a_step_is_new_alone(recorded):
    """A whole one has some kilobytes a step; curves grow by a point a line."""
    index = Index(CONFIG)
    small = []
    for view in grows(recorded):
        if index.update(view) and "segments" not in index.news and "steps" in index.news:
            small.append(view.frames.steps[-1])
            n = len(view.frames.steps)
            assert index.news["steps"] == {"from": n - 1, "more": [n - 1]}
            if "moments" not in index.news:  # they stand upon the curves
                assert set(index.news) == {"steps", "losses", "curves", "mass"}
                assert "spec" not in index.news["curves"]
                assert len(json.dumps(index.news)) < 3_000
    assert {22, 25, 38} <= set(small)


def test_a_word_less_or_more_and_thinning_are_told_by_fetching_all(recorded):
    index = Index(CONFIG)
    frames = recorded.frames.without("ox")
    fewer = replace(recorded, frames=frames)
    index.update(fewer)
    ox = [one for one in recorded.frames.records if isinstance(one, Chunk) and one.word.text == "ox"]
    for view in (
        replace(recorded, frames=frames.extended(ox)),  # another word
        fewer,  # a word gone
        replace(recorded, frames=frames.thinned({0, 40}, frames.nbytes // 4)),
    ):
        version = index.version
        assert index.update(view)
        assert (index.version, index.news) == (version + 1, {"whole": True})
        assert tells_every_frame(view, sent(index.whole(view)))


def test_the_past_of_a_word_that_came_later_is_told_as_it_comes(recorded):
    ox = [one for one in recorded.frames.records if isinstance(one, Chunk) and one.word.text == "ox"]
    late = [one for one in ox if one.steps[0] >= 14]
    early = [one for one in ox if one.steps[-1] < 14]
    assert early
    follower, frames = Follower(CONFIG), recorded.frames.without("ox").extended(late)
    follower.see(replace(recorded, frames=frames))
    assert list(segment_of(follower.index, 0)["outputs"]) == ["banana", "cat"]
    for chunk in early:
        frames = frames.extended([chunk])
    assert follower.see(replace(recorded, frames=frames))
    assert follower.fetched == 1
    assert tells_every_frame(replace(recorded, frames=frames), follower.index)


def test_looks_of_words_that_are_gone_are_not_kept(recorded):
    index = Index(CONFIG)
    index.update(recorded)
    fewer = replace(recorded, frames=recorded.frames.without("ox"))
    index.update(fewer)
    names = {look_name(one) for word in fewer.frames.words for one in fewer.frames.chunks_of(word)}
    assert set(index.whole(fewer)["looks"]) == names


def test_where_nothing_is_new_there_is_no_version(recorded):
    index = Index(CONFIG)
    assert index.update(recorded)
    assert not index.update(recorded)
    assert not index.update(replace(recorded, steps_per_second=7.0, reason="whatever"))
    assert index.version == 1


def test_steps_alone_wait_for_the_others_and_what_else_is_new_does_not(recorded, monkeypatch):
    monkeypatch.setattr(module, "CURVES_SECONDS", 1.0)
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    views = list(grows(recorded))
    later = [next(view for view in views if view.frames.steps[-1] == step) for step in (31, 32, 33)]
    index = Index(CONFIG)
    assert index.update(later[0])
    clock[0] += 0.9
    assert not index.update(later[1])
    clock[0] += 0.2
    assert index.update(later[2])
    assert index.news["steps"] == {"from": 32, "more": [32, 33]}
    with_moment = replace(later[2], moments=(*later[2].moments, Moment(33, "drop", "the loss dropped")))
    assert index.update(with_moment)
    assert index.news["moments"]["more"][-1]["step"] == 33
    assert index.update(replace(with_moment, state="finished"))
    measured = next(view for view in views if view.frames.changes[-1] == 40)
    assert index.update(measured)


def test_a_moment_that_comes_between_others_is_put_there(recorded):
    follower = Follower(CONFIG)
    first, *others = recorded.moments
    follower.see(replace(recorded, moments=tuple(others)))
    follower.see(replace(recorded, moments=(first, *others)))
    assert [moment["step"] for moment in follower.index["moments"]] == [7, 14]
    assert follower.told == 1


# Markup.


@pytest.fixture(scope="module")
def of_signs():
    """The view of a run on pairs that are full of signs, with a token blocked and a question of our own."""
    from transformer.runs.run import Run

    own = keep(OwnPairs(capped(Reading(PAIRS, "TSV, 2 columns", len(PAIRS)), Caps())))
    config = with_task(CONFIG.with_changes(n_heads=4), "pairs").with_changes(
        pairs=own.digest, tokenizer="words", d_model=12, n_heads=3, steps=4
    )
    run = Run(config)
    run.start()
    assert run.wait(60)
    token = next(token for token in run.view.frame.probes[0].src_tokens if "<" in token)
    run.intervene(Interventions(blocked=(Block(site="encoder.0", head=0, token=token),))).wait(30)
    run.add_word(f"the {SIGNS} sees nobody")
    run.close()
    run.join()
    yield run.view
    del own


def test_markup_of_pairs_is_nowhere_in_what_becomes_html(of_signs, said):
    """All of an index does, but words: they are the text of buttons, and keys."""
    index = sent(Index(of_signs.config).whole(of_signs))
    assert any("<" in word for word in index["words"])
    words = {probe.text for probe in of_signs.frame.probes}
    assert set(segment_of(index, of_signs.step)["outputs"]) == words  # which are keys, as they are
    drawn = [
        text
        for name, part in index.items()
        if name not in ("words", "chunks", "moments")
        for text in said(part)
    ]
    drawn += [moment["said"] for moment in index["moments"]]
    shown = [text for text in drawn if "zqx" in text or "&lt;" in text]
    assert len(shown) > 50
    assert any("&lt;" in moment["said"] for moment in index["moments"])
    assert any("&lt;" in segment["taken"] for segment in index["segments"])
    told = [text for text in shown if "<zqx" in text or "< zqx" in text or "&zqx" in text or "<</" in text]
    assert told == []
    frame = of_signs.frame
    for probe in frame.probes:
        for site in frame.axes:
            for head in range(frame.n_heads(site)):
                assert "<" not in narration(frame, probe.text, site, head)
