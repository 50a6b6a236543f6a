"""The exported page holds a whole run and asks nobody: its weights are the recorded ones, words are safe."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import plotly.offline
import pytest

from tests.exports.conftest import Given, with_probe
from transformer.errors import InputError
from transformer.exports import page, page_data
from transformer.exports.page import html_page
from transformer.figures import colors

SITE = "decoder.1.cross"
FUTURE, PADDING, BY_HAND = 65534, 65533, 65535


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


def made(view, word="banana", kind="cross", site=SITE, head=1):
    return html_page(view, word=word, kind=kind, site=site, head=head)


def data_of(text):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    )


def codes_of(packed):
    codes = np.frombuffer(zlib.decompress(base64.b64decode(packed["b"])), dtype="<u2")
    return codes.reshape(packed["shape"])


def unpacked(packed):
    codes = codes_of(packed)
    assert set(codes[codes > 1000].tolist()) <= {FUTURE, PADDING, BY_HAND}
    return np.where(codes > 1000, np.nan, codes / 1000)


def test_nothing_in_the_page_refers_to_anything_outside(view):
    text = made(view)
    elements = Elements(text)
    for tag, attributes in elements.found:
        assert tag not in ("iframe", "object", "embed", "base", "form", "img"), tag
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
    (policy,) = (a["content"] for t, a in elements.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    ours = text.replace(page._plotly(), "")
    assert "http" not in ours.replace("http-equiv", "")
    assert "fetch(" not in ours
    assert "@import" not in ours
    assert "url(" not in ours


def test_plotly_js_is_inside_and_without_its_logo_and_cloud(view):
    text = made(view)
    assert plotly.offline.get_plotlyjs()[:200] in text
    assert "displaylogo: false" in text
    assert "showSendToCloud: false" in text


def test_the_scripts_are_three_whatever_plotly_js_or_a_word_holds(view, monkeypatch):
    nasty = 'var a = "</script><script>alert(1)</SCRIPT><!-- <script>";'
    monkeypatch.setattr(plotly.offline, "get_plotlyjs", lambda: nasty)
    page._plotly.cache_clear()
    try:
        output = "</script><b>&{{plotly}}"
        frame = with_probe(view.frames[-1], output=output, text="a<b>&", pieces=tuple(output))
        moment = replace(view.moments[0], text="</script><script>alert(2)</script><!--")
        shown = replace(view, frames=Given([frame]), moments=(moment,), reason="<i>done</i> & {{data}}")
        text = made(shown, word="a<b>&")
    finally:
        page._plotly.cache_clear()
    scripts = Elements(text).scripts
    assert len(scripts) == 3
    assert scripts[0] == 'var a = "\\x3c/script>\\x3cscript>alert(1)\\x3c/SCRIPT>\\x3c!-- \\x3cscript>";'
    assert json.loads(scripts[1])["first"]["word"] == "a<b>&"
    assert json.loads(scripts[1])["moments"][0]["text"] == moment.text
    assert "".join(
        letter for letter, _ in json.loads(scripts[1])["frames"][0]["probes"]["a<b>&"]["letters"]
    ) in (
        "</script><b>&{{plotly}}",
        "</script><b>&{{plotly}}…",
    )
    assert "<i>" not in text
    assert "&lt;i&gt;done&lt;/i&gt; &amp; {{data}}" in text


def test_the_heading_says_which_run_this_is_and_never_its_secret_id(view):
    text = made(view)
    facts = " ".join(Elements(text).texts)
    assert "Headlight: reverse, seed 5" in facts
    assert "1 + 2 layers × 3 heads · width 12" in facts
    assert f"{view.parameters:,} parameters · trained for 8 steps" in facts
    assert "All 8 steps are done: 0 of 1,000 held-out words right" in facts
    assert view.id not in text


def test_the_heading_says_how_many_of_the_run_s_frames_the_page_holds(view, monkeypatch):
    assert "trained for 8 steps" in made(view)
    assert " · finished · 9 of 9 frames<" in made(view)
    monkeypatch.setattr(page_data, "MOST_FRAMES", 8)
    text = made(view)
    assert " · finished · 8 of 9 frames<" in text
    assert len(data_of(text)["frames"]) == 8


def test_weights_are_those_of_every_frame_and_head_in_thousandths(thinned):
    view = thinned
    data = data_of(made(view))
    assert [frame["step"] for frame in data["frames"]] == [0, 1, 2, 3, 4, 5, 8]
    for row, text in enumerate(["banana", "cat", "ox"]):
        word = data["words"][text]
        having = [frame for frame in view.frames if len(frame.probes) > row]
        assert [data["frames"][i]["step"] for i in word["frames"]] == [frame.step for frame in having]
        for site in having[0].axes:
            found = unpacked(word["weights"][site])
            expected = np.stack([frame.map(row, site) for frame in having])
            np.testing.assert_allclose(found, expected, atol=0.00051)
    assert data["words"]["ox"]["since"] == 4


def test_a_word_that_came_later_has_its_maps_from_the_first_step_on_and_no_letters_before_it_was_asked(view):
    data = data_of(made(view))
    assert data["words"]["ox"]["frames"] == list(range(9))
    asked = [frame["probes"]["ox"] for frame in data["frames"]]
    assert [one["letters"] is None for one in asked] == [one["right"] is None for one in asked]
    assert [one["right"] for one in asked] == [*4 * [None], *5 * [False]]
    assert [frame["written"] for frame in data["frames"]] == [0, 1, 2, 3, 4, 4, 4, 4, 8]
    assert [frame["rightStep"] for frame in data["frames"]] == [0, 0, 0, 0, 4, 4, 4, 4, 8]


def test_a_blocked_cell_says_whether_it_lies_in_the_future_or_was_blocked_by_hand(view):
    data = data_of(made(view))
    codes = codes_of(data["words"]["banana"]["weights"]["decoder.0.self"])
    assert codes.shape == (9, 3, 7, 7)
    for i, frame in enumerate(view.frames):
        for head in range(3):
            expected = np.where(np.triu(np.ones((7, 7), bool), 1), FUTURE, 0)
            if frame.step >= 4 and head == 1:
                expected[4, 2] = BY_HAND
            assert np.array_equal(np.where(codes[i, head] > 1000, codes[i, head], 0), expected)
    cross = codes_of(data["words"]["banana"]["weights"]["decoder.0.cross"])
    for i, frame in enumerate(view.frames):  # right of the diagonal, where no mask hides what comes later
        blocked = [[0, 1, 3, BY_HAND]] if frame.step >= 4 else []
        found = np.argwhere(cross[i] > 1000)
        assert [[*cell, cross[i][tuple(cell)]] for cell in found.tolist()] == blocked
    told = [(one["code"], one["color"], one["mark"]) for one in data["blocked"]]
    assert told == [
        (FUTURE, colors.CAUSAL, "╱"),
        (PADDING, colors.PADDING, "•"),
        (BY_HAND, colors.TAKEN, "✕"),
    ]


def test_labels_are_the_tokens_really_attended_to_and_colours_are_the_app_s(view):
    drawn = data_of(made(view))["words"]["banana"]["drawn"]
    cross, decoder = (json.loads(drawn[kind]["large"]) for kind in ("cross", "decoder"))
    assert drawn["cross"]["rows"][:3] == ["[SOS] → a", "a → n", "n → a"]
    assert cross["layout"]["yaxis"]["title"]["text"] == "after reading → writes"
    assert [t.replace("<br>", "") for t in cross["layout"]["xaxis"]["ticktext"]] == [
        "[SOS]",
        *"banana",
        "[EOS]",
    ]
    assert (cross["data"][0]["zmin"], cross["data"][0]["zmax"], cross["data"][0]["colorscale"]) == (
        0,
        1,
        colors.WEIGHTS,
    )
    assert "colorbar" in cross["data"][0]
    assert len(cross["data"]) == len(decoder["data"]) == 1  # what is blocked at a step is drawn at that step
    assert len(json.loads(drawn["encoder"]["strip"])["data"]) == 3
    assert len(json.loads(drawn["cross"]["strip"])["data"]) == 6
    assert drawn["cross"]["names"][1][2] == "dec 2 · head 3"


def test_frames_carry_their_numbers_outputs_and_what_was_taken_away(view):
    data = data_of(made(view))
    frame = data["frames"][-1]
    assert frame["loss"] == view.frames[-1].loss
    assert frame["right"] == [view.frames[-1].evaluation.right, 1000]
    assert data["frames"][0]["loss"] is None
    assert [bool(f["taken"]) for f in data["frames"]] == [step >= 4 for step in range(9)]
    assert "ablated decoder layer 2" in frame["taken"]
    assert frame["roles"][SITE][2] == "switched off"
    assert data["frames"][0]["roles"][SITE][2] == "no clear pattern"
    assert data["frames"][6]["roles"][SITE][0] == "no clear pattern at step 4"  # when heads were scored last
    for i, f in enumerate(data["frames"]):
        recorded = view.frames[i].probes[0]
        pairs = list(zip(recorded.expected, recorded.predicted, strict=True))
        assert f["probes"]["banana"]["wrong"] == {str(i): p for i, (e, p) in enumerate(pairs) if e != p}


@pytest.mark.parametrize(
    ("output", "stopped", "expected", "right"),
    [
        (
            "ananab",
            True,
            [["a", True], ["n", True], ["a", True], ["n", True], ["a", True], ["b", True]],
            True,
        ),
        ("anx", True, [["a", True], ["n", True], ["x", False], ["···", False]], False),
        ("a[SOS]a", False, [["a", True], ["[SOS]", False], ["a", True], ["…", False]], False),
        ("", True, [["······", False]], False),
        ("ananabb", True, [[c, True] for c in "ananab"] + [["b", False]], False),
    ],
)
def test_each_letter_written_is_told_right_or_wrong(view, output, stopped, expected, right):
    pieces = tuple(re.findall(r"\[SOS\]|.", output))
    frame = with_probe(view.frames[-1], output=output, pieces=pieces, stopped=stopped, right=right)
    written = data_of(made(replace(view, frames=Given([frame]))))["frames"][0]["probes"]["banana"]
    assert written["letters"] == expected
    assert written["right"] is right


def test_a_star_is_for_a_head_above_the_threshold_that_is_not_switched_off(view):
    scores = {site: {"mirror": np.array([0.49, 0.5, 0.9])} for site in view.frames[-1].axes}
    frames = [
        replace(frame, measurement=replace(frame.measurement, head_scores=scores)) for frame in view.frames
    ]
    data = data_of(made(replace(view, frames=Given(frames))))
    assert data["frames"][0]["lit"][SITE] == [False, True, True]
    assert data["frames"][-1]["lit"][SITE] == [False, True, False]


def test_moments_are_told_as_they_are_and_pinned_to_the_curves(view):
    data = data_of(made(view))
    assert data["moments"][0] == {"step": 2, "text": "the loss <fell>"}
    pins = data["curves"]["data"][-1]
    assert (pins["name"], pins["x"]) == ("moments", [2, 4])
    losses = data["curves"]["data"][2]
    assert losses["x"] == list(range(1, 9))
    np.testing.assert_allclose(losses["y"], view.metrics.column("loss"))
    assert data["curves"]["layout"]["xaxis"]["range"] == [0, 8]


def test_a_long_run_keeps_at_most_a_hundred_and_twenty_steps_with_the_first_the_last_and_moments(view):
    moment = replace(view.moments[0], step=1_230)
    frames = Given(replace(view.frames[0], step=10 * i) for i in range(400))
    steps = [f["step"] for f in data_of(made(replace(view, frames=frames, moments=(moment,))))["frames"]]
    assert 100 < len(steps) <= 120
    assert {0, 1_230, 3_990} <= set(steps)


def test_a_large_model_keeps_fewer_steps(view, monkeypatch):
    frames = Given(replace(view.frames[0], step=10 * i) for i in range(400))
    # banana, cat and ox: encoder 3 heads of 8 x 8, 5 x 5 and 4 x 4; twice 7 x 7, 4 x 4 and 3 x 3; twice
    # 7 x 8, 4 x 5 and 3 x 4
    per_frame = 2 * 3 * (64 + 25 + 16 + 2 * (49 + 16 + 9) + 2 * (56 + 20 + 12))
    monkeypatch.setattr(page_data, "ROOM", 50 * per_frame)
    assert len(page_data.page_data(replace(view, frames=frames))["frames"]) == 50
    monkeypatch.setattr(page_data, "ROOM", 1)
    assert len(page_data.page_data(replace(view, frames=frames))["frames"]) == 8


def test_a_page_of_a_few_steps_is_small_beside_plotly_js(view):
    text = made(view)
    assert len(text.encode()) < len(plotly.offline.get_plotlyjs().encode()) + 300_000


def test_it_opens_with_what_was_chosen_or_the_first_word(view):
    first = data_of(made(view, word="cat", kind="encoder", site="encoder.0", head=2))["first"]
    assert first == {"word": "cat", "kind": "encoder", "site": "encoder.0", "head": 2}
    assert data_of(made(view, word="dog"))["first"]["word"] == "banana"


def test_a_head_that_does_not_exist_and_a_run_without_frames_are_refused(view):
    with pytest.raises(ValueError, match="^There is no head 3 at 'decoder.1.cross'"):
        made(view, head=3)
    with pytest.raises(ValueError, match="^'decoder.1.cross' is no 'encoder' attention"):
        made(view, kind="encoder")
    with pytest.raises(InputError, match="^Nothing has been recorded yet"):
        made(replace(view, frames=Given([])))
