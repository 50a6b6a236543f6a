"""Sockets: how long they keep a run polled, which are accepted, and that no message does any harm."""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from dataclasses import replace

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect

from pages.stream import broadcaster, news
from tests.stream.conftest import TICK, WORDS
from transformer.player.chunks import name_of
from transformer.runs.registry import REGISTRY

# Polling.


def test_a_run_is_polled_only_while_a_page_is_open(watched, run):
    page = watched()
    n = len(run.looks)
    time.sleep(10 * TICK)
    assert len(run.looks) > n
    page.socket.close()
    time.sleep(5 * TICK)
    n = len(run.looks)
    time.sleep(10 * TICK)
    assert len(run.looks) == n
    assert not news._looking


def test_pages_that_open_and_close_do_not_make_polls_more_frequent(opened, run):
    """As when a page is reloaded repeatedly: the new page opens before the last poll is over."""
    page = opened(run.id)
    for _ in range(10):
        page.socket.close()
        page = opened(run.id)
    assert len(news._looking) == 1
    time.sleep(5 * TICK)
    n, began = len(run.looks), time.monotonic()
    time.sleep(0.5)
    assert len(run.looks) - n <= (time.monotonic() - began) / TICK + 1


def test_a_page_that_opens_as_the_previous_one_closes_is_sent_new_steps(opened, run):
    run.at(3)
    for step in range(4, 20):
        page = opened(run.id, word="cat")
        run.at(step)
        assert page.until(lambda one, step=step: one.steps == [step])
        page.socket.close()


def test_the_broadcaster_of_a_run_is_dropped_after_its_last_page(opened, run, monkeypatch, until):
    monkeypatch.setattr(news, "KEPT_SECONDS", 0.2)
    page = opened(run.id)
    time.sleep(0.5)
    assert list(news._broadcasters) == [(run.id, ())]
    page.socket.close()
    until(lambda: not news._broadcasters)


def test_a_broadcaster_that_is_dropped_while_a_page_opens_serves_it_and_the_next_page(
    opened, run, monkeypatch, until
):
    accept = WebSocket.accept

    async def accept_late(socket, **how):
        news._forget((run.id, ()))
        await accept(socket, **how)

    monkeypatch.setattr(WebSocket, "accept", accept_late)
    monkeypatch.setattr(news, "KEPT_SECONDS", 0.2)
    pages = [opened(run.id) for _ in range(2)]
    for page in pages:
        assert page.until(lambda one: one.now["viewers"] == 2)
    assert list(news._broadcasters) == [(run.id, ())]
    assert len(news._looking) == 1
    for page in pages:
        page.socket.close()
    until(lambda: not news._broadcasters)


def test_a_run_that_was_evicted_and_reopened_is_found_again(watched, run, found, monkeypatch):
    monkeypatch.setattr(broadcaster, "FOUND_SECONDS", 0.1)
    page = watched()
    again = type(run)(run.whole)
    again.at(8)
    found[run.id] = again
    assert page.until(lambda one: one.steps == [8])


# Limit of sockets.


def test_a_socket_beyond_the_limit_is_refused_until_another_one_closes(opened, run, monkeypatch, until):
    monkeypatch.setattr(REGISTRY, "limits", replace(REGISTRY.limits, sockets=3))
    run.at(3)
    pages = [opened(run.id, word="cat") for _ in range(3)]
    for _ in range(5):
        assert opened(run.id).closed() == 1013
    run.at(5)
    for page in pages:
        assert page.until(lambda one: one.steps == [5])
    pages[0].socket.close()
    until(lambda: len(news._sockets) < 3)
    assert opened(run.id, word="cat").until(lambda one: one.maps)


