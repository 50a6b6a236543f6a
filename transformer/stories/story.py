"""A story: its runs, and its beats with what each shows, does, waits for and hides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from transformer.config import KINDS_OF, ModelConfig, RunConfig, TrainConfig
from transformer.config.limits import Number, OneOf, Settings, Text, Whole
from transformer.config.recipes import RECIPES
from transformer.config.tasks import with_task
from transformer.errors import InputError
from transformer.tasks import resolved, task_of

WATCH, RACE, INSIDE = "Watch", "Race", "Look inside"
TALK, TOUR = "talk", "tour"
RECORDINGS = ("reverse", "no-causal-mask", "zh-en")
"""Shipped recordings, each of which can stand in for a run that does not exist."""
OF_RUN = ("turned", "ended")
OF_VISITOR = ("started", "cell", "head", "word", "past", "box")
COMMANDS = ("start", "pause", "resume", "continue", "switch off", "restore")
TARGETS = ("map", "heads", "step control", "start", "words right", "kind", "word", "curves", "model", "box")
"""Parts of the screen at which the arrow of a tour can point."""
MOST_BEATS, MOST_RUNS = 60, 12
BEFORE = 0.9
"""`before turned` is this share of the step at which the first head turned, rounded down."""
NONE = "none"
"""Value of a setting that is None, such as no goal: TOML has no null."""
_SITE = re.compile(r"(encoder\.\d|decoder\.\d\.(?:self|cross))\.([1-9]\d?)")
_CARRIED = ("page", "run", "against", "word", "kind", "head")
"""Fields that a beat takes over from the previous beat where its table leaves them out."""


@dataclass(frozen=True, kw_only=True)
class Beat(Settings):
    """One slide of a story, shown by one key press."""

    says: Annotated[str, Text(320)]
    """A sentence or two."""
    otherwise: Annotated[str, Text(320)] = ""
    """Said in place of `says` if the run has ended without what the sentence needs, such as a turned head."""
    notes: Annotated[str, Text(2000)] = ""
    """Notes that only the speaker sees."""
    page: Annotated[str, OneOf((WATCH, RACE, INSIDE))] = WATCH
    run: Annotated[str, Text(20)] = ""
    """Name of the run that is shown; by default that of the previous beat, or else the story's first."""
    against: Annotated[str, Text(240)] = ""
    """Name of the right run of a race, or names of all its other runs with spaces between them."""
    word: Annotated[str, Text(200)] = ""
    kind: Annotated[str | None, OneOf(tuple(sorted({*sum(KINDS_OF.values(), ())})))] = None
    head: Annotated[
        str, Text(20, r"clearest|" + _SITE.pattern, "clearest, or one like decoder.1.cross.3")
    ] = "clearest"
    """The large head: its site, with layers counted from 0, and its number from 1, as in a link."""
    step: Annotated[
        str, Text(13, r"live|turned|before turned|end|\d{1,9}", "a step, live, turned, before turned or end")
    ] = "live"
    """The step on the screen: at `turned` a head has just turned; for `before turned`, see `BEFORE`."""
    pace: Annotated[float | None, Number(1, 20)] = None
    """Steps per second of the run after `start` or `resume`; None: full pace."""
    box: Annotated[str, Text(40)] = ""
    """Box of the picture of the model that is open, such as decoder.1.cross."""
    command: Annotated[str | None, OneOf(COMMANDS)] = None
    """Command as the beat begins: `start` to all its runs, `switch off` to its head, others to its run."""
    until: Annotated[
        str,
        Text(
            16,
            "|".join((*OF_RUN, *OF_VISITOR, r"step \d{1,9}")),
            f"{', '.join(OF_RUN + OF_VISITOR)} or step N",
        ),
    ] = ""
    """Condition for going on: what the runs reach, or that they end; in a tour also the visitor's action."""
    row: Annotated[int | None, Whole(1, 200)] = None
    """Row of the large map, counted from 1, in which the visitor guesses the largest weight."""
    hides: Annotated[str | None, OneOf(("row", "later"))] = None
    """Hidden until the answer is shown: `row`, in all heads of `kind`; or `later`, all steps after `step`."""
    answer: Annotated[str, Text(320)] = ""
    """Said in place of `says` once the answer is shown."""
    points: Annotated[str | None, OneOf(TARGETS)] = None
    """Part of the screen that a small arrow points at, in a tour."""
    cover: bool = False
    """Whether the map of this beat, at the end of its run's recording, is the picture of the story's card."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.says.strip():
            raise InputError("A slide needs a sentence: write it into says.", "says")
        if (self.hides is None) != (self.row is None):
            raise InputError("hides needs the row that is to be guessed, and row needs hides.", "hides")
        if self.hides and not (self.word and self.kind):
            raise InputError("A slide that hides something needs word and kind.", "hides")
        if self.hides == "later" and self.step in ("live", "end"):
            raise InputError(f"Nothing follows step={self.step!r}; choose a step, or before turned.", "step")

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the runs that are shown; in a race, the left one first."""
        return (self.run, *self.against.split())

    @property
    def pinned(self) -> tuple[str, int] | None:
        """(site, head) of the large map; None for the clearest head."""
        match = _SITE.fullmatch(self.head)
        return (match[1], int(match[2]) - 1) if match else None


