"""The user's own model on the pages: what is shown, and what is not offered."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

from tests.conftest import facts_of, with_facts
from tests.own import own_run
from transformer.runs.registry import REGISTRY
from transformer.storage.format import read_run_file
from transformer.storage.library import Library


@pytest.fixture
def own(visit, tmp_path, monkeypatch):
    """The Watch page of a run of an own model, and the ids of this and a second run."""
    monkeypatch.setattr(REGISTRY, "library", Library(tmp_path))
    ids = [read_run_file(own_run(tmp_path / name, steps, called)).id for name, steps, called in (
        ("mine", 8, "Translator"), ("other", 5, "Reader"),
    )]  # fmt: skip
    return visit({"run": ids[0]}), ids


def test_heads_numbers_and_words_of_an_own_model_are_shown_without_controls(own):
    visitor, _ = own
    assert visitor.says("**Translator**")
    assert visitor.says("6 parameters. Your own training loop trains this model")
    assert {"run_start", "run_pause", "run_stop", "own_word"}.isdisjoint(visitor.keys)
    assert visitor.status.startswith("✔ finished · ")
    assert visitor.news["step"] == 8
    assert visitor.headline == (
        "write.0.cross, head 1 looks at one token in each row: 85% of its attention is on the strongest "
        "token "
        "of each row."
    )
    visitor.choose(word="two", kind="net.write.*.attn", pinned=["net.write.0.attn", 2], step=4)
    assert visitor.link["word"] == "two"
    assert visitor.link["kind"] == "net.write.*.attn"
    assert visitor.link["head"] == "net.write.0.attn.3"
    assert visitor.link["step"] == "4"


def test_a_link_to_a_head_of_an_own_model_opens_that_head(own, visit):
    _, (run, _) = own
    link = {"run": run, "kind": "net.write.*.cross", "head": "net.write.0.cross.2", "word": "two", "step": 3}
    first = visit(link).player["first"]
    assert first == first | {
        "kind": "net.write.*.cross", "pinned": ["net.write.0.cross", 1], "word": "two", "step": 3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("page", "why"), [("ask", "Ask runs"), ("inside", "Look inside"), ("masks", "Masks")]
)
def test_a_page_that_needs_the_model_itself_shows_why_it_is_not_available(own, page, why):
    visitor, _ = own
    visitor.go(page)
    assert visitor.says(why)
    assert visitor.says("Only the attention of Translator was recorded: the pages Watch and Race show it.")
    visitor.press("leave_own")
    assert not visitor.says("was recorded: the pages")


def test_leaving_an_own_model_leads_back_to_a_model_of_the_app(own):
    visitor, _ = own
    visitor.press("leave_own")
    assert visitor.enabled("run_start")
    assert "run" not in visitor.at.query_params


def test_the_list_names_both_runs_by_their_model_and_opens_either(own):
    visitor, (mine, other) = own
    labels = {one.key: one.label for one in visitor.at.button if (one.key or "").startswith("show_")}
    assert "other · ✔ Reader · 6 parameters · finished at 5" in labels[f"show_{other}"]
    visitor.press(f"show_{other}")
    assert visitor.says("**Reader**")
    visitor.press(f"show_{mine}")
    assert visitor.says("**Translator**")


def test_two_own_models_race_without_training(own):
    visitor, (mine, other) = own
    offered = visitor.at.selectbox(key="race_other").options
    assert [one.partition(" · ")[0] for one in offered] == ["other"]  # the name of its file
    visitor.set("race_other", other).press("race_start").go("race")
    assert visitor.player["run"] == mine
    assert visitor.player["race"]["runs"][0]["run"] == other
    assert visitor.player["race"]["names"] == ["left: Translator", "right: Reader"]
    assert {"run_start", "run_step", "add_beat"}.isdisjoint(visitor.keys)  # stories train models of the app


def test_markup_in_an_own_model_is_shown_as_text_and_an_invalid_name_is_refused(own, visit, tmp_path):
    _, (run, _) = own
    path = tmp_path / "mine.headlight"
    own = facts_of(path)["own"]
    with_facts(path, own={**own, "problem": "<img src=x onerror=alert(1)>"})
    REGISTRY._runs.clear()
    assert visit({"run": run}).says(r"<img src=x onerror=alert(1)>")
    with_facts(path, own={**own, "name": "<script>"})
    REGISTRY._runs.clear()
    assert visit({"run": run}).says("is no longer on this server")


def test_exports_of_an_own_model_hold_its_numbers_but_no_weights_or_settings(own, offered, monkeypatch):
    visitor, _ = own
    visitor.choose(kind="net.write.*.cross", pinned=["net.write.0.cross", 1], step=5)
    assert [key for key, given in offered.items() if given["disabled"]] == ["export_weights", "export_script"]
    made = {key: given["data"]() for key, given in offered.items() if not given["disabled"]}
    assert "6 attentions with 18 heads · 6 parameters · watched for 8 steps" in made["export_html"]
    assert made["export_csv"].splitlines()[3].startswith("3,1.33333")
    assert made["export_csv"].splitlines()[3].endswith(",0.3")
    frame = json.loads(made["export_json"])
    assert (frame["configuration"], frame["seed"], frame["step"]) == ({"model": "Translator"}, None, 5)
    assert frame["probes"][0]["net.write.*.cross keys_tokens"] == list("word")
    sharp = [[0.85 if q == k else 0.05 for k in range(4)] for q in range(3)]
    np.testing.assert_allclose(frame["probes"][0]["maps"]["net.write.0.cross"][1], sharp, atol=1e-4)
    assert frame["sites"]["net.write.0.attn"]["causal"]
    assert frame["probes"][0]["maps"]["net.write.0.attn"][0][0] == [1, None, None]
    assert made["export_gif"][:4] == b"GIF8"
    with Image.open(io.BytesIO(made["export_strip"])) as strip:
        assert strip.width > 1500
    monkeypatch.setattr(REGISTRY, "library", Library(visitor.run.path.parent / "elsewhere"))
    REGISTRY._runs.clear()
    opened = REGISTRY.open_file(made["run_download"], visitor="v", token="t")
    assert (opened.view.own.name, opened.view.frames.steps) == ("Translator", tuple(range(9)))
