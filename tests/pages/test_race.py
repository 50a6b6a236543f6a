"""The Race page without a browser: which runs it shows, how they start, and how it describes them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pages.controls.beside import data_of, differs_in, names_of
from pages.controls.racing import CHANGES
from pages.settings.races import RACES
from tests.pages.conftest import LONG
from transformer.config import RunConfig
from transformer.config.recipes import RECIPES
from transformer.recording.view import MAX_WORDS
from transformer.runs.registry import REGISTRY
from transformer.stories.files import read_story
from transformer.tasks import resolved, task_of

DEFAULT = RECIPES["default"].small


def racers(visitor):
    """Return the runs named in the page's link."""
    link = visitor.at.query_params
    named = [link[name][0] if isinstance(link[name], list) else link[name] for name in ("run", "race")]
    return [REGISTRY.get(id_) for id_ in ",".join(named).split(",")]


@pytest.fixture
def ended(visit):
    """The Watch page of a finished run."""
    return visit().press("run_start").until("finished")


def test_the_page_opens_with_the_untrained_models_of_the_first_prepared_race_and_start_trains_both(visit):
    visitor = visit({}, page="race")
    shown = visitor.player["race"]
    assert shown["names"] == ["causal mask on", "causal mask off"]
    assert "<b>Causal mask on → off · the same batches.</b> Without the mask" in shown["says"]
    assert [
        REGISTRY.get(visitor.player["run"]).view.state,
        REGISTRY.get(shown["runs"][0]["run"]).view.state,
    ] == ["idle"] * 2
    visitor.press("run_start")
    left, right = racers(visitor)
    visitor.wait_until(lambda: min(left.view.step, right.view.step) > 3)
    assert [run.config.model.masks["causal"] for run in (left, right)] == [True, False]
    assert left.thread is right.thread
    viewer = visit({"run": left.id, "race": right.id}, page="race")
    assert "Without the mask" in viewer.player["race"]["says"]
    visitor.press("run_pause").wait_until(lambda: left.view.state == right.view.state == "paused")
    visitor.look().press("run_start").wait_until(lambda: left.view.state == right.view.state == "training")
    visitor.look().press("run_stop").wait_until(lambda: left.view.state == right.view.state == "stopped")
    visitor.look().press("run_start")
    again = racers(visitor)
    assert {one.id for one in again}.isdisjoint({left.id, right.id})
    assert [one.config for one in again] == [left.config, right.config]
    visitor.press("run_stop")
    visitor.at.radio(key="prepared_race").set_value("4 heads against 1")
    visitor.look()
    assert visitor.player["race"]["names"] == ["heads 4", "heads 1"]
    assert "race" not in visitor.at.query_params
    assert REGISTRY.get(visitor.player["race"]["runs"][0]["run"]).config == RACES["4 heads against 1"].right


def test_a_race_against_a_finished_run_trains_only_the_new_run_with_one_change_and_the_same_words(ended):
    left = ended.run
    losses = left.view.metrics.column("loss").tolist()
    ended.set("race_setting", "n_heads").set("race_value_n_heads", 1).press("race_start")
    assert ended.at.session_state["page"] == "Race"
    first, right = racers(ended)
    assert first is left
    assert right.config == left.config.with_changes(n_heads=1)
    assert right.words == left.words
    ended.wait_until(lambda: right.view.state == "finished")
    assert left.view.state == "finished"
    assert left.view.metrics.column("loss").tolist() == losses


def test_a_setting_chosen_just_before_the_press_is_used(ended):
    left = ended.run
    ended.at.selectbox(key="race_setting").set_value("seed")  # the page does not run in between
    ended.press("race_start")
    first, right = racers(ended)
    assert first is left
    assert right.config == left.config


def test_a_race_starts_two_untrained_runs_and_a_training_run_takes_turns_with_the_new_one(visit):
    visitor = visit(LONG | {"seed": 4}).press("race_start")
    left, right = racers(visitor)
    visitor.wait_until(lambda: min(left.view.step, right.view.step) > 5)
    assert right.config == left.config.with_changes(causal_mask=False)
    visitor.press("run_stop")
    visitor.go("watch")
    assert visitor.run is left  # Watch shows the left run
    visitor.press("run_start").until("training").press("race_start")
    running, other = racers(visitor)
    assert running.thread is other.thread
    visitor.press("run_stop")


def test_a_run_from_the_list_is_shown_beside_the_run_on_the_screen(ended):
    first = ended.run
    ended.set("seed", 8).press("run_start")
    second = ended.wait_until(lambda: ended.run is not first).until("finished").run
    ended.set("race_other", first.id).press("race_start")
    assert racers(ended) == [second, first]
    assert ended.player["race"]["names"] == ["seed 8", "seed 0"]
    assert "Seed 8 → 0 · other batches" in ended.player["race"]["says"]


