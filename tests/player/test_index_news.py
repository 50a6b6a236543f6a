"""News of a run: applied step by step, they give the same index as one made at once."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import pytest

from tests.player.conftest import CONFIG, PAIRS, SIGNS
from tests.player.follower import Follower, grows, in_words, segment_of, sent, tells_every_frame
from transformer.config.tasks import with_task
from transformer.insight.moments import Moment
from transformer.player import index as module
from transformer.player.chunks import look_name
from transformer.player.index import Index
from transformer.player.sentences import narration
from transformer.recording.chunk import Chunk
from transformer.shared.interventions import Block, Interventions
from transformer.tasks.pairs.caps import Caps, select_pairs
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.store import intern_pairs


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Make a new version of the index as soon as anything is new."""
    monkeypatch.setattr(module, "CURVES_SECONDS", 0.0)


# News.


def test_news_turn_the_index_of_the_previous_version_into_that_of_the_present_one(recorded):
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
    ]  # as if made at once
    made_here = ("version", "texts", "segments", "chunks")
    assert {n: v for n, v in index.items() if n not in made_here} == {
        n: v for n, v in whole.items() if n not in made_here
    }


def test_a_player_that_watches_a_run_train_receives_all_of_it(tiny, make_run, until):
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
    assert follower.fetched == 2  # at the start, and after the word is added


def test_news_are_small_where_only_a_step_is_new(recorded):
    """A whole index has some kilobytes per step; curves grow by a point per line."""
    index = Index(CONFIG)
    small = []
    for view in grows(recorded):
        if index.update(view) and "segments" not in index.news and "steps" in index.news:
            small.append(view.frames.steps[-1])
            n = len(view.frames.steps)
            assert index.news["steps"] == {"from": n - 1, "more": [n - 1]}
            if "moments" not in index.news:  # moments are drawn on the curves
                assert set(index.news) == {"steps", "losses", "seconds", "curves", "mass"}
                assert "spec" not in index.news["curves"]
                assert len(json.dumps(index.news)) < 3_000
    assert {22, 25, 38} <= set(small)


def test_a_player_fetches_the_whole_index_after_a_word_is_added_or_removed_and_after_thinning(recorded):
    index = Index(CONFIG)
    frames = recorded.frames.without("ox")
    fewer = replace(recorded, frames=frames)
    index.update(fewer)
    ox = [
        record for record in recorded.frames.records if isinstance(record, Chunk) and record.word.text == "ox"
    ]
    for view in (
        replace(recorded, frames=frames.extended(ox)),  # another word
        fewer,  # a word removed
        replace(recorded, frames=frames.thinned({0, 40}, frames.nbytes // 4)),
    ):
        version = index.version
        assert index.update(view)
        assert (index.version, index.news) == (version + 1, {"whole": True})
        assert tells_every_frame(view, sent(index.whole(view)))


def test_the_past_of_a_word_added_later_arrives_as_news(recorded):
    ox = [
        record for record in recorded.frames.records if isinstance(record, Chunk) and record.word.text == "ox"
    ]
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


def test_looks_of_removed_words_are_not_kept(recorded):
    index = Index(CONFIG)
    index.update(recorded)
    fewer = replace(recorded, frames=recorded.frames.without("ox"))
    index.update(fewer)
    names = {look_name(one) for word in fewer.frames.words for one in fewer.frames.chunks_of(word)}
    assert set(index.whole(fewer)["looks"]) == names


def test_there_is_no_new_version_where_nothing_is_new(recorded):
    index = Index(CONFIG)
    assert index.update(recorded)
    assert not index.update(recorded)
    assert not index.update(replace(recorded, steps_per_second=7.0, reason="whatever"))
    assert index.version == 1


def test_news_of_steps_alone_are_delayed_and_other_news_are_not(recorded, monkeypatch):
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


def test_a_moment_found_late_is_inserted_in_order_of_step(recorded):
    follower = Follower(CONFIG)
    first, *others = recorded.moments
    follower.see(replace(recorded, moments=tuple(others)))
    follower.see(replace(recorded, moments=(first, *others)))
    assert [moment["step"] for moment in follower.index["moments"]] == [7, 14]
    assert follower.told == 1


# Markup.


@pytest.fixture(scope="module")
def of_signs():
    """The view of a run on pairs full of markup, with a blocked token and an added question."""
    from transformer.runs.run import Run

    own = intern_pairs(OwnPairs(select_pairs(Reading(PAIRS, "TSV, 2 columns"), Caps())))
    config = with_task(CONFIG.with_changes(n_heads=4), "pairs").with_changes(
        pairs=own.digest, tokenizer="words", d_model=12, n_heads=3, steps=4
    )
    run = Run(config)
    run.start()
    assert run.wait(60)
    token = next(token for token in run.view.frame.words[0].src_tokens if "<" in token)
    run.intervene(Interventions(blocked=(Block(site="encoder.0", head=0, token=token),))).result(30)
    run.add_word(f"the {SIGNS} sees nobody")
    run.close()
    run.join()
    yield run.view
    del own


def test_no_markup_of_pairs_gets_into_html(of_signs, said):
    """All of an index becomes HTML except words, which are keys and the text of buttons."""
    index = sent(Index(of_signs.config).whole(of_signs))
    assert any("<" in word for word in index["words"])
    words = {tracked.text for tracked in of_signs.frame.words}
    assert set(segment_of(index, of_signs.step)["outputs"]) == words  # keys, which are not escaped
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
    for tracked in frame.words:
        for site in frame.axes:
            for head in range(frame.n_heads(site)):
                assert "<" not in narration(frame, tracked.text, site, head)
