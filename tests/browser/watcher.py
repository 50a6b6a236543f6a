"""A visitor of the app in a real browser: opens pages, clicks, types, points, and reads what is drawn."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection

from playwright.sync_api import Locator, Page, expect

from benchmarks.tools.browser import SIZE

PATIENCE = 120.0
"""Seconds after which a wait fails, generous for a busy machine."""
LOOKED = """() => {
  if (!document.querySelector(".headlight-player .hl-outputs")) return { map: -1 };  // not drawn yet
  const find = (selector) => document.querySelector(`.headlight-player ${selector}`);
  const number = (text) => Number(/step ([\\d,]+)/.exec(text ?? "step 0")?.[1].replaceAll(",", "") ?? -1);
  return {
    player: Number(document.querySelector(".headlight-player").dataset.step),
    counter: Number(find(".counter b").textContent.replaceAll(",", "")),
    map: Number(find(".st-key-live_map .live-figure").dataset.step),
    title: number(find(".st-key-live_map .map-details p").textContent),
    strip: Number(find(".st-key-live_maps .live-figure").dataset.step),
    control: Number(find(".time-slider").dataset.step),
    outputs: Number(find(".hl-outputs").dataset.step),
  };
}"""
"""The step that each panel of the player shows, all read at once."""
MAP = """
  const drawn = gd.layout ?? gd.picture;
  const title = () => [gd.picture.name, gd.picture.about, ...gd.picture.details ?? []].join(" ");
  const weights = (i = 0) => {
    if (gd.picture.numbers) return gd.picture.numbers; // of a difference
    const { high, wide, value, code } = gd.picture.tables[i];
    const cell = (row, column) => (code(row, column) ? null : value(row, column) ?? null);
    const places = (n) => [...Array(n).keys()];
    return places(high).map((row) => places(wide).map((column) => cell(row, column)));
  };