def test_a_paused_run_stays_paused_while_it_is_shown_beside_another(visit):
    visitor = visit(LONG).set("step_size", 2).step()
    paused = visitor.run
    visitor.set("seed", 8).set("steps", 3).press("run_start")
    visitor.wait_until(lambda: visitor.run is not paused).until("finished")
    visitor.set("race_other", paused.id).press("race_start")
    assert racers(visitor)[1] is paused
    assert (paused.view.state, paused.view.step) == ("paused", 2)


def test_a_race_continues_each_run_at_half_of_its_own_learning_rate(ended):
    ended.set("race_setting", "learning_rate").set("race_value_learning_rate", 0.0002).press("race_start")
    left, right = racers(ended)
    ended.wait_until(lambda: right.view.state == "finished").press("run_continue")
    ended.wait_until(lambda: min(left.view.step, right.view.step) == 103, 60)
    for run, most in ((left, 0.0025), (right, 0.0001)):
        rates = run.view.metrics.column("learning_rate")[3:]
        assert rates.max() == pytest.approx(most)


def test_a_prepared_race_beyond_the_limits_is_refused_and_the_first_one_shown(visit, monkeypatch):
    visitor = visit({}, page="race")
    monkeypatch.setattr(REGISTRY, "limits", replace(REGISTRY.limits, steps=600))
    visitor.at.radio(key="prepared_race").set_value("Default against recipe etienne")
    visitor.look()
    assert visitor.says("1,200")
    assert visitor.player["race"]["names"] == ["causal mask on", "causal mask off"]
    assert visitor.look().value("prepared_race") == next(iter(RACES))


def test_words_of_the_first_run_replace_none_of_the_second(visit):
    visitor = visit().press("run_start").until("finished")
    first = visitor.run
    visitor.set("seed", 8).press("run_start")
    second = visitor.wait_until(lambda: visitor.run is not first).until("finished").run
    for run, words in ((first, "ab ac ad ae af ag ah"), (second, "ba ca da ea fa")):
        for word in words.split():
            run.add_word(word)
    visitor.wait_until(lambda: "fa" in second.view.frames.words and "ah" in first.view.frames.words)
    visitor.press(f"show_{first.id}").set("race_other", second.id).press("race_start").look().look()
    assert len({*first.words} | {*second.words}) > MAX_WORDS >= len(second.words)
    assert {"ba", "ca", "da", "ea", "fa"} <= {*second.words}


def test_an_impossible_value_is_refused_in_place_and_nothing_is_started(ended):
    before = len(REGISTRY.listed())
    ended.set("race_setting", "n_heads").set("race_value_n_heads", 3).press("race_start")
    assert ended.at.session_state["page"] == "Watch"
    assert ended.says("cannot be split into 3 equal heads")
    assert len(REGISTRY.listed()) == before


def test_a_visitor_who_opens_the_link_of_a_race_sees_both_runs_and_controls_neither(visit, ended):
    ended.set("race_setting", "seed").set("race_value_seed", 5).press("race_start")
    left, right = racers(ended)
    viewer = visit({"run": left.id, "race": right.id, "clock": "seconds"}, page="race")
    assert (viewer.player["run"], viewer.player["race"]["runs"][0]["run"]) == (left.id, right.id)
    assert viewer.player["race"]["clock"] == "seconds"
    assert not [
        button for button in viewer.at.button if button.key in ("run_pause", "run_stop", "run_continue")
    ]
    viewer.look()
    assert viewer.at.query_params["race"] in (right.id, [right.id])


def test_a_link_to_a_race_with_a_missing_run_reports_it_and_offers_a_prepared_race(visit, ended):
    visitor = visit({"run": ended.run.id, "race": "x" * 22}, page="race")
    assert visitor.says("no longer on this server")
    assert visitor.player["race"]["names"] == ["causal mask on", "causal mask off"]


def test_the_chosen_clock_decides_which_run_is_behind_and_is_in_the_link(visit):
    visitor = visit(LONG).press("race_start")
    left, _ = racers(visitor)
    assert not left.thread.by_seconds
    visitor.choose(clock="seconds")
    assert left.thread.by_seconds
    visitor.look()
    assert visitor.at.query_params["clock"] in ("seconds", ["seconds"])
    visitor.choose(clock="nonsense")
    assert left.thread.by_seconds
    visitor.press("run_stop")


