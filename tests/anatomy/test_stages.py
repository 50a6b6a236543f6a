"""Stages show the numbers of the real forward pass, and formulas that really give them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.anatomy.conftest import BASES, by_key, every_stage, opened, softmax
from transformer.anatomy.panels import STAGES, Focus, Panel
from transformer.anatomy.stages import MAKERS, chapters, stages
from transformer.anatomy.trace import trace
from transformer.interventions import Block, Interventions
from transformer.recording.weights import Snapshot

ROOT = Path(__file__).parents[2]


def main(stage):
    return stage.panels[0].values


def main_panels(expected, passed, site, head):
    """What the main panels show of one head, by key, from an independent forward pass; the focus is row 2."""
    axes, numbers = passed.axes[site], expected.sites[site]
    whole, layer = expected.stacks[site.split(".")[0]], int(site.split(".")[1])
    keys_from = expected.stacks["encoder"]["output"] if axes.kind == "cross" else whole["entered"]
    streams = [whole["entered"][2], *(one["after"][2] for one in whole["layers"])]
    return {
        "tokens": np.array([passed.ids(axes.query)]),
        "embedding": whole["embedded"],
        "positions": whole["entered"],
        "plain": softmax(whole["entered"] @ keys_from.T),
        "input": numbers["reads"],
        "qkv": numbers["query"][head, 2:3],
        "scores_row": numbers["products"][head, 2:3],
        "scores": numbers["products"][head],
        "scale": numbers["scores"][head],
        "masked": numbers["masked"][head],
        "weights": numbers["weights"][head],
        "mixed": numbers["mixed"][head],
        "heads": numbers["output"],
        "residual": numbers["after"],
        "feed_forward": whole["layers"][layer]["output"],
        "stack": np.stack([*streams, whole["output"][2]] if passed.config.model.final_norm else streams),
        "logits": expected.logits,
        "probabilities": expected.probabilities,
    }


@pytest.mark.parametrize("name", BASES)
def test_every_cell_of_every_stage_is_that_of_an_independent_forward_pass(name, made, truth, near):
    passed, snapshot = opened(made, name)
    expected = truth(passed, snapshot)
    for site, axes in passed.axes.items():
        numbers, whole = expected.sites[site], expected.stacks[site.split(".")[0]]
        for head in range(passed.config.model.n_heads):
            found = by_key(stages(passed, site, head, Focus(2, 1, 5)))
            assert list(found) == list(STAGES)
            mains = main_panels(expected, passed, site, head)
            assert mains.keys() == found.keys() - {"mask"}
            for key, values in mains.items():
                near(main(found[key]), values)
            assert np.array_equal(main(found["mask"]) == 0, numbers["mask"][head])
            keys_from = numbers["memory"] if axes.kind == "cross" else whole["entered"]
            near(found["plain"].panels[1].values, mains["plain"] @ keys_from)
            if axes.kind == "cross":
                near(found["input"].panels[-1].values, numbers["memory"])
            _, key, value = found["qkv"].panels
            near(key.values, numbers["key"][head, 1:2])
            near(value.values, numbers["value"][head, 1:2])
            _, joined, *maps = found["heads"].panels
            near(joined.values, numbers["joined"])
            near(np.stack([panel.values for panel in maps]), numbers["weights"])
            layer = whole["layers"][int(site.split(".")[1])]
            for panel, part in zip(found["feed_forward"].panels, ("output", "hidden", "after"), strict=True):
                near(panel.values, layer[part])


def test_every_stage_has_one_sentence_and_a_shape(walk):
    for _, stage in every_stage(walk):
        assert not re.search(r"[.!?] [A-Z]", stage.sentence), stage.sentence
        assert stage.sentence.endswith(".")
        assert stage.sentence[0].isupper()
        sizes = tuple(map(int, re.findall(r"\d+", stage.shape)))
        shape = stage.panels[0].values.shape
        assert sizes[:1] == shape[1:] if stage.key == "tokens" else sizes in (shape, shape[1:])


@pytest.mark.parametrize("name", BASES)
def test_a_row_alone_opens_on_the_cell_that_it_looks_at_most(name, made, truth):
    passed, snapshot = opened(made, name)
    expected = truth(passed, snapshot)
    for site in passed.axes:
        weights = np.nan_to_num(expected.sites[site]["weights"][1])
        for row in (1, 3):
            found = by_key(stages(passed, site, 1, Focus(row, None, 2)))["weights"]
            assert found.focus == Focus(row, int(weights[row].argmax()), 2)
            assert found.cell.result == pytest.approx(weights[row].max(), rel=1e-4)


def test_a_stage_made_alone_is_the_one_among_all_and_no_other_is_made(made, monkeypatch):
    passed, _ = opened(made, "default")
    focus = Focus(2, 1, 5)
    among = by_key(stages(passed, "encoder.0", 0, focus))
    assert list(among) == list(STAGES)
    monkeypatch.setattr("transformer.anatomy.stages.MAKERS", {"scale": MAKERS["scale"]})
    (alone,) = stages(passed, "encoder.0", 0, focus, only=["scale"])
    assert (alone.formula, alone.cell.numbers) == (among["scale"].formula, among["scale"].cell.numbers)


def test_masks_are_told_apart_and_said_in_words(made):
    taken = Interventions(blocked=(Block(site="decoder.0.self", head=1, row=3, column=2),))
    passed, _ = opened(made, "default", taken)
    # [SOS] g o r f [PAD]...: row i looks at columns 0 to i, and no column beyond 4 is a letter.
    assert passed.tgt_tokens[:6] == ("[SOS]", "g", "o", "r", "f", "[PAD]")
    n = len(passed.tgt_tokens)
    codes = np.array([[1 * (j > i) + 2 * (j > 4) for j in range(n)] for i in range(n)])
    for head in range(2):
        stage = by_key(stages(passed, "decoder.0.self", head, Focus(3, 2)))["mask"]
        codes[3, 2] = 4 * head
        assert np.array_equal(stage.panels[0].values, codes)
        assert stage.panels[0].hover_rows[1] == (
            "“g” (position 2) may look at [SOS] g; not at o r f (causal mask); "
            "not at [PAD] ×6 (causal and padding mask)."
        )
    assert stage.cell.result == 4
    assert stage.cell.numbers == r"m_{4,3} = -\infty \quad \text{(blocked by hand)}"
    assert "not at o (by hand)" in stage.panels[0].hover_rows[3]
    assert stage.sentence.startswith("The mask blocks later tokens, [PAD] and cells chosen by hand: “r”")
    cross = by_key(stages(passed, "decoder.0.cross", 0, Focus(3, 7)))
    assert cross["mask"].cell.numbers.endswith(r"= -\infty \quad \text{(blocked: padding mask)}")
    assert cross["weights"].cell.result is None
    assert cross["weights"].cell.numbers.endswith("= 0")


def test_an_open_attention_says_that_nothing_is_hidden(made):
    passed, _ = opened(made, "bloem")
    found = by_key(stages(passed, "encoder.0", 0, Focus()))
    assert not main(found["mask"]).any()
    assert found["mask"].sentence.startswith("The mask blocks nothing here: each row reads the whole input")
    assert found["masked"].sentence.startswith("The mask blocks nothing here")
    passed, _ = opened(made, "default", Interventions(masks=(("causal", False), ("padding", False))))
    crossed, own = (by_key(stages(passed, f"decoder.0.{kind}", 0, Focus())) for kind in ("cross", "self"))
    assert "before the output begins" in crossed["mask"].sentence
    assert "without a causal mask" in own["mask"].sentence


def test_a_head_that_was_switched_off_is_named_and_all_zeros(made):
    passed, _ = opened(made, "default", Interventions(ablated=(("decoder.0.cross", 1),)))
    found = by_key(stages(passed, "decoder.0.cross", 1, Focus()))
    stage = found["heads"]
    assert "switched off: 2" in stage.sentence
    assert not stage.panels[1].values[:, 8:16].any()
    n_keys = len(found["weights"].panels[0].columns)
    everything = ((0, n_keys),)
    assert [panel.off for panel in stage.panels[1:]] == [
        ((8, 16),),
        *(everything if head == 1 else () for head in range(passed.config.model.n_heads)),
    ]
    assert (found["weights"].panels[0].off, found["scores"].panels[0].off) == (everything, ())
    assert found["mixed"].panels[0].off == ((0, 8),)
    assert found["mixed"].sentence.endswith("the next stage gets zeros instead.")
    other = by_key(stages(passed, "decoder.0.cross", 0, Focus()))
    assert not any(panel.off for key in ("weights", "mixed") for panel in other[key].panels)


def test_it_is_said_where_numbers_come_from_and_where_they_go(made):
    passed, _ = opened(made, "default")
    cross = by_key(stages(passed, "decoder.1.cross", 0, Focus(4, 0, 0)))
    assert (
        "Queries are computed from the norm of the residual stream in decoder layer 2"
        in cross["input"].sentence
    )
    assert "keys and values from the encoder's output" in cross["input"].sentence
    assert cross["input"].panels[-1].axes == ("column", "feature")
    own = by_key(stages(passed, "encoder.0", 0, Focus(4, 0, 0)))
    assert own["input"].sentence.startswith("Queries, keys and values are all computed from the norm of")
    alone = by_key(stages(opened(made, "bloem")[0], "encoder.1", 0, Focus()))
    for key in ("logits", "probabilities"):
        assert "decoder" in own[key].sentence.lower()  # this encoder does not write
        assert "decoder" not in f"{cross[key].sentence}{alone[key].sentence}".lower()


def test_probabilities_name_the_likeliest_and_mark_the_right_token(half_trained):
    weights = {name: w.numpy().copy() for name, w in half_trained.model.state_dict().items()}
    passed = trace(half_trained.config, Snapshot(step=130, source=weights), "ox")
    stage = by_key(stages(passed, "decoder.0.cross", 0, Focus(0)))["probabilities"]
    named = re.findall(r"“([^”]+)” ([\d.]+)%", stage.sentence)
    row = passed.probabilities[0]
    assert [token for token, _ in named[:3]] == [passed.vocabulary[i] for i in np.argsort(-row)[:3]]
    assert [float(share) for _, share in named[:3]] == [round(100 * v, 1) for v in np.sort(row)[::-1][:3]]
    assert "“x” is right ✓" in stage.sentence
    assert stage.panels[0].marked == tuple(
        (i, passed.vocabulary.index(token)) for i, token in enumerate(("x", "o", "[EOS]"))
    )


def test_chapters_are_the_kinds_of_attention_in_the_order_of_the_pass_and_positions(made):
    def kinds(name):
        return chapters({axes.kind for axes in opened(made, name)[0].axes.values()})

    assert kinds("default") == ["encoder", "decoder", "cross", "positions"]
    assert kinds("bloem") == ["encoder", "positions"]
    assert kinds("decoder alone") == ["sequence", "positions"]


def test_what_is_not_there_cannot_be_shown(made):
    passed, _ = opened(made, "bloem")
    with pytest.raises(ValueError, match=r"no attention 'decoder.0.self'; choose one of encoder.0"):
        stages(passed, "decoder.0.self", 0, Focus())
    with pytest.raises(ValueError, match="no head 4; choose one from 0 to 3"):
        stages(passed, "encoder.0", 4, Focus())
    with pytest.raises(ValueError, match="points before the first cell"):
        stages(passed, "encoder.0", 0, Focus(row=-1))
    with pytest.raises(ValueError, match=r"x has shape \(1, 2\), but its labels need \(1, 1\)"):
        Panel(name="x", values=np.zeros((1, 2)), rows=("",), columns=("",))


def test_stages_can_be_imported_without_torch():
    code = "import sys, transformer.anatomy.stages; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
