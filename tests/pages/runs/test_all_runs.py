"""A folder with many runs: few stand in the sidebar, the dialog lists all, and only one's own are removed."""

from __future__ import annotations

import json
import shutil

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState

from pages.runs.run_list import MAX_LISTED
from tests.conftest import change, with_facts
from transformer.recording.view import ENDED
from transformer.runs.registry import REGISTRY
from transformer.storage.archive import Archive
from transformer.storage.file import Store
from transformer.storage.library import Library
from transformer.storage.tokens import digest_of, new_token

OWN, ELSEWHERE = 7, 8


@pytest.fixture
def folder(monkeypatch, tmp_path, make_run, tiny):
    """A folder of runs trained elsewhere, the last of which another program trains now."""
    run = make_run(tiny(), archive=Archive(tmp_path / "small"))
    run.start()
    assert run.wait(60)
    run.close()
    assert run.join()
    runs = tmp_path / "runs"
    runs.mkdir()
    for n in range(ELSEWHERE):
        path = runs / f"night {n}.headlight"
        shutil.copy(tmp_path / "small.headlight", path)
        state = {"state": "training"} if n == ELSEWHERE - 1 else {}
        with_facts(path, id=new_token(), name=f"model {n}", **state)
    held = Store(path, new=False)
    monkeypatch.setattr(REGISTRY, "library", Library(runs))
    yield runs
    held.close()


@pytest.fixture
def tokens(folder):
    """Id to token of the visitor's own runs in the folder; the newest last."""
    tokens = {new_token(): new_token() for _ in range(OWN)}
    for n, (id_, token) in enumerate(tokens.items()):
        path = folder / f"{id_}.headlight"
        shutil.copy(folder / "night 0.headlight", path)
        moments = [{"step": 116, "kind": "turned", "text": "decoder layer 2, head 1 reads backwards"}]
        state = "stopped" if n == 0 else "finished"
        with_facts(path, id=id_, name=f"own {n}", state=state, moments=moments if n == 3 else [])
        change(path, "INSERT OR REPLACE INTO fact VALUES ('owner', ?)", digest_of(token).encode())
    return tokens


@pytest.fixture
def visitor(visit, tokens):
    return visit(session={"tokens": dict(tokens)})


def listed(visitor):
    keys = [one.key for one in visitor.at.button if (one.key or "").startswith("show_")]
    return [key.removeprefix("show_") for key in keys]


def names(visitor):
    """The names in the table of the dialog, in order."""
    return [*visitor.at.dataframe[0].value.get("name", ())]


def select(visitor, *chosen):
    """Select the rows of these names."""
    rows = [at for at, name in enumerate(names(visitor)) if name in chosen]
    assert len(rows) == len(chosen)
    state = json.dumps({"selection": {"rows": rows, "columns": [], "cells": []}})
    visitor._answer(WidgetState(id=visitor.at.dataframe[0].proto.id, string_value=state))


def on_disk(folder):
    return {path.stem for path in folder.glob("*.headlight")}


def test_few_runs_stand_in_the_sidebar_the_live_ones_first_and_the_dialog_lists_all(visitor, tokens, folder):
    own, elsewhere = listed(visitor)[:MAX_LISTED], listed(visitor)[MAX_LISTED:]
    assert own == [*tokens][::-1][:MAX_LISTED]
    assert len(elsewhere) == MAX_LISTED
    assert REGISTRY.facts_of_run(elsewhere[0]).state == "training"
    assert not visitor.at.dataframe
    visitor.press("all_runs_open")
    assert visitor.at.button(key="all_runs_open").label == f"All {OWN + ELSEWHERE} runs…"
    assert names(visitor)[0] == "night 7 · model 7"
    assert sorted(names(visitor)) == sorted(
        [f"own {n}" for n in range(OWN)] + [f"night {n} · model {n}" for n in range(ELSEWHERE)]
    )
    visitor.look()  # the page is drawn anew, as when a run ends
    assert visitor.at.dataframe


def test_runs_are_found_by_their_name_moment_task_and_state(visitor):
    visitor.press("all_runs_open")
    for typed, found in (
        ("night 3", ["night 3 · model 3"]),
        ("BACKWARDS turned", ["own 3"]),
        ("stopped", ["own 0"]),
        ("nothing like this", []),
    ):
        visitor.set("all_runs_search", typed)
        assert names(visitor) == found
    visitor.set("all_runs_search", "").set("all_runs_state", ["● training"])
    assert names(visitor) == ["night 7 · model 7"]
    assert visitor.at.dataframe[0].value["task"].unique().tolist() == ["Reverse words"]
    visitor.set("all_runs_state", []).set("all_runs_task", ["Reverse words"])
    assert len(names(visitor)) == OWN + ELSEWHERE


def test_a_selected_run_is_opened_from_the_dialog(visitor, tokens):
    visitor.press("all_runs_open")
    select(visitor, "own 1")
    visitor.press("all_runs_show")
    assert visitor.run.id == visitor.link["run"] == [*tokens][1]
    assert visitor.run.view.state in ENDED
    assert not visitor.at.dataframe
    assert [*tokens][1] in listed(visitor)  # although five others are newer


def test_selected_runs_are_removed_at_once_except_those_of_others_and_one_undo_restores_all(
    visitor, tokens, folder
):
    before, ids = on_disk(folder), [*tokens]
    visitor.press("all_runs_open")
    select(visitor, "own 1")
    visitor.press("all_runs_show").press("all_runs_open")
    select(visitor, "own 0", "own 1", "night 3 · model 3", "night 7 · model 7")
    assert visitor.at.button(key="all_runs_remove").label == "Remove 2 runs"
    assert visitor.says("2 runs cannot be removed here: not yours, or training now.")
    visitor.press("all_runs_remove")
    assert on_disk(folder) == before - {*ids[:2]}
    assert visitor.at.button(key="all_runs_open").label == f"All {OWN + ELSEWHERE - 2} runs…"
    assert visitor.run.id not in ids  # the run on the screen was one of them
    assert "run" not in visitor.link
    assert not visitor.says("no longer on this server")
    visitor.press("all_runs_undo_sidebar")
    assert on_disk(folder) == before
    assert {"own 0", "own 1"} <= {*names(visitor)}
    assert "all_runs_undo_sidebar" not in visitor.keys
    assert visitor.errors == []


def test_a_run_that_cannot_be_removed_any_more_is_reported_and_others_are_removed(visitor, tokens, folder):
    visitor.press("all_runs_open")
    select(visitor, "own 0", "own 1")
    (folder / f"{[*tokens][0]}.headlight").unlink()
    visitor.press("all_runs_remove")
    assert visitor.errors == ["1 run could not be removed: This run is no longer on this server."]
    assert [*tokens][1] not in on_disk(folder)
    assert visitor.says("1 run removed.")