def test_the_page_that_is_downloaded_has_the_clock_on_the_screen(visit, offered, monkeypatch):
    monkeypatch.setattr(
        "transformer.exports.page.race_page", lambda views, race, first: (race["clock"], first)
    )
    visitor = visit(LONG).press("race_start")
    visitor.wait_until(lambda: all(run.view.frame for run in racers(visitor)))
    visitor.look().choose(clock="seconds", kind="decoder")
    with ThreadPoolExecutor(1) as another_thread:  # as in Streamlit
        clock, first = another_thread.submit(offered["export_race"]["data"]).result()
    assert (clock, first["kind"], set(first)) == ("seconds", "decoder", {"word", "kind", "pinned", "step"})
    visitor.press("run_stop")


def test_a_slide_of_a_race_is_added_by_steps_alone(visit):
    visitor = visit(LONG).press("race_start")
    visitor.wait_until(lambda: all(run.view.frame for run in racers(visitor)))
    visitor.look().choose(clock="seconds")
    visitor.go_to_step(0).press("add_beat")
    assert "compares runs by steps; choose the clock “steps”" in visitor.at.toast[-1].value
    assert "own_story" not in visitor.at.session_state
    visitor.choose(clock="steps")
    visitor.go_to_step(0).press("add_beat")
    assert read_story(visitor.at.session_state["own_story"]).beats[0].step == "0"
    visitor.press("run_stop")


def test_a_typed_word_is_tracked_by_both_runs(visit):
    visitor = visit(LONG).press("race_start")
    left, right = racers(visitor)
    visitor.set("own_word", "otter").look()
    visitor.wait_until(lambda: "otter" in left.words and "otter" in right.words)
    visitor.press("run_stop")


def test_a_race_beyond_the_limit_of_runs_per_visitor_is_refused_with_a_message(visit, monkeypatch):
    visitor = visit(LONG).press("run_start").until("training")
    monkeypatch.setattr(type(REGISTRY.limits), "per_visitor", 1, raising=False)
    monkeypatch.setitem(REGISTRY.limits.__dict__, "per_visitor", 1)
    visitor.press("race_start")
    assert visitor.says("1 of 1 unfinished runs")
    assert visitor.at.session_state["page"] == "Watch"
    visitor.press("run_stop")


def test_of_a_prepared_race_with_room_for_one_run_neither_starts(visit, monkeypatch):
    visitor = visit({}, page="race")
    monkeypatch.setitem(REGISTRY.limits.__dict__, "per_visitor", 1)
    visitor.press("run_start")
    assert visitor.says("2 more runs are too many: you have 0 of 1 unfinished runs allowed")
    left, right = visitor.at.session_state["left_draft"], visitor.at.session_state["right_draft"]
    assert [REGISTRY.get(id_).view.state for id_ in (left, right)] == ["idle", "idle"]


@pytest.mark.parametrize("clock", ["moment", "nonsense"])
def test_two_runs_are_compared_by_steps_if_the_link_names_a_clock_that_they_lack(visit, clock):
    assert visit({"clock": clock}, page="race").player["race"]["clock"] == "steps"


def test_again_with_other_seeds_trains_the_seeds_that_follow_and_tells_what_they_have_in_common(visit, ended):
    first = ended.run
    losses = first.view.metrics.column("loss").tolist()
    ended.set("seeds_number", 3).look().press("seeds_start")
    runs = racers(ended)
    assert runs[0] is first
    assert [run.config for run in runs] == [first.config.with_changes(seed=seed) for seed in (0, 1, 2)]
    assert ended.at.session_state["page"] == "Race"
    assert len({run.thread for run in runs[1:]}) == 1
    ended.wait_until(lambda: all(run.view.state == "finished" for run in runs)).look()
    assert first.view.metrics.column("loss").tolist() == losses
    shown = ended.player["race"]
    assert shown["names"] == ["seed 0", "seed 1", "seed 2"]
    assert shown["says"] == "No head began to read backwards in any of 3 runs."
    viewer = visit({"run": first.id, "race": ",".join(run.id for run in runs[1:])}, page="race")
    assert [one["run"] for one in viewer.player["race"]["runs"]] == [run.id for run in runs[1:]]
    assert not [one for one in viewer.at.button if one.key in ("run_pause", "run_stop", "run_continue")]
    again = ended.press("run_start").wait_until(lambda: racers(ended)[0] is not first)
    assert [run.config.seed for run in racers(again)] == [0, 1, 2]
    again.press("run_stop")


