"""The exported page in a browser without a network: the player of the app, and the numbers are the run's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.watcher import LOOKED, PATIENCE, Visit
from tests.own import own_run
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.exports.page import html_page, race_page
from transformer.figures.race import race_curves, race_look
from transformer.insight.moments import Moment
from transformer.interventions import Block, Interventions
from transformer.recording.chunk import Chunk
from transformer.recording.frames import Frames
from transformer.recording.view import RunView
from transformer.runs import demo
from transformer.runs.run import Run
from transformer.storage.saved import read_run

SITE = "decoder.1.cross"
TAKEN = Interventions(blocked=(Block(site=SITE, head=1, row=1, column=5),))
EXACT = 1e-4
"""Weights travel as sixteen bits."""


@pytest.fixture(scope="module")
def view(changed_midway: Callable[..., RunView]) -> RunView:
    """Eight steps of a model with 1 + 2 layers and 3 heads; a cell is blocked and a word asked at step 4."""
    config = RunConfig(
        model=ModelConfig(n_encoder_layers=1, n_decoder_layers=2, n_heads=3, d_model=12, d_ff=10),
        train=TrainConfig(max_letters=6, batch_size=6, steps=8, warmup_steps=3, evaluate_every=4),
        device="cpu",
    )
    view = changed_midway(Run(config, words=("banana", "cat")), 4, TAKEN, "ox")
    return replace(view, moments=(Moment(2, "drop", "the loss fell"), *view.moments))


@pytest.fixture
def shipped(monkeypatch) -> Iterator[RunView]:
    """The recording that ships with the app."""
    monkeypatch.setenv(demo.ENVIRONMENT, str(demo.SHIPPED))
    demo.demo_run.cache_clear()
    yield demo.demo_run().view
    demo.demo_run.cache_clear()


class Reader:
    """Somebody with the page, and no network."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        self.visit = Visit(
            page,
            console=lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None,
            pageerror=lambda error: self.errors.append(str(error)),
            request=lambda request: self.asked.append(request.url),
        )

    def open(self, content: str, file: Any, newest: int) -> None:
        file.write_text(content, encoding="utf-8")
        self.page.goto(file.as_uri())
        self.page.wait_for_selector(".st-key-live_maps .live-figure[data-step]")
        self.at(newest)

    def keys(self, *keys: str) -> None:
        """Press these on the step control."""
        slider = self.page.get_by_role("slider", name="Step")
        slider.focus()
        for key in keys:
            slider.press(key)

    def at(self, step: int) -> None:
        """Wait until every panel shows this step."""
        self.until(lambda: set(self.page.evaluate(LOOKED).values()) == {step}, f"step {step}")

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def plot(self, name: str, expression: str) -> Any:
        return self.page.locator(f".st-key-{name} .live-figure").evaluate(f"gd => {expression}")

    def title(self) -> str:
        return str(self.plot("live_map", "gd.layout.title.text"))

    def drawn(self, name: str, trace: int = 0) -> np.ndarray:
        """The numbers of a map; NaN where it has none."""
        return np.array(self.plot(name, f"gd.data[{trace}].z"), dtype=float)

    def choose(self, what: str, value: str) -> None:
        self.page.locator(f".st-key-{what} button[data-value='{value}']").click()

    def press(self, name: str, x: float, y: float, axis: str = "yaxis") -> None:
        """Click on a point of a picture's axes."""
        there = self.plot(
            name,
            f"(({{ left, top }}, {{ xaxis, {axis}: yaxis }}) => [left + xaxis._offset + xaxis.d2p({x}),"
            f" top + yaxis._offset + yaxis.d2p({y})])(gd.getBoundingClientRect(), gd._fullLayout)",
        )
        self.page.mouse.move(there[0] + 1, there[1])
        self.page.mouse.click(*there)

    def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait, asking from outside: the page forbids to make code of text."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, what
            self.page.wait_for_timeout(20)


@pytest.fixture
def offline(tab: Page, tmp_path) -> Iterator[Reader]:
    tab.context.set_offline(True)
    reader = Reader(tab)
    yield reader
    reader.visit.end()
    assert reader.errors == []
    # "data:" and "blob:" are inside the page, such as its modules, or a picture on its way to the disk.
    outside = {url for url in reader.asked if not url.startswith(("data:", "blob:"))}
    assert outside == {(tmp_path / "run.html").as_uri()}