"""
"""What an expression can read of a picture of maps."""
FRAMES = "gd.picture.tables.map(({ frames }) => frames[0]?.[5] ?? 0)"
"""The width of the frame of each small map."""


class Visit:
    """One use of an open page, which is reset for the next use."""

    def __init__(self, page: Page, **notes: Callable[..., object]) -> None:
        """Register a listener for each event of the page that `notes` names."""
        self._page, self._notes = page, notes
        for event, note in notes.items():
            page.on(event, note)  # type: ignore[call-overload]

    def end(self) -> None:
        """Remove the listeners and reset the page."""
        self._page.unroute_all()
        self._page.goto("about:blank")
        self._page.context.set_offline(False)
        self._page.emulate_media(color_scheme="light", reduced_motion="no-preference")
        self._page.set_viewport_size(SIZE)
        self._page.mouse.move(0, 0)
        for event, note in self._notes.items():
            self._page.remove_listener(event, note)


class Watcher:
    """A page, with its errors and the addresses that it requested."""

    def __init__(self, page: Page, app: str, notices: Collection[str] = ("error",)) -> None:
        """Count console messages of the kinds in `notices` as errors."""
        self.page, self.app = page, app
        self.errors: list[str] = []
        self.asked: set[str] = set()
        page.set_default_timeout(1000 * PATIENCE)
        self._visit = Visit(
            page,
            console=lambda m: self.errors.append(m.text) if m.type in notices else None,
            pageerror=lambda error: self.errors.append(str(error)),
            request=lambda request: self.asked.add(request.url),
        )

    @property
    def hosts(self) -> set[str]:
        """The hosts of the addresses that the page requested."""
        return {address.split("/")[2] for address in self.asked}

    def leave(self) -> None:
        """Stop the run, clear the browser's storage, and reset the page for the next visit."""
        if self.page.url.startswith(self.app):
            self.page.evaluate("document.querySelector('.st-key-run_stop button:enabled')?.click()")
            self.page.wait_for_timeout(100)  # until the press has been sent
            self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self._visit.end()

    def open(self, path: str = "/", picture: str = "live_map") -> None:
        """Go to a page and wait until its picture has been drawn."""
        self.page.goto(self.app + path)
        self.drawn(picture)

    def click(self, key: str) -> None:
        self.button(key).click()

    def button(self, key: str) -> Locator:
        """Return the button of a key; with a help text, Streamlit draws it twice and hides the second."""
        return self.page.locator(f".st-key-{key} button").first

    def until_settled(self) -> None:
        """Wait until the page has been drawn: until then, it may replace a box or a button."""
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")

    def type(self, key: str, text: str) -> None:
        self.until_settled()
        box = self.page.locator(f".st-key-{key} input")
        box.fill(text)
        box.press("Enter")

    def choose(self, what: str, value: str) -> None:
        """Press a word or a kind of attention in the player."""
        self.page.locator(f".st-key-{what} button[data-value='{value}']").click()

    def tile(self, layer: int, head: int) -> None:
        """Click the small map of a layer and a head, both counted from 0."""
        place = self.plot(
            "live_maps",
            "(() => { const { tables } = gd.picture, layers = new Set(tables.map((one) => one.column)).size;"
            f" const one = tables[{head} * layers + {layer}], last = tables.at(-1);"
            " const { x, y, width, height } = gd.querySelector('canvas').getBoundingClientRect();"
            " return [x + width * (one.column + one.wide / 2) / (last.column + last.wide),"
            " y + height * (one.row + one.high / 2) / (last.row + last.high)]; })()",
        )
        self.page.mouse.click(*place)  # type: ignore[misc]

    def step_by(self, *keys: str) -> None:
        """Press these keys on the step control."""
        slider = self.page.get_by_role("slider", name="Step")
        slider.focus()
        for key in keys:
            slider.press(key)

    def shown_steps(self) -> dict[str, int]:
        """Return the step that each panel of the player shows, all read at once."""
        found: dict[str, int] = self.page.evaluate(LOOKED)
        return found

    def stands_at(self, step: int) -> bool:
        """Whether every panel of the player shows this step."""
        return set(self.shown_steps().values()) == {step}

    def score_table(self) -> tuple[float, dict[tuple[str, str], float]]:
        """Return the score of the kept cell, and its table of parts by the names of row and column."""
        host = self.page.locator(".st-key-score_parts")
        host.locator("table").wait_for(state="attached")

        def texts(selector: str) -> list[str]:
            return [text.replace("−", "-") for text in host.locator(selector).all_text_contents()]

        names = [(row, column) for row in texts("[scope=row]")[:-1] for column in texts("[scope=col]")[:-1]]
        (said,) = texts("summary")
        score = re.search(r"before the softmax is ([+-]\d+\.\d\d)[;.]", said)
        assert score, said
        return float(score[1]), dict(zip(names, map(float, texts("td:not(:empty):not(.sum)")), strict=True))

    def number(self, key: str, name: str) -> int:
        """Return an attribute of the picture's host element: step or draws."""
        host = self.page.locator(f".st-key-{key} .live-figure, .model.st-key-{key}")
        expect(host).to_have_count(1)  # two while one player replaces another
        return int(host.get_attribute(f"data-{name}") or -1)

    def drawn(self, key: str) -> None:
        """Wait until a picture has been drawn."""
        self.page.wait_for_selector(f":is(.st-key-{key}) :is(svg.main-svg, .map[data-step], [data-box])")

    @property
    def status(self) -> str:
        """The status line of the run on Watch; empty on other pages."""
        return " ".join(self.page.locator(".st-key-run_status").all_inner_texts())

    @property
    def state(self) -> str:
        """The state: one word of the status line, which also contains, for example, `0.1 s of computing`."""
        return self.status.partition(" · ")[0].rpartition(" ")[2]

    def until(self, condition: str | object, seconds: float = PATIENCE, what: str = "") -> float:
        """Wait until a function without arguments returns true; return the seconds that it took."""
        began = time.monotonic()
        while not condition():  # type: ignore[operator]
            if time.monotonic() - began > seconds:
                raise AssertionError(f"not within {seconds} s: {what or condition}; status: {self.status}")
            self.page.wait_for_timeout(20)
        return time.monotonic() - began

    def plot(self, key: str, expression: str) -> object:
        """Evaluate a JavaScript expression in which `gd` is the picture's host element, as in Plotly.

        In maps, `weights(i)` is the i-th table as rows, null where no weight is shown; `title()` the title.
        Waits for a picture that is still being created.
        """
        host = self.page.locator(f".st-key-{key} .live-figure")
        found: list[list[object]] = []

        def asked() -> bool:
            found.append(
                host.evaluate(f"async gd => {{ {MAP} return drawn ? [await ({expression})] : []; }}")
            )
            return bool(found[-1])

        self.until(asked, what=f"the picture {key}")
        return found[-1][0]

    def point(
        self, key: str, x: float | str, y: float | str, answered: Callable[[], object]
    ) -> tuple[float, float]:
        """Move the pointer to a point of a picture's axes until the page responds.

        During layout, a picture may move away from under a resting pointer; a redrawn picture responds only
        to a pointer that moves onto it.

        Returns:
            The position of the point on the page.
        """
        there = (
            "(({left, top}, {xaxis, yaxis}) =>"
            f" [left + xaxis._offset + xaxis.d2p({x}), top + yaxis._offset + yaxis.d2p({y})])"
            "(gd.getBoundingClientRect(), gd._fullLayout)"
        )
        looks: list[tuple[float, float]] = []

        def moved() -> bool:
            looks.append(tuple(self.plot(key, there)))  # type: ignore[arg-type]
            if len(looks) % 20 == 0:
                self.page.mouse.move(0, 0)
            self.page.mouse.move(looks[-1][0] + len(looks) % 2, looks[-1][1])
            return looks[-2:-1] == looks[-1:] and bool(answered())

        self.until(moved, what=f"an answer to the pointer on {key}")
        return looks[-1]

    def press(self, key: str, x: float | str, y: float | str) -> None:
        """Click a point of a picture's axes as soon as Plotly registers the pointer there."""
        self.page.mouse.click(*self.point(key, x, y, lambda: self.plot(key, "Boolean(gd._hoverdata)")))