def test_a_refused_socket_does_not_count_towards_the_limit(server, run, opened, monkeypatch):
    monkeypatch.setattr(REGISTRY, "limits", replace(REGISTRY.limits, sockets=1))
    for _ in range(20):
        with pytest.raises(WebSocketDisconnect):
            server.websocket_connect(f"/stream/{run.id}/news", subprotocols=["headlight.no"]).__enter__()
    assert opened(run.id, word="cat").until(lambda one: one.maps)


# Failures.


def test_a_failed_poll_is_logged_once_and_the_pages_of_the_run_are_sent_later_steps(
    watched, run, monkeypatch, caplog, until
):
    page, looks = watched(), []

    def broken(looked):
        looks.append(looked)
        raise ValueError("this view cannot be read")

    with monkeypatch.context() as patch:
        patch.setattr(type(run), "look", broken)
        until(lambda: len(looks) > 3)
    run.at(8)
    assert page.until(lambda one: one.steps == [8])
    logged = [record for record in caplog.records if "A look at run" in record.message]
    assert [str(record.exc_info[1]) for record in logged] == ["this view cannot be read"]


def test_a_message_that_cannot_be_built_closes_only_its_own_socket(watched, run, monkeypatch, caplog):
    other, page = watched(), watched()
    message = broadcaster.RunBroadcaster.message

    def broken(made, now, version, *parts):
        if version == 99:
            raise RuntimeError("there is no such version")
        return message(made, now, version, *parts)

    monkeypatch.setattr(broadcaster.RunBroadcaster, "message", broken)
    page.say(version=99)
    run.at(5)
    assert page.closed() == 1011
    run.at(6)
    assert other.until(lambda one: one.steps == [6])
    assert ["A message on run" in record.message for record in caplog.records] == [True]


@pytest.mark.parametrize("asked", ["index", "chunk"])
def test_no_poll_of_a_run_waits_for_compression(run, monkeypatch, asked):
    made, frames = broadcaster.RunBroadcaster(run), run.view.frames
    compress, compressing, may_end = gzip.compress, threading.Event(), threading.Event()

    def slow(*what):
        compressing.set()
        may_end.wait(30)
        return compress(*what)

    monkeypatch.setattr(broadcaster.gzip, "compress", slow)
    name = name_of(frames.chunks_of(frames.words[0])[0])
    asking = threading.Thread(target=made.whole if asked == "index" else lambda: made.chunk(name))
    asking.start()
    assert compressing.wait(30)
    looking = threading.Thread(target=made.look, args=(1,))
    looking.start()
    looking.join(5)
    assert not looking.is_alive()
    may_end.set()
    asking.join(30)


# Messages from pages.

DAMAGED = [
    "",
    "{",
    "null",
    '"drawn"',
    '{"drawn": "many"}',
    '{"drawn": NaN}',
    '{"version": [1]}',
    '{"ping": "now", "took": 1}',
    '{"ping": 1}',
    '{"version": Infinity}',
    "[" * 1_999,
    "\0",
    '{"drawn": ' + "9" * 1_980 + "9",
]