@pytest.fixture
def reader(view: RunView, offline: Reader, tmp_path) -> Reader:
    content = html_page(view, word="banana", site=SITE, head=1)
    offline.open(content, tmp_path / "run.html", 8)
    return offline


def test_a_page_of_the_shipped_recording_has_all_of_it_in_one_small_file(shipped, offline, tmp_path):
    content = html_page(shipped, word="playground", site=SITE, head=1)
    assert len(content.encode()) < 12_000_000
    offline.open(content, tmp_path / "run.html", 200)
    slider = offline.page.locator(".time-slider")
    assert int(slider.get_attribute("data-frames")) == len(shipped.frames.steps) == 201
    words = offline.page.locator(".st-key-word button").evaluate_all("all => all.map(b => b.dataset.value)")
    assert words == list(shipped.frames.words)
    assert len(words) == 5
    offline.keys("Home")
    offline.at(0)
    for number, word in enumerate(words):
        offline.choose("word", word)
        offline.until(lambda: f"“{word}”" in offline.title(), word)  # noqa: B023
        offline.keys("ArrowRight", *3 * ["PageUp"])
        step = 31 * (number + 1)
        offline.at(step)
        frame = shipped.frames.of_step(step)
        np.testing.assert_allclose(offline.drawn("live_map"), frame.map(number, SITE)[1], atol=EXACT)


def test_play_shows_every_step_in_order(reader):
    reader.keys("Home")
    reader.at(0)
    reader.page.evaluate(
        """() => {
          window.film = [];
          const root = document.querySelector(".headlight-player");
          new MutationObserver(() => {
            if (window.film.at(-1) !== root.dataset.step) window.film.push(root.dataset.step);
          }).observe(root, { attributes: true, attributeFilter: ["data-step"] });
        }"""
    )
    reader.page.locator(".st-key-time_speed select").select_option("20/s")
    reader.page.locator(".st-key-time_play button").click()
    reader.until(lambda: reader.page.evaluate("window.film.at(-1)") == "8", "the end of the film")
    assert reader.page.evaluate("window.film.map(Number)") == list(range(1, 9))


def test_the_slider_moves_every_panel_and_each_number_is_the_frame_s(reader, view):
    slider = reader.page.get_by_role("slider", name="Step")
    assert slider.get_attribute("max") == "8"
    for step in (0, 2, 5, 8):
        slider.fill(str(step))
        reader.at(step)
        frame = view.frames.of_step(step)
        weights = frame.map(0, SITE)
        assert weights.shape == (3, 7, 8)
        np.testing.assert_allclose(reader.drawn("live_map"), weights[1], atol=EXACT)
        tiles = reader.drawn("live_maps")
        assert tiles.shape == (3 * 7 + 2, 2 * 8 + 1)
        for layer, site in enumerate(("decoder.0.cross", SITE)):
            for head in range(3):
                tile = tiles[head * 8 : head * 8 + 7, layer * 9 : layer * 9 + 8]
                np.testing.assert_allclose(tile, frame.map(0, site)[head], atol=EXACT)
        assert reader.text(".loss b") == ("–" if frame.loss is None else f"{frame.loss:.3f}")
        right = f"{frame.evaluation.right} / {frame.evaluation.total:,}"
        assert right in reader.text(".st-key-words_right") + reader.text(".hl-lengths")
        written = reader.page.locator(".hl-outputs samp").first.inner_text()
        probe = frame.probes[0]
        assert written.rstrip("·…") == probe.output
        marks = reader.plot("live_map", "gd.layout.yaxis2.ticktext")
        assert ["<b>✗</b> " in mark for mark in marks] == [
            expected != predicted for expected, predicted in zip(probe.expected, probe.predicted, strict=True)
        ]
    marker = reader.page.locator(".st-key-live_curves .marker")
    slider.fill("4")
    reader.at(4)
    scale = reader.plot("live_curves", "(({ xaxis: x }) => x._offset + x.d2p(4))(gd._fullLayout)")
    host = reader.page.locator(".st-key-live_curves .live-figure").bounding_box()
    assert marker.bounding_box()["x"] - host["x"] == pytest.approx(scale, abs=1.5)


