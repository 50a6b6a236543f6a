"""`Watch`: records the attention of an own model while the user's training loop trains it."""

from __future__ import annotations

import atexit
import logging
import math
import os
import re
import sys
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from operator import index
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.insight.moments import Moments
from transformer.insight.scores import FOCUS, clearest_head
from transformer.recording.chunk import Chunk, coded, together
from transformer.recording.frame import Ablations, Array, Measurement
from transformer.recording.metrics import Metrics
from transformer.recording.recording import MEMORY_LIMIT, Recorded, Recording
from transformer.recording.view import (
    FAILED,
    FINISHED,
    MOST_CURVES,
    TRAINING,
    OwnModel,
    Publisher,
    RunView,
    untrained,
)
from transformer.recording.weights import Weights
from transformer.shared.interventions import NO_INTERVENTIONS
from transformer.storage.archive import Archive
from transformer.storage.file import Taken, path_of
from transformer.storage.tokens import new_token
from transformer.watching.ablation import Measure
from transformer.watching.attention import Function, Observer, Part
from transformer.watching.examples import Examples, Named
from transformer.watching.sites import GivenTokens, plain_name
from transformer.watching.worth import HeadWorth

LOG = logging.getLogger("headlight.watch")
CREDIT_SECONDS = 0.15
"""Seconds that watching may take beyond its share, spent on the first steps, where attention changes most."""
WRITING = 3
"""Writing the file may take 1/WRITING of watching's share of the time."""
SPARSER = 64
"""A step is due only if 1/SPARSER of all steps so far have passed since the last recorded one."""
MEASURED = 16
"""The same for the scores of heads, which are computed at recorded steps only."""
MOST_CELLS, LEAST_CELLS = 128, 16
"""Maximum number of rows and of columns of a map: longer axes are pooled. Maps of more than STEP_BYTES are
pooled to fewer, LEAST_CELLS or more."""
STEP_BYTES = 850_000
"""If the maps of a step take more bytes, long maps are pooled further. About 39 steps of this size fit into
MEMORY_LIMIT."""
MOST_FILES = 1_000
TRIES = 3
"""Maximum number of attempts to observe a model for the first time; the first is made by `Watch(...)`."""
DENSE_ROWS, SPARSE_ROWS = 900_000, 1_000
"""The numbers of every step are kept until there are DENSE_ROWS rows; then of one step in SPARSE_ROWS."""
RESERVED = ("step", "loss", "seconds")

Log = Callable[[int, str, Mapping[str, Array], tuple[str, Array] | None], None]
"""Called with a step, what is measured, (H,) numbers by site, and a head's name and (Q, K) map or None."""


