"""The exported page holds a whole run and needs no network; its maps are as recorded, texts are escaped."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import plotly.offline
import pytest

from tests.conftest import HELD_OUT
from tests.player.test_chunks import decoded
from transformer.anatomy import boxes
from transformer.anatomy.trace import trace
from transformer.config.recipes import RECIPES
from transformer.errors import InputError
from transformer.exports import page
from transformer.exports.page import html_page
from transformer.figures.colors import LOOK
from transformer.player.index import Index
from transformer.recording.chunk import BLOCKED, ONE
from transformer.recording.recording import Recording
from transformer.runs.run import Run

SITE = "decoder.1.cross"


class Elements(HTMLParser):
    """Every element with its attributes, the packs by name, and the text of other scripts and the heading."""

    def __init__(self, text):
        super().__init__()
        self.found, self.scripts, self.texts = [], [], []
        self.feed(text)
        ids = [attributes.get("id") for tag, attributes in self.found if tag == "script"]
        assert len(set(ids)) == len(ids)
        self.packs = dict(zip(ids, self.scripts, strict=True))
        self.code = self.packs.pop(None)

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


def unpacked(pack):
    """Return the bytes of a pack."""
    sevens = np.frombuffer(pack.encode("latin-1"), np.uint8) & 127
    bits = np.unpackbits(sevens).reshape(-1, 8)[:, 1:].ravel()
    return zlib.decompress(np.packbits(bits[: len(bits) // 8 * 8]))


def data_of(text):
    return json.loads(unpacked(Elements(text).packs["data"]))


def run_data(text):
    """Return the data of the only run in a page, with its chunks by name."""
    (run,) = data_of(text)["runs"]
    packs = Elements(text).packs
    named = (name for entries in run["index"]["chunks"].values() for *_, name in entries)
    return run | {"chunks": {name: unpacked(packs[name]) for name in named}}


def chunks_of(data):
    """Return the facts and the codes of every chunk, by its name."""
    return {name: decoded(content) for name, content in data["chunks"].items()}


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
    packed = "".join(elements.packs.values())
    assert not set(packed) & set("\0\n\r<")  # a browser would change them, or end the script
    assert max(packed) <= "\xff"
    ours = text.replace("http-equiv", "")
    for source in (ours, *data_of(text)["modules"].values()):
        assert "http:" not in source
        assert "https:" not in source
        assert "@import" not in source
        assert "url(" not in source


def test_the_page_contains_the_player_of_the_app_and_every_module_that_it_imports(recorded):
    modules = data_of(made(recorded))["modules"]
    asked = {name for source in modules.values() for name in re.findall(r'from "([^"]+)"', source)}
    asked |= set(re.findall(r'import\("([^"]+)"', Elements(made(recorded)).code))
    assert asked == set(modules)


def test_the_page_contains_plotly_js(recorded):
    assert unpacked(Elements(made(recorded)).packs["plotly"]).decode() == plotly.offline.get_plotlyjs()


def test_the_page_has_the_same_scripts_whatever_a_text_contains(recorded):
    moment = replace(recorded.moments[0], text="</script><script>alert(2)</script><!--{{packs}}")
    text = made(replace(recorded, moments=(moment,), reason="<i>done</i> & {{packs}}"))
    assert data_of(text)["runs"][0]["index"]["moments"][0]["text"] == moment.text
    assert Elements(text).code == Elements(made(recorded)).code
    assert list(Elements(text).packs) == list(Elements(made(recorded)).packs)
    assert "<i>" not in text
    assert "&lt;i&gt;done&lt;/i&gt; &amp; {{packs}}" in text


def test_the_heading_describes_the_run_without_its_secret_id(recorded):
    text = made(recorded)
    assert recorded.id not in text
    facts = " ".join(Elements(text).texts)
    assert "Headlight: words, reverse, seed 5" in facts
    assert "1 + 2 layers × 3 heads · width 12" in facts
    assert f"{recorded.parameters:,} parameters · trained for 8 steps" in facts
    assert " · finished · 9 of 9 frames" in facts
    assert f"All 8 steps are done: 0 of {HELD_OUT} test words right" in facts


def test_the_page_holds_the_index_of_the_run_and_every_map_of_every_word(recorded):
    data = run_data(made(recorded))
    same = Index(recorded.config).whole(page.thinned_to_fit(recorded))
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
    sizes = {name: len(pack.encode()) for name, pack in Elements(text).packs.items()}
    steps = run_data(text)["pictures"]["steps"]
    assert steps == sorted(steps)
    assert [0, 8] == [steps[0], steps[-1]]
    assert len(steps) <= page.PASSES
    passes, parts = (sum(sizes[f"{name}-{step}"] for step in steps) for name in ("pass", "parts"))
    assert 0 < passes <= page.ROOM_OF_PASSES
    assert 0 < parts <= page.ROOM_OF_PARTS
    assert sizes["plotly"] < 1_800_000
    assert len(text.encode()) - passes - parts - sizes["plotly"] < 137_000


def test_parts_of_scores_that_do_not_fit_are_left_out_and_the_last_step_comes_first(recorded, monkeypatch):
    packs = Elements(made(recorded)).packs
    monkeypatch.setattr(page, "ROOM_OF_PARTS", len(packs["parts-8"]) + len(packs["parts-0"]))
    pictures = run_data(made(recorded))["pictures"]
    assert pictures["parts"] == [0, 8]  # the last step and the first come before all others
    assert len(pictures["steps"]) > 2
    monkeypatch.setattr(page, "ROOM_OF_PARTS", 9)
    assert run_data(made(recorded))["pictures"] == pictures | {"parts": []}


@pytest.mark.slow
def test_the_page_of_a_default_run_of_300_steps_with_its_forward_passes_has_at_most_7_mb():
    run = Run(RECIPES["default"].small.with_changes(goal=None, steps=300))
    run.start()
    assert run.wait(200)
    text = made(run.view, word="playground")
    data = run_data(text)
    assert data["index"]["steps"] == list(run.view.frames.steps)
    assert len(data["pictures"]["steps"]) == len(data["pictures"]["parts"]) == 12
    assert len(text.encode()) <= 7_000_000
    run.close()


def test_the_numbers_of_a_forward_pass_are_shown_with_the_same_digits_as_in_the_app(recorded):
    config, snapshot = recorded.config, recorded.snapshots[-1]
    passed = boxes.packed(trace(config, snapshot, "banana"), snapshot.step, word="banana", **LOOK)
    line, _, body = unpacked(Elements(made(recorded)).packs[f"pass-{snapshot.step}"]).partition(b"\n")
    known, _, numbers = passed.partition(b"\n")
    assert json.loads(line) == json.loads(known)
    numbers = np.frombuffer(numbers, "<f4")
    low, high, exponents = np.frombuffer(body, np.uint8).reshape(3, -1)
    found = (low + 256.0 * high - 10_000) * 10.0 ** exponents.astype(np.int8)
    tables = [table for box in json.loads(line)["boxes"] for table in box["tables"]]
    ends = np.cumsum([np.prod(table["shape"]) for table in tables])
    assert ends[-1] == len(found) == len(numbers)
    for table, before, after in zip(tables, np.split(numbers, ends), np.split(found, ends), strict=False):
        shares = table["role"] in ("weights", "probabilities")
        for form in ("{:.1%}", "{:.0%}") if shares else ("{:.4g}",):
            assert [form.format(x + 0) for x in after] == [form.format(x + 0) for x in before], table["name"]


def test_the_page_opens_with_the_chosen_word_or_else_the_first_at_the_newest_step(recorded):
    first = data_of(made(recorded, word="cat", site="encoder.0", head=2))["first"]
    assert first == {"word": "cat", "kind": "encoder", "pinned": ["encoder.0", 2], "step": None}
    assert data_of(made(recorded, word="dog"))["first"]["word"] == "banana"


def test_a_head_that_does_not_exist_and_a_run_without_frames_are_refused(recorded):
    with pytest.raises(ValueError, match="^There is no head 3 at 'decoder.1.cross'"):
        made(recorded, head=3)
    with pytest.raises(InputError, match="^Nothing has been recorded yet"):
        made(replace(recorded, frames=Recording()))
