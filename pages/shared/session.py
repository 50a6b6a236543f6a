"""The state of one visitor's session, apart from its widgets; each entry is declared once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from transformer.config import RunConfig
from transformer.recording.chunk import is_name
from transformer.recording.frame import Frame
from transformer.runs.owners import Visitor
from transformer.storage.own_data import OwnData

Value = TypeVar("Value")
LINKED = ("run", "with", "race", "clock", "step", "word", "kind", "head", "box")
"""Link parameters that name the selection."""
RACE, MASKS = "Race", "Masks"
"""Pages with their own kind, head and box: a race shows several models, and Masks what a mask blocks."""
CLOCKS = ("steps", "seconds", "moment")
"""Axes on which runs are compared: steps, seconds of training, steps from the turn of the first head."""
DRAFTS = ("draft", "left_draft", "right_draft")
"""Entries that hold the ids of drafts."""


def joined(ids: Sequence[str]) -> str | None:
    """Ids as a link names them; None if there are none."""
    return ",".join(ids) or None


class Entry(Generic[Value]):
    """An entry of Streamlit's session state, under the name of the attribute."""

    def __init__(self, default: Value | Callable[[], Value] | None = None) -> None:
        """
        Args:
            default: the value until one is written, or a function whose result is written at the first read.
        """
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, session: Session, owner: type) -> Value:
        name = self._key(session)
        if callable(self._default) and name not in st.session_state:
            st.session_state[name] = self._default()
        return st.session_state.get(name, self._default)

    def __set__(self, session: Session, value: Value) -> None:
        st.session_state[self._key(session)] = value

    def _key(self, session: Session) -> str:
        return self._name


class OfPage(Entry[Value]):
    """An entry of which some pages have a value of their own; the other pages share one."""

    def __init__(self, default: Value | Callable[[], Value] | None = None, *pages: str) -> None:
        """
        Args:
            pages: titles of the pages with their own value; by default Race and Masks.
        """
        super().__init__(default)
        self._pages = pages or (RACE, MASKS)

    def _key(self, session: Session) -> str:
        return f"{self._name} of {session.page}" if session.page in self._pages else self._name


@dataclass
class OnScreen:
    """The selection of the session, for code outside of it, which makes the files that are downloaded."""

    word: str | None = None
    kind: str | None = None
    pinned: tuple[str, int] | None = None
    step: int | None = None
    clock: str = CLOCKS[0]


@dataclass
class Put:
    """Values that were put into widgets, by key."""

    earlier: dict[str, Any]
    """The values that they replaced."""
    values: dict[str, Any]
    drawn: float | None = None
    """When the widgets were first drawn with them, by `time.monotonic`; None if they were not."""


def _step_of_link() -> int | None:
    asked = st.query_params.get("step", "")
    return int(asked) if asked.isdecimal() and len(asked) < 10 else None


def _head_of_link() -> tuple[str, int] | None:
    site, _, number = st.query_params.get("head", "").rpartition(".")
    return (site, int(number) - 1) if is_name(site) and re.fullmatch(r"[1-9]\d?", number) else None


@dataclass(frozen=True)
class Place:
    """A box of the picture of the model, and perhaps a cell of one of its tables; indices start at 0."""

    box: str
    """Name of the box, such as decoder.1.cross or encoder.embedding."""
    head: int = 0
    table: str | None = None
    row: int = 0
    column: int = 0

    def __str__(self) -> str:
        """The place as a link parameter."""
        numbers = (self.head, self.row, self.column) if self.table else (self.head,)
        return "~".join([self.box, *map(str, numbers), *filter(None, [self.table])])

    @classmethod
    def of_link(cls) -> Place | None:
        """The place that the link names; None if it names none, or an invalid one."""
        match re.fullmatch(
            r"([a-z_.\d]{1,40})~(\d{1,4})(?:~(\d{1,5})~(\d{1,5})~([a-z]{1,20}))?",
            st.query_params.get("box", ""),
        ):
            case None:
                return None
            case found:
                box, head, row, column, table = found.groups()
                return cls(box, int(head), table, int(row or 0), int(column or 0))

    @classmethod
    def sent(cls, sent: dict[str, Any]) -> Place:
        """The place that the browser has sent; invalid numbers become 0, because a visitor can send anything.

        Args:
            sent: `box`, a string, and optionally head, table, row and column.
        """
        table = sent.get("table")
        numbers = (sent.get(name) for name in ("head", "row", "column"))
        head, row, column = (n if type(n) is int and 0 <= n < 100_000 else 0 for n in numbers)
        return cls(sent["box"][:40], head, table[:20] if isinstance(table, str) else None, row, column)


