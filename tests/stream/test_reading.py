"""The index and the chunks of a run over GET: what they hold, and how long a browser may keep them."""

from __future__ import annotations

import gzip
import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config as options

from pages.stream.routes import routes
from tests.stream.conftest import HOST, WORDS, good
from transformer.player.chunks import encoded, name_of
from transformer.player.index import Index


@pytest.fixture
def get(server, run):
    """Request a part of the run with a ticket."""

    def ask(what, accept="gzip, br", method="GET"):
        headers = {"x-headlight-ticket": good(run.id), "accept-encoding": accept}
        return server.request(method, f"/stream/{run.id}/{what}", headers=headers)

    return ask


def names(run):
    return [name_of(chunk) for word in WORDS for chunk in run.view.frames.chunks_of(word)]


def test_the_index_is_that_of_the_run_at_present_and_is_never_cached(get, run):
    run.at(12)
    answer = get("index")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == json.loads(json.dumps(Index(run.config).whole(run.view)))
    assert answer.json()["steps"] == list(range(13))
    run.at(20)
    again = get("index").json()
    assert again["steps"] == list(range(21))
    assert again["version"] > answer.json()["version"]
    assert get("index").content == get("index").content


def test_the_index_has_version_0_before_anything_is_recorded(get, run):
    run.at(-1)
    assert get("index").json() == {"version": 0}


def test_every_chunk_of_the_index_matches_the_recording_and_is_cached_as_immutable(get, run):
    named = [name for entries in get("index").json()["chunks"].values() for *_, name in entries]
    assert sorted(named) == sorted(names(run))
    for word in WORDS:
        for chunk in run.view.frames.chunks_of(word):
            answer = get(f"chunk/{name_of(chunk)}")
            assert answer.content == encoded(chunk)
            assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
            assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("accept", ["deflate, gzip;q=0.9", "br", ""])
def test_index_and_chunks_are_compressed_only_for_clients_that_accept_gzip(get, run, server, accept):
    name = names(run)[0]
    for what in ("index", f"chunk/{name}"):
        headers = {"x-headlight-ticket": good(run.id), "accept-encoding": accept}
        with server.stream("GET", f"/stream/{run.id}/{what}", headers=headers) as answer:
            sent = b"".join(answer.iter_raw())
        squeezed = "gzip" in accept
        assert answer.headers["content-encoding"] == ("gzip" if squeezed else "identity")
        assert answer.headers["vary"] == "accept-encoding"
        assert (gzip.decompress(sent) if squeezed else sent) == get(what).content


@pytest.mark.parametrize("name", ["0" * 24, "x", "index", "..", "%00", "é", "a" * 3_000])
def test_an_unknown_chunk_is_not_found(get, name):
    assert get(f"chunk/{name}").status_code == 404


def test_a_chunk_that_has_been_thinned_out_is_not_found_unless_it_was_just_read(get, run):
    kept, gone = names(run)[:2]
    assert get(f"chunk/{kept}").status_code == 200
    run.at(-1)
    assert get(f"chunk/{gone}").status_code == 404
    assert get(f"chunk/{kept}").status_code == 200


def test_the_number_of_cached_chunks_is_limited(get, run, monkeypatch):
    from pages.stream import broadcaster, news

    monkeypatch.setattr(broadcaster, "MOST_CHUNKS", 3)
    for name in names(run):
        get(f"chunk/{name}")
        ((held, _),) = news._broadcasters.values()
        assert len(held._chunks) <= 3


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_every_method_that_writes_is_refused(get, run, method):
    assert get("index", method=method).status_code == 405
    assert get(f"chunk/{names(run)[0]}", method=method).status_code == 405
    assert get("news", method=method).status_code in (404, 405)


def test_a_request_for_index_or_chunk_does_not_poll_the_run(get, run):
    get("index")
    get(f"chunk/{names(run)[0]}")
    assert run.looks == []


@pytest.mark.parametrize("base", ["room", "/room/", "a/b"])
def test_all_routes_are_under_the_server_s_base_path(run, monkeypatch, base):
    asked = options.get_option
    monkeypatch.setattr(
        options, "get_option", lambda name: base if name == "server.baseUrlPath" else asked(name)
    )
    with TestClient(Starlette(routes=routes()), base_url=f"http://{HOST}") as server:
        headers = {"x-headlight-ticket": good(run.id)}
        under = f"/{base.strip('/')}/stream/{run.id}"
        assert server.get(f"{under}/index", headers=headers).status_code == 200
        assert server.get(f"{under}/chunk/{names(run)[0]}", headers=headers).status_code == 200
        assert server.get(f"/stream/{run.id}/index", headers=headers).status_code == 404
        with server.websocket_connect(f"{under}/news", subprotocols=[f"headlight.{good(run.id)}"]) as socket:
            assert socket.receive_bytes().count(b"\n") == 2


@pytest.mark.parametrize(("before", "now"), [("explore", "ask"), ("anatomy", "inside")])
def test_an_old_link_leads_to_the_page_by_its_new_name_behind_any_path(server, before, now):
    asked = server.get(f"/{before}?run=abc&step=3&word=%E7%BA%BD", follow_redirects=False)
    assert (asked.status_code, asked.headers["location"]) == (308, f"{now}?run=abc&step=3&word=%E7%BA%BD")
    assert server.get(f"/{before}", follow_redirects=False).headers["location"] == now
