"""A story that is presented: its runs, its current beat, its commands, and what it hides."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pages.controls.beside import data_of
from pages.controls.commands import INTERVENTION_SECONDS, await_effect, store_error, train_on
from pages.own_data.in_use import refuse_others
from pages.runs import keyring
from pages.shared import ownership
from pages.shared.session import session
from pages.stream.hidden import Hidden, HiddenParts, name_of
from pages.stream.tickets import ticket
from transformer.errors import InputError
from transformer.recording.view import ENDED, IDLE, MAX_WORDS
from transformer.runs.any_run import AnyRun
from transformer.runs.demo import OF_STORIES, recording
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions
from transformer.storage.tokens import new_token
from transformer.stories.files import MOST_BYTES, read_story, stories
from transformer.stories.story import BEFORE, Beat, Story

PACKED = "~"
"""Prefix of a story that the link itself contains."""


def packed(text: str) -> str:
    """A story's file, compressed for a link."""
    return PACKED + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode()


def named(name: str) -> Story:
    """A story by its name, or from a link.

    Raises:
        InputError: there is no story of this name, or its file or link cannot be read.
    """
    if name.startswith(PACKED):
        try:
            content = base64.urlsafe_b64decode(name[len(PACKED) :])
            opened = zlib.decompressobj()
            text = opened.decompress(content, MOST_BYTES + 1).decode()
            if not opened.eof and len(text) <= MOST_BYTES:
                raise ValueError("it ends too early")
        except (ValueError, zlib.error) as error:
            raise InputError("The story in this link is damaged. Ask for its file.") from error
        return read_story(text)
    story = stories().get(name)
    if story is None:
        raise InputError("There is no story of this name. Choose one of the list.")
    if isinstance(story, InputError):  # its file cannot be read
        raise story
    return story


def presentable(story: Story, first: AnyRun | None) -> tuple[Story, list[str]]:
    """A story ready to be presented, with the visitor's run `first`, if any, in place of its first run.

    Returns:
        The story without the beats that its models cannot show, and the reason for each omitted beat.

    Raises:
        InputError: no beat fits.
    """
    if first is not None and first.config != next(iter(story.runs.values())).config:
        story = story.with_run(first.config)
    misfits = dict(story.misfits())
    why = [f"Slide {place + 1} is left out: {reason}." for place, reason in misfits.items()]
    beats = tuple(beat for place, beat in enumerate(story.beats) if place not in misfits)
    if not beats:
        raise InputError(f"No slide of this story fits the model. {why[0]}")
    return replace(story, beats=beats), why


def cast(story: Story, first: AnyRun | None) -> dict[str, str]:
    """Reserve the runs of a story, which are built when a beat needs them.

    Args:
        first: the visitor's run that takes the place of the first run, if any.

    Returns:
        Name to id of each run that trains.

    Raises:
        InputError: the slides show too many words of a run, or its settings exceed the limits of this server
            or name uploads of another visitor.
    """
    for name in story.runs:
        if (n := len(story.words_of(name))) > MAX_WORDS:
            raise InputError(f"The slides of {name!r} show {n} words; a run tracks at most {MAX_WORDS}.")
    run_ids: dict[str, str] = {}
    visitor = session.visitor.name
    for name, role in story.runs.items():
        if first is not None and not run_ids:
            run_ids[name] = REGISTRY.reserve(first.config, first.words, visitor=visitor, id_=first.id)
        elif role.trains:
            refuse_others(role.config)
            token, words = new_token(), story.words_of(name) or None
            run_ids[name] = REGISTRY.reserve(role.config, words, visitor=visitor, token=token)
            keyring.accept_token(run_ids[name], token)
    return run_ids


def leave() -> None:
    """Discard the untrained models of the last story; if it is presented again, they are built again."""
    for id_ in session.cast.values():
        run = REGISTRY.get(id_)
        if run is not None and run.view.state == IDLE and ownership.owns(run):
            REGISTRY.discard(id_)
    session.cast = {}


def obey(story: Story, presentation: dict[str, Any]) -> None:
    """Run the pending commands up to the current beat, and again the commands to its runs that were lost.

    An error is stored in the session; the other commands are still run.

    Args:
        presentation: the state of the presentation; its entry "obeyed" is updated.
    """
    beats = story.beats[: presentation["at"] + 1]
    lost: set[str] = set()
    with store_error():
        lost = _lost(beats, presentation)
    for place, beat in enumerate(beats):
        if place not in presentation["obeyed"] or lost.intersection(beat.roles):
            presentation["obeyed"] = sorted({*presentation["obeyed"], place})
            with store_error():
                _run_command(beat, presentation)


def _lost(beats: Sequence[Beat], presentation: Mapping[str, Any]) -> set[str]:
    """Names of the runs of the last of these beats that a beat has started, but that are untrained: they were
    built again, or their start was refused. Raises InputError."""
    obeyed = (beat for place, beat in enumerate(beats) if place in presentation["obeyed"])
    started = {name for beat in obeyed if beat.command == "start" for name in beat.roles}
    runs = {name: _own(presentation, name) for name in beats[-1].roles if name in started}
    return {name for name, run in runs.items() if run is not None and run.view.state == IDLE}