class Watch:
    """Records the attention of a model for fixed inputs while it trains, into a file that the app follows.

    An error in watching never ends the training: it is reported once, as a warning, and kept in `problem`.
    Watching leaves the model, its mode, hooks, gradients and random streams unchanged, so that the losses are
    the same bit for bit as without it. Of several processes that train together, the first one records.

    Args:
        model: any `nn.Module`; see `attention_of` for what is found in it.
        inputs: the arguments of the model, by name: a tensor, a tuple of positional arguments, or a dict of
            keyword arguments; tensors are moved to the device of the model. Every example of a batch is
            shown, at most MAX_WORDS in all.
        out: the file, whose suffix may be left out. If it exists, `out-2` is used, and so on.
        tokens: maps the name of an input to the labels of its axes: tokens, which label every axis of the
            same length, or a mapping from patterns of module names to tokens or to a pair of tokens (queries,
            keys); for a batch, a list with one of these per example. Other axes show positions from 1.
        attention: a function for attention that is not seen: neither fused nor a softmax that is multiplied
            with values. It is called with the model and an input, and returns a mapping from names to weights
            of shape (B, H, Q, K).
        sites: patterns of the names of the attentions to record.
        part: maps the name of an input to a pair of slices, of queries and keys, whose weights are recorded
            in full beside maps that are pooled, at most MOST_OF_PART of each.
        measure: called with the model, returns a number, such as its loss on a fixed batch. It is called
            again with each head switched off, as often as the share allows; also for the last step, if that
            takes no longer than the share or no step was measured before.
        share: the largest share of the time that watching may take. Steps are recorded as often as this
            allows: densely at first, then ever more rarely.
        resume: whether to continue the run in `out`, if it is of the same model and examples: what was
            recorded from the first step of this training on is thrown away.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Mapping[str, Any],
        out: str | Path,
        *,
        tokens: Mapping[str, GivenTokens] | None = None,
        attention: Function | None = None,
        sites: str | Sequence[str] = ("*",),
        part: Mapping[str, Part] | None = None,
        measure: Measure | None = None,
        share: float = 0.03,
        resume: bool = False,
    ) -> None:
        self.problem = ""
        """What could not be recorded, in words; empty where nothing is missing."""
        self.path: Path | None = None
        """The file of the run; None until it is created."""
        self._in_loop = 0.0  # seconds spent on watching since the loop began, in its thread
        self.last_step = -1
        """The newest step that was reported; -1 before there is one."""
        named = (sites,) if isinstance(sites, str) else sites
        self._observer = Observer(model, attention, named, MOST_CELLS)
        self._worth = None
        if callable(measure) and isinstance(share, int | float):  # both are checked later
            self._worth = HeadWorth(self._observer, measure, share)
        self._share, self._out = share, Path(out)
        self._archive: Archive | None = None
        self._resume = resume
        self._before: RunView | None = None  # the run that continues
        self._seconds_before = 0.0
        self._log: Log | None = None
        self._pending: dict[str, list[Chunk]] = {}  # of each word, until the file is next written
        self._measured: list[Measurement | Ablations] = []  # the same
        self._moments = Moments()
        self._recorded = self._next = self._next_measured = self._begun_at = -1
        self._first: Named | None = None
        self._failures = 0  # failed calls of _open: a model may be moved to its device later
        self._last_error = _last_error()
        self._clearest: tuple[str, int] | None = None
        self._closed, self._write_at = False, 0.0
        self._costs: deque[float] = deque(maxlen=5)  # seconds of the last few observations
        self._said: set[str] = set()
        if measure is not None and not callable(measure):
            self._say(InputError(f"measure={measure!r:.60} is no function of the model.", "measure"))
        self._examples = Examples(self._observer, inputs, tokens, part, self._say)
        if _rank() > 0:
            self._closed = True
            return
        if _is_sharded(model):
            self._closed = True
            why = (
                f"{type(model).__name__} is sharded over processes (FSDP), and each of its passes waits for "
                "all of them: nothing is recorded. Watch a copy of it, or its checkpoints with record."
            )
            self._say(InputError(why))
            return
        self._open()
        self._began = time.monotonic()
        _OPEN.add(self)

    def step(self, step: int, /, loss: float | None = None, **numbers: float | None) -> None:
        """Report a finished training step; record the attention after it if the step is due.

        Args:
            step: the number of the step, from 0, greater than at the last call; gaps are allowed.
            loss: a number, as `loss.item()` gives it; drawn as a curve.
            numbers: other numbers, drawn below the loss: those named at the first step, at most MOST_CURVES.
        """
        self._report(step, loss, numbers, always=False)

    def record(self, step: int, /, loss: float | None = None, **numbers: float | None) -> None:
        """Report a step as `step` does, and record it whatever share of the time that takes.

        A loop over saved checkpoints becomes a run in this way.
        """
        self._report(step, loss, numbers, always=True)

    def log_to(self, writer: Any) -> None:
        """Log to a `SummaryWriter` of TensorBoard or a run of W&B as well, whenever heads are measured.

        Scalars are the focus (highest weight of a row) of each head, and how much higher the number that
        `measure` gives is without it; the clearest head is logged as a picture.
        """
        from transformer.watching.logs import log_of  # imported by those who log

        self._log = log_of(writer)

    def html(self, path: str | Path) -> Path:
        """Write what is recorded so far as one page that needs nothing else; return its path.

        Raises:
            InputError: nothing has been recorded yet.
            OSError: the file cannot be written.
        """
        target = Path(path)
        target.write_text(self._page(), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        """The page of `html` in a frame: what a notebook shows of the last expression of a cell."""
        try:
            page = self._page()
        except InputError as error:
            return f"<p>Headlight: {escape(str(error))}</p>"
        return f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: 760px; border: 0"></iframe>'

    def _page(self) -> str:
        """What is recorded so far as a page. Raises InputError: nothing has been recorded."""
        from transformer.exports.page import html_page  # the app's pictures; recording needs none of them

        if self._archive is not None and not self._closed:
            self._publish()
        view = None if self._archive is None else self._view
        if view is None or view.frame is None:
            raise InputError(self.problem or "No step to show: nothing has been recorded yet.")
        site, head = view.frame.clearest
        return html_page(view, word=view.frame.words[0].text, site=site, head=head)

    def _report(
        self, step: int, loss: float | None, numbers: Mapping[str, float | None], *, always: bool
    ) -> None:
        if self._closed:
            return
        if self._archive is None:
            if self._failures >= TRIES:
                return
            self._open()
            self._first = None  # observed after this step, so not the untrained model
            if self._archive is None:
                return
        began, self._last_error = time.monotonic(), _last_error()
        try:
            self._step(step, loss, numbers, always=always)
        except Exception as error:
            self._say(error)
        self._in_loop += time.monotonic() - began

    def close(self, reason: str = "") -> None:
        """Record the last step, unless the training has failed, and release the file and the model.

        Args:
            reason: why the training has failed; empty where it has not.
        """
        if self._closed:
            return
        self._closed = True
        _OPEN.discard(self)
        if self._archive is not None:
            try:
                if not reason:
                    self._end()
                if self.last_step >= 0:
                    self._publish(state=FAILED if reason else FINISHED, reason=reason)
                    self._archive.hand(self._published.view, self._published.version, None)
            except Exception as error:
                self._say(error)
            self._archive.close()
            if self._archive.problem:
                self._say(InputError(self._archive.problem))
        self._examples.close()
        self._observer, self._first, self._worth = Observer(nn.Module()), None, None

    def _end(self) -> None:
        """Record the last step, and measure its heads if the share allows it or no step has been measured."""
        if self._recorded < self.last_step:
            self._look(self.last_step)
        self._measure_worth(at_end=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close(reason_of(error))

    def close_at_exit(self) -> None:
        """Close when the program ends; an error since the last step is the reason."""
        error = _last_error()
        self.close("" if error is self._last_error else reason_of(error))

    @property
    def seconds(self) -> float:
        """Seconds of watching since the loop began: in the loop, and in the thread that writes the file."""
        return self._in_loop + (self._archive.seconds if self._archive else 0.0)

    @property
    def _view(self) -> RunView:
        return self._published.view

    # Recording.

    def _open(self) -> None:
        """Observe the model for the first time, and create the file; warn if that fails."""
        began = time.monotonic()
        try:
            self._first = self._examples.observed(self.last_step)
            took = sum(2 * of.size for maps in self._first.values() for of in maps.values())
            if took > STEP_BYTES:  # coarser maps: so that enough steps fit into the memory of a run
                self._observer.most = max(LEAST_CELLS, int(MOST_CELLS * math.sqrt(STEP_BYTES / took)))
                self._first = self._examples.observed(self.last_step)
            self._costs.append(time.monotonic() - began)
            self._begin_run(self._first)
        except Exception as error:
            self._failures += 1
            self._say(error)

    def _begin_run(self, first: Named) -> None:
        """Make the words whose maps are recorded, and the file. Raises InputError."""
        if not isinstance(self._share, int | float) or not 0 < self._share <= 1:
            raise InputError(f"share={self._share!r} is no share of the time; choose one like 0.03.", "share")
        pictures = self._examples.begin(first)
        self._pending = {text: [] for text in first}
        self._archive = self._continued(first) or _free_file(self._out)
        self.path = self._archive.path
        model = self._observer.model
        parameters = list(model.parameters())
        self._own = OwnModel(name=plain_name(type(model).__name__))
        view = replace(
            untrained(RunConfig(), new_token()),
            own=self._own,
            state=TRAINING,
            planned=0,
            parameters=sum(parameter.numel() for parameter in parameters),
            device=str(next((parameter.device for parameter in parameters), "cpu")),
            frames=Recording(target_score=FOCUS),
            pictures=pictures,
        )
        self._published = Publisher(view)
        here = weakref.ref(self)  # the archive's thread must not keep the model alive

        def warn(problem: str) -> None:
            if problem and (watch := here()) is not None:
                watch._say(InputError(problem))

        self._archive.on_problem = warn

    def _continued(self, first: Named) -> Archive | None:
        """The file of the run that continues; None if there is none or, with a warning, it does not fit."""
        path = path_of(self._out)
        if not self._resume or not path.exists():
            return None
        from transformer.storage.saved import read_run  # needs more packages than recording does

        try:
            view = read_run(path).view
            name, frame = plain_name(type(self._observer.model).__name__), view.frame
            heads = {site: len(of) for site, of in next(iter(first.values())).items()}
            if (
                view.own is None
                or frame is None
                or view.own.name != name
                or {site: frame.n_heads(site) for site in frame.axes} != heads
                or {word.text: word.sides for word in frame.words}
                != {w.text: w.sides for w in self._examples.words.values()}
            ):
                raise InputError(f"{path} holds a run of another model or other examples.")
            archive = Archive(path, resumed=True)
        except InputError as error:
            self._say(InputError(f"resume: {error} This run is kept in a file of its own."))
            return None
        self._before = view
        return archive

    def _step(
        self, given: int, loss: float | None, numbers: Mapping[str, float | None], *, always: bool
    ) -> None:
        step = given if isinstance(given, float) else index(given)  # also a NumPy integer
        if isinstance(step, float) or step <= self.last_step or step < 0:
            raise InputError(
                f"step={given!r} is not recorded: steps are whole numbers, and the last one was "
                f"{self.last_step}."
            )
        assert self._archive is not None
        begins = self.last_step < 0
        if begins:
            if always:
                self._first = None  # there may be no step before
            self._begin(step, numbers)
        self.last_step = step
        seconds = time.monotonic() - self._began - self._in_loop
        if len(self._view.metrics) < DENSE_ROWS or step % SPARSE_ROWS == 0:
            drawn = {"loss": loss} | {name: one for name, one in numbers.items() if self._has_curve(name)}
            floats = {name: self._number(name, value) for name, value in drawn.items()}
            self._view.metrics.append(step=step, seconds=self._seconds_before + max(seconds, 0.0), **floats)
        if always or self._due(step):
            self._look(step)
            if self._recorded == step:
                self._measure_worth(always=always)
        if begins or (self._archive.due() and time.monotonic() >= self._write_at):
            self._publish()
            self._archive.hand(self._published.view, self._published.version, None)
            self._write_at = time.monotonic() + WRITING * self._archive.newest_seconds / self._share

    def _number(self, name: str, value: float | None) -> float:
        try:
            number = value.detach() if isinstance(value, torch.Tensor) else value
            return math.nan if number is None else float(number)
        except (TypeError, ValueError):
            self._say(InputError(f"{name}={value!r} is no number, and is left out."))
            return math.nan

    def _look(self, step: int) -> None:
        """Observe the model now, and record its maps; if that fails, the curves go on."""
        began = time.monotonic()
        try:
            self._record(step, self._examples.observed(step))
        except Exception as error:
            self._say(error)
        self._costs.append(time.monotonic() - began)
        self._next = step + max(1, (step - self._begun_at) // SPARSER)

    def _begin(self, step: int, numbers: Mapping[str, float | None]) -> None:
        """Begin the table of numbers; record the first look at the model as the step before this one."""
        assert self._archive is not None
        curves = tuple(name for name in numbers if plain_name(name) == name and name not in RESERVED)
        curves, self._begun_at = curves[:MOST_CURVES], step
        before = None if self._before is None else self._before.until(step - 1)
        if before is not None and before.own is not None and before.frames:
            self._own = replace(self._own, curves=before.own.curves)
            self._begun_at, self._seconds_before = before.frames.steps[0], before.seconds
            self._moments.restore(before.moments, ([], len(before.metrics), False))
            self._published.publish(**vars(before) | {"own": self._own, "state": TRAINING, "reason": ""})
        else:
            self._own = replace(self._own, curves=curves)
            self._published.publish(own=self._own, metrics=Metrics(curves))
            if step > 0 and self._first is not None:
                self._record(step - 1, self._first)
        self._first = None
        words = tuple(self._examples.words)
        self._archive.begin(self._view, None, Weights(), lambda: words)

    def _has_curve(self, name: str) -> bool:
        is_known = name in self._own.curves
        if not is_known:
            why = (
                "Watch has a curve of this name; choose another name."
                if name in RESERVED
                else f"give all numbers at the first step, {MOST_CURVES} at most, without quotes and angle "
                "brackets in their names."
            )
            self._say(InputError(f"{name} is not drawn: {why}"))
        return is_known

    def _due(self, step: int) -> bool:
        """Whether enough steps have passed, and recording leaves watching within its share of the time."""
        if step < self._next:
            return False
        elapsed = time.monotonic() - self._began
        worth = self._worth
        share, elsewhere = (self._share, 0.0) if worth is None else (self._share - worth.share, worth.seconds)
        return self.seconds - elsewhere + median(self._costs) <= share * elapsed + CREDIT_SECONDS

    def _measure_worth(self, *, always: bool = False, at_end: bool = False) -> None:
        """Measure what each head is worth at the newest recorded step, if that is due."""
        if self._worth is None or self._recorded < 0:
            return
        sites, elapsed = self._examples.heads(), time.monotonic() - self._began
        try:
            if not always and not self._worth.is_due(self._recorded, sites, elapsed, at_end=at_end):
                return
            worth = self._worth.measured(self._recorded, sites)
        except Exception as error:  # perhaps only now: it is tried again when it is next due
            self._say(error)
            return
        self._measured.append(worth)
        for why in self._observer.unmeasured.values():
            self._say(InputError(why))
        if self._log is not None:
            self._log(self._recorded, f"{worth.name} without", worth.changes, None)

    def _record(self, step: int, maps: Named) -> None:
        """Keep the maps of a step, and scores if they are due, until the next `_publish`."""
        self._recorded = step
        open_maps, axes = self._examples.opened(maps), dict(self._examples.axes)
        for text, word in self._examples.words.items():
            of = open_maps[text]
            codes = {site: coded(np.nan_to_num(w)[None], ~np.isnan(w)) for site, w in of.items()}
            self._pending[text].append(
                Chunk(
                    word=word,
                    axes=axes,
                    interventions=NO_INTERVENTIONS,
                    steps=(step,),
                    drawn_at=None,
                    looked_up_to=step,
                    vocabulary=(),
                    predicted=np.zeros((1, 0), dtype=np.uint16),
                    maps=codes,
                )
            )
        if step >= self._next_measured:
            self._next_measured = step + max(1, (step - max(self._begun_at, 0)) // MEASURED)
            scores = self._examples.scores(open_maps)
            focus = {site: of[FOCUS] for site, of in scores.items()}
            self._clearest, _ = clearest_head(focus, self._clearest)
            self._measured.append(Measurement(step=step, head_scores=scores, clearest=self._clearest))
            self._moments.roles(step, scores)
            if self._log is not None:
                site, head = self._clearest
                weights = open_maps[next(iter(self._examples.words))][site][head]
                self._log(step, "attention", focus, (f"{site}, head {head + 1}", weights))

    def _publish(self, **more: Any) -> None:
        """Publish what was recorded since the last call."""
        pending, self._pending = self._pending, {text: [] for text in self._examples.words}
        new: list[Recorded] = [
            *self._measured,
            *(one for series in pending.values() for one in together(series)),
        ]
        self._measured = []
        steps, losses = self._view.metrics.columns("step", "loss")
        is_finite = np.isfinite(losses)
        self._moments.losses(steps[is_finite], losses[is_finite])
        moments = self._moments.found
        frames = self._view.frames.extended(new, self._view.metrics.at) if new else self._view.frames
        frames = frames.thinned({moment.step for moment in moments}, MEMORY_LIMIT)
        self._published.publish(
            **{
                "step": max(self.last_step, 0),
                "planned": max(self.last_step, 0),
                "seconds": self._seconds_before + max(0.0, time.monotonic() - self._began - self._in_loop),
                "frames": frames,
                "moments": moments,
                "own": replace(self._own, problem=self.problem),
                **more,
            }
        )

    def _say(self, error: Exception) -> None:
        """Warn of what could not be recorded; once, if messages differ only in digits."""
        message = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        if (alike := re.sub(r"\d+", "", message)) in self._said:
            return
        self._said.add(alike)
        self.problem = f"{self.problem} {message}".strip()[:1000]
        try:
            warnings.warn(f"Headlight: {message} Training goes on.", RuntimeWarning, stacklevel=3)
        except RuntimeWarning:  # where warnings are errors
            LOG.warning("%s", message)


def _rank() -> int:
    """The rank of this process among those that train together; 0 where it trains alone."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("RANK", 0)) if int(os.environ.get("WORLD_SIZE", 1)) > 1 else 0