def test_a_click_on_a_small_map_changes_the_large_one_and_a_second_goes_to_the_clearest(reader, view):
    assert "decoder 2 · head 2" in reader.title()
    reader.press("live_maps", 3, 2 * 8 + 3)  # of layer 1, head 3
    reader.until(lambda: "decoder 1 · head 3" in reader.title())
    np.testing.assert_allclose(
        reader.drawn("live_map"), view.frames[-1].map(0, "decoder.0.cross")[2], atol=EXACT
    )
    widths = reader.plot("live_maps", "gd.layout.shapes.map(s => s.line.width)")
    assert widths.index(max(widths)) == 4
    reader.press("live_maps", 3, 2 * 8 + 3)
    site, head = view.frames[-1].clearest
    if site not in ("decoder.0.cross", SITE):
        site, head = SITE, 0
    reader.until(lambda: f"decoder {int(site.split('.')[1]) + 1} · head {head + 1}<" in reader.title())


def test_another_kind_of_attention_shows_its_own_maps_with_the_future_blocked(reader, view):
    reader.choose("kind", "decoder")
    site = reader.page.locator(".st-key-live_map .live-figure[data-site$='.self']")
    site.wait_for()
    name, head = site.get_attribute("data-site"), int(site.get_attribute("data-head"))
    weights = view.frames[-1].map(0, name)[head]
    np.testing.assert_allclose(reader.drawn("live_map"), weights, atol=EXACT)
    blocked = np.isfinite(reader.drawn("live_map", 1))
    np.testing.assert_array_equal(blocked, ~np.tri(7, dtype=bool))
    reader.keys("ArrowLeft")
    reader.at(7)
    assert reader.page.locator(".st-key-live_map .heatmaplayer .hm image").count() == 2  # weights, blocked
    assert reader.page.locator(".st-key-live_maps .heatmaplayer .hm image").count() == 2
    reader.keys("End")
    reader.at(8)
    reader.choose("kind", "encoder")
    reader.until(lambda: reader.plot("live_maps", "gd.layout.shapes.length") == 3)
    head = int(reader.page.locator(".st-key-live_map .live-figure").get_attribute("data-head"))
    np.testing.assert_allclose(
        reader.drawn("live_map"), view.frames[-1].map(0, "encoder.0")[head], atol=EXACT
    )


def test_another_word_has_its_own_axes_and_one_that_was_asked_late_its_past_without_an_output(reader, view):
    reader.choose("word", "ox")
    reader.until(lambda: reader.plot("live_map", "gd.data[0].z.length") == 3)
    np.testing.assert_allclose(reader.drawn("live_map"), view.frames[-1].map(2, SITE)[1], atol=EXACT)
    columns = reader.plot("live_map", "gd.layout.xaxis.ticktext.map(t => t.replace(/<[^>]*>/g, ''))")
    assert columns == ["[SOS]", "o", "x", "[EOS]"]
    assert reader.page.locator(".hl-outputs small").first.inner_text() == "ox"
    reader.keys("Home", "ArrowRight")
    reader.at(1)
    np.testing.assert_allclose(reader.drawn("live_map"), view.frames[1].map(2, SITE)[1], atol=EXACT)
    assert "not asked yet" in reader.text(".hl-outputs")


def test_a_cell_that_was_blocked_by_hand_is_drawn_as_blocked_from_that_step_on(reader):
    marked = np.isfinite(reader.drawn("live_map", 1))
    assert np.argwhere(marked).tolist() == [[1, 5]]
    assert "At this step: blocked row 2, column 6" in reader.text(".note")
    reader.keys("Home", *3 * ["ArrowRight"])
    reader.at(3)
    assert reader.plot("live_map", "gd.data.length") == 2  # weights and their legend
    assert reader.page.locator(".note").inner_text() == ""


def test_moments_are_marks_on_the_step_control_that_jump_there_and_are_named_where_they_are_passed(reader):
    bubble = reader.page.locator(".time-slider .bubble")
    mark = reader.page.locator(".st-key-moments button[data-step='2']")
    mark.hover()
    expect(bubble).to_have_text("2 · the loss fell")
    mark.click()
    reader.at(2)
    reader.page.mouse.move(0, 0)
    expect(bubble).to_have_text("2 · the loss fell")
    current = reader.page.locator(".st-key-moments button[aria-current=true]")
    expect(current).to_have_attribute("aria-label", "step 2: the loss fell")
    reader.page.locator(".st-key-time_next button").click()
    reader.at(4)
    assert not bubble.inner_text().endswith("the loss fell")
    reader.page.locator(".st-key-time_last button").click()
    reader.at(2)


