"""Exports of translations: wording, letters that fonts lack, and unknown answers."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tests.exports.conftest import FakeRecording
from tests.exports.test_page import run_data
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.exports import fonts
from transformer.exports.film import film_gif, filmstrip_png
from transformer.exports.fonts import film_problem
from transformer.exports.page import html_page
from transformer.exports.tables import curves_csv, frame_json
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


def test_letters_that_no_font_has_are_named_before_anything_is_drawn(french, monkeypatch, drawn_texts):
    assert film_problem(french, KEY) is None  # é is in the font that comes with Matplotlib
    monkeypatch.setattr(fonts, "FONTS", ())
    said = film_problem(french, KEY)
    assert re.match("^No font on this machine has é; install a font with them, .*or take the page", said)
    for make in (film_gif, filmstrip_png):
        with pytest.raises(InputError) as refused:
            make(french, word=KEY, site=CROSS, head=0)
        assert str(refused.value) == said
    assert drawn_texts == []


def test_a_letter_is_missing_only_if_none_of_the_fonts_has_it(french, monkeypatch):
    monkeypatch.setattr(fonts, "FONTS", ("DejaVu Sans", "no such font"))
    assert re.match("^No font on this machine has 狗 猫; ", film_problem(french, "猫 or 狗"))
    monkeypatch.setattr(fonts, "FONTS", ("no such font", "DejaVu Sans"))
    assert film_problem(french, KEY) is None


def test_films_count_sentences_and_cut_long_ones_short(french, drawn_texts):
    long = "does the girl watch the beautiful boat?"
    film_gif(french, word=long, site=CROSS, head=0)
    strip = Image.open(io.BytesIO(filmstrip_png(french, word=KEY, site=CROSS, head=0)))
    assert strip.format == "PNG"
    texts = [text for text, _ in drawn_texts]
    assert any("sentences right: 0 of " in text for text in texts)
    assert not any("words right" in text for text in texts)
    assert "cross-attention layer 1, head 1 · “does the girl watch the bea…”" in texts
    assert any(text.startswith("cross-attention layer 1, head 1 · “the girl finds") for text in texts)


def test_the_page_of_a_translation_mentions_sentences_and_tokens_and_no_letters(french):
    index = run_data(html_page(french, word=KEY, site=CROSS, head=0))["index"]
    assert (index["examples"], index["token"]) == ("sentences", "token")
    readings = {kind: one["reading"] for kind, one in index["kinds"].items()}
    assert not any("letter" in said or "backwards" in said for said in readings.values())
    assert "the cells of the alignment are bright" in readings["cross"]
    assert "alignment" not in readings["encoder"]
    assert any("<small>test sentences right</small>" in text for text in index["texts"])


def test_the_page_of_reversed_words_mentions_letters(recorded):
    index = run_data(html_page(recorded, word="cat", site="decoder.1.cross", head=0))["index"]
    assert (index["examples"], index["token"]) == ("words", "letter")
    assert "A word read backwards" in index["kinds"]["cross"]["reading"]
    assert any("<small>test words right</small>" in text for text in index["texts"])


def rewritten(view, pieces):
    """Return a view as if the model had answered UNKNOWN with these tokens, a tuple per frame."""
    frames = []
    for frame, written in zip(view.frames, pieces, strict=False):
        row = frame.row_of(UNKNOWN)
        tracked = frame.words[row]
        assert tracked.text == UNKNOWN
        tgt = ("[SOS]", *written)
        tracked = replace(
            tracked,
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
            n = {"src": len(tracked.src_tokens), "tgt": len(tgt)}
            maps[site] = np.zeros((frame.n_heads(site), n[axes.query], n[axes.key]), np.float32)
            maps[site][..., 0] = 1.0
        frames.append(replace(frame, words=(tracked,), maps=(maps,)))
    return replace(view, frames=FakeRecording(frames))


def test_a_film_of_an_unknown_answer_shows_the_tokens_of_each_step_and_marks_none_wrong(french, drawn_texts):
    view = rewritten(french, [("chat",), ("la", "fille", "chat"), ("la", "pomme")])
    assert film_gif(view, word=UNKNOWN, site=CROSS, head=0)[:3] == b"GIF"
    assert filmstrip_png(view, word=UNKNOWN, site="decoder.0.self", head=0)[1:4] == b"PNG"
    texts = {text for text, _ in drawn_texts}
    assert not any("✗" in text or "teacher-forced" in text for text in texts)
    assert any("free-running" in text for text in texts)
    assert {"chat → [EOS]", "la → pomme"} <= texts


def test_exported_numbers_have_bleu_and_chrf_and_an_unknown_answer_is_null(french):
    frame = french.frame
    evaluation = replace(frame.evaluation, bleu=12.5, chrf=30.25)
    document = json.loads(frame_json(french, replace(frame, evaluation=evaluation)))
    assert (document["bleu"], document["chrf"]) == (12.5, 30.25)
    keys = "answer", "right", "written_at"
    said = {tracked["word"]: tuple(tracked[key] for key in keys) for tracked in document["probes"]}
    assert said[UNKNOWN] == (None, None, 0)  # the last maps run over the output of step 0, not yet of step 3
    assert said[KEY] == ("la fille trouve la clé et la cache", False, None)
    first, *_, last = curves_csv(french).splitlines()
    numbers = dict(zip(first.split(","), last.split(","), strict=True))
    assert float(numbers["bleu"]) == pytest.approx(frame.evaluation.bleu)
    assert float(numbers["chrf"]) == pytest.approx(frame.evaluation.chrf)