class Session:
    """The entries that more than one function reads or writes."""

    page = Entry[str | None]()
    """Title of the page that was drawn last."""
    came_from = Entry("")
    """Path of the last page that was not Stories; empty for Watch."""
    settings_filled = Entry(False)
    """Whether the widgets have been filled with the settings of the run that the link names, if any."""

    put = Entry[Put | None]()
    """The values that were last put into the widgets of the settings, until the browser has received them."""
    settings = Entry[RunConfig | None]()
    """The settings as last drawn; None if they are invalid, or were not drawn yet."""

    # Runs
    run = Entry[str | None]()
    """Id of the chosen run; None while only a draft or a recording is shown."""
    previous_runs = Entry[tuple[str | None, ...]](())
    """Ids of the previous run and of the other runs of its race, as a link names them."""
    draft = Entry[str | None]()
    """Id of the draft: the untrained model of the settings."""
    left_draft = Entry[str | None]()
    right_draft = Entry[str | None]()
    """Ids of the drafts of a prepared race."""
    race = Entry[tuple[str, ...]](())
    """Ids of the other runs of the race; its first run, on the left, is `run`."""
    prepared = Entry[str | None]()
    """Name of the prepared race that was chosen last."""
    clock = Entry(lambda: clock if (clock := st.query_params.get("clock")) in CLOCKS else CLOCKS[0])
    """The axis on which the runs of a race are compared: an entry of `CLOCKS`."""
    lost_run = Entry(False)
    """Whether a run that the link or this session names is gone."""
    known_runs = Entry[list[str]](list)
    """Ids of the runs that were shown, of their parents, and of those that a link named; the oldest first."""
    all_runs = Entry[str | None]()
    """Title of the page on which the dialog of all runs is open; None if it is closed."""
    removed = Entry[tuple[float, list[str]]]((0.0, []))
    """(when, ids) of the runs that were removed last, by `time.monotonic`."""
    beside = Entry[str | None]()
    """Ids of the earlier runs that the link shows too, joined by commas."""
    visitor = Entry[Visitor](Visitor)
    """This session, whose runs are counted together."""
    tokens = Entry[dict[str, str]](dict)
    """The tokens of the runs that this session may command, by id; the oldest first."""
    keys_told = Entry(False)
    """Whether the browser has sent its stored tokens."""
    own_data = Entry[OwnData | None]()
    """The visitor's own pairs and tokenizer."""
    own_data_name = Entry("")
    """The name under which the server keeps them; the browser stores the name."""

    # Stories
    cast = Entry[dict[str, str]](dict)
    """The ids of the runs of the current story, by name."""
    own_story = Entry("")
    """The text of the file of the visitor's own story; empty if there is none."""

    # Selection
    at_step = Entry[int | None](_step_of_link)
    """The step that this visitor chose; None at LIVE. While the owner is followed, it is not shown."""
    follow = Entry(lambda: "step" not in st.query_params)
    """Whether to show the step of the run's owner, if that is another visitor."""
    playing = Entry(False)
    """Whether the recording is playing, so that the step changes by itself."""
    reviewed = Entry[tuple[object, Frame | None]]((None, None))
    """((run, step), frame): the run and the step that were asked for, and the frame found for them."""
    word = OfPage[str | None](lambda: st.session_state.get("word"), RACE)
    """The word on the screen; a race begins with that of the other pages."""
    typed_word = Entry[tuple[str | None, str]]((None, ""))
    """(run, word): a word that was typed, until the thread of the run has added it."""
    kind = OfPage[str | None]()
    """Kind of attention; None until one is shown."""
    kind_chosen = OfPage(False)
    """Whether the visitor chose the kind; otherwise each page opens on its own default."""
    pinned = OfPage[tuple[str, int] | None](_head_of_link)
    """(site, head) that is kept large, by a click or by the link; the run may not have it."""
    outline = Entry(False)
    """Whether the cells that matter are outlined in the large map."""
    box = OfPage[Place | None](Place.of_link)
    """The open box of the picture of the model."""
    goes_to = Entry[str | None]()
    """The file of the page that the player asked for; the next run of the script opens it."""
    arranged = Entry[dict[str, str]](dict)
    """Settings of the model that were changed in its picture, by name: see `CHANGEABLE_SETTINGS`."""
    on_screen = Entry[OnScreen](OnScreen)
    """Word, kind, head and step as last drawn."""
    last_choice = Entry(0)
    """Number of the newest choice that the player has sent."""
    last_box = Entry(0)
    """Number of the newest message about an open box or kept cell that the player has sent."""
    page_is_stale = Entry(False)
    """Whether the whole page must be drawn again, because a message to one part changes the rest."""

    # Requests and errors
    requests = Entry[dict[str, Any]](dict)
    """Requests of callbacks that no page has carried out yet, the newest last: see `request`."""
    masks_wanted = Entry[tuple[str | None, dict[str, bool]]]((None, {}))
    """(run, masks) as the switches show them until the run has applied them."""
    problem = Entry[str | None]()
    """Why the last command failed."""
    word_problem = Entry[tuple[str, str | None] | None]()
    """Why the last word was refused, and a word that can be asked instead, if there is one."""
    mask_problem = Entry[str | None]()
    open_problem = Entry[str | None]()
    remove_problem = Entry[str | None]()
    name_problem = Entry[tuple[str | None, str]]((None, ""))
    """(run, why it cannot have the name that was typed)."""


