"""Any link to any page opens the page, which reports the parts of the link that it does not accept."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.controls.commands import PACE_NAMES
from pages.settings.beginnings import GOALS, values_of
from pages.settings.presets import PRESETS
from tests.fuzzing import profile
from tests.pages.conftest import end_all_runs
from tests.pages.visitor import APP
from transformer.config import DEVICES, KINDS_OF, LETTER_TASKS, PRECISIONS, TASKS, TOKENIZERS, RunConfig
from transformer.config.recipes import RECIPES
from transformer.runs.registry import REGISTRY

EXAMPLES, MANY, PARAMETERS = 8, 1000, 5
"""Numbers of links in the short test and in the slow one, and the fewest parameters of a link."""
PAGES = ["watch", "ask", "inside", "masks", "data"]
CHOICES = {
    "task": [*LETTER_TASKS * 8, *TASKS],  # the sentences of a grammar take half a second to generate
    "recipe": [*RECIPES],
    "preset": [*PRESETS],
    "topology": [*KINDS_OF],
    "as_published": ["true", "false"],
    "goal": [*GOALS],
    "pace": [*PACE_NAMES],
    "device": [*DEVICES],
    "precision": [*PRECISIONS],
    "cuda_graphs": ["true", "false"],
    "tokenizer_kind": [*TOKENIZERS],
    "decoding": ["greedy", "beam"],
    "kind": ["cross", "encoder", "decoder", "sequence"],
    "head": ["decoder.1.cross.1", "encoder.0.9", "decoder.99.self.99", "encoder.0.0", "encoder.-1.1"],
    "box": ["decoder.0.cross~1~2~3~weights", "encoder.0~0", "output~0~9~9~nothing", "~~~", "a~99999"],
    "step": ["0", "7", "999999999", "9" * 20],
    "word": [
        "banana",
        "b4nana",
        "ünï",
        "a" * 3000,
        "<b>bold</b>",
        "$$\\frac{1}{0}$$",
        "[x](javascript:alert(1))",
    ],
    "run": ["x", "../../../etc/passwd", "a" * 22, "A-_" * 7],
    "owner": ["x", "a" * 43],
    "pairs": ["../../etc/passwd", "0" * 64],
}
NUMBERS = "0 1 2 3 8 12 60 1000 100000 1000000000 -1 0.5 1e-9 1e308 1e999".split()
ODD = [
    *"NaN -inf nan None null true [] {} 0x10 1_000 １２ ٣ ½ -- %00 %ff __class__ 🦜 {{7*7}}".split(),
    *("", " ", "\0", "\n\n", "a\0b", "\u202e", "../../app.py", "/dev/zero", "$$ID-0-steps"),
    *("9" * 5000, "-" * 5000, "é" * 5000, "<script>alert(1)</script>", "'; drop table runs; --"),
]
NAMES = sorted({*CHOICES, *values_of(RunConfig()), "beam_width", "beam_penalty", "follow"})


@st.composite
def parameters(draw):
    """Draw the name of a known parameter, with a known value in half of all draws."""
    name = draw(st.sampled_from(NAMES))
    known = st.sampled_from(CHOICES.get(name, NUMBERS))
    return name, draw(st.one_of(known, known, st.sampled_from(ODD), st.text(max_size=8)))


def everything():
    """Return all files in the folder of the app with their times, except caches and hidden folders."""
    found = set()
    for place, folders, names in os.walk(APP.parents[1]):
        folders[:] = [f for f in folders if f != "__pycache__" and not f.startswith(".")]
        found |= {(place, name, os.stat(os.path.join(place, name)).st_mtime_ns) for name in names}
    return found


def check(page, link):
    """Open a link; fail on an exception on the page, a started run, or a changed file or variable."""
    before, surroundings = everything(), dict(os.environ)
    at = AppTest.from_file(str(APP), default_timeout=60)
    if page != "watch":
        at.switch_page(f"{page}.py")
    for name, value in link:
        at.query_params[name] = value
    try:
        at.run()
        assert [(error.message, error.stack_trace) for error in at.exception] == []
        assert len(at.caption) > 0, "an empty page shows no exception either"
        said = [*at.error, *at.warning, *at.info]
        assert all(0 < len(message.value) < 1500 for message in said)
        assert REGISTRY.listed() == [], "a link has started a run"
        assert everything() == before
        assert dict(os.environ) == surroundings
    finally:
        end_all_runs()


@profile(EXAMPLES)
@given(st.sampled_from(PAGES), st.lists(parameters(), min_size=PARAMETERS, max_size=8))
def test_any_link_opens_its_page(page, link):
    check(page, link)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@profile(MANY)
@given(st.sampled_from(PAGES), st.lists(parameters(), min_size=PARAMETERS, max_size=8))
def test_many_links_open_their_pages(page, link):
    check(page, link)


@pytest.mark.parametrize("number", ["inf", "-inf", "1e999", "nan"])
def test_a_link_with_an_infinite_or_undefined_number_opens_its_page(number):
    check("watch", [("width", number), ("vocabulary", number), ("learning_rate", number)])
