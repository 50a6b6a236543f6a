"""Data of the picture of the model: a forward pass, the parts of its scores, or the changes of a step."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import asdict

from pages.explanations.mask_words import others
from transformer.anatomy.boxes import CHANGEABLE_SETTINGS, arranged, packed, with_numbers
from transformer.anatomy.change import step_change
from transformer.anatomy.parts import packed_parts
from transformer.anatomy.trace import trace
from transformer.asking.model import QUESTION_CACHE
from transformer.errors import InputError
from transformer.figures.colors import LOOK
from transformer.recording.view import RunView
from transformer.recording.weights import Snapshot
from transformer.runs.any_run import AnyRun


def beside(run: AnyRun, word: str, asked: Mapping[str, str]) -> tuple[str, ...]:
    """The other words in the batch of a word: all other tracked words, without mean maps, if the request has
    `batch`; else none."""
    return others(run, word) if asked.get("batch") else ()


def forward_pass(run: AnyRun, view: RunView, step: int, asked: Mapping[str, str]) -> bytes:
    """The forward pass of a word through the kept weights nearest to `step`, packed for the browser.

    Args:
        view: the part of the run that may be shown.
        asked: parameters of the request: word, and optionally batch and any of `CHANGEABLE_SETTINGS`.

    Raises:
        InputError: the word cannot be asked, a setting has a value that is not allowed, no weights are kept,
            or the weights do not fit the model or give numbers that are not finite.
    """
    word = asked.get("word", "")
    snapshot = _snapshot(view, step)
    config, words = arranged(view.config, asked), beside(run, word, asked)
    key = "picture", config, weakref.ref(snapshot), word, words
    own = {name: getattr(view.config.model, name) for name in CHANGEABLE_SETTINGS}
    now = {name: getattr(config.model, name) for name in CHANGEABLE_SETTINGS}
    return QUESTION_CACHE.get(
        key,
        lambda: packed(
            trace(config, snapshot, word, words),
            snapshot.step,
            **LOOK,
            word=word,
            arranged=now,
            own=own,
            options=CHANGEABLE_SETTINGS,
        ),
        len,
    )


def parts(_run: AnyRun, view: RunView, step: int, asked: Mapping[str, str]) -> bytes:
    """The parts of all scores of one attention in a forward pass of a word alone, packed for the browser.

    Args:
        view: the part of the run that may be shown.
        asked: parameters of the request: word, site, and optionally any of `CHANGEABLE_SETTINGS`.

    Raises:
        InputError: the weights of `step` are not kept, the model has no such attention, or as in
            `forward_pass`.
    """
    snapshot, site = _snapshot(view, step), asked.get("site", "")
    if snapshot.step != step:
        raise InputError(f"The weights of step {step:,} are not kept; choose another step.")
    passed = trace(arranged(view.config, asked), snapshot, asked.get("word", ""))
    if site not in passed.attentions:
        raise InputError("This model does not have the chosen cell; choose a cell of its picture.")
    return packed_parts(passed, [site])


def change(run: AnyRun, view: RunView, step: int, asked: Mapping[str, str]) -> bytes:
    """The changes that the training step after `step` made: a line of JSON, followed by all attention weights
    and probabilities of a word after that step, as float32.

    Args:
        view: the part of the run that may be shown.
        asked: parameters of the request: word, and optionally batch.

    Raises:
        InputError: the weights of `step` or of the next step are not kept, they do not fit the model or give
            numbers that are not finite, or the word cannot be asked.
    """
    word = asked.get("word", "")
    before, after = _snapshot(view, step), _snapshot(view, step + 1)
    if after.step != before.step + 1:
        raise InputError(
            f"The weights of step {before.step + 1:,} are not kept, so the change from step {before.step:,} "
            f"cannot be shown. {_instead(view, before.step)}"
        )
    numbers = step_change(view.config, before, after)
    passed = trace(arranged(view.config, asked), after, word, beside(run, word, asked))
    later = {site: one.weights for site, one in passed.attentions.items()}
    later["probabilities"] = passed.probabilities
    head = asdict(numbers) | {
        "boxes": {name: asdict(box) | {"ratio": box.ratio} for name, box in numbers.boxes.items()},
        "sites": {site: array.size for site, array in later.items()},
    }
    return with_numbers(head, later.values())


def _instead(view: RunView, step: int) -> str:
    """A sentence on the step nearest to this one whose change can be shown."""
    kept = {snapshot.step for snapshot in view.snapshots}
    steps = [one for one in kept if one + 1 in kept]
    if not steps:
        return "No two consecutive steps of this run are kept."
    return (
        f"Choose step {min(steps, key=lambda one: abs(one - step)):,}, the nearest one whose change can be."
    )


def _snapshot(view: RunView, step: int) -> Snapshot:
    snapshot = view.snapshot_at(step)
    if snapshot is None and view.frames:
        raise InputError("No weights of this run are kept, so there is nothing to look into.")
    if snapshot is None:
        raise InputError("There is nothing to look into yet: the untrained model is being built.")
    return snapshot
