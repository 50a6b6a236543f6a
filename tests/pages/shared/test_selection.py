"""One selection: run, step, word, kind of attention and head, the same on every page and in the link."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import pytest

from pages.shared import selection
from transformer.runs.registry import REGISTRY

PAGES = ("watch", "ask", "inside", "masks")

TWO_LAYERS = {"layers_encoder": 2, "layers_decoder": 2, "heads": 4, "steps": 10}


@pytest.fixture
def trained(revisit):
    """The Watch page of a finished run with two layers of four heads on each side."""
    return revisit(**TWO_LAYERS)


def open_(visitor, page, link):
    """Open a link to a page as another visitor."""
    return visitor.__class__(link, {}, page)


def follow(visitor, page):
    """Follow the link to a page, which empties the address."""
    visitor.at.query_params.clear()
    return visitor.go(page)


def cell_of(visitor, layer, head):
    """Return a cell of one head's tile in the figure of all heads on Ask."""
    rows, columns = visitor.run.view.frame.map(0, "decoder.0.cross").shape[1:]
    return [head * (rows + 1) + 2, layer * (columns + 1) + 1]


def columns(visitor, figure):
    return "".join(label for label in visitor.drawn(figure).columns if not label.startswith("["))


def pinned(visitor):
    """Return the head that is kept large."""
    return visitor.player["first"]["pinned"]


def test_the_link_carries_the_whole_selection_and_shows_it_to_another_visitor(trained):
    trained.choose(word="kayak", kind="encoder", step=4, pinned=["encoder.1", 2])
    link = trained.link
    chosen = {
        "run": trained.run.id,
        "step": "4",
        "word": "kayak",
        "kind": "encoder",
        "head": "encoder.1.3",
    }
    assert {name: link.get(name) for name in chosen} == chosen
    frame = trained.run.view.frame_at(4)
    expected = frame.map(frame.row_of("kayak"), "encoder.1")[2]
    guest = trained.__class__(chosen, {})
    for visitor in (trained, guest):
        first = visitor.player["first"]
        assert {name: first[name] for name in ("word", "kind", "step", "pinned")} == {
            "word": "kayak",
            "kind": "encoder",
            "step": 4,
            "pinned": ["encoder.1", 2],
        }
        assert {name: visitor.link.get(name) for name in chosen} == chosen
    masks = open_(trained, "masks", chosen).player
    assert (masks["answers"], masks["first"]["word"]) == (4, "kayak")
    assert (masks["opened"]["box"], masks["opened"]["head"]) == ("encoder.1", 2)
    asked = open_(trained, "ask", chosen).drawn("explore_map_figure")
    assert asked.step == 4
    np.testing.assert_allclose(asked.arrays["0.z"], expected, atol=2e-3)


def test_step_kind_and_head_are_in_the_link_only_if_they_were_chosen(trained):
    for page in PAGES:
        assert {"step", "kind", "head"} & set(trained.go(page).link) == set()
        assert trained.link["word"] == "banana"


def test_a_head_is_pinned_on_every_page_and_a_second_click_unpins_it(trained):
    trained.choose(pinned=["decoder.1.cross", 3])
    assert trained.link["head"] == "decoder.1.cross.4"
    trained.go("ask")
    assert "cross 2 · head 4" in trained.drawn("explore_map_figure").changing["title.text"]
    trained.go("ask").click("explore_strip_figure", 0, cell_of(trained, 1, 3))
    assert "head" not in trained.link
    trained.click("explore_strip_figure", 0, cell_of(trained, 0, 1))
    assert trained.link["head"] == "decoder.0.cross.2"
    trained.click("explore_strip_figure", 0, [len(trained.run.view.frame.map(0, "decoder.0.cross")[0]), 0])
    assert trained.link["head"] == "decoder.0.cross.2"  # a click between two tiles changes nothing
    assert pinned(trained.go("watch")) == ["decoder.0.cross", 1]


def test_the_kind_of_attention_is_kept_from_page_to_page(trained):
    assert trained.go("ask").player["first"]["kind"] == "cross"
    trained.go("watch").choose(kind="encoder").go("ask")
    assert trained.link["kind"] == "encoder"
    trained.choose(kind="decoder", pinned=["decoder.1.self", 2], picked=True)  # in the picture of the model
    assert (trained.link["kind"], trained.link["head"]) == ("decoder", "decoder.1.self.3")
    assert "decoder 2 · head 3" in trained.drawn("explore_map_figure").changing["title.text"]
    assert trained.go("watch").player["first"]["kind"] == "decoder"
    trained.go("ask").choose(kind="encoder")  # without a click on a map, Ask does not change the kind
    assert trained.link["kind"] == "decoder"