def test_the_picture_of_the_model_opens_a_box_with_the_numbers_of_the_step(reader, view):
    model = reader.page.locator(".st-key-model_picture")
    for step in (8, 2):
        reader.page.get_by_role("slider", name="Step").fill(str(step))
        reader.until(lambda: model.get_attribute("data-step") == str(step), f"step {step}")  # noqa: B023
        opens = model.locator(f"[data-box='{SITE}'] .title")
        if opens.get_attribute("aria-expanded") == "false":
            opens.click()
        weights = model.locator(f"[data-box='{SITE}'] figure[data-table=weights]")
        weights.press("ArrowUp")
        weights.press("ArrowUp")
        expected = view.frames.of_step(step).map(0, SITE)[0][0, 0]
        said = model.locator(".st-key-model_readout").inner_text()
        assert float(said.rpartition(": ")[2].removesuffix("%")) / 100 == pytest.approx(expected, abs=1e-3)
    expect(model.locator(".st-key-model_mode")).to_be_hidden()  # what the next step changes needs the weights


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 18, 24)")])
def test_it_follows_light_and_dark_and_fits_the_width_of_a_projector(reader, scheme, paper):
    reader.page.emulate_media(color_scheme=scheme)
    style = "getComputedStyle(document.body)"
    reader.until(lambda: reader.page.evaluate(f"{style}.backgroundColor") == paper)
    ink = reader.page.evaluate(f"{style}.getPropertyValue('--st-text-color').trim()")
    for name in ("live_map", "live_curves"):
        reader.until(lambda: reader.plot(name, "gd.layout.font.color") == ink, name)  # noqa: B023
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 1280
    for name in ("live_map", "live_maps", "live_curves", "live_outputs", "narrator"):
        box = reader.page.locator(f".st-key-{name}").bounding_box()
        assert box["y"] + box["height"] <= 720, name


def test_a_picture_can_be_saved_and_no_button_leads_outside(reader):
    saved = reader.plot("live_map", "Plotly.toImage(gd, { format: 'png', width: 300, height: 200 })")
    assert saved.startswith("data:image/png;base64,")
    assert len(saved) > 3_000
    titles = reader.page.locator(".modebar-btn").evaluate_all("all => all.map(b => b.dataset.title)")
    assert titles
    assert not [title for title in titles if title is None or "Studio" in title or "Plotly" in title]
    assert reader.page.locator("a[href]").count() == 0


def test_a_page_of_a_race_shows_both_runs_at_one_step_and_their_difference(view, offline, tmp_path):
    """The second run ends after five steps, and is shown as it was then."""
    run = Run(view.config.with_changes(steps=5, causal_mask=False), words=("banana", "cat"))
    run.start()
    assert run.wait(60)
    race = {"names": ["mask on", "mask off"], "says": "<b>Masks.</b>", "clock": "steps"}
    race |= {"look": race_look(), "curves": race_curves("words")}
    first = {"word": "banana", "kind": "cross", "pinned": [SITE, 1], "step": 3}
    content = race_page((view, run.view), race, first)
    file = tmp_path / "run.html"
    file.write_text(content, encoding="utf-8")
    offline.page.goto(file.as_uri())
    offline.page.wait_for_selector(".st-key-race_difference .live-figure[data-step='3']")
    maps = [offline.drawn(f"race_{name}") for name in ("left", "difference", "right")]
    for made, drawn in ((view, maps[0]), (run.view, maps[2])):
        frame = made.frames.of_step(3)
        row = frame.row_of("banana")
        np.testing.assert_allclose(drawn, frame.map(row, SITE)[1], atol=EXACT)
    np.testing.assert_allclose(maps[1], maps[2] - maps[0], atol=1e-7)
    offline.page.get_by_role("slider", name="Step").press("End")
    offline.page.wait_for_selector(".st-key-race_left .live-figure[data-step='8']")
    assert "ended at step 5" in str(offline.plot("race_right", "gd.layout.title.text"))
    assert "step 8" in str(offline.plot("race_left", "gd.layout.title.text"))
    run.close()