def _run_command(beat: Beat, presentation: Mapping[str, Any]) -> None:
    """Run the command of a beat, if its run can obey it in its present state. Raises InputError."""
    run = None if beat.command is None else _own(presentation, beat.run)
    if run is None:
        return
    state = run.view.state
    match beat.command:
        case "start":
            train_beat(beat, presentation)
        case "pause" | "resume" if state not in (IDLE, *ENDED):
            if beat.command == "resume":
                run.set_pace(beat.pace)
            await_effect(getattr(run, beat.command)())
        case "continue" if state in ENDED:
            train_on(run)
        case "switch off" if run.ready.wait(INTERVENTION_SECONDS) and run.view.frame is not None:
            head = beat.pinned or run.view.frame.clearest
            await_effect(run.intervene(Interventions(ablated=(head,))), INTERVENTION_SECONDS)
        case "restore":
            await_effect(run.intervene(NO_INTERVENTIONS), INTERVENTION_SECONDS)


def _own(presentation: Mapping[str, Any], name: str) -> Run | None:
    """The run of this name, built if it does not exist; None if there is no such run, or this visitor may not
    command it. Raises InputError."""
    run = REGISTRY.made(presentation["runs"].get(name))
    return ownership.command(run) if run is not None and ownership.owns(run) else None


def train_beat(beat: Beat, presentation: Mapping[str, Any]) -> None:
    """Train the untrained runs of a beat, if this visitor owns them, at its pace. Raises InputError."""
    for run in filter(None, [_own(presentation, name) for name in beat.roles]):
        if run.view.state == IDLE:
            run.set_pace(beat.pace)
            REGISTRY.start(run)
            if run.id not in session.known_runs:
                session.known_runs.append(run.id)


def hides_of(story: Story, name: str, shown: frozenset[int]) -> HiddenParts:
    """The parts of a run, or of its recording, that are still hidden.

    Args:
        name: name of the run.
        shown: places of the beats that have revealed what they hide.
    """
    hidden = []
    for place, beat in enumerate(story.beats):
        if beat.hides is None or place in shown or name not in beat.roles:
            continue
        if beat.hides == "later":
            hidden.append(Hidden(after=_last(beat, story, name)))
        elif beat.kind is not None and beat.row is not None:
            hidden.append(Hidden(word=beat.word, kind=beat.kind, row=beat.row - 1))
    return tuple(hidden)


def _last(beat: Beat, story: Story, name: str) -> int:
    """The last step of a recording that is shown before the guess."""
    view = _recording(story, name).view
    turned = view.turned_at[0] if view.turned_at else view.step
    if beat.step.isdecimal():
        return int(beat.step)
    return turned if beat.step == "turned" else int(BEFORE * turned)


def _recording(story: Story, name: str) -> AnyRun:
    demo = recording(OF_STORIES[story.runs[name].recording or ""])
    if demo is None:
        raise InputError("The recording of this story cannot be read. Install the app anew.")
    return demo


def as_data(story: Story, presentation: Mapping[str, Any]) -> dict[str, Any]:
    """The data with which the browser presents a story. Raises InputError if a recording cannot be read."""
    shown, runs = frozenset(presentation["shown"]), presentation["runs"]
    configs, races = {}, {}
    for name, role in story.runs.items():
        hides = hides_of(story, name, shown)
        recorded = _readable(_recording(story, name).id, hides) if role.recording else None
        configs[name] = _readable(runs.get(name), hides) | {"recording": recorded}
    for beat in story.beats:
        if beat.against:
            sides = [story.runs[name].config for name in beat.roles]
            races["|".join(beat.roles)] = data_of(sides) | {"clock": "steps"}
    beats = [asdict(beat) | {"pinned": beat.pinned, "roles": beat.roles} for beat in story.beats]
    data = {"kind": story.kind, "beats": beats, "before": BEFORE, "presentation": dict(presentation)}
    return data | {"runs": configs, "races": races}


def _readable(id_: str | None, hides: HiddenParts) -> dict[str, str | None]:
    return {"run": id_, "ticket": id_ and ticket(id_, hides), "hidden": name_of(hides)}


def updated_state(story: Story, presentation: Mapping[str, Any], sent: object) -> dict[str, Any]:
    """The state of the presentation, updated with what the browser has sent: unknown beats and runs are left
    out, the place is clamped, and a message of another form changes nothing."""
    match sent:
        case {"at": int(at), "shown": list(shown), "recorded": list(recorded), "by": str(by)}:
            places = range(len(story.beats))
            return {
                **presentation,
                "at": min(max(at, 0), len(places) - 1),
                "shown": sorted({one for one in shown if type(one) is int and one in places}),
                "recorded": sorted({one for one in recorded if isinstance(one, str) and one in story.runs}),
                "by": by[:20],
            }
    return {**presentation}