def test_race_and_masks_have_a_kind_and_a_head_of_their_own(trained):
    trained.choose(word="cat", kind="encoder", pinned=["encoder.0", 2])
    follow(trained, "masks")
    assert (trained.player["opened"]["box"], trained.player["first"]["kind"]) == ("decoder.1.self", "decoder")
    assert {"kind", "head"} & {*trained.link} == set()
    assert follow(trained, "inside").player["opened"] is None
    follow(trained, "race")  # opens on the kind and the head of its prepared race
    first = trained.player["first"]
    assert (first["word"], first["kind"], first["pinned"]) == ("playground", "decoder", ["decoder.0.self", 1])
    assert REGISTRY.get(trained.player["run"]).ready.wait(30)  # a map that can be chosen is drawn
    trained.choose(kind="cross", pinned=["decoder.1.cross", 3])
    assert (trained.link["kind"], trained.link["head"]) == ("cross", "decoder.1.cross.4")
    first = follow(trained, "watch").player["first"]
    assert (first["word"], first["kind"], first["pinned"]) == ("cat", "encoder", ["encoder.0", 2])
    assert (trained.link["kind"], trained.link["head"]) == ("encoder", "encoder.0.3")
    assert follow(trained, "race").player["first"]["pinned"] == ["decoder.1.cross", 3]


def test_a_new_race_begins_with_the_word_on_the_screen_and_no_chosen_head(visit):
    visitor = follow(follow(visit(), "race"), "watch").press("run_start").until("finished")
    visitor.choose(word="kayak", kind="encoder", pinned=["encoder.0", 1]).press("race_start")
    assert visitor.at.session_state["page"] == "Race"
    first = visitor.player["first"]
    assert (first["word"], first["kind"], first["pinned"]) == ("kayak", "cross", None)
    first = follow(visitor.choose(word="cat"), "watch").player["first"]
    assert (first["word"], first["kind"], first["pinned"]) == ("kayak", "encoder", ["encoder.0", 1])


def test_the_word_is_kept_from_page_to_page(trained):
    trained.choose(word="kayak").go("ask")
    assert (trained.value("explore_text"), columns(trained, "explore_map_figure")) == ("kayak", "kayak")
    trained.set("explore_text", "cat").go("inside")
    assert trained.errors == []
    assert trained.value("explore_text") == "cat"
    trained.set("explore_text", "tac").go("ask")
    assert trained.value("explore_text") == "tac"
    trained.set("explore_text", "cat").go("watch")
    assert trained.player["first"]["word"] == "cat"
    trained.choose(word="banana").go("ask")  # a new choice replaces the word asked before
    assert (trained.value("explore_text"), columns(trained, "explore_map_figure")) == ("banana", "banana")
    trained.go("masks").set("word", "kayak").go("ask")
    assert columns(trained, "explore_map_figure") == "kayak"
    assert trained.go("watch").player["first"]["word"] == "kayak"


def test_an_asked_word_becomes_a_tracked_word_of_the_run(trained):
    trained.go("ask").set("explore_text", "zebra")
    link = trained.link
    assert link["word"] == "zebra"
    guest = open_(trained, "ask", {name: link[name] for name in ("run", "word")})
    assert columns(guest, "explore_map_figure") == "zebra"
    assert guest.value("explore_text") == "zebra"
    guest.set("explore_text", "apple").set("explore_text", "für")
    assert len(guest.errors) == 1  # the link's word does not replace the typed word
    assert columns(guest, "explore_map_figure") == "apple"
    assert columns(trained.look(), "explore_map_figure") == "zebra"  # a guest changes no page of the owner
    trained.wait_until(lambda: trained.run.view.frame.row_of("zebra") > 0).go("watch")
    assert trained.player["first"]["word"] == "zebra"
    assert trained.link["word"] == "zebra"
    assert columns(trained.choose(word="cat").go("ask"), "explore_map_figure") == "cat"
    texts = [question.text for question in trained.run.questions]
    assert sorted(texts) == sorted(set(texts))


def test_a_word_that_was_just_asked_is_kept_until_the_run_tracks_it(trained, monkeypatch):
    monkeypatch.setattr(trained.run, "add_word", lambda word: word)  # the run's thread is busy
    trained.go("ask").set("explore_text", "zebra").go("watch")
    assert trained.value("word") == "zebra"
    assert trained.go("ask").value("explore_text") == "zebra"


FORGED = [
    {"head": "decoder.0.cross.0"},
    {"head": "decoder.0.self.0"},
    {"head": "decoder.0.self.99", "kind": "sideways"},
    {"head": "decoder.99.self.1", "word": "<script>"},
    {"head": "decoder.0.self.1.1", "word": "x" * 500},
    {"head": "__class__.1", "kind": "sideways", "word": "<script>"},
    {"head": "." * 300},
]


@pytest.mark.parametrize("page", PAGES)
def test_a_forged_link_does_no_harm(trained, page):
    for forged in FORGED:
        guest = open_(trained, page, {"run": trained.run.id, **forged})
        assert guest.errors == []
        assert "kind" not in guest.link
        assert guest.link.get("head") not in ("decoder.0.cross.0", "decoder.0.self.0", "__class__.1")
        if page == "watch":
            first = guest.player["first"]
            assert (first["word"], first["kind"]) == ("banana", "cross")
        elif page == "ask":
            shown = guest.drawn("explore_map_figure").arrays["0.z"]
            np.testing.assert_allclose(np.nansum(shown, axis=1), 1.0, atol=1e-2, err_msg=str(forged))
        elif page == "masks":
            assert guest.player["opened"]["box"] == "decoder.1.self", forged
        else:
            assert guest.player["opened"] is None, forged