def _is_sharded(model: nn.Module) -> bool:
    """Whether some part of a model has its parameters on several processes."""
    sharding = sys.modules.get("torch.distributed.fsdp")  # imported wherever something is sharded
    kinds = (sharding.FSDPModule, sharding.FullyShardedDataParallel) if sharding else ()
    return any(isinstance(module, kinds) for module in model.modules())


def _free_file(out: Path) -> Archive:
    """An archive in the file, or in a numbered one beside it if there is one already.

    Raises:
        InputError: it cannot be written, or there are MOST_FILES files of this name.
    """
    path = path_of(out)
    for number in range(1, MOST_FILES):
        free = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        try:
            archive = Archive(free)
        except Taken:
            continue
        if number > 1:
            LOG.warning("%s holds a run; this run is kept in %s.", path, free)
        return archive
    raise InputError(f"There are {MOST_FILES:,} files beside {path}; choose a new one.", "out")


def reason_of(error: BaseException | None) -> str:
    """Why a training has failed, in words; empty if it has not, or if it was interrupted."""
    if error is None or isinstance(error, KeyboardInterrupt | SystemExit):
        return ""
    return f"{type(error).__name__}: {error}"[:300]


def _last_error() -> BaseException | None:
    """The last error that ended a program, or a cell of a notebook."""
    return getattr(sys, "last_value", None)


_OPEN: weakref.WeakSet[Watch] = weakref.WeakSet()
"""`Watch` objects that are closed when the program ends."""


@atexit.register
def _close_all() -> None:
    for watch in list(_OPEN):
        watch.close_at_exit()
