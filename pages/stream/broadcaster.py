"""The data that the viewers of one run receive, shared by all viewers with the same hidden parts."""

from __future__ import annotations

import gzip
import json
import math
import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from pages.settings.presets import look_for
from pages.stream.hidden import HiddenParts, visible, without_rows
from transformer.errors import InputError
from transformer.insight.names import short_head_name
from transformer.player.chunks import encoded, name_of
from transformer.player.index import Index
from transformer.player.sentences import failure, in_line, status_line
from transformer.recording.view import FAILED, WATCHED_SECONDS, RunView
from transformer.runs.any_run import AnyRun
from transformer.runs.demo import demo_run, opened
from transformer.runs.registry import REGISTRY

TICK, SLOWEST, EACH, EACH_RUN = 0.036, 0.16, 0.004, 0.012
"""Seconds between two looks at a run: the base, the most, and what each viewer and each further run add."""
MOST_PAUSE = 1.0
"""Most seconds over which steps that arrive together are spread out."""
FOUND_SECONDS = 5.0
"""Seconds until the run is looked up again: it may have left memory, or been replaced."""
MOST_CHUNKS = 64
"""Most entries of each cache: of encoded chunks, and of maps."""
ALONE, TOGETHER, FEW = 1.0, 1.9, 2
"""Seconds after which a page asks for newer pictures made in Python: ALONE with up to FEW viewers, TOGETHER
with more."""

K, V = TypeVar("K"), TypeVar("V")


class Now(NamedTuple):
    """The result of one look at a run: all fields are from the same look, even if another look follows."""

    view: RunView
    at: int = -1
    """The step that is on the screens of viewers at LIVE; -1 before there is any."""
    said: bytes = b"{}"
    """A line of JSON with state, status and sentences, the same for all viewers."""
    counted: int = 0
    """How often the line has changed so far."""
    version: int = 0
    """Version of the index that the line describes."""
    news: bytes = b"null"
    """What this version adds to the previous one, as JSON; null before there is any."""
    beat: object = None
    """The story that is presented with the run, and its current beat; viewers get a change at once."""


def tick(n_viewers: int, n_runs: int = 1) -> float:
    """Seconds between two looks at a run: the more viewers and runs, the longer, to spare the training.

    Args:
        n_viewers: viewers of all runs.
        n_runs: runs that have viewers; a run counts once for each choice of hidden parts.
    """
    return min(SLOWEST, TICK + EACH * n_viewers + EACH_RUN * (n_runs - 1))


def find(run_id: str) -> AnyRun | None:
    """A run, a draft, a run that a story reserved, or a recording of the server; None if there is none.

    A reserved run is built if it does not exist. May read from disk.
    """
    run = None
    with suppress(InputError):  # the page of the story shows the error
        run = REGISTRY.made(run_id)
    if run is None:
        demo_run()  # loaded first: another process may have given out its id
        run = opened(run_id)
    return run


def buttons_state(view: RunView) -> str:
    """The state on which the buttons of a page depend, as text."""
    parts = view.state, bool(view.frames), view.pace, view.unsaved, view.interventions.text()
    return " ".join(map(str, parts))


