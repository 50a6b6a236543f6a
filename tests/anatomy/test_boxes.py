"""The boxes of the picture contain the numbers of the real forward pass, packed for a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.anatomy.conftest import BASES, opened, softmax
from transformer.anatomy.boxes import boxes, mask_codes, packed
from transformer.anatomy.trace import trace
from transformer.recording.weights import Snapshot
from transformer.shared.attention_info import BOTH, BY_HAND, FUTURE, OPEN, PADDING
from transformer.shared.interventions import Block, Interventions

ROOT = Path(__file__).parents[2]


def tables_of(passed):
    return {box.name: {table.key: table for table in box.tables} for box in boxes(passed)}


def of_embedding(stack, ids):
    found = {"tokens": np.array(ids)[:, None], "embedding": stack["embedded"], "positions": stack["entered"]}
    found["plain"] = softmax(stack["entered"] @ stack["entered"].T)
    if stack["positions"].any():
        found |= {"added": stack["positions"], "likeness": stack["positions"] @ stack["positions"].T}
    return found


def of_part(numbers, pre):
    found = {"stream": numbers["stream"], "residual": numbers["after"]}
    return found | {"input": numbers["reads"]} if pre else found


def of_attention(numbers, pre, cross):
    parts = ("query", "key", "value", "mixed", "joined")
    found = of_part(numbers, pre) | {part: numbers[part] for part in parts}
    found |= {"scores": numbers["products"], "scale": numbers["scores"], "masked": numbers["scores"]}
    found |= {"weights": np.nan_to_num(numbers["weights"]), "heads": numbers["output"]}
    return found | {"memory": numbers["memory"]} if cross else found


def of_model(passed, expected):
    """Return every table of every box, from an independent forward pass."""
    model, found = passed.config.model, {}
    pre = model.norm_placement == "pre"
    for name, stack in expected.stacks.items():
        side = next(axes.query for site, axes in passed.axes.items() if site.startswith(name))
        found[f"{name}.embedding"] = of_embedding(stack, passed.ids(side))
        for layer, numbers in enumerate(stack["layers"]):
            forward = {"hidden": numbers["hidden"], "narrowed": numbers["output"]}
            found[f"{name}.{layer}.feed_forward"] = of_part(numbers, pre) | forward
        output = {"stream": stack["layers"][-1]["after"]}
        if model.final_norm:
            output["stack"] = stack["output"]
        if name == list(expected.stacks)[-1]:
            output |= {"logits": expected.logits, "probabilities": expected.probabilities}
        found[f"{name}.output"] = output
    for site, numbers in expected.sites.items():
        found[site] = of_attention(numbers, pre, passed.axes[site].kind == "cross")
    return found


@pytest.mark.parametrize("name", BASES)
def test_every_table_of_every_box_equals_that_of_an_independent_forward_pass(name, made, truth, near):
    passed, snapshot = opened(made, name)
    assert "[PAD]" in passed.src_tokens
    expected_pass = truth(passed, snapshot)
    expected, found = of_model(passed, expected_pass), tables_of(passed)
    assert found.keys() == expected.keys()
    for box, tables in found.items():
        assert tables.keys() - {"mask"} == expected[box].keys(), box
        for key, values in expected[box].items():
            near(tables[key].values, values)
        for table in tables.values():
            assert set(table.made_of) < tables.keys()
    assert list(passed.attentions) == list(expected_pass.sites) == list(passed.axes)
    for site, attention in passed.attentions.items():
        assert np.array_equal(attention.mask, expected_pass.sites[site]["mask"])
        assert np.array_equal(found[site]["mask"].values == OPEN, attention.mask)
        near(attention.normed, expected_pass.sites[site]["normed"])
    for stack, whole in passed.stacks.items():
        for layer, numbers in zip(whole.layers, expected_pass.stacks[stack]["layers"], strict=True):
            near(layer.normed, numbers["normed"])


@pytest.mark.parametrize("name", BASES)
def test_boxes_are_in_the_order_of_the_forward_pass(name, made):
    passed, _ = opened(made, name)
    found = boxes(passed)
    before = None
    for box in found:
        stream = next((table.values for table in box.tables if table.key in ("stream", "embedding")), None)
        if before is not None and box.lane == before.lane:
            assert np.array_equal(stream, before.tables[-1 if before.kind != "embedding" else -2].values)
        before = box
    assert len({box.name for box in found}) == len(found)


@pytest.mark.parametrize("name", BASES)
def test_the_logit_lens_is_the_output_of_a_model_that_ends_after_the_box(name, made, truth, near):
    passed, snapshot = opened(made, name)
    expected = truth(passed, snapshot)
    writing = list(expected.stacks)[-1]
    assert {box.split(".")[0] for box in passed.written_after} == {writing}
    for box, tables in tables_of(passed).items():
        if box.split(".")[0] != writing or "output" in box:
            continue
        stream = tables["residual" if "residual" in tables else "positions"].values
        ended = expected.norm(f"{writing}_norm", stream) if passed.config.model.final_norm else stream
        near(passed.written_after[box], softmax(expected.linear("to_logits", ended)))
    last = f"{writing}.{len(expected.stacks[writing]['layers']) - 1}.feed_forward"
    near(passed.written_after[last], expected.probabilities)


def test_mask_codes_distinguish_later_tokens_padding_and_blocks_by_hand(made):
    taken = Interventions(blocked=(Block(site="decoder.0.self", head=1, row=3, column=2),))
    passed, _ = opened(made, "default", taken)
    # [SOS] g o r f [PAD]...: row i reads columns 0 to i, and no column beyond 4 is a letter.
    assert passed.tgt_tokens[:6] == ("[SOS]", "g", "o", "r", "f", "[PAD]")
    n = len(passed.tgt_tokens)
    kinds = {(False, False): OPEN, (True, False): FUTURE, (False, True): PADDING, (True, True): BOTH}
    codes = np.array([[kinds[j > i, j > 4] for j in range(n)] for i in range(n)])
    found = mask_codes(passed, "decoder.0.self")
    assert np.array_equal(found[0], codes)
    codes[3, 2] = BY_HAND
    assert np.array_equal(found[1], codes)


def test_a_box_names_the_masks_that_apply_to_it(made):
    passed, _ = opened(made, "default", Interventions(masks=(("padding", False),)))
    sentences = {box.name: box.sentence for box in boxes(passed)}
    assert "block" not in sentences["encoder.0"] + sentences["decoder.0.cross"]
    assert sentences["decoder.0.self"].endswith(" The mask blocks later tokens.")
    both = {box.name: box.sentence for box in boxes(opened(made, "default")[0])}
    assert both["decoder.0.self"].endswith(" The mask blocks later tokens and [PAD].")


def test_a_head_that_was_switched_off_is_named_and_joined_as_zeros(made):
    passed, _ = opened(made, "default", Interventions(ablated=(("decoder.0.cross", 1),)))
    off = {box.name: box.off for box in boxes(passed) if box.off}
    assert off == {"decoder.0.cross": (1,)}
    tables = tables_of(passed)["decoder.0.cross"]
    assert not tables["joined"].values[:, 8:16].any()
    assert tables["mixed"].values[1].any()


@pytest.mark.parametrize("name", BASES)
def test_a_packed_pass_is_a_line_of_json_followed_by_all_numbers(name, made):
    passed, _ = opened(made, name)
    line, _, body = packed(passed, 7, word="frog").partition(b"\n")
    head, numbers, at = json.loads(line), np.frombuffer(body, dtype="<f4"), 0
    assert (head["step"], head["word"]) == (7, "frog")
    for box, sent in zip(boxes(passed), head["boxes"], strict=True):
        assert box.name == sent["name"]
        for table, packed_table in zip(box.tables, sent["tables"], strict=True):
            assert packed_table["shape"] == list(table.values.shape)
            size = table.values.size
            assert np.array_equal(numbers[at : at + size], table.values.ravel().astype("<f4"))
            at += size
        for row, likeliest in enumerate(sent["lens"]):
            shares = passed.written_after[box.name][row]
            assert [token for token, _ in likeliest] == np.argsort(-shares, kind="stable")[:3].tolist()
    assert at == len(numbers)


def test_the_logit_lens_of_a_trained_model_names_the_right_token(half_trained):
    weights = {name: w.numpy().copy() for name, w in half_trained.model.state_dict().items()}
    passed = trace(half_trained.config, Snapshot(step=130, source=weights), "ox")
    head = json.loads(packed(passed, 130).partition(b"\n")[0])
    last = head["boxes"][-2]
    assert last["kind"] == "feed_forward"
    token, share = last["lens"][0][0]
    assert head["vocabulary"][token] == head["expected"][0] == "x"
    assert share == pytest.approx(float(passed.probabilities[0].max()), abs=1e-5)


def test_boxes_can_be_imported_without_torch():
    code = "import sys, transformer.anatomy.explained; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
