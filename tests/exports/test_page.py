"""The exported page holds a whole run and needs no network; its maps are as recorded, texts are escaped."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import plotly.offline
import pytest

from tests.conftest import HELD_OUT
from tests.player.test_chunks import decoded
from transformer.errors import InputError
from transformer.exports import page
from transformer.exports.page import MODULES, html_page
from transformer.player.index import Index
from transformer.recording.chunk import BLOCKED, ONE
from transformer.recording.frames import Frames

SITE = "decoder.1.cross"


class Elements(HTMLParser):
    """Every element with its attributes, and the text of the scripts and the heading."""

    def __init__(self, text):
        super().__init__()
        self.found, self.scripts, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "script":
            self.scripts[-1] += data
        else:
            self.texts.append(data)

    def handle_endtag(self, tag):
        if tag == "script":
            self.found.append(("", {}))


def made(view, word="banana", site=SITE, head=1):
    return html_page(view, word=word, site=site, head=head)


def data_of(text):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    )


def run_data(text):
    """Return the data of the only run in a page."""
    (run,) = data_of(text)["runs"]
    return run


def chunks_of(data):
    """Return the facts and the codes of every chunk, by its name."""
    return {
        name: decoded(gzip.decompress(base64.b64decode(packed))) for name, packed in data["chunks"].items()
    }


def modules_of(text):
    """Return the player's modules by name, as the browser reads them."""
    found = json.loads(re.search(r'<script type="importmap">(.*?)</script>', text, re.DOTALL)[1])["imports"]
    return {
        name: base64.b64decode(address.removeprefix("data:text/javascript;base64,")).decode()
        for name, address in found.items()
    }


def test_the_page_refers_to_nothing_outside_itself(recorded):
    text = made(recorded)
    elements = Elements(text)
    for tag, attributes in elements.found:
        assert tag not in ("iframe", "object", "embed", "base", "form", "img"), tag
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
    (policy,) = (a["content"] for t, a in elements.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert "connect-src" not in policy
    ours = text.replace(page._plotly(), "")
    for source in (ours.replace("http-equiv", ""), *modules_of(text).values()):
        assert "http:" not in source
        assert "https:" not in source
        assert "@import" not in source
        assert "url(" not in source


def test_the_page_contains_the_player_of_the_app_and_every_module_that_it_imports(recorded):
    modules = modules_of(made(recorded))
    assert set(modules) == {f"headlight/{name}" for name in MODULES}
    asked = {name for source in modules.values() for name in re.findall(r'from "([^"]+)"', source)}
    assert asked <= set(modules)
    assert {"headlight/player.js", "headlight/sources.js"} <= set(modules)


def test_the_page_contains_plotly_js(recorded):
    assert plotly.offline.get_plotlyjs()[:200] in made(recorded)


def test_the_page_has_four_scripts_whatever_plotly_js_or_a_text_contains(recorded, monkeypatch):
    nasty = 'var a = "</script><script>alert(1)</SCRIPT><!-- <script>";'
    monkeypatch.setattr(plotly.offline, "get_plotlyjs", lambda: nasty)
    page._plotly.cache_clear()
    try:
        moment = replace(recorded.moments[0], text="</script><script>alert(2)</script><!--{{plotly}}")
        text = made(replace(recorded, moments=(moment,), reason="<i>done</i> & {{data}}"))
    finally:
        page._plotly.cache_clear()
    scripts = Elements(text).scripts
    assert len(scripts) == 4
    assert scripts[0] == 'var a = "\\x3c/script>\\x3cscript>alert(1)\\x3c/SCRIPT>\\x3c!-- \\x3cscript>";'
    assert json.loads(scripts[1])["runs"][0]["index"]["moments"][0]["text"] == moment.text
    assert "<i>" not in text
    assert "&lt;i&gt;done&lt;/i&gt; &amp; {{data}}" in text


def test_the_heading_describes_the_run_without_its_secret_id(recorded):
    text = made(recorded)
    assert recorded.id not in text
    facts = " ".join(Elements(text).texts)
    assert "Headlight: words, reverse, seed 5" in facts
    assert "1 + 2 layers × 3 heads · width 12" in facts
    assert f"{recorded.parameters:,} parameters · trained for 8 steps" in facts
    assert " · finished · 9 of 9 frames" in facts
    assert f"All 8 steps are done: 0 of {HELD_OUT} held-out words right" in facts


def test_the_page_holds_the_index_of_the_run_and_every_map_of_every_word(recorded):
    data = run_data(made(recorded))
    same = Index(recorded.config).whole(page.fitting(recorded))
    assert data["index"] == json.loads(json.dumps(same))
    pieces, frames = chunks_of(data), recorded.frames
    assert list(data["index"]["chunks"]) == ["banana", "cat", "ox"]
    for row, (word, named) in enumerate(data["index"]["chunks"].items()):
        held = [step for _, _, _, name in named for step in pieces[name][0]["steps"]]
        assert tuple(held) == frames.steps_of(word) == tuple(range(9))
        for *_, name in named:
            facts, codes = pieces[name]
            for i, step in enumerate(facts["steps"]):
                for site, shown in codes.items():
                    weights = np.where(shown[i] == BLOCKED, np.nan, shown[i] / ONE)
                    recorded_map = frames.of_step(step).map(row, site)
                    np.testing.assert_allclose(weights, recorded_map, atol=1 / ONE)


def test_a_page_over_its_limit_has_fewer_steps_and_keeps_the_first_the_last_and_moments(
    recorded, monkeypatch
):
    frames = recorded.frames
    maps = sum(chunk.nbytes for word in frames.words for chunk in frames.chunks_of(word))
    monkeypatch.setattr(page, "ROOM", maps * 2 // 3)
    text = made(recorded)
    steps = run_data(text)["index"]["steps"]
    assert {0, 4, 8} <= set(steps) < set(frames.steps)
    assert f" · finished · {len(steps)} of 9 frames<" in text
    held = {step for facts, _ in chunks_of(run_data(text)).values() for step in facts["steps"]}
    assert held == set(steps)


def test_a_page_of_a_few_steps_adds_little_to_plotly_js(recorded):
    text = made(recorded)
    pictures = sum(map(len, run_data(text)["pictures"]["steps"].values()))
    assert 0 < pictures <= page.ROOM_OF_PICTURES
    assert len(text.encode()) - pictures < len(plotly.offline.get_plotlyjs().encode()) + 425_000


def test_the_page_opens_with_the_chosen_word_or_else_the_first_at_the_newest_step(recorded):
    first = data_of(made(recorded, word="cat", site="encoder.0", head=2))["first"]
    assert first == {"word": "cat", "kind": "encoder", "pinned": ["encoder.0", 2], "step": None}
    assert data_of(made(recorded, word="dog"))["first"]["word"] == "banana"


def test_a_head_that_does_not_exist_and_a_run_without_frames_are_refused(recorded):
    with pytest.raises(ValueError, match="^There is no head 3 at 'decoder.1.cross'"):
        made(recorded, head=3)
    with pytest.raises(InputError, match="^Nothing has been recorded yet"):
        made(replace(recorded, frames=Frames()))
