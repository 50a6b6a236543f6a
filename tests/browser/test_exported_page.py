"""The exported page in a browser without a network: one slider moves all, and the numbers are the run's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.exports.page import html_page
from transformer.insight.moments import Moment
from transformer.interventions import Block, Interventions
from transformer.recording.view import RunView
from transformer.runs.run import Run

SITE = "decoder.1.cross"
TAKEN = Interventions(blocked=(Block(site=SITE, head=1, row=1, column=5),))


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


class Reader:
    """Somebody with the page, and no network."""

    def __init__(self, page: Page, view: RunView) -> None:
        self.page, self.view = page, view
        self.errors: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(30_000)
        page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    def go(self, index: int) -> None:
        """Drag the slider to the nth frame."""
        self.page.locator("#step").fill(str(index))
        self.at(self.view.frames[index].step)

    def at(self, step: int) -> None:
        """Wait until every panel shows this step."""
        self.page.wait_for_selector(f"body[data-step='{step}']")

    def text(self, name: str) -> str:
        return self.page.locator(f"#{name}").inner_text()

    def plot(self, name: str, expression: str) -> object:
        return self.page.locator(f"#{name}").evaluate(f"gd => {expression}")

    def drawn(self, name: str, trace: int = 0) -> np.ndarray:
        """The numbers of a map; NaN where it has none."""
        return np.array(self.plot(name, f"gd.data[{trace}].z"), dtype=float)

    def until(self, condition: str) -> None:
        """Wait until this JavaScript is true, asked from outside: the page forbids to make code of text."""
        end = time.monotonic() + 30.0
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(20)


@pytest.fixture
def reader(view: RunView, browser: Browser, tmp_path) -> Iterator[Reader]:
    file = tmp_path / "run.html"
    file.write_text(html_page(view, word="banana", kind="cross", site=SITE, head=1), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 720}, offline=True)
    reader = Reader(context.new_page(), view)
    reader.page.goto(file.as_uri())
    reader.at(8)
    yield reader
    assert reader.errors == []
    # "data:" and "blob:" are inside the page, such as a picture on its way to the disk.
    assert [url for url in reader.asked if not url.startswith(("data:", "blob:"))] == [file.as_uri()]
    context.close()


def test_the_slider_moves_every_panel_and_each_number_is_the_frame_s(reader, view):
    assert reader.text("step-shown") == "8"
    assert reader.page.locator("#step").get_attribute("max") == "8"
    for index in (0, 2, 5, 8):
        reader.go(index)
        frame = view.frames[index]
        weights = frame.map(0, SITE)
        assert weights.shape == (3, 7, 8)
        assert reader.text("step-shown") == str(frame.step)
        np.testing.assert_allclose(reader.drawn("large"), weights[1], atol=0.00051)
        for layer, site in enumerate(("decoder.0.cross", SITE)):
            for head in range(3):
                tile = reader.drawn("strip", 2 * head + layer)
                np.testing.assert_allclose(tile, frame.map(0, site)[head], atol=0.00051)
        assert f"step {frame.step}<br>" in reader.plot("large", "gd.layout.title.text")
        assert reader.plot("curves", "gd.layout.shapes[0].x0") == frame.step
        assert reader.text("loss") == ("–" if frame.loss is None else f"{frame.loss:.3f}")
        assert reader.text("right") == f"{frame.evaluation.right} / {frame.evaluation.total:,}"
        written = reader.page.locator("#outputs tr").first.locator("td").nth(1).inner_text()
        probe = frame.probes[0]
        assert written.removeprefix("→ ").rstrip("·…") == probe.output
        labels = reader.plot("large", "gd.layout.yaxis.ticktext")
        assert [" <b>✗</b> " in label for label in labels] == [
            expected != predicted for expected, predicted in zip(probe.expected, probe.predicted, strict=True)
        ]


def test_arrow_keys_walk_through_the_steps(reader):
    reader.page.locator("#step").focus()
    reader.page.keyboard.press("ArrowLeft")
    reader.at(7)
    reader.page.keyboard.press("Home")
    reader.at(0)
    reader.page.keyboard.press("ArrowRight")
    reader.at(1)
    assert reader.text("step-shown") == "1"


def test_play_runs_from_the_first_step_to_the_last_and_stops(reader):
    reader.page.evaluate(
        "() => { window.seen = []; new MutationObserver(() => seen.push(Number(document.body.dataset.step)))"
        ".observe(document.body, { attributes: true, attributeFilter: ['data-step'] }) }"
    )
    play = reader.page.locator("#play")
    assert play.inner_text() == "▶ Play"
    play.click()
    assert play.inner_text() == "❚❚ Pause"
    reader.until("seen.at(-1) === 8")
    assert reader.page.evaluate("seen") == [*range(9)]
    reader.until("document.getElementById('play').textContent === '▶ Play'")
    play.click()
    reader.until("Number(document.body.dataset.step) % 8 > 0")  # it plays again, from the beginning
    play.click()  # pause
    stood = reader.page.locator("body").get_attribute("data-step")
    reader.page.wait_for_timeout(600)
    assert int(reader.page.locator("body").get_attribute("data-step")) - int(stood) <= 1


def test_a_click_on_a_small_map_and_the_list_of_heads_change_the_large_one(reader, view):
    weights = view.frames[-1].map(0, "decoder.0.cross")[2]
    at = reader.plot(
        "strip",
        "{ const at = gd.getBoundingClientRect(), { xaxis, yaxis } = gd._fullLayout, { x, y } = gd.data[4];"
        " return [at.x + xaxis._offset + xaxis.d2p(x[3]), at.y + yaxis._offset + yaxis.d2p(y[3])] }",
    )
    reader.page.mouse.move(at[0] + 2, at[1])
    reader.page.mouse.click(*at)
    reader.until("document.getElementById('large').layout.title.text.includes('decoder 1 · head 3')")
    np.testing.assert_allclose(reader.drawn("large"), weights, atol=0.00051)
    assert reader.page.locator("#head").input_value() == "decoder.0.cross 2"
    widths = reader.plot("strip", "gd.layout.shapes.map(s => s.line.width)")
    assert widths.index(max(widths)) == 4
    reader.page.locator("#head").select_option(f"{SITE} 0")
    reader.until("document.getElementById('large').layout.title.text.includes('decoder 2 · head 1')")
    np.testing.assert_allclose(reader.drawn("large"), view.frames[-1].map(0, SITE)[0], atol=0.00051)


def test_another_kind_of_attention_shows_its_own_maps_with_the_future_blocked(reader, view):
    reader.page.locator("#kind").select_option("decoder")
    reader.until("document.getElementById('large').data.length === 2")
    weights = view.frames[-1].map(0, "decoder.1.self")[0]
    np.testing.assert_allclose(reader.drawn("large"), weights, atol=0.00051)
    blocked = np.isfinite(reader.drawn("large", 1))
    np.testing.assert_array_equal(blocked, ~np.tri(7, dtype=bool))
    reader.page.locator("#kind").select_option("encoder")
    reader.until("document.getElementById('strip').data.length === 3")
    np.testing.assert_allclose(reader.drawn("large"), view.frames[-1].map(0, "encoder.0")[0], atol=0.00051)
    assert reader.page.locator("#head option").count() == 3


def test_another_word_has_its_own_axes_and_one_that_was_asked_late_its_past_without_an_output(reader, view):
    reader.page.locator("#word").select_option("ox")
    reader.until("document.getElementById('large').data[0].z.length === 3")
    np.testing.assert_allclose(reader.drawn("large"), view.frames[-1].map(2, SITE)[1], atol=0.00051)
    columns = reader.plot("large", "gd.layout.xaxis.ticktext.map(t => t.replace('<br>', ''))")
    assert columns == ["[SOS]", "o", "x", "[EOS]"]
    assert reader.page.locator("#outputs tr").first.locator("td").first.inner_text() == "ox"
    reader.go(1)
    np.testing.assert_allclose(reader.drawn("large"), view.frames[1].map(2, SITE)[1], atol=0.00051)
    assert "not asked yet" in reader.page.locator("#outputs").inner_text()


def test_a_cell_that_was_blocked_by_hand_is_drawn_as_blocked_from_that_step_on(reader):
    marked = np.isfinite(reader.drawn("large", 1))
    assert np.argwhere(marked).tolist() == [[1, 5]]
    assert "At this step: blocked row 2, column 6" in reader.text("note")
    reader.go(3)
    assert reader.plot("large", "gd.data.length") == 1
    assert reader.page.locator("#note").inner_text() == ""


def test_moments_are_buttons_and_pins_that_jump_there(reader):
    buttons = reader.page.locator("#moments button")
    assert buttons.first.inner_text() == "step 2: the loss fell"
    buttons.first.click()
    reader.at(2)
    assert reader.page.locator("#moments button[aria-current=true]").inner_text() == "step 2: the loss fell"
    pin = reader.plot(
        "curves",
        "{ const at = gd.getBoundingClientRect(), { xaxis, yaxis3 } = gd._fullLayout;"
        " const { x, y } = gd.data.at(-1);"
        " return [at.x + xaxis._offset + xaxis.d2p(x[1]), at.y + yaxis3._offset + yaxis3.d2p(y[1])] }",
    )
    reader.page.mouse.move(pin[0] + 1, pin[1])
    reader.page.mouse.click(*pin)
    reader.at(4)


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 18, 24)")])
def test_it_follows_light_and_dark_and_fits_a_projector(reader, scheme, paper):
    reader.page.emulate_media(color_scheme=scheme)
    reader.until(f"getComputedStyle(document.body).backgroundColor === '{paper}'")
    ink = reader.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")
    reader.until(f"document.getElementById('large').layout.font.color === '{ink}'")
    assert reader.page.evaluate("document.documentElement.scrollHeight") <= 720
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_picture_can_be_saved_and_no_button_leads_outside(reader):
    saved = reader.plot("large", "Plotly.toImage(gd, { format: 'png', width: 300, height: 200 })")
    assert saved.startswith("data:image/png;base64,")
    assert len(saved) > 3_000
    titles = reader.page.locator(".modebar-btn").evaluate_all("all => all.map(b => b.dataset.title)")
    assert titles
    assert not [title for title in titles if title is None or "Studio" in title or "Plotly" in title]
    assert reader.page.locator("a[href]").count() == 0
