"""Markup in typed text and in files is shown as text on every page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import count

import pytest

from transformer.insight.moments import Moment
from transformer.runs.registry import REGISTRY
from transformer.shared.interventions import Block
from transformer.tasks.tokenizer import TextTokenizer

SIGNS = "_zqx_ $zqx$ <zqx>"
"""Emphasis, a formula and a tag; the tokenizer of pairs may separate the signs from the word."""
PAIRS = f"alone: {SIGNS}\n" + "\n".join(
    f"The {color} {SIGNS} sees {n} {thing}s.\tLe {SIGNS} {color} voit {n} {thing}s."
    for n in range(4)
    for color in ("red", "blue", "green", "black", "white")
    for thing in ("cat", "dog", "book", "tree", "boat", "key", "door")
)
READ_AS_MARKUP = re.compile(r"(?<!\\)[_$<*\[:]\s?zqx")
TAG = re.compile(r"<\s?zqx|<(?![a-z/])")
"""The tag, or its opening sign alone where each token is drawn separately."""
MARKDOWN = ("markdown", "caption", "info", "warning", "error", "success")
LABELLED = (
    "button",
    "checkbox",
    "toggle",
    "radio",
    "button_group",
    "selectbox",
    "text_input",
    "number_input",
)


def strings(value):
    """Yield the drawn texts in plain data: no keys, and no `uirevision`, under which Plotly keeps a zoom."""
    if isinstance(value, str) and value.startswith('{"data"'):
        yield from strings(json.loads(value))
    elif isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name != "uirevision":
                yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def found_on(visitor):
    """Return the texts that the page would read as markup, and the number of texts that contain zqx."""
    markdown = [element.value for kind in MARKDOWN for element in getattr(visitor.at, kind)]
    for kind in LABELLED:
        for element in visitor.at.get(kind):
            markdown += [getattr(element.proto, "label", ""), getattr(element.proto, "help", "")]
            if kind in ("radio", "button_group"):
                markdown += [getattr(option, "content", option) for option in element.proto.options]
    for table in visitor.at.table:
        markdown += [str(cell) for cell in table.value.to_numpy().ravel()]
    found = [text for text in markdown if READ_AS_MARKUP.search(text)]
    pages = [element.value for element in visitor.at.get("html")]
    for element in visitor.at.get("bidi_component"):
        message = json.loads(element.proto.json) if element.proto.json else {}
        if "spec" in message:
            pages += strings([message["spec"], message["layout"]])
        if "over" in message:
            pages.append(message["over"] or "")
    found += [text for text in pages if TAG.search(text)]
    return found, sum("zqx" in text for text in (*markdown, *pages))


@pytest.fixture
def trained(visit):
    """The Watch page of a finished run on pairs full of markup signs."""
    visitor = visit(task="pairs").go("data")
    visitor.at.text_area(key="pairs_paste").set_value(PAIRS)
    visitor.look()
    assert visitor.errors == []
    assert found_on(visitor)[0] == []
    assert found_on(visitor)[1] > 10
    visitor.press("data_train").go("watch")
    for name, value in {"layers_encoder": 1, "layers_decoder": 1, "heads": 2, "width": 8, "steps": 2}.items():
        visitor.set(name, value)
    return visitor.press("run_start").until("finished")


def test_watch_reads_no_markup_in_a_word(trained):
    trained.set("own_word", f"the {SIGNS} sees nobody")  # its answer is not known
    trained.wait_until(lambda: trained.run.view.frames[-1].words[-1].text.endswith("nobody"))
    found, shown = found_on(trained)
    assert found == []
    assert shown > 0


@pytest.fixture
def writing_signs(monkeypatch):
    """Make every answer of a model full of markup signs, and different each time."""
    n = count()
    monkeypatch.setattr(TextTokenizer, "text", lambda tokenizer, ids: (f"{next(n)} {SIGNS}", True))
    monkeypatch.setattr(TextTokenizer, "tokens", lambda tokenizer, ids: ("<zqx>",) * len(ids))


@pytest.mark.usefixtures("writing_signs")
def test_no_page_reads_markup_in_the_answer_of_a_model(trained):
    for page in ("watch", "masks", "ask"):
        trained.go(page)
        found, shown = found_on(trained)
        assert found == []
        assert shown > 1
    for tab in ("Break", "Beams"):
        found, shown = found_on(trained.tab(tab))
        assert found == []
        assert shown > 2


@pytest.mark.usefixtures("writing_signs")
def test_a_token_that_a_visitor_blocks_is_not_read_as_markup(trained):
    trained.go("ask").tab("Break")
    block = Block(site="decoder.0.cross", token="_zqx_")  # as a visitor's own tokenizer may have it
    trained.at.session_state["blocks"] = (trained.run.id, trained.value("asked_word_text")), (block,)
    found, shown = found_on(trained.look())
    assert found == []
    assert shown > 2
    trained.press("intervene_run").wait_until(lambda: trained.run.view.interventions.blocked == (block,))
    assert trained.look().says("Active in the run: ")
    assert found_on(trained)[0] == []


def test_ask_masks_and_look_inside_read_no_markup_in_a_word(trained):
    trained.go("ask")
    for tab in ("Spell", "Break", "Beams", "Measure"):
        found, shown = found_on(trained.tab(tab))
        assert found == []
        assert shown > 1
    trained.tab("Break").at.session_state["block_what"] = "token"
    trained.press("block_add").press("intervene_run")
    assert found_on(trained)[0] == []
    trained.go("watch")
    assert found_on(trained)[0] == []  # with the moment that names the token
    for page in ("masks", "inside"):
        cell = {
            "box": "encoder.0.feed_forward",
            "table": "stream",
            "head": 0,
            "row": 1,
            "column": 0,
            "how": {},
        }
        found, shown = found_on(trained.go(page).send("player", "cell", cell))
        assert found == []
        assert shown > 0


def test_names_from_a_file_are_shown_as_text_in_the_list_of_runs(visit, tmp_path, monkeypatch):
    visitor = visit(steps=1).press("run_start").until("finished")
    run = visitor.run
    view = replace(
        run.view,
        reason=f"Ended. {SIGNS}",
        config=replace(run.view.config, recipe=f"mine {SIGNS}"),
        moments=(Moment(1, "loss", SIGNS),),
    )
    with monkeypatch.context() as patch:
        patch.setattr(type(run), "view", property(lambda _: view))
        patch.setattr(REGISTRY.library, "published", lambda: {f"night {SIGNS}": replace(view, id="another")})
        found, shown = found_on(visitor.look())
        assert found == []
        assert shown > 1