@dataclass(frozen=True, kw_only=True)
class Role:
    """A run of a story: its settings, and a recording that stands in until the run exists."""

    config: RunConfig
    recording: str | None = None
    trains: bool = True
    """Whether the run is trained; otherwise only its recording is shown."""


@dataclass(frozen=True, kw_only=True)
class Story(Settings):
    """A list of beats, each complete: with the fields that it takes over from the previous beat."""

    title: Annotated[str, Text(60)]
    kind: Annotated[str, OneOf((TALK, TOUR))] = TALK
    """A talk fills the screen; in a tour the visitor acts."""
    about: Annotated[str, Text(200)] = ""
    """One sentence for the list of stories."""
    audience: Annotated[str, Text(60)] = ""
    """The audience; cards write "For" before it."""
    minutes: Annotated[int | None, Whole(1, 240)] = None
    needs: Annotated[str, Text(120)] = ""
    """What it takes to tell or follow it; cards write "Needs" before it."""
    runs: Mapping[str, Role]
    beats: tuple[Beat, ...]

    def words_of(self, name: str) -> tuple[str, ...]:
        """The words that the beats show of a run, in order, each once."""
        return tuple(dict.fromkeys(b.word for b in self.beats if name in b.roles and b.word))

    def with_run(self, config: RunConfig) -> Story:
        """The story with other settings for its first run, such as those of an existing run."""
        first = next(iter(self.runs))
        return replace(self, runs={**self.runs, first: Role(config=config)})

    def misfits(self) -> Iterator[tuple[int, str]]:
        """(index, reason) of each beat that the model of one of its runs cannot show."""
        for place, beat in enumerate(self.beats):
            for name in beat.roles:
                if why := _misfit(beat, self.runs[name].config):
                    yield place, why
                    break


def _misfit(beat: Beat, config: RunConfig) -> str:
    """Why a model of these settings cannot show a beat; empty where it can."""
    model = config.model
    if beat.kind is not None and beat.kind not in model.kinds:
        return f"the model has no attention of the kind {beat.kind}"
    for site, head in filter(None, (beat.pinned, (beat.box, 0))):
        stack, layer, *_ = [*site.split("."), ""]
        layers = {"encoder": model.n_encoder_layers, "decoder": model.n_decoder_layers}.get(stack, 0)
        if layer.isdecimal() and int(layer) >= layers:
            return f"the {stack} has {layers} layers, and the slide shows layer {int(layer) + 1}"
        if head >= model.n_heads:
            return f"a layer has {model.n_heads} heads, and the slide shows head {head + 1}"
    try:
        if beat.word:
            task_of(config).tracked(beat.word)
    except InputError as error:
        return f"“{beat.word}” cannot be asked: {error}"
    return ""


def read_role(values: Any) -> Role:
    """A run from its table: task, recording, trains, and any setting by its plain name. Raises InputError.

    A list of TOML becomes a tuple.
    """
    if not isinstance(values, dict):
        raise InputError("A run is a table of settings.", "runs")
    changes: dict[str, Any] = {}
    for name, value in values.items():
        changes[name] = tuple(value) if isinstance(value, list) else value
    recording, trains = changes.pop("recording", None), changes.pop("trains", True)
    if recording is not None:
        OneOf(RECORDINGS).check("recording", recording)
    if not isinstance(trains, bool) or (not trains and recording is None):
        raise InputError("trains is true or false; a run that does not train needs a recording.", "trains")
    RunConfig.check_names(changes)
    limits = RunConfig.limits | ModelConfig.limits | TrainConfig.limits
    changes = {
        name: None if value == NONE and name in limits and limits[name][1] else value
        for name, value in changes.items()
    }
    base = with_task(RECIPES["default"].small, changes.pop("task", "reverse"))
    return Role(config=resolved(base.with_changes(**changes)), recording=recording, trains=trains)


def inherited(beats: list[dict[str, Any]], first: str) -> list[dict[str, Any]]:
    """The beats, each with the fields that it takes over from the previous beat."""
    kept: dict[str, Any] = {"run": first}
    complete = []
    for values in beats:
        kept |= {name: values[name] for name in _CARRIED if name in values}
        if values.get("page", kept.get("page")) != RACE:
            kept.pop("against", None)
        complete.append({**kept, **values})
    return complete
