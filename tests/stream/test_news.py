"""News over a socket: what a page is sent, how much, and that no page disturbs another."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from pages.stream import broadcaster, news
from tests.stream.conftest import TICK, good
from transformer.player.chunks import encoded
from transformer.runs.registry import REGISTRY

# Content of the messages.


def test_a_message_is_two_lines_and_the_newest_map_of_the_shown_word(opened, run):
    run.at(7)
    page = opened(run.id, word="cat")
    message = page.until(lambda one: one.maps)
    assert message.data.count(b"\n", 0, len(message.data) - len(message.maps)) == 2
    now = message.now
    assert (now["state"], now["step"], now["at"], now["newest"], now["planned"]) == ("training", 7, 7, 7, 30)
    assert now["loss"] == pytest.approx(run.whole.metrics.at(7)[1])
    assert now["status"].startswith("● <b>training</b>")
    assert now["headline"].startswith("<b>No head reads the word backwards.</b>")
    assert (now["viewers"] or page.until(lambda one: one.now["viewers"]).now["viewers"]) == 1
    assert message.news is None  # the page has no index yet
    chunk, place = run.view.frames.place_of("cat", 7)
    assert message.maps == encoded(chunk, [place])
    assert message.steps == [7]


@pytest.mark.parametrize("said", [{}, {"word": "nobody"}])
def test_a_page_without_a_known_word_is_sent_only_the_state(opened, run, said):
    page = opened(run.id, **said)
    first = page.drawn()
    assert (first.now["at"], first.maps) == (30, b"")
    assert (last := page.settled()) is None or last.maps == b""


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_is_sent_as_unknown(opened, run, monkeypatch, loss):
    monkeypatch.setattr(type(run.view.metrics), "at", lambda metrics, step: (1.5, loss))
    now = opened(run.id, word="cat").drawn().now
    assert (now["loss"], now["seconds"], now["at"]) == (None, 1.5, 30)


def test_a_page_is_sent_the_reason_for_waiting_until_something_is_recorded(opened, run):
    run.at(-1, state="idle")
    page = opened(run.id, word="cat")
    now = page.drawn().now
    assert (now["at"], now["newest"], now["version"], now["loss"]) == (-1, None, 0, None)
    assert now["waits"] == now["headline"] == "Building the untrained model…"
    run.at(0)
    assert page.until(lambda one: one.maps).steps == [0]


def test_each_map_is_of_a_later_step_than_the_previous_one_up_to_the_newest(watched, run):
    page, shown = watched(), []
    for step in (6, 7, 11, 18, 30):
        run.at(step)
        while not shown or shown[-1] < step:
            message = page.drawn()
            assert message.now["at"] == (message.steps or [message.now["at"]])[0]
            shown += message.steps
    assert shown == sorted(set(shown))
    page.settled()


def test_steps_that_arrive_together_are_shown_one_after_another(watched, run, monkeypatch):
    """The steps are spread over the time until more are expected."""
    monkeypatch.setattr(broadcaster, "WATCHED_SECONDS", 10 * TICK)
    page = watched()
    run.at(23)
    shown = []
    while not shown or shown[-1] < 23:
        shown += page.drawn().steps
    assert len(shown) >= 4
    assert max(b - a for a, b in zip([3, *shown], shown, strict=False)) <= 12


def test_more_viewers_and_runs_are_updated_less_often_but_at_least_five_times_a_second():
    assert broadcaster.tick(1) < broadcaster.tick(20) < broadcaster.tick(300) < 0.2
    assert broadcaster.tick(2) < broadcaster.tick(2, 2) < broadcaster.tick(8, 8) < 0.2


def test_a_state_is_sent_when_it_changes(watched, run):
    page = watched()
    run.at(3, state="paused", reason="")
    assert page.drawn().now["state"] == "paused"
    run.at(3, state="failed", reason="out of <memory>")
    message = page.until(lambda one: one.now["state"] == "failed")
    assert message.now["headline"] == "<b>The run failed.</b> out of &lt;memory&gt;"
    assert page.silent()


def test_the_step_on_the_owner_s_screen_is_sent(watched, run):
    page = watched()
    try:
        REGISTRY.owners.set_token(run.id, "token")
        REGISTRY.owners.show(run.id, "token", 2)
        assert page.drawn().now["owner"] == 2
        REGISTRY.owners.show(run.id, "guessed", 1)
        assert page.silent()
        REGISTRY.owners.show(run.id, "token", None)
        assert page.drawn().now["owner"] is None
    finally:
        REGISTRY.owners.forget(run.id)


def test_the_number_of_viewers_is_sent_to_every_page(watched):
    first = watched()
    second = watched()
    assert first.until(lambda one: one.now["viewers"] == 2)
    second.socket.close()
    assert first.until(lambda one: one.now["viewers"] == 1)


def test_additions_to_the_index_are_sent_to_pages_with_the_previous_version(watched, run, server):
    headers = {"x-headlight-ticket": good(run.id)}
    index = server.get(f"/stream/{run.id}/index", headers=headers).json()
    up_to_date, behind = watched(version=index["version"]), watched(version=index["version"] - 2)
    run.at(10)  # heads are scored at step 10
    told = up_to_date.until(lambda one: one.now["version"] > index["version"])
    assert told.now["version"] == index["version"] + 1
    assert told.news["steps"]["from"] == 4
    assert told.news["steps"]["more"][-1] == 10
    assert behind.until(lambda one: one.now["version"] > index["version"]).news is None
    run.at(20)
    again = up_to_date.until(lambda one: one.now["version"] > told.now["version"])
    assert again.news["steps"]["from"] == 11  # the page need not confirm the previous version


def test_a_map_that_changes_at_the_same_step_is_sent_again(watched, run):
    """A head is switched off or a cell blocked while the run is paused."""
    page = watched()
    chunk, place = run.view.frames.place_of("cat", 3)
    another = replace(chunk, maps={site: codes // 2 for site, codes in chunk.maps.items()})
    frames = run.view.frames.extended([another])
    run.view = replace(run.view, frames=frames, reason="a head was taken away", state="paused")
    message = page.until(lambda one: one.now["state"] == "paused")
    assert message.maps == encoded(another, [place])


def test_a_map_of_a_word_added_between_two_steps_is_sent(watched, run):
    page = watched()
    page.say(word="sheep")
    assert page.drawn().maps == b""
    chunk, _ = run.view.frames.place_of("cat", 3)
    sheep = replace(chunk.only({3}.__contains__), word=replace(chunk.word, text="sheep"))
    run.view = replace(run.view, frames=run.view.frames.extended([sheep]))
    assert page.until(lambda one: one.maps).word == "sheep"


# Number of messages.


def is_sent_two(page, run):
    """Check that a page that draws nothing is sent two messages for eight new steps."""
    for step in range(4, 12):
        run.at(step)
        time.sleep(2 * TICK)
    page.next()
    page.next()
    assert page.silent()


def undrawn(opened, run):
    """Open a page that draws nothing, and has been sent two messages."""
    run.at(3)
    page = opened(run.id, word="cat")
    is_sent_two(page, run)
    return page


def test_a_page_that_draws_nothing_is_sent_two_messages(opened, run):
    page = undrawn(opened, run)
    run.at(12)
    assert page.silent()
    page.say(drawn=1)
    assert page.next().steps == [12]  # the newest step, not the missed ones
    assert page.silent()
    page.say(drawn=2)
    run.at(13)
    assert page.until(lambda one: one.steps == [13])


def test_a_ping_is_answered_at_once_even_if_nothing_that_was_sent_is_drawn(opened, run):
    page = undrawn(opened, run)
    page.say(ping=17, took=0)
    assert page.answered(17)
    assert page.silent()


def test_a_page_whose_messages_are_long_on_the_way_is_sent_more_of_them(opened, run):
    page = undrawn(opened, run)
    page.say(ping=17, took=400)
    assert page.answered(17)
    for step in (12, 13):
        run.at(step)
        page.next()
    run.at(14)
    assert page.silent()


def test_a_page_that_reports_more_drawn_messages_than_it_was_sent_gets_no_extra_messages(opened, run):
    run.at(3)
    page = opened(run.id, drawn=1_000, word="cat")
    page.until(lambda one: one.maps)
    page.settled()
    is_sent_two(page, run)


def test_a_hidden_page_is_sent_nothing_until_it_is_visible(watched, run):
    page = watched()
    page.say(hidden=True)
    time.sleep(5 * TICK)
    run.at(9)
    page.say(word="frog")
    assert page.silent(0.8)
    page.say(hidden=False)
    assert page.until(lambda one: one.steps == [9]).word == "frog"


def test_a_page_in_review_is_sent_only_the_state_and_not_often(watched, run, monkeypatch):
    monkeypatch.setattr(news, "QUIET_SECONDS", 0.4)
    page = watched()
    page.say(live=False)
    page.settled()
    came = []
    began = time.monotonic()
    for step in range(4, 25):
        run.at(step)
        time.sleep(2 * TICK)
    while not came or came[-1].now["at"] < 24:
        came.append(page.drawn())
    assert all(one.maps == b"" for one in came)
    assert len(came) <= (time.monotonic() - began) / 0.4 + 2
    page.say(live=True)
    assert page.drawn().steps == [24]


def test_a_page_that_changes_its_word_repeatedly_is_sent_two_messages_until_it_draws(watched):
    page = watched()
    for word in ("frog", "cat", "frog", "cat"):
        page.say(word=word)
        time.sleep(2 * TICK)
    assert page.next().word == "frog"
    assert page.next().word == "cat"
    assert page.silent()
    page.say(word="frog")
    page.say(drawn=2)
    assert page.next().word == "frog"  # the word chosen last
    assert page.silent()


def test_a_map_is_packed_once_for_all_pages_that_show_it(watched, run, monkeypatch):
    packed = []

    def counting(chunk, places=None):
        packed.append((chunk.word.text, chunk.steps[places[0]]))
        return encoded(chunk, places)

    monkeypatch.setattr(broadcaster, "encoded", counting)
    pages = [watched() for _ in range(4)]
    other = watched()
    other.say(word="frog")
    assert other.until(lambda one: one.word == "frog")
    packed.clear()
    run.at(4)
    messages = [page.until(lambda one: one.steps == [4]) for page in pages]
    assert other.until(lambda one: one.steps == [4]).word == "frog"
    assert len({message.maps for message in messages}) == 1
    assert sorted(packed) == [("cat", 4), ("frog", 4)]