def only(view: RunView, steps: Collection[int]) -> RunView:
    """What was recorded of a run at these steps alone."""
    records = []
    for one in view.frames.records:
        if not isinstance(one, Chunk):
            records += [one] * (one.step in steps)
        elif some := one.only(steps.__contains__):
            records.append(some)
    return replace(view, frames=Frames(records, numbers=view.metrics.at, aim=view.frames[-1].aim))


def walked(offline, file, views, word, positions):
    """The steps of both panels of a race by steps, walked from its first position through these."""
    race = {"names": ["one", "other"], "says": "", "clock": "steps"}
    race |= {"look": race_look(), "curves": race_curves("words")}
    first = {"word": word, "kind": None, "pinned": None, "step": 0}
    file.write_text(race_page(views, race, first), encoding="utf-8")
    offline.page.goto(file.as_uri())
    found = []
    for position in positions:
        offline.page.wait_for_selector(f".headlight-player[data-step='{position}']")
        offline.page.wait_for_selector(f".st-key-race_left .live-figure[data-step='{position}']")
        titles = [
            offline.page.locator(f".st-key-race_{side} .over p").inner_text() for side in ("left", "right")
        ]
        found.append([int(re.search(r"step (\d+)", title)[1]) for title in titles])
        offline.page.get_by_role("slider", name="Step").press("ArrowRight")
    return found


def test_by_steps_a_race_stands_only_where_both_runs_were_recorded(view, offline, tmp_path):
    views = view, only(view, {0, 3, 6})
    found = walked(offline, tmp_path / "run.html", views, "banana", [0, 3, 6])
    assert found == [[0, 0], [3, 3], [6, 6]]


def test_models_of_the_users_own_race_though_no_step_of_both_was_recorded(offline, tmp_path):
    view = read_run(own_run(tmp_path / "own")).view
    views = only(view, {1, 4, 7}), only(view, {0, 3, 6})
    found = walked(offline, tmp_path / "run.html", views, "one", [1, 4, 7])
    assert found == [[1, 0], [4, 3], [7, 6]]


def test_by_seconds_each_run_of_a_race_is_shown_at_its_last_step_within_them(view, offline, tmp_path):
    """The second run is twice as long: behind the end of the first it goes on."""
    run = Run(view.config.with_changes(steps=16, n_heads=1), words=("banana", "cat"))
    run.start()
    assert run.wait(60)
    views = (view, run.view)
    race = {"names": ["3 heads", "1 head"], "says": "", "clock": "seconds"}
    race |= {"look": race_look(), "curves": race_curves("words")}
    content = race_page(views, race, {"word": "cat", "kind": "cross", "pinned": None, "step": None})
    file = tmp_path / "run.html"
    file.write_text(content, encoding="utf-8")
    offline.page.goto(file.as_uri())
    offline.page.wait_for_selector(".st-key-race_right .live-figure[data-step='16']")
    columns = [one.metrics.columns("step", "seconds") for one in views]
    clocks = [{0: 0.0, **dict(zip(steps, np.round(seconds, 5), strict=True))} for steps, seconds in columns]
    slider = offline.page.get_by_role("slider", name="Step")
    shown = []
    for _ in range(40):
        titles = [str(offline.plot(f"race_{side}", "gd.layout.title.text")) for side in ("left", "right")]
        steps = [int(re.search(r"step (\d+)", title)[1]) for title in titles]
        shown.append(steps)
        seconds = max(clock[step] for clock, step in zip(clocks, steps, strict=True))
        for clock, step, title in zip(clocks, steps, titles, strict=True):
            assert step == max(one for one, at in clock.items() if at <= seconds)
            assert f"{seconds:.1f} s, " in title or "ended at step" in title
        if steps == [0, 0]:
            break
        before = offline.page.locator(".headlight-player").get_attribute("data-step")
        slider.press("ArrowLeft")
        offline.page.wait_for_selector(f".headlight-player:not([data-step='{before}'])")
    assert shown[0] == [8, 16]
    assert shown[-1] == [0, 0]
    run.close()