session = Session()


def request(what: str, value: object = None) -> None:
    """Callback: store a request that only the page can carry out, with `take_requests`.

    A callback knows only the page as it was last drawn: settings, run or word may have changed since.
    """
    requests = session.requests
    requests.pop(what, None)
    requests[what] = value
    session.problem = session.word_problem = None


def take_requests(*what: str) -> Iterator[tuple[str, Any]]:
    """Yield the requests of these kinds in order, as (kind, value); remove each once it is carried out.

    Streamlit may interrupt the script wherever the session is read or written, to run it again. An
    interrupted request is therefore not removed, and the next run of the script repeats it.
    """
    requests = session.requests
    for name in [name for name in requests if name in what]:
        yield name, requests[name]
        requests.pop(name, None)


def rerun() -> NoReturn:
    """Run the whole page again, or the page whose link was followed meanwhile.

    `st.rerun` would replace a rerun that waits, and so the page that it is for. Drawing an element first lets
    Streamlit begin the waiting rerun instead.
    """
    st.empty()
    st.rerun()


def came_back() -> bool:
    """Whether the browser's Back or Forward led here."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def read_link() -> None:
    """Read all entries whose default comes from the link, before a click removes its parameters."""
    for name in ("clock", "at_step", "follow", "pinned", "box"):
        getattr(session, name)


def show_linked_place() -> None:
    """Replace step, head, word, kind and box with those of the link."""
    session.at_step, session.pinned, session.playing = _step_of_link(), _head_of_link(), False
    session.follow = session.at_step is None
    session.word = st.query_params.get("word")
    session.kind, session.kind_chosen = None, False
    session.box = Place.of_link()


def sent_value(key: str, name: str) -> object:
    """The value that a component has sent under a name, unchecked; None where there is none.

    A message may arrive after its page has been left: its callback runs, but the key is unknown by then.
    """
    return getattr(st.session_state.get(key), name, None)