@pytest.mark.parametrize("n", [1, 13, 2**40])
def test_a_number_of_seeds_beyond_the_limits_is_refused_in_place(visit, n):
    visitor = visit()
    visitor.set("seeds_number", n).look()
    assert visitor.says(f"{n} runs cannot be shown together; choose from 2 to 12.")
    assert visitor.at.button(key="seeds_start").disabled


def test_more_seeds_than_the_server_allows_this_visitor_are_refused_together_and_none_starts(
    ended, monkeypatch
):
    monkeypatch.setitem(REGISTRY.limits.__dict__, "per_visitor", 3)
    before = len(REGISTRY.listed())
    ended.set("seeds_number", 5).look().press("seeds_start")
    assert ended.says("4 more runs are too many: you have 0 of 3 unfinished runs")
    assert len(REGISTRY.listed()) == before


def test_runs_that_differ_in_more_than_their_seeds_are_not_called_alike():
    seeds = [DEFAULT.with_changes(seed=seed) for seed in (4, 7, 9)]
    assert data_of(seeds)["asks"].startswith("<b>3 runs that differ in their seeds alone.</b>")
    others = data_of([*seeds[:2], DEFAULT.with_changes(n_heads=1)])
    assert others["asks"].startswith("<b>3 runs beside each other.</b>")
    assert len({*others["names"]}) == 3


def test_seeds_beyond_the_largest_one_are_refused_in_place(visit):
    visitor = visit({"seed": 2**32 - 2})
    visitor.set("seeds_number", 3).look().press("seeds_start")
    assert visitor.says("Seed: 4,294,967,296 is outside 0 to 4,294,967,295")
    assert visitor.at.session_state["page"] == "Watch"


def test_a_run_of_many_that_is_pressed_opens_on_watch(ended):
    ended.set("seeds_number", 3).look().press("seeds_start")
    third = ended.wait_until(lambda: len(racers(ended)) == 3).look() and racers(ended)[2]
    ended.send("player", "cell", {"run": "../../etc/passwd"})
    assert ended.at.session_state["page"] == "Race"
    ended.send("player", "cell", {"run": third.id}).look()
    assert ended.run is third
    assert ended.at.session_state["page"] == "Watch"
    third.stop()


@pytest.mark.parametrize("name", CHANGES)
def test_each_setting_of_the_menu_changes_only_itself(name):
    other = {"d_model": 64, "n_heads": 2, "seed": 1, "dropout": 0.1, "label_smoothing": 0.1}.get(name)
    limit = RunConfig.limit_of(name)
    if other is None:
        options = getattr(limit, "options", ())
        now = DEFAULT.flat()[name]
        other = (
            next(option for option in options if option != now)
            if options
            else False
            if "mask" in name
            else now * 2
        )
    changed = DEFAULT.changed(name, other)
    assert set(DEFAULT.differences(changed)) == {name} | ({"d_ff"} if name == "d_model" else set())
    assert len({*names_of([DEFAULT, changed])}) == 2


@pytest.mark.parametrize("change", [{"seed": 1}, {"batch_size": 32}, {"max_letters": 8}, {"task": "copy"}])
def test_a_change_that_gives_other_batches_is_reported_as_such(change):
    one, other = resolved(DEFAULT), resolved(DEFAULT.with_changes(**change))
    assert differs_in(one, other).endswith("other batches")
    batches = [task_of(config).batch(config.seed, 3) for config in (one, other)]
    assert [var.tolist() for var in vars(batches[0]).values() if hasattr(var, "tolist")] != [
        var.tolist() for var in vars(batches[1]).values() if hasattr(var, "tolist")
    ]


def test_two_runs_with_the_same_settings_are_named_by_their_side():
    assert names_of([DEFAULT, DEFAULT]) == ["left: seed 0", "right: seed 0"]
    assert differs_in(DEFAULT, DEFAULT) == "nothing differs · the same batches"
    etienne = RACES["Default against recipe etienne"]
    assert names_of([etienne.left, etienne.right]) == ["default", "etienne"]


@pytest.mark.parametrize("name", [name for name in RACES if "etienne" not in name])
def test_the_runs_of_a_prepared_race_differ_in_one_setting_and_train_on_the_same_batches(name):
    race = RACES[name]
    assert len(race.left.differences(race.right)) == 1
    assert race.left.train == race.right.train


def test_the_race_on_repeating_links_to_the_story_that_explains_it(visit):
    visitor = visit({}, page="race")

    def stories():
        return [
            one.proto.query_string
            for one in visitor.at.get("page_link")
            if "story=" in one.proto.query_string
        ]

    assert stories() == []
    visitor.at.radio(key="prepared_race").set_value("Repeating: 2 layers against 1")
    visitor.look()
    assert stories() == ["story=induction"]