class RunBroadcaster:
    """The state of one run, prepared for its viewers.

    Its methods may be called from any thread, except `maps`, which only the event loop may call.

    Args:
        hides: the parts of the run that these viewers may not see.
    """

    def __init__(self, run: AnyRun, hides: HiddenParts = ()) -> None:
        self.run, self.hides = run, hides
        view = run.view
        self.index = Index(run.config, "" if view.own else look_for(run.config))
        self._seen = view, visible(view, hides)  # the whole view, and the part that may be seen
        self.now = Now(self.view)
        """The newest look. It is replaced as a whole, because one thread looks and another sends."""
        self._lock = threading.Lock()
        self._found_at = self._grew_at = time.monotonic()
        self._newest = -1
        self._pauses = WATCHED_SECONDS, WATCHED_SECONDS  # the last two between arrivals of steps
        self._whole: tuple[object, bytes] = ((), b"")
        self._chunks: dict[str, bytes] = {}  # by name, compressed
        self._frames: dict[tuple[str, bool], tuple[object, bytes]] = {}  # by word and `whole`, the newest

    @property
    def view(self) -> RunView:
        """The visible part of the run."""
        whole = self.run.view
        if self._seen[0] is not whole:
            self._seen = whole, visible(whole, self.hides)
        return self._seen[1]

    def look(self, n_viewers: int, seconds: float = TICK) -> None:
        """Read the state of the run for its viewers, and advance to the step that they see next.

        Args:
            n_viewers: viewers of this broadcaster; with 0, the run does not count as viewed.
            seconds: time until the next look.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._found_at > FOUND_SECONDS:
                self._found_at = now
                self.run = REGISTRY.get(self.run.id) or self.run  # a lost run stays on the screen
            if n_viewers:
                self.run.look()
            view = self.view
            self.index.update(view)
            steps = view.frames.steps
            if steps and (steps[-1] > self._newest or steps[-1] < self.now.at):
                self._pauses = self._pauses[1], now - self._grew_at
                self._grew_at, self._newest = now, steps[-1]
            at, before = self._next(steps, now, seconds), self.now
            state = self._state(view, at, n_viewers)
            message = json.dumps(state, separators=(",", ":")).encode()
            version, news = self.index.version, before.news
            if version != before.version:
                news = json.dumps(self.index.news).encode()
            self.now = Now(
                view,
                at,
                message,
                before.counted + (message != before.said),
                version,
                news,
                state["presentation"],
            )

    def _next(self, steps: tuple[int, ...], now: float, seconds: float) -> int:
        """The step that is shown next: steps that arrive together are spread out until more are expected."""
        at = self.now.at
        if not steps or at < 0 or at > steps[-1]:
            return steps[-1] if steps else -1
        n_later = 0
        while n_later < len(steps) and steps[-1 - n_later] > at:
            n_later += 1
        if not n_later:
            return at
        # One long pause is an evaluation; several are those of runs that take turns.
        pause = min(MOST_PAUSE, max(WATCHED_SECONDS, min(self._pauses)))
        ticks = max(1, round((self._grew_at + pause - now) / seconds))
        return steps[len(steps) - n_later + math.ceil(n_later / ticks) - 1]

    def _state(self, view: RunView, at: int, n_viewers: int) -> dict[str, Any]:
        place = self.run.place
        message = ""
        if place is not None:
            message = in_line(place, REGISTRY.limits.training)
        elif not view.frames:
            message = failure(view) if view.state == FAILED else "Building the untrained model…"
        frame = view.frame
        seconds, loss = view.metrics.at(at)
        return {
            "state": view.state,
            "step": view.step,
            "planned": view.planned,
            "newest": view.frames.steps[-1] if view.frames else None,
            "status": status_line(view, place),
            "headline": self.index.headline(view, frame) if frame is not None else message,
            "waits": message,
            "owner": REGISTRY.owners.shown(view.id),
            "presentation": REGISTRY.owners.presentation(view.id),
            "turned": view.turned_at
            and [view.turned_at[0], short_head_name(*view.turned_at[1:]), *view.turned_at[1:]],
            "at": at,
            "loss": loss if loss is not None and math.isfinite(loss) else None,  # JSON has no NaN
            "seconds": seconds,
            "seen": buttons_state(view),
            "viewers": n_viewers,
            "every": ALONE if n_viewers <= FEW else TOGETHER,
            "version": self.index.version,
        }

    # Messages

    def message(self, now: Now, version: int, maps: bytes = b"") -> bytes:
        """A line with the state, a line with the news of the index, and maps.

        Args:
            version: the version of the index that the viewer has. The news is null unless this is the version
                before that of `now`.
            maps: as `maps` returns them.
        """
        news = now.news if version == now.version - 1 else b"null"
        return b"\n".join([now.said, news, maps])

    def maps(self, now: Now, word: str, whole: bool = False) -> bytes:
        """The maps of a word at the step of `now`, encoded; empty if there are none.

        Args:
            whole: whether to send all steps of the chunk that holds this step.
        """
        place = now.view.frames.place_of(word, now.at)
        if place is None:
            return b""
        chunk, places = place[0], None if whole else [place[1]]
        kept, made = self._frames.get((word, whole), (None, b""))
        if kept != (chunk, places):
            made = encoded(without_rows(chunk, self.hides), places)
            _keep(self._frames, (word, whole), ((chunk, places), made))
        return made

    def whole(self) -> bytes:
        """The index as JSON, compressed with gzip; only a version of 0 before anything is recorded."""
        with self._lock:
            view = self.view
            if not view.frames:
                return gzip.compress(b'{"version":0}')
            self.index.update(view)
            kept = self.index.version, view.frames.n_added, view.frames.generation
            if self._whole[0] == kept:
                return self._whole[1]
            content = json.dumps(self.index.whole(view), separators=(",", ":")).encode()
        made = gzip.compress(content, 5)  # outside the lock: no look at the run waits for it
        self._whole = kept, made
        return made

    def chunk(self, name: str) -> bytes | None:
        """The chunk of this name, encoded and compressed with gzip; None if there is none."""
        if (made := self._chunks.get(name)) is None:
            frames = self.view.frames
            every = (chunk for word in frames.words for chunk in frames.chunks_of(word))
            named = next((chunk for chunk in every if name_of(chunk) == name), None)
            if named is None:
                return None
            shown = encoded(without_rows(named, self.hides))
            made = gzip.compress(shown, 5)  # outside the lock: no look at the run waits for it
            with self._lock:
                _keep(self._chunks, name, made)
        return made


def _keep(cache: dict[K, V], key: K, value: V) -> None:
    """Store a value in a cache of at most MOST_CHUNKS entries; drop the oldest entries."""
    cache.pop(key, None)
    while len(cache) >= MOST_CHUNKS:
        del cache[next(iter(cache))]
    cache[key] = value
