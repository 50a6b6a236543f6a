"""Helpers of the index tests: a player that follows a run, and a check of an index against its frames."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import replace

from transformer.insight.scores import THRESHOLD
from transformer.player.index import Index
from transformer.player.outputs import by_length, output_row, samples
from transformer.player.sentences import looking_back, words_right
from transformer.recording.chunk import Chunk
from transformer.recording.metrics import COLUMNS, Metrics
from transformer.recording.recording import Recording


def sent(document):
    """Return a document as a browser parses it from JSON."""
    return json.loads(json.dumps(document, allow_nan=False))


def renewed(index, news, version):
    """Apply news to the index of a player, as `renew` in sources.js does."""
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
    """A player that fetches the whole index, and from then on receives news."""

    def __init__(self, config, look_for=""):
        self.made = Index(config, look_for)
        self.index = None
        self.fetched = self.told = 0

    def see(self, view):
        """Update to this view of the run; return whether anything was new."""
        if not self.made.update(view):
            return False
        whole = sent(self.made.whole(view))
        if self.index is None or self.made.news == {"whole": True}:
            self.index, self.fetched = whole, self.fetched + 1
        else:
            self.index = renewed(self.index, sent(self.made.news), self.made.version)
            self.told += 1
        # Except for the names of chunks: a player that lacks a chunk fetches the whole index again.
        assert self.index | {"chunks": None} == whole | {"chunks": None}
        return True


def grows(view):
    """Yield the view of a run after each step, built from its records."""
    rows = list(zip(*view.metrics.columns(*COLUMNS), strict=True))
    frames = Recording(target_score=view.frames[-1].target_score)
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
    """Yield records step by step: first what was measured, then the maps of all words."""
    by_step = {}
    for record in records:
        if isinstance(record, Chunk):
            for step in record.steps:
                by_step.setdefault((step, 1), []).append(record.only({step}.__contains__))
        else:
            by_step.setdefault((record.step, 0), []).append(record)
    yield from (by_step[place] for place in sorted(by_step))


def in_words(index, segment):
    """Return a segment with its texts in place of their indices."""
    texts = index["texts"]
    places = {name: texts[segment[name]] for name in ("right", "lengths", "samples")}
    return segment | places | {"outputs": {word: texts[at] for word, at in segment["outputs"].items()}}


def segment_of(index, step):
    """Return the segment that contains a step."""
    begins = [segment["from"] for segment in index["segments"]]
    assert begins == sorted(set(begins))
    return in_words(index, index["segments"][bisect_right(begins, step) - 1])


def tells_every_frame(view, index):
    """Check that the index describes every recorded step as the frame of that step does."""
    task = view.config.train.task
    measured = [measurement.step for measurement in view.frames.measurements]
    assert index["steps"] == list(view.frames.steps)
    for step in view.frames.steps:
        frame, segment = view.frames.of_step(step), segment_of(index, step)
        assert segment["right"] == words_right(frame, task), step
        assert segment["outputs"] == {tracked.text: output_row(tracked) for tracked in frame.words}, step
        assert segment["written"] == max(tracked.output_step or 0 for tracked in frame.words), step
        for kind, large in segment["large"].items():
            of_kind = frame.axes[frame.clearest[0]].kind == kind
            last = max(site for site, axes in frame.axes.items() if axes.kind == kind)
            assert tuple(large) == (frame.clearest if of_kind else (last, 0)), step
        assert segment["lengths"] == by_length(frame), step
        assert segment["samples"] == samples(frame), step
        taken = frame.interventions
        assert segment["taken"] == (taken.text().replace('"', "&quot;") if taken else ""), step
        for site in frame.axes:
            roles = [frame.role(site, head) for head in range(3)]
            assert segment["roles"][site] == roles, step
        assert list(segment["lit"]) == list(frame.scores), step
        for site, scores in frame.scores.items():
            off = [head for where, head in taken.ablated if where == site]
            lit = [bool(score >= THRESHOLD) and head not in off for head, score in enumerate(scores)]
            assert segment["lit"][site] == lit, step
        assert segment["measured"] == max(at for at in measured if at <= step), step
        assert segment["said"] == looking_back(frame), step
    return True
