"""Parts that a story hides are in no message until another ticket shows them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pages.stream import news, tickets
from pages.stream.hidden import Hidden
from tests.player.test_chunks import decoded
from transformer.player.chunks import name_of
from transformer.runs.registry import REGISTRY
from transformer.shared.attention_info import sites_of

WORD, KIND, ROW = "frog", "cross", 2
HIDES = (Hidden(word=WORD, kind=KIND, row=ROW),)


def maps_of(content, row=ROW):
    """Return the codes (N, H, K) of one row for each site, from a chunk as it was sent."""
    return {site: codes[:, :, row] for site, codes in decoded(content)[1].items()}


@pytest.fixture
def read(server, run):
    """Request a route with a ticket that hides something."""

    def ask(what, hides=HIDES):
        headers = {"x-headlight-ticket": tickets.ticket(run.id, hides)}
        return server.get(f"/stream/{run.id}/{what}", headers=headers)

    return ask


@pytest.mark.parametrize("row", [0, 2])
def test_a_chunk_has_every_cell_except_those_of_a_hidden_row(read, run, row):
    chunk = run.view.frames.chunks_of(WORD)[0]
    hides = (Hidden(word=WORD, kind=KIND, row=row),)
    answer, whole = (read(f"chunk/{name_of(chunk)}", hidden) for hidden in (hides, ()))
    hidden, known = (maps_of(one.content, row) for one in (answer, whole))
    sites = sites_of(chunk.axes, KIND)
    for site in known:
        assert known[site].any()
        assert (not hidden[site].any()) if site in sites else np.array_equal(hidden[site], known[site])
    others = (maps_of(one.content, 1) for one in (answer, whole))
    first, second = ({site: codes.tolist() for site, codes in other.items()} for other in others)
    assert first == second
    assert answer.headers["cache-control"] == "no-store"


def test_a_hidden_row_is_in_no_news(server, run):
    def told(hides):
        offered = [f"headlight.{tickets.ticket(run.id, hides)}"]
        with server.websocket_connect(f"/stream/{run.id}/news", subprotocols=offered) as socket:
            socket.send_text(json.dumps({"word": WORD, "live": True}))
            while True:
                *_, sent = socket.receive_bytes().split(b"\n", 2)
                if sent:
                    return maps_of(sent)

    maps = told(HIDES)
    assert not maps["decoder.0.cross"].any()
    assert maps["decoder.0.self"].any()
    assert told(())["decoder.0.cross"].any()


def test_the_forward_pass_of_a_word_with_a_hidden_row_is_refused(read):
    for word in (WORD, WORD.upper(), f" {WORD} "):  # all are the same word
        for what in ("picture", "parts"):
            answer = read(f"{what}/3?word={word}&site=decoder.0.cross")
            assert answer.status_code == 422
            assert "hidden" in answer.text
    assert "hidden" not in read("picture/3?word=cat").text[:200]


@pytest.mark.parametrize("after", [0, 12])
def test_nothing_after_the_last_shown_step_is_sent(read, run, after):
    hides = (Hidden(after=after),)
    index = json.loads(read("index", hides).content)
    assert index["steps"][-1] == after
    assert max(one["from"] for one in index["segments"]) <= after
    assert all(moment["step"] <= after for moment in index["moments"])
    drawn = [x for name, xs in index["curves"]["arrays"].items() if name.endswith(".x") for x in xs]
    assert max((step for step in drawn if step is not None), default=0) == after
    for word, entries in index["chunks"].items():
        for _, last, _, name in entries:
            assert last <= after
            assert json.loads(read(f"chunk/{name}", hides).content.split(b"\n")[0])["steps"][-1] <= after
        whole = {name_of(chunk) for chunk in run.view.frames.chunks_of(word)}
        for name in whole - {entry[3] for entry in entries}:
            assert read(f"chunk/{name}", hides).status_code == 404
    assert json.loads(read("index", ()).content)["steps"][-1] == 30


def test_a_ticket_cannot_be_altered_to_show_more(read, run):
    ticket = tickets.ticket(run.id, HIDES)
    says, _, signature = ticket.partition(".")
    assert tickets.verify(ticket, run.id) == HIDES
    assert tickets.verify(f"{says.split('-')[0]}.{signature}", run.id) is None


def test_a_ticket_whose_hidden_parts_are_unknown_is_refused(run, monkeypatch):
    ticket = tickets.ticket(run.id, HIDES)
    from pages.stream import hidden

    monkeypatch.setattr(hidden, "_KNOWN", {})
    assert tickets.verify(ticket, run.id) is None


def test_the_beat_that_the_owner_shows_reaches_a_page_in_review_at_once(server, run, monkeypatch):
    monkeypatch.setattr(news, "QUIET_SECONDS", 60.0)
    owners = REGISTRY.owners
    owners.set_token(run.id, "a token")
    offered = [f"headlight.{tickets.ticket(run.id)}"]
    with server.websocket_connect(f"/stream/{run.id}/news", subprotocols=offered) as socket:
        socket.send_text(json.dumps({"live": False}))
        assert json.loads(socket.receive_bytes().split(b"\n")[0])["presentation"] is None
        for at in (0, 1):
            owners.present(run.id, "a guess", {"story": "talk", "at": 7})
            owners.present(run.id, "a token", {"story": "talk", "at": at})
            socket.send_text(json.dumps({"drawn": 1}))
            assert json.loads(socket.receive_bytes().split(b"\n")[0])["presentation"] == {
                "story": "talk",
                "at": at,
            }
    owners.present(run.id, "a token", None)
    assert owners.presentation(run.id) is None
    owners.forget(run.id)
