"""The exported page in a browser without a network: it has the app's player and the run's numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from benchmarks.tools.browser import SIZE
from tests.browser.conftest import shown
from tests.browser.watcher import FRAMES, Watcher
from tests.own import CLEAR, mirrored_run, own_run
from transformer.anatomy.parts import score_parts
from transformer.anatomy.trace import trace
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.exports import page as page_module
from transformer.exports.page import html_page, race_page
from transformer.figures.colors import ABOVE_ZERO, BELOW_ZERO, rgb
from transformer.figures.race import race_curves, race_look
from transformer.insight.moments import Moment
from transformer.recording.chunk import Chunk
from transformer.recording.frame import Ablations
from transformer.recording.recording import Recording
from transformer.recording.view import RunView
from transformer.runs import demo
from transformer.runs.run import Run
from transformer.shared.attention_info import sites_of
from transformer.shared.interventions import Block, Interventions
from transformer.storage.saved import read_run

SITE = "decoder.1.cross"
TAKEN = Interventions(blocked=(Block(site=SITE, head=1, row=1, column=5),))
EXACT = 1e-4
"""Tolerance: the page stores weights in 16 bits."""
CORNER = """(() => {
  const canvas = gd.querySelector("canvas"), { tables } = gd.picture, last = tables.at(-1);
  const x = 5.2 * canvas.width / (last.column + last.wide), y = 1.2 * canvas.height / (last.row + last.high);
  return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];
})()"""
"""The colour of the cell in row 2 and column 6 of the first map, beside its mark."""
COLORS = """(cells) => cells.map((cell) => (
  getComputedStyle(cell).backgroundColor.match(/[\\d.e-]+/g).map(Number)))"""
"""Red, green, blue and opacity of cells, from 0 to 1."""
PLOTLY = """{
  let library;
  Object.defineProperty(window, "Plotly", { configurable: true, get: () => library, set: (loaded) => {
    library = loaded;
    window.drawnBefore ??= document.querySelector(".st-key-live_map .live-figure").dataset.step ?? "none";
  } });
}"""
"""Notes the step of the map that was drawn before plotly.js was loaded."""


@pytest.fixture(scope="module")
def view(changed_midway: Callable[..., RunView]) -> RunView:
    """Eight steps of a model with 1 + 2 layers and 3 heads; a cell is blocked and a word added at step 4."""
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


class Reader(Watcher):
    """A watcher of the exported page in an offline browser."""

    def open(self, content: str, file: Path) -> None:
        file.write_text(content, encoding="utf-8")
        self.page.goto(file.as_uri())

    def open_run(self, content: str, file: Path, newest: int) -> None:
        self.open(content, file)
        self.page.wait_for_selector(".st-key-live_maps .live-figure[data-step]")
        self.at(newest)

    def open_race(self, views: tuple[RunView, ...], clock: str, file: Path, **first: Any) -> None:
        """Open a race of runs named one, other and third; `first` is the initial selection."""
        names = ("one", "other", "third")[: len(views)]
        race = {"names": names, "says": "", "clock": clock}
        race |= {"look": race_look(), "curves": race_curves("words", names)}
        self.open(race_page(views, race, {"kind": None, "pinned": None} | first), file)

    def at(self, step: int) -> None:
        """Wait until every panel shows this step."""
        self.until(lambda: self.stands_at(step), what=f"step {step}")

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def numbers(self, name: str, i: int = 0) -> np.ndarray:
        """Return the weights of the i-th map of a picture; NaN where a cell has none."""
        return np.array(self.plot(name, f"weights({i})"), dtype=float)

    def blocked(self, name: str) -> list[list[int]]:
        """Return the [row, column] of each blocked cell of a large map."""
        return np.argwhere(np.isnan(self.numbers(name))).tolist()


@contextmanager
def without_network(page: Page, file: Path) -> Iterator[Reader]:
    page.context.set_offline(True)
    reader = Reader(page, file.as_uri(), notices=("error", "warning"))
    yield reader
    reader.leave()
    assert reader.errors == []
    # "data:" and "blob:" URLs are inside the page, such as its modules or a picture being saved.
    outside = {url for url in reader.asked if not url.startswith(("data:", "blob:"))}
    assert outside == {file.as_uri()}


@pytest.fixture
def offline(tab: Page, tmp_path) -> Iterator[Reader]:
    with without_network(tab, tmp_path / "run.html") as reader:
        yield reader


def opened(reader: Reader, view: RunView, file: Path) -> Reader:
    reader.open_run(html_page(view, word="banana", site=SITE, head=1), file, 8)
    return reader


@pytest.fixture
def reader(view: RunView, offline: Reader, tmp_path) -> Reader:
    """The page of the run, newly opened."""
    return opened(offline, view, tmp_path / "run.html")


@pytest.fixture(scope="module")
def stays(view: RunView, browser: Browser, tmp_path_factory) -> Iterator[Reader]:
    page = browser.new_context(viewport=SIZE).new_page()
    file = tmp_path_factory.mktemp("page") / "run.html"
    with without_network(page, file) as reader:
        yield opened(reader, view, file)
    page.context.close()


@pytest.fixture
def shared(stays: Reader) -> Iterator[Reader]:
    """A page opened once, shared by the tests that choose no other word, kind or head."""
    yield stays
    stays.page.mouse.move(0, 0)
    stays.step_by("End")
    stays.at(8)


def test_the_page_of_the_shipped_recording_holds_all_of_it_in_one_small_file(shipped, offline, tmp_path):
    content = html_page(shipped, word="playground", site=SITE, head=1)
    assert len(content.encode()) < 6_300_000
    offline.open_run(content, tmp_path / "run.html", 225)
    slider = offline.page.locator(".time-slider")
    assert int(slider.get_attribute("data-frames")) == len(shipped.frames.steps) == 226
    words = offline.page.locator(".st-key-word button").evaluate_all("all => all.map(b => b.dataset.value)")
    assert words == list(shipped.frames.words)
    assert len(words) == 5
    offline.step_by("Home")
    offline.at(0)
    for number, word in enumerate(words):
        offline.choose("word", word)
        offline.until(lambda: f"“{word}”" in shown(offline), what=word)  # noqa: B023
        offline.step_by("ArrowRight", *3 * ["PageUp"])
        step = 31 * (number + 1)
        offline.at(step)
        frame = shipped.frames.of_step(step)
        np.testing.assert_allclose(offline.numbers("live_map"), frame.map(number, SITE)[1], atol=EXACT)


@pytest.fixture
def altered(view: RunView, browser: Browser, tmp_path) -> Iterator[Callable[[str], Page]]:
    """Return a function that opens the page of the run in a browser that a script has altered."""
    page = browser.new_context().new_page()
    file = tmp_path / "run.html"

    def open_in(script: str) -> Page:
        file.write_text(html_page(view, word="banana", site=SITE, head=1), encoding="utf-8")
        page.add_init_script(script)
        page.goto(file.as_uri())
        return page

    yield open_in
    page.context.close()


def test_a_browser_that_cannot_unpack_the_page_says_so(altered):
    said = altered("delete window.DecompressionStream").get_by_role("alert")
    expect(said).to_contain_text("This browser cannot draw the page: it has no DecompressionStream. Open it")


def test_the_first_map_does_not_wait_for_plotly_js(altered):
    page = altered(PLOTLY)
    page.wait_for_selector(".st-key-live_curves .main-svg")
    assert page.evaluate("drawnBefore") == "8"


def test_the_slider_moves_every_panel_and_each_number_matches_the_frame(shared, view):
    slider = shared.page.get_by_role("slider", name="Step")
    assert slider.get_attribute("max") == "8"
    for step in (0, 2, 5, 8):
        slider.fill(str(step))
        shared.at(step)
        frame = view.frames.of_step(step)
        weights = frame.map(0, SITE)
        assert weights.shape == (3, 7, 8)
        np.testing.assert_allclose(shared.numbers("live_map"), weights[1], atol=EXACT)
        assert shared.plot("live_maps", "gd.picture.tables.length") == 3 * 2
        for layer, site in enumerate(("decoder.0.cross", SITE)):
            for head in range(3):
                tile = shared.numbers("live_maps", 2 * head + layer)
                np.testing.assert_allclose(tile, frame.map(0, site)[head], atol=EXACT)
        assert shared.text(".loss b") == ("–" if frame.loss is None else f"{frame.loss:.3f}")
        right = f"{frame.evaluation.right} of {frame.evaluation.total:,}"
        assert right in shared.text(".st-key-words_right")
        written = shared.page.locator(".hl-outputs samp").first.inner_text()
        tracked = frame.words[0]
        assert written.rstrip("·…") == tracked.output
        marks = shared.plot("live_map", "gd.picture.marks")
        assert ["<b>✗</b> " in mark for mark in marks] == [
            expected != predicted
            for expected, predicted in zip(tracked.expected, tracked.predicted, strict=True)
        ]
    marker = shared.page.locator(".st-key-live_curves .marker")
    slider.fill("4")
    shared.at(4)
    low, high = shared.plot("live_curves", "gd.layout.xaxis.range")
    panel = shared.page.locator(".st-key-live_curves .nsewdrag").first.bounding_box()
    place = panel["x"] + panel["width"] * (4 - low) / (high - low)
    assert marker.first.bounding_box()["x"] == pytest.approx(place, abs=1.5)


def test_a_click_on_a_small_map_enlarges_it_and_a_second_click_returns_to_the_clearest_head(reader, view):
    assert "cross 2 · head 2" in shown(reader)
    reader.tile(0, 2)
    reader.until(lambda: "cross 1 · head 3" in shown(reader))
    np.testing.assert_allclose(
        reader.numbers("live_map"), view.frames[-1].map(0, "decoder.0.cross")[2], atol=EXACT
    )
    widths = reader.plot("live_maps", FRAMES)
    assert widths.index(max(widths)) == 4
    reader.tile(0, 2)
    site, head = view.frames[-1].clearest
    if site not in ("decoder.0.cross", SITE):
        site, head = SITE, 0
    reader.until(lambda: f"cross {int(site.split('.')[1]) + 1} · head {head + 1} " in shown(reader))


def test_another_kind_of_attention_shows_its_own_maps_with_the_future_blocked(reader, view):
    reader.choose("kind", "decoder")
    site = reader.page.locator(".st-key-live_map .live-figure[data-site$='.self']")
    site.wait_for()
    name, head = site.get_attribute("data-site"), int(site.get_attribute("data-head"))
    weights = view.frames[-1].map(0, name)[head]
    np.testing.assert_allclose(reader.numbers("live_map"), weights, atol=EXACT)
    assert reader.blocked("live_map") == np.argwhere(~np.tri(7, dtype=bool)).tolist()
    reader.step_by("ArrowLeft")
    reader.at(7)
    assert reader.plot("live_map", CORNER) == reader.plot("live_maps", CORNER) == [143, 149, 158, 255]
    reader.step_by("End")
    reader.at(8)
    reader.choose("kind", "encoder")
    reader.until(lambda: reader.plot("live_maps", "gd.picture.tables.length") == 3)
    head = int(reader.page.locator(".st-key-live_map .live-figure").get_attribute("data-head"))
    np.testing.assert_allclose(
        reader.numbers("live_map"), view.frames[-1].map(0, "encoder.0")[head], atol=EXACT
    )


def test_another_word_has_its_own_axes_and_a_word_added_late_has_past_maps_without_an_output(reader, view):
    reader.choose("word", "ox")
    reader.until(lambda: reader.plot("live_map", "weights().length") == 3)
    np.testing.assert_allclose(reader.numbers("live_map"), view.frames[-1].map(2, SITE)[1], atol=EXACT)
    columns = reader.plot("live_map", "gd.picture.columns")
    assert columns == ["[SOS]", "o", "x", "[EOS]"]
    assert reader.page.locator(".hl-outputs small").first.inner_text() == "ox"
    reader.step_by("Home", "ArrowRight")
    reader.at(1)
    np.testing.assert_allclose(reader.numbers("live_map"), view.frames[1].map(2, SITE)[1], atol=EXACT)
    assert "not asked yet" in reader.text(".hl-outputs")


def test_a_cell_that_was_blocked_by_hand_is_drawn_as_blocked_from_that_step_on(shared):
    assert shared.blocked("live_map") == [[1, 5]]
    assert "At this step: blocked row 2, column 6" in shared.text(".note")
    shared.step_by("Home", *3 * ["ArrowRight"])
    shared.at(3)
    assert shared.blocked("live_map") == []
    assert shared.page.locator(".note").inner_text() == ""


def test_marks_of_moments_on_the_step_control_jump_to_their_step_and_show_its_name(shared):
    bubble = shared.page.locator(".time-slider .bubble")
    mark = shared.page.locator(".st-key-moments button[data-step='2']")
    mark.hover()
    expect(bubble).to_have_text("2 · the loss fell")
    mark.click()
    shared.at(2)
    shared.page.mouse.move(0, 0)
    shared.page.locator(".headlight-player").focus()
    expect(bubble).to_have_text("2")
    sentence = shared.page.locator(".st-key-moment")
    expect(sentence).to_contain_text("★ the loss fell.")
    current = shared.page.locator(".st-key-moments button[aria-current=true]")
    expect(current).to_have_attribute("aria-label", "step 2: the loss fell")
    shared.page.locator(".st-key-time_next button").click()
    shared.at(4)
    expect(sentence).not_to_contain_text("★ the loss fell.")
    shared.page.locator(".st-key-time_last button").click()
    shared.at(2)


def test_the_picture_of_the_model_opens_a_box_with_the_numbers_of_the_step(shared, view):
    model = shared.page.locator(".st-key-model_picture")
    for step in (8, 2):
        shared.page.get_by_role("slider", name="Step").fill(str(step))
        shared.until(lambda: model.get_attribute("data-step") == str(step), what=f"step {step}")  # noqa: B023
        opens = model.locator(f"[data-box='{SITE}'] .title")
        if opens.get_attribute("aria-expanded") == "false":
            opens.click()
        weights = model.locator(f"[data-box='{SITE}'] figure[data-table=weights]")
        weights.press("ArrowUp")
        weights.press("ArrowUp")
        expected = view.frames.of_step(step).map(0, SITE)[0][0, 0]
        said = model.locator(".st-key-model_readout").inner_text()
        assert said.rpartition(": ")[2] == f"{expected:.1%}"
        query = model.locator(f"[data-box='{SITE}'] figure[data-table=query]")
        query.press("ArrowUp")
        passed = trace(view.config, view.snapshot_at(step), "banana").attentions[SITE]
        said = model.locator(".st-key-model_readout").inner_text()
        assert said.rpartition(": ")[2] == f"{passed.query[0, 0, 0]:.4g}".replace("-", "−")
    expect(model.locator(".st-key-model_mode")).to_be_hidden()  # the change of a step needs its snapshots


def keep(reader: Reader, table: str) -> None:
    """Keep the cell in row 2 and column 3 of a table of the attention SITE, by keyboard."""
    model = reader.page.locator(".st-key-model_picture")
    opens = model.locator(f"[data-box='{SITE}'] .title")
    if opens.get_attribute("aria-expanded") == "false":
        opens.click()
    figure = model.locator(f"[data-box='{SITE}'] figure[data-table={table}]")
    for key in ("ArrowUp", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        figure.press(key)


def test_a_kept_score_has_a_table_of_its_parts_at_every_step_with_numbers(shared, view):
    keep(shared, "scale")
    for step in (8, 2):
        shared.page.get_by_role("slider", name="Step").fill(str(step))
        model = shared.page.locator(".st-key-model_picture")
        shared.until(lambda: model.get_attribute("data-step") == str(step), what=f"step {step}")  # noqa: B023
        passed = trace(view.config, view.snapshot_at(step), "banana")
        queries, keys = score_parts(passed, SITE)
        expected = {(q, k): queries[q][0, 1] @ keys[k][0, 2] for q in queries for k in keys}
        score, table = shared.score_table()
        assert score == pytest.approx(passed.attentions[SITE].scores[0, 1, 2], abs=0.0051)
        assert table == pytest.approx(expected, abs=0.0101)
        assert sum(table.values()) == pytest.approx(score, abs=1e-9)
        sign = 1 if score > 0 else -1
        most = sorted(expected, key=lambda pair: -sign * expected[pair])[:2]
        named = " and ".join(f"{q} × {k} {table[q, k]:+.2f}" for q, k in most).replace(" -", " −")
        assert shared.text(".st-key-score_parts summary").endswith(f"; most comes from {named}.")
        largest = max(abs(value) for value in expected.values())
        colors = shared.page.locator(".st-key-score_parts td:not(:empty, .sum)").evaluate_all(COLORS)
        for value, color in zip(expected.values(), colors, strict=True):
            if abs(value) > 0.1 * largest:
                named = rgb(ABOVE_ZERO if value > 0 else BELOW_ZERO)
                np.testing.assert_allclose(
                    color, [*(one / 255 for one in named), 0.6 * abs(value) / largest], atol=0.01
                )
    keep(shared, "query")
    expect(shared.page.locator(".st-key-score_parts")).to_be_hidden()


@pytest.mark.parametrize(
    ("values", "score", "expected"),
    [
        ([0.026, 0.026, -0.002], 0.05, [3, 2, 0]),  # the last one loses most and gains
        ([0.026, 0.026], 0.09, [5, 4]),  # more is missing than there are values
        ([0.02, 0.031], 0.03, [1, 2]),  # too much
    ],
)
def test_parts_are_rounded_so_that_they_add_up_to_the_rounded_score(shared, values, score, expected):
    rounding = (
        "([values, score]) => import('headlight/model/parts.js')"
        ".then(({ printed }) => printed(values, score))"
    )
    assert shared.page.evaluate(rounding, [values, score]) == expected


def test_a_page_without_room_for_the_parts_of_scores_says_so_in_place_of_the_table(
    offline, view, tmp_path, monkeypatch
):
    monkeypatch.setattr(page_module, "ROOM_OF_PARTS", 9)
    opened(offline, view, tmp_path / "run.html")
    keep(offline, "weights")
    says = offline.page.locator(".st-key-score_parts")
    expect(says).to_contain_text(
        "This page has no room for its parts at this step; Look inside in the app shows them."
    )
    expect(says.locator("table")).to_have_count(0)


def test_the_page_follows_the_colour_scheme_and_fits_a_projector(shared):
    style = "getComputedStyle(document.body)"
    for scheme, paper in (("dark", "rgb(15, 18, 24)"), ("light", "rgb(255, 255, 255)")):
        shared.page.emulate_media(color_scheme=scheme)
        shared.until(lambda: shared.page.evaluate(f"{style}.backgroundColor") == paper, what=scheme)  # noqa: B023
        ink = shared.page.evaluate(f"{style}.getPropertyValue('--st-text-color').trim()")
        shared.until(lambda: shared.plot("live_curves", "gd.layout.font.color") == ink, what=scheme)  # noqa: B023
        assert shared.page.evaluate("document.documentElement.scrollWidth") <= 1280
        for name in ("live_map", "live_maps", "live_curves", "live_outputs"):
            box = shared.page.locator(f".st-key-{name}").bounding_box()
            assert box["y"] + box["height"] <= 720, name


def test_a_picture_can_be_saved_and_nothing_links_to_another_site(shared):
    with shared.page.expect_download() as saving:
        shared.page.locator(".st-key-live_map .map-saves").click()
    with Image.open(saving.value.path()) as saved:
        box = shared.page.locator(".st-key-live_map .live-figure").bounding_box()
        details = 26  # pixels below the picture: word, step and seed
        assert saved.size == (int(2 * box["width"]), int(2 * (box["height"] + details)))
        assert len(saved.convert("RGB").getcolors(2**20)) > 50  # cells of many weights, and type
    assert re.fullmatch(r"headlight-.*-step\d+-.*-head\d\.png", saving.value.suggested_filename)
    titles = shared.page.locator(".modebar-btn").evaluate_all("all => all.map(b => b.dataset.title)")
    assert titles
    assert not [title for title in titles if title is None or "Studio" in title or "Plotly" in title]
    assert shared.page.locator("a[href]").count() == 0


def test_a_page_of_a_race_shows_both_runs_at_one_step_and_their_difference(view, offline, tmp_path):
    """The second run ends after five steps and stays at its last step."""
    run = Run(view.config.with_changes(steps=5, causal_mask=False), words=("banana", "cat"))
    run.start()
    assert run.wait(60)
    first = {"word": "banana", "kind": "cross", "pinned": [SITE, 1], "step": 3}
    offline.open_race((view, run.view), "steps", tmp_path / "run.html", **first)
    offline.page.wait_for_selector(".st-key-race_difference .live-figure[data-step='3']")
    maps = [offline.numbers(f"race_{name}") for name in ("left", "difference", "right")]
    for made, drawn in ((view, maps[0]), (run.view, maps[2])):
        frame = made.frames.of_step(3)
        row = frame.row_of("banana")
        np.testing.assert_allclose(drawn, frame.map(row, SITE)[1], atol=EXACT)
    np.testing.assert_allclose(maps[1], maps[2] - maps[0], atol=1e-7)
    offline.page.get_by_role("slider", name="Step").press("End")
    offline.page.wait_for_selector(".st-key-race_left .live-figure[data-step='8']")
    assert "ended at step 5" in str(offline.plot("race_right", "title()"))
    assert "step 8" in str(offline.plot("race_left", "title()"))
    run.close()


def only(view: RunView, steps: Collection[int]) -> RunView:
    """Return the view of a run as if only these steps had been recorded."""
    records = []
    for record in view.frames.records:
        if not isinstance(record, Chunk):
            records += [record] * (record.step in steps)
        elif some := record.only(steps.__contains__):
            records.append(some)
    return replace(
        view, frames=Recording(records, numbers=view.metrics.at, target_score=view.frames[-1].target_score)
    )


def walked(offline, file, views, word, positions):
    """Step a race by steps through these positions; return the steps that both panels show at each."""
    offline.open_race(views, "steps", file, word=word, step=0)
    found = []
    for position in positions:
        offline.page.wait_for_selector(f".headlight-player[data-step='{position}']")
        offline.page.wait_for_selector(f".st-key-race_left .live-figure[data-step='{position}']")
        titles = [
            offline.page.locator(f".st-key-race_{side} .map-head").inner_text() for side in ("left", "right")
        ]
        said = [re.search(r"step (\d+)", title) for title in titles]  # none: that of the step control
        found.append([position if one is None else int(one[1]) for one in said])
        offline.page.get_by_role("slider", name="Step").press("ArrowRight")
    return found


def test_a_race_by_steps_stops_only_at_steps_that_both_runs_recorded(view, offline, tmp_path):
    views = view, only(view, {0, 3, 6})
    found = walked(offline, tmp_path / "run.html", views, "banana", [0, 3, 6])
    assert found == [[0, 0], [3, 3], [6, 6]]


def test_own_models_can_race_even_if_they_have_no_recorded_step_in_common(offline, tmp_path):
    view = read_run(own_run(tmp_path / "own")).view
    views = only(view, {1, 4, 7}), only(view, {0, 3, 6})
    found = walked(offline, tmp_path / "run.html", views, "one", [1, 4, 7])
    assert found == [[1, 0], [4, 3], [7, 6]]
    offline.page.get_by_role("slider", name="Step").press("Home")
    offline.page.wait_for_selector(".headlight-player[data-step='1']")
    offline.page.keyboard.press("g")
    offline.page.locator(".st-key-time_number input").fill("live")
    offline.page.locator(".st-key-time_number input").press("Enter")
    offline.page.wait_for_selector(".headlight-player[data-step='7']")


def test_a_race_by_seconds_shows_each_run_at_its_last_step_within_the_time(view, offline, tmp_path):
    """The second run is twice as long: it goes on after the end of the first."""
    run = Run(view.config.with_changes(steps=16, n_heads=1), words=("banana", "cat"))
    run.start()
    assert run.wait(60)
    views = (view, run.view)
    offline.open_race(views, "seconds", tmp_path / "run.html", word="cat", kind="cross", step=None)
    offline.page.wait_for_selector(".st-key-race_right .live-figure[data-step='16']")
    columns = [one.metrics.columns("step", "seconds") for one in views]
    clocks = [{0: 0.0, **dict(zip(steps, np.round(seconds, 5), strict=True))} for steps, seconds in columns]
    slider = offline.page.get_by_role("slider", name="Step")
    shown = []
    for _ in range(40):
        titles = [str(offline.plot(f"race_{side}", "title()")) for side in ("left", "right")]
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


def test_many_runs_show_their_own_step_by_step_and_by_the_turn_of_each(view, offline, tmp_path):
    """The first run turns at step 3, the second at step 6, two steps before its end, the third never."""
    turns = ((3, SITE, 1), (6, SITE, 0), None)
    views = tuple(
        replace(view, moments=(Moment(turn[0], "turned", "it turned", *turn[1:]),) if turn else ())
        for turn in turns
    )
    offline.open_race(views, "moment", tmp_path / "run.html", word="cat", kind="cross", step=20)
    expected = {-20: [0, 0, 8], -1: [2, 5, 8], 0: [3, 6, 8], 2: [5, 8, 8], 4: [7, 8, 8]}
    for offset, steps in expected.items():
        offline.page.locator(".counter b").click()
        offline.page.locator(".st-key-time_number input").fill(str(offset))
        offline.page.locator(".st-key-time_number input").press("Enter")
        named = f"{offset:+d}".replace("-", "−") if offset else "0"
        expect(offline.page.locator(".counter b")).to_have_text(named)
        heads = [offline.page.locator(f".st-key-seeds_{i} .map-head").inner_text() for i in range(3)]
        shown = [re.search(r"(?:step|end:) (\d+)", head)[1] for head in heads]
        assert [int(step) for step in shown] == steps
        for i, (step, one) in enumerate(zip(steps, views, strict=True)):
            frame = one.frames.of_step(step)
            site, head = frame.large_head(sites_of(frame.axes, "cross"))
            drawn = offline.numbers(f"seeds_{i}")
            np.testing.assert_allclose(drawn, frame.map(frame.row_of("cat"), site)[head], atol=EXACT)
    table = offline.page.locator(".st-key-seeds_table tbody tr")
    assert [row.split()[:2] for row in table.all_inner_texts()] == [
        ["one", "3"],
        ["other", "6"],
        ["third", "–"],
    ]
    expect(offline.page.locator(".st-key-words_right")).to_have_text("2 of 3 have turned")
    offline.page.locator(".st-key-race_clock select").select_option("steps")
    offline.step_by("Home", "ArrowRight", "ArrowRight")
    offline.until(
        lambda: {offline.plot(f"seeds_{i}", "gd.dataset.step") for i in range(3)} == {"2"}, what="2"
    )
    learned = offline.page.locator(".st-key-words_right")
    expect(learned).to_have_text("0 of 3 have turned")  # at the step that is shown
    offline.step_by("ArrowRight")
    expect(learned).to_have_text("1 of 3 have turned")


PIXELS = """() => {
  const canvas = document.querySelector(".st-key-live_map canvas");
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const [high, wide] = [canvas.height / 2, canvas.width / 3];
  const pixel = (x, y) => [...context.getImageData(x, y, 1, 1).data.slice(0, 3)];
  const at = (row, column) => pixel((column + 0.7) * wide, (row + 0.7) * high);
  return [0, 1].map((row) => [0, 1, 2].map((column) => at(row, column)));
}"""
"""The colour of each of 2 × 3 patches of the large picture."""


def at_maps(reader, step):
    """Wait until the maps of an own model, which writes no outputs, show a step."""
    reader.page.wait_for_selector(f".st-key-live_maps .live-figure[data-step='{step}']")


MARKUP = 'a"><img src=x onerror="window.run = 1">'


def marked_up(view):
    """Return the view of an own model with markup as its first column and as its first word."""
    records = []
    for record in view.frames.records:
        if isinstance(record, Chunk) and record.word.text == "one":
            sides = {name: (MARKUP, *tokens[1:]) for name, tokens in record.word.sides.items()}
            record = replace(record, word=replace(record.word, text=MARKUP, sides=sides))
        records.append(record)
    frames = Recording(records, target_score=view.frame.target_score, numbers=view.metrics.at)
    return replace(view, frames=frames)


def test_markup_in_tokens_and_words_is_shown_as_it_is(offline, tmp_path):
    plain = read_run(own_run(tmp_path / "own")).view
    odd = marked_up(plain)
    offline.open(html_page(odd, word=MARKUP, site="net.write.1.cross", head=0), tmp_path / "run.html")
    offline.page.wait_for_selector(".st-key-live_map .map-labels span")
    labels = offline.page.locator(".st-key-live_map .map-labels span[title]")
    assert MARKUP in [label.get_attribute("title") for label in labels.all()]
    offline.open_race((odd, plain), "steps", tmp_path / "run.html", word=MARKUP, step=8)
    expect(offline.page.locator(".st-key-race_right .none")).to_have_text(re.compile(re.escape(MARKUP)))
    expect(offline.page.locator(".st-key-race_difference .none")).to_contain_text(MARKUP)
    assert offline.page.locator("img[src=x]").count() == 0
    assert offline.page.evaluate("window.run") is None


def test_a_kind_of_attention_that_is_chosen_by_keyboard_keeps_the_focus(reader):
    reader.page.locator(".st-key-kind button[data-value=encoder]").focus()
    reader.page.keyboard.press("Enter")
    expect(reader.page.locator(".st-key-kind [aria-pressed=true]")).to_have_attribute("data-value", "encoder")
    assert reader.page.evaluate("document.activeElement.dataset.value") == "encoder"


def test_the_row_of_the_patch_under_the_pointer_is_drawn_over_the_picture(offline, tmp_path):
    view = read_run(mirrored_run(tmp_path / "seeing")).view
    picture = next(iter(view.pictures["one"].values())).array()[4::8, 4::8].astype(float)
    offline.open(html_page(view, word="one", site="net.attn", head=1), tmp_path / "run.html")
    at_maps(offline, 3)
    about, canvas = ".st-key-live_map .map-about", offline.page.locator(".st-key-live_map canvas")
    told = "[CLS] looks most at patch 1,1: 14%; 14% is not on the picture."
    offline.until(lambda: offline.text(about).endswith(told), what="the first row")
    np.testing.assert_allclose(offline.page.evaluate(PIXELS), picture, atol=2)  # all weights are equal

    def point(row, column, page=offline.page):
        box = canvas.bounding_box()
        page.mouse.move(
            box["x"] + (column + 0.4) * box["width"] / 3, box["y"] + (row + 0.4) * box["height"] / 2
        )

    for row, column in ((0, 0), (1, 2), (1, 1)):
        point(row, column)
        told = f"Patch {row + 1},{column + 1} looks most at patch {row + 1},{3 - column}: 64%"
        offline.until(lambda told=told: told in offline.text(about), what=told)
        drawn = np.array(offline.page.evaluate(PIXELS))
        rest = (1 - CLEAR) / 6 / CLEAR
        dark = np.array([0x0D, 0x08, 0x1E])
        for i in range(2):
            for j in range(3):
                opacity = 0 if (i, j) == (row, 2 - column) else 0.9 * (1 - rest)
                expected = picture[i, j] * (1 - opacity) + dark * opacity
                if (i, j) != (row, column):  # it has a frame
                    np.testing.assert_allclose(drawn[i, j], expected, atol=3)
    canvas.click(position={"x": 5, "y": 5})  # is kept
    offline.page.mouse.move(2, 2)
    offline.until(lambda: "Patch 1,1 looks" in offline.text(about), what="the row that was clicked")
    offline.page.keyboard.press("Home")
    offline.step_by("ArrowLeft", "ArrowLeft")
    at_maps(offline, 1)
    assert "14%" in offline.text(about)
    offline.page.locator(".st-key-query select").select_option("0")
    offline.until(lambda: "[CLS] looks" in offline.text(about), what="the row that was selected")
    offline.page.locator(".st-key-as_table input").check()
    offline.until(lambda: offline.numbers("live_map").shape == (7, 7), what="the map as a table")


def test_what_a_head_is_worth_is_written_marked_and_drawn(offline, tmp_path):
    view = read_run(own_run(tmp_path / "own")).view
    sites = [site for site in view.frame.axes if site.endswith("cross")]
    changes = {site: np.array([1.0, 1.0, 1.0]) for site in view.frame.axes} | {
        sites[1]: np.array([1.5, 1.0, 0.99])
    }
    known = [Ablations(step=step, name="loss", whole=1.0, without=changes) for step in (3, 6)]
    view = replace(view, frames=view.frames.extended(known))
    offline.open(html_page(view, word="one", site=sites[1], head=0), tmp_path / "run.html")
    at_maps(offline, 8)
    foot = ".st-key-live_map .map-foot > p"
    assert "Without this head, loss is 0.5 higher (at step 6)." in offline.text(foot)
    assert "without it, loss is 0.5 higher (at step 6)" in offline.text(".st-key-moment p")
    maps = "document.querySelector('.st-key-live_maps .live-figure').picture.tables"
    tables = offline.page.evaluate(f"{maps}.map(({{ site, head, corner }}) => [site, head, Boolean(corner)])")
    assert [[site, head] for site, head, marked in tables if marked] == [[sites[1], 0]]
    assert "how much higher loss is without it" in offline.text(".st-key-alignment_mass p")
    offline.step_by(*["ArrowLeft"] * 6)
    at_maps(offline, 2)
    assert "Without" not in offline.text(foot)  # it was not measured yet


FRAMED = """(() => {
  const figure = document.querySelector(".st-key-live_maps .live-figure");
  const canvas = figure.querySelector("canvas");
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { tables } = figure.picture, last = tables.at(-1);
  const [x, y] = [canvas.width / (last.column + last.wide), canvas.height / (last.row + last.high)];
  const pixel = ({ row, column }) => context.getImageData(column * x + 3, row * y + 3, 1, 1).data.join();
  const framed = tables.filter((one) => pixel(one) === "255,79,163,255");
  return framed.map(({ site, head }) => [site, head]);
})()"""
"""The small maps whose frame is thick: 3 pixels within a map."""


def test_the_thick_frame_moves_with_the_head_and_leaves_its_map_as_it_was(reader):
    before = reader.numbers("live_maps", 3)
    for head in (2, 0, 1):
        reader.tile(1, head)
        reader.until(lambda head=head: reader.page.evaluate(FRAMED) == [[SITE, head]], what=f"head {head}")
    np.testing.assert_array_equal(reader.numbers("live_maps", 3), before)
