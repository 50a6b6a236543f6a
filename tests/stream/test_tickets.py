"""A run can be read only with a valid ticket for it, from a page of this server."""

from __future__ import annotations

import time

import pytest
from starlette.websockets import WebSocketDisconnect
from streamlit import config as options

from pages.stream import tickets
from tests.stream.conftest import HOST, good, signed
from transformer.storage.tokens import new_token

NOW = int(time.time())
READ = ("index", "chunk/0123", "picture/3")  # the picture request has no word
OPEN, CLOSED = [200, 404, 422], [403, 403, 403]
FORGED = {
    "nothing": lambda run: "",
    "no signature": lambda run: str(NOW + 3600),
    "an empty signature": lambda run: f"{NOW + 3600}.",
    "another secret": lambda run: signed(run, NOW + 3600, "guessed"),
    "no secret": lambda run: signed(run, NOW + 3600, ""),
    "another run's": lambda run: good(new_token()),
    "expired": lambda run: signed(run, NOW - 1),
    "expired long ago": lambda run: signed(run, 0),
    "made longer": lambda run: good(run).replace(str(NOW)[:3], str(int(str(NOW)[:3]) + 1), 1),
    "no time": lambda run: signed(run, "never"),
    "a negative time": lambda run: signed(run, -NOW),
    "time in other digits": lambda run: signed(run, "٩" * 10),
    "for ever": lambda run: signed(run, "9" * 200),
    "a letter more": lambda run: good(run) + "0",
    "a hundred letters more": lambda run: good(run) + "0" * 100,
    "a letter less": lambda run: good(run)[:-1],
    "letters beyond ASCII": lambda run: good(run)[:-1] + "é",
    "all beyond ASCII": lambda run: "é.ü",
    "large letters": lambda run: good(run).upper(),
    "very long": lambda run: "9" * 50_000,
}


@pytest.fixture
def told(server, run):
    """Request index, chunk, picture and news of a run with a ticket and an origin; return the answers."""

    def ask(ticket, run_id=run.id, origin=None):
        headers = {} if origin is None else {b"origin": origin.encode()}  # as bytes, to send any character
        answers = [
            server.get(
                f"/stream/{run_id}/{what}", headers=headers | {b"x-headlight-ticket": ticket.encode()}
            ).status_code
            for what in READ
        ]
        offered = {b"sec-websocket-protocol": f"headlight.{ticket}".encode()}
        try:
            with server.websocket_connect(f"/stream/{run_id}/news", headers=headers | offered) as socket:
                answers.append(socket.accepted_subprotocol)
        except WebSocketDisconnect as refused:
            answers.append(refused.code)
        return answers

    return ask


def test_a_ticket_lets_its_bearer_read_that_run(told, run):
    for ticket in (tickets.ticket(run.id), good(run.id)):
        assert told(ticket) == [*OPEN, f"headlight.{ticket}"]


def test_a_ticket_is_valid_for_twelve_hours(monkeypatch):
    ticket = tickets.ticket("a run")
    assert tickets.verify(ticket, "a run") == ()
    assert tickets.verify(ticket, "another run") is None
    now = time.time()
    monkeypatch.setattr(tickets.time, "time", lambda: now + 12 * 3600 - 60)
    assert tickets.verify(ticket, "a run") == ()
    monkeypatch.setattr(tickets.time, "time", lambda: now + 12 * 3600 + 1)
    assert tickets.verify(ticket, "a run") is None


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_ticket_is_refused_without_a_lookup(told, run, found, forged):
    ticket = FORGED[forged](run.id)
    assert tickets.verify(ticket, run.id) is None
    assert told(ticket) == [*CLOSED, 1008]
    assert found.asked_for == []  # nothing is looked up


def test_without_a_ticket_nothing_is_answered_or_looked_up(server, run, found):
    for what in READ:
        assert server.get(f"/stream/{run.id}/{what}").status_code == 403
    for offered in (None, ["streamlit"], [good(run.id)], ["streamlit", f"Headlight.{good(run.id)}"]):
        with pytest.raises(WebSocketDisconnect) as refused:
            server.websocket_connect(f"/stream/{run.id}/news", subprotocols=offered).__enter__()
        assert refused.value.code == 1008
    assert found.asked_for == []


@pytest.mark.parametrize("run_id", ["..", "x", "a" * 23, "é" * 22, "a" * 5_000, "%2e%2e%2fapp.py"])
def test_an_invalid_run_id_is_never_looked_up(server, found, run_id):
    ticket = good(run_id)
    answer = server.get(f"/stream/{run_id}/index", headers={"x-headlight-ticket": ticket})
    assert answer.status_code in (403, 404)
    assert found.asked_for == []


def test_a_missing_run_is_looked_up_once_per_request_and_refused(told, opened, found):
    """The ticket is valid, as on a page whose run is gone."""
    run_id = new_token()
    ticket = good(run_id)
    assert told(ticket, run_id) == [*CLOSED, f"headlight.{ticket}"]  # and closed right afterwards
    assert found.asked_for == [run_id] * 4
    assert opened(run_id).closed() == 1008


HERE = [f"http://{HOST}", f"https://{HOST}", f"http://{HOST.upper()}", None]
ELSEWHERE = [
    "https://elsewhere.example",
    "null",
    "",
    f"http://{HOST}.elsewhere.example",
    f"http://elsewhere.example/{HOST}",
    f"http://{HOST}:8501",
    f"http://{HOST}@elsewhere.example",
    "http://[",
    "file://",
    HOST,
]


@pytest.mark.parametrize("origin", HERE)
def test_requests_from_a_page_of_this_server_or_without_an_origin_are_answered(told, run, origin):
    ticket = good(run.id)
    assert told(ticket, origin=origin) == [*OPEN, f"headlight.{ticket}"]


@pytest.mark.parametrize("origin", ELSEWHERE)
def test_requests_from_another_site_are_refused_even_with_a_ticket(told, run, origin):
    assert told(good(run.id), origin=origin) == [*CLOSED, 1008]


def test_requests_from_origins_that_the_server_allows_are_answered(told, run, monkeypatch):
    asked = options.get_option
    allowed = ["https://room.example/", " https://other.example"]
    monkeypatch.setattr(
        options, "get_option", lambda name: allowed if name == "server.corsAllowedOrigins" else asked(name)
    )
    for origin in ("https://room.example", "https://other.example", f"http://{HOST}"):
        assert told(good(run.id), origin=origin)[:3] == OPEN
    for origin in ("http://room.example", "https://room.example:1", "https://elsewhere.example"):
        assert told(good(run.id), origin=origin) == [*CLOSED, 1008]