@pytest.mark.parametrize("damaged", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_message_closes_only_its_own_socket(watched, run, damaged):
    other, page = watched(), watched()
    page.socket.send_text(damaged)
    assert page.closed() == 1008
    run.at(6)
    assert other.until(lambda one: one.steps == [6])


@pytest.mark.parametrize("size", [2_001, 5_000_000])
def test_a_message_that_is_too_long_closes_only_its_own_socket(watched, run, size):
    other, page = watched(), watched()
    page.socket.send_text('{"live": true}'.ljust(2_000))
    page.socket.send_text(" " * size)
    assert page.closed() == 1009
    run.at(6)
    assert other.until(lambda one: one.steps == [6])


@pytest.mark.parametrize("said", [b'{"drawn": 1}', b"\xff\xfe"])
def test_a_binary_message_closes_only_its_own_socket(watched, run, said):
    other, page = watched(), watched()
    page.socket.send_bytes(said)
    assert page.closed() == 1008
    run.at(6)
    assert other.until(lambda one: one.steps == [6])


COMMANDS = ["start", "stop", "pause", "resume", "advance", "intervene", "add_word", "close", "token", "state"]


def test_a_page_cannot_control_a_run_over_its_socket(opened, recorded, found, make_run, until, tiny):
    """No message changes a real run; the server uses only attributes that read from it."""
    run = make_run(tiny(), words=("frog", "cat"))
    until(lambda: run.view.frame)
    called = []

    class Guarded:
        def __getattr__(self, name):
            called.append(name)
            return getattr(run, name)

    found[run.id] = Guarded()
    page = opened(run.id, word="cat")
    page.until(lambda one: one.maps)
    view = run.view
    for name in COMMANDS:
        page.say(**{name: True, "command": name, "drawn": 0, "word": "frog", "version": 1, "step": 5})
        page.say(**{name: [5, "x"]})
    page.settled()
    assert run.view is view
    assert set(called) <= {"config", "id", "view", "look", "place", "task", "questions"}


def test_the_number_of_cached_maps_is_limited(watched, run, monkeypatch):
    monkeypatch.setattr(broadcaster, "MOST_CHUNKS", 3)
    page = watched()
    held, _ = news._broadcasters[run.id, ()]
    for whole in (True, False):
        for word in WORDS:
            page.say(word=word, whole=whole)
            assert page.until(lambda one, word=word: one.word == word)
            assert len(held._frames) <= 3
    page.settled()
    known = dict(held._frames)
    for i in range(50):
        page.say(word=f"word {i}", drawn=2)
    page.settled()
    assert held._frames == known  # unknown words take no room


def anything(rng, depth=0):
    """Return random JSON, mostly similar to the messages of a player."""
    names = ["drawn", "word", "live", "hidden", "whole", "version", "", "x", "__class__"]
    numbers = [0, 1, -1, 3, 2**63, -(10**40), 0.5, 1e308, float("inf"), float("nan")]
    texts = ["", "cat", "encoder.0", "decoder.0.cross", "é\ud800", "<b>", "a" * 500]
    leaves = [None, True, False, *numbers, *texts]
    kind = rng.random()
    if depth == 0 and kind < 0.8:
        return {rng.choice(names): anything(rng, 1) for _ in range(rng.randint(0, 4))}
    if kind < 0.15 and depth < 3:
        return [anything(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    if kind < 0.25:
        return [rng.choice(leaves) for _ in range(3)]
    if kind < 0.35 and depth < 3:
        return {rng.choice(names): anything(rng, depth + 1) for _ in range(rng.randint(0, 3))}
    return rng.choice(leaves)


def test_random_messages_raise_no_error_and_stop_no_other_page(watched, opened, run, caplog):
    rng = random.Random(20)
    other, page = watched(), watched()
    n_closed = 0
    for i in range(300):
        way = rng.random()
        if way < 0.75:
            page.socket.send_text(json.dumps(anything(rng)))
        elif way < 0.9:
            said = bytearray(json.dumps(anything(rng)).encode())
            for _ in range(rng.randint(1, 5)):
                said[rng.randrange(len(said))] = rng.randrange(256)
            page.socket.send_text(said.decode("utf-8", "replace"))
        else:
            page.socket.send_bytes(rng.randbytes(rng.randint(0, 50)))
        try:
            page.socket.send_text('{"drawn": 2}')
            if not page.silent(0.005) or len(news._sockets) < 2:
                raise WebSocketDisconnect
        except Exception:
            pass
        if len(news._sockets) < 2:
            n_closed += 1
            page = opened(run.id, word="cat")
        if i % 30 == 0:
            run.at(4 + i // 15)
            step = 4 + i // 15
            assert other.until(lambda one, step=step: one.steps == [step])
    assert n_closed > 20
    assert len(news._looking) == 1
    assert caplog.records == []
    fresh = opened(run.id, word="cat")
    assert fresh.until(lambda one: one.maps)