def test_a_pinned_head_that_a_smaller_model_lacks_is_ignored(trained, revisit):
    small = revisit().run
    trained.choose(kind="decoder", pinned=["decoder.1.self", 3])
    trained.at.query_params["run"] = small.id
    trained.at.session_state["run"] = small.id
    for page in PAGES[1:]:
        trained.go(page)
        assert trained.errors == []
        assert trained.player["answers"] == 3


def test_ask_shows_the_clearest_head_of_the_chosen_step_and_not_of_the_newest(visit):
    """No head is pinned; a later frame with another clearest head changes nothing at a past step."""
    trained = visit(**TWO_LAYERS).press("run_start").until("finished")
    run = trained.run
    old, newest = ("decoder.0.cross", 0), ("decoder.1.cross", 3)
    measured = run.view.frames.measurements
    changed = [replace(one, clearest=newest if one.step == 10 else old) for one in measured]
    run._published.publish(frames=run.view.frames.extended(changed))
    trained.go_to_step(4).go("ask")
    assert "cross 1 · head 1" in trained.drawn("explore_map_figure").changing["title.text"]
    trained.tab("Break")
    assert "cross 1 · head 1" in trained.drawn("break_before_figure").changing["title.text"]
    trained.press("ablate_others")
    assert trained.value("ablate_heads") == [f"cross 1 · head {head}" for head in (2, 3, 4)]
    trained.go_to_step(None)
    assert "cross 2 · head 4" in trained.drawn("break_before_figure").changing["title.text"]


def test_a_link_to_your_data_shows_the_data_of_its_run(revisit):
    owner = revisit(letters=5, steps=10)
    guest = open_(owner, "data", {"run": owner.run.id})
    assert guest.at.number_input(key="letters").value == 5
    examples = guest.at.radio(key="data_trained").options
    assert max(len(option.split(" → ")[0]) for option in examples) <= 5


def test_a_new_session_takes_over_the_selection_in_the_address_of_the_previous_page(trained):
    trained.choose(word="kayak", kind="encoder", step=4, pinned=["encoder.1", 2])
    link = dict(trained.link)
    new = open_(trained, "ask", {})
    new.send("before", "named", "?" + urlencode(link | {"owner": "x" * 22, "steps": "7"}))
    assert new.run is trained.run
    assert {name: new.link[name] for name in link if name in ("run", "word", "kind", "step", "head")} == {
        name: link[name] for name in ("run", "word", "kind", "step", "head")
    }
    assert {"owner", "steps"} & {*new.link} == set()
    new.look()
    assert [element.key for element in new.at.get("bidi_component") if element.key == "before"] == []


def test_an_address_that_names_no_run_leaves_a_new_session_unchanged(visit):
    new = visit(page="ask")
    before = dict(new.link)
    for sent in (None, 7, "", "?run=", "?step=4&word=kayak", ["?run=x"]):
        new.send("before", "named", sent)
        assert new.link == before, sent


def test_the_selection_of_a_link_is_kept_if_the_page_is_left_before_it_is_drawn(trained):
    from streamlit.testing.v1 import AppTest

    def left_early():
        import streamlit as st

        from pages.shared import selection

        selection.chosen_run()
        st.query_params.clear()  # as in the address of another page
        st.write([selection.step(), selection.session.pinned, selection.session.clock])

    early = AppTest.from_function(left_early)
    link = {"run": trained.run.id, "step": "4", "head": "decoder.1.cross.3", "clock": "seconds"}
    for name, value in link.items():
        early.query_params[name] = value
    early.run()
    assert not early.exception
    assert json.loads(early.json[0].value) == [4, ["decoder.1.cross", 2], "seconds"]


def test_a_late_message_with_the_previous_run_opens_it_only_after_back(visit, monkeypatch):
    """A browser may send such a message before it has the new link."""
    visitor = visit().press("run_start").until("finished")
    old = visitor.link["run"]
    visitor.press("run_start").until("finished")
    new = visitor.link["run"]
    assert old != new
    for back, shown in ((False, new), (True, old)):
        monkeypatch.setattr(selection, "came_back", lambda back=back: back)
        visitor.at.query_params["run"] = old
        visitor.look()
        assert visitor.link["run"] == visitor.player["run"] == shown


def test_viewers_who_follow_are_at_live_when_the_owner_has_come_back_from_another_run(visit):
    visitor = visit().press("run_start").until("finished")
    first = visitor.run
    visitor.set("seed", 8).press("run_start").wait_until(lambda: visitor.run is not first).until("finished")
    visitor.press(f"show_{first.id}").go_to_step(1)
    viewer = visit({"run": first.id})
    assert viewer.look().player["first"]["step"] == 1
    visitor.press(f"show_{visitor.at.session_state['known_runs'][-1]}")
    visitor.press(f"show_{first.id}")
    assert visitor.player["first"]["step"] is None
    assert viewer.look().player["first"]["step"] is None
