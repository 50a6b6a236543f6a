"""Exports of sentences: words that do not touch, letters that the font has, and answers nobody knows."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from PIL import Image, ImageFont

from tests.exports.conftest import Given
from tests.exports.test_page import data_of
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.exports import canvas, film
from transformer.exports.canvas import Canvas, check_letters, text_width
from transformer.exports.film import film_gif, film_problem, filmstrip_png
from transformer.exports.page import html_page
from transformer.exports.still import MOST_LINES, Still
from transformer.exports.tables import curves_csv, frame_json
from transformer.figures.maps import MapAxes
from transformer.runs.run import Run

CROSS = "decoder.0.cross"
KEY = "the girl finds the key and hides it"  # la fille trouve la clé et la cache
UNKNOWN = "the key the"


def finished(task, *words):
    run = Run(
        RunConfig(
            model=ModelConfig(n_encoder_layers=1, n_decoder_layers=1, n_heads=2, d_model=8, d_ff=8),
            train=TrainConfig(task=task, batch_size=4, steps=3, warmup_steps=1, evaluate_every=3),
            device="cpu",
        )
    )
    assert run.ready.wait(60)
    for word in words:
        run.add_word(word)
    run.start()
    assert run.wait(60)
    run.close()
    run.join()
    assert run.view.state == "finished", run.view.reason
    return run.view


@pytest.fixture(scope="module")
def french():
    return finished("en-fr", UNKNOWN)


def found(name):
    try:
        return ImageFont.truetype(name, 40)
    except OSError:
        pytest.skip(f"{name} is not on this machine")


def drawn(text):
    sheet = Canvas(200, 80)
    sheet.text(20, 40, text, 40)
    return np.asarray(sheet.image().convert("L")) < 128


@pytest.mark.parametrize(
    ("text", "name"), [("é", "DejaVuSans.ttf"), ("clé", "DejaVuSans.ttf"), ("猫", "wqy-zenhei.ttc")]
)
def test_letters_that_the_built_in_font_lacks_are_drawn_with_one_that_has_them(monkeypatch, text, name):
    font = found(name)
    monkeypatch.setattr(canvas, "FONTS", ("no-such-font.ttf", name))
    assert text_width(text, 40) == font.getlength(text)
    rows, columns = np.nonzero(drawn(text))
    left, top, right, bottom = font.getmask(text).getbbox()
    assert np.ptp(rows) + 1 == pytest.approx(bottom - top, abs=2)
    assert np.ptp(columns) + 1 == pytest.approx(right - left, abs=2)
    assert (drawn(text) != drawn("".join("\U0010ffff" if ord(c) > 127 else c for c in text))).any()


def test_what_the_built_in_font_has_is_drawn_with_it_whatever_fonts_there_are(monkeypatch):
    monkeypatch.setattr(canvas, "FONTS", ("DejaVuSans.ttf",))
    assert text_width("banana", 40) == ImageFont.load_default(40).getlength("banana")


def test_letters_that_no_one_font_has_are_drawn_one_by_one(monkeypatch):
    latin, chinese = found("DejaVuSans.ttf"), found("wqy-zenhei.ttc")
    monkeypatch.setattr(canvas, "FONTS", ("DejaVuSans.ttf", "wqy-zenhei.ttc"))
    assert text_width("א猫", 40) == latin.getlength("א") + chinese.getlength("猫")


def test_letters_that_no_font_has_are_named_before_anything_is_drawn(french, monkeypatch, told):
    monkeypatch.setattr(canvas, "FONTS", ())
    check_letters(["banana → ✗ a␣b “c” …"])
    said = "^No font on this machine has é; install a font with them, .*or take the page"
    for make in (film_gif, filmstrip_png):
        with pytest.raises(InputError, match=said):
            make(french, word=KEY, site=CROSS, head=0)
    assert told == []
    assert re.match(said, film_problem(french, KEY))
    with pytest.raises(InputError, match="^No font on this machine has 狗 猫; "):
        check_letters(["狗 a", "猫"])


def test_a_film_that_can_be_made_has_no_problem(french, monkeypatch):
    found("DejaVuSans.ttf")
    monkeypatch.setattr(canvas, "FONTS", ("DejaVuSans.ttf",))
    assert film_problem(french, KEY) is None


WORDS = {
    "short words": ("[SOS]", *"the cat and the dog see it now".split(), "[EOS]"),
    "long words": ("[SOS]", *("extraordinarily",) * 9, "[EOS]"),
    "padding": ("[SOS]", "she", "sleeps", "[EOS]", *("[PAD]",) * 7),
    "letters": ("[SOS]", *"banana", "[EOS]", "[PAD]", "[PAD]"),
    "Chinese": ("[SOS]", *"猫看见狗", "[EOS]"),
}


@pytest.mark.parametrize("box", [(0, 0, 300, 300), (0, 0, 800, 500), (0, 0, 150, 150)])
@pytest.mark.parametrize("columns", WORDS.values(), ids=WORDS)
def test_no_two_labels_under_a_map_touch(columns, box, monkeypatch):
    boxes = []

    def text(self, x, y, text, size, **more):
        half = text_width(text, size) / 2
        boxes.append((x - half, x + half, y - size / 2, y + size / 2, text))

    monkeypatch.setattr(Canvas, "text", text)
    axes = MapAxes(rows=("a",) * 8, columns=columns, row_title="", column_title="tokens of the question")
    still = Still.fitted(axes, box)
    still.draw_columns(Canvas(1000, 600))
    *labels, title = boxes
    for one, other in combinations(labels, 2):
        apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
        assert apart, (one, other)
    assert max(label[3] for label in labels) <= title[3]
    assert len({label[2] for label in labels}) <= MOST_LINES
    if box[2] > 150 and "extraordinarily" not in columns:
        shown = [label[-1] for label in labels]
        assert [t for t in shown if t != "[PAD]"] == [t for t in columns if t != "[PAD]"]
    assert max(label[1] for label in labels) <= still.right + still.overhang + 1


def test_films_count_sentences_and_cut_long_ones_short(french, told):
    long = "does the girl watch the beautiful boat?"
    found("DejaVuSans.ttf")
    film_gif(french, word=long, site=CROSS, head=0)
    strip = Image.open(io.BytesIO(filmstrip_png(french, word=KEY, site=CROSS, head=0)))
    assert strip.format == "PNG"
    assert any(text.startswith("sentences right 0 / ") for text in told)
    assert not any("words right" in text for text in told)
    assert any("“does the girl watch the bea…” · " in text for text in told)
    assert f"cross-attention · decoder 1 · head 1 · “{film.shortened(KEY, 28)}” · seed 0" in told


def test_the_page_speaks_of_sentences_and_tokens_and_of_no_letters(french):
    index = data_of(html_page(french, word=KEY, kind="cross", site=CROSS, head=0))["index"]
    assert (index["examples"], index["token"]) == ("sentences", "token")
    readings = {kind: one["reading"] for kind, one in index["kinds"].items()}
    assert not any("letter" in said or "backwards" in said for said in readings.values())
    assert "the cells of the alignment are bright" in readings["cross"]
    assert "alignment" not in readings["encoder"]
    assert any("held-out sentences" in text for text in index["texts"])


def test_the_page_of_reversed_words_speaks_of_letters(recorded):
    index = data_of(html_page(recorded, word="cat", kind="cross", site="decoder.1.cross", head=0))["index"]
    assert (index["examples"], index["token"]) == ("words", "letter")
    assert "A word read backwards" in index["kinds"]["cross"]["reading"]
    assert any("<small>words right</small>" in text for text in index["texts"])


def rewritten(view, pieces):
    """A view whose model has written this after the question nobody knows the answer of, at each frame."""
    frames = []
    for frame, written in zip(view.frames, pieces, strict=False):
        row = frame.row_of(UNKNOWN)
        probe = frame.probes[row]
        assert probe.text == UNKNOWN
        tgt = ("[SOS]", *written)
        probe = replace(
            probe,
            tgt_tokens=tgt,
            expected=(*written, "[EOS]"),
            predicted=("le",) * len(tgt),
            pieces=written,
            output=" ".join(written),
            stopped=True,
            written_at=100 + frame.step,
        )
        maps = {}
        for site, axes in frame.axes.items():
            n = {"src": len(probe.src_tokens), "tgt": len(tgt)}
            maps[site] = np.zeros((frame.n_heads(site), n[axes.query], n[axes.key]), np.float32)
            maps[site][..., 0] = 1.0
        frames.append(replace(frame, probes=(probe,), maps=(maps,)))
    return replace(view, frames=Given(frames))


def test_in_a_film_where_nobody_knows_the_answer_each_step_has_its_own_tokens_and_nothing_is_wrong(
    french, told
):
    view = rewritten(french, [("chat",), ("la", "fille", "chat"), ("la", "pomme")])
    assert film_gif(view, word=UNKNOWN, site=CROSS, head=0)[:3] == b"GIF"
    assert filmstrip_png(view, word=UNKNOWN, site="decoder.0.self", head=0)[1:4] == b"PNG"
    assert not any("✗" in text or "teacher-forced" in text for text in told)
    assert any("free-running" in text for text in told)
    assert {"chat → [EOS]", "la → pomme"} <= set(told)


def test_numbers_say_bleu_and_chrf_and_leave_open_what_nobody_knows(french):
    frame = french.frame
    evaluation = replace(frame.evaluation, bleu=12.5, chrf=30.25)
    document = json.loads(frame_json(french, replace(frame, evaluation=evaluation)))
    assert (document["bleu"], document["chrf"]) == (12.5, 30.25)
    keys = "answer", "right", "written_at"
    said = {probe["word"]: tuple(probe[key] for key in keys) for probe in document["probes"]}
    assert said[UNKNOWN] == (None, None, 0)  # its newest output, when the maps of the last batch were made
    assert said[KEY] == ("la fille trouve la clé et la cache", False, None)
    first, *_, last = curves_csv(french).splitlines()
    numbers = dict(zip(first.split(","), last.split(","), strict=True))
    assert float(numbers["bleu"]) == pytest.approx(frame.evaluation.bleu)
    assert float(numbers["chrf"]) == pytest.approx(frame.evaluation.chrf)
