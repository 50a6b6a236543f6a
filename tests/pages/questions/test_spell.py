"""Ask, Spell: any word at any step, letter by letter, compared with the snapshot loaded separately."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pages.questions.conftest import separate_model
from transformer.figures import colors

TWO_LAYERS = {"layers_encoder": 2, "layers_decoder": 2, "width": 12, "heads": 3, "steps": 22}
SITES = {"cross": "decoder.{}.cross", "encoder": "encoder.{}", "decoder": "decoder.{}.self"}


@pytest.fixture
def ask(revisit):
    """The Ask page of a finished run, with the weights of all its steps."""
    visitor = revisit(**TWO_LAYERS).go("ask")
    assert [snapshot.step for snapshot in visitor.run.view.snapshots] == [*range(23)]
    return visitor


def weights(visitor):
    return visitor.drawn("explore_map_figure").arrays["0.z"]


def columns(visitor):
    return visitor.drawn("explore_map_figure").columns


def tile(visitor, shape, layer, head):
    """Return the map of one head from the figure of all heads, in which tiles are one cell apart."""
    rows, columns = (at * (n + 1) + np.arange(n) for at, n in zip((head, layer), shape, strict=True))
    return visitor.drawn("explore_strip_figure").arrays["0.z"][np.ix_(rows, columns)]


def lit(visitor):
    """Return the row that is outlined on the map, if any."""
    shapes = visitor.drawn("explore_map_figure").layout["shapes"]
    rows = [shape["y0"] + 0.5 for shape in shapes if shape["line"]["color"] == colors.HIGHLIGHT]
    return rows[0] if rows else None


def table(visitor):
    (text,) = [text for text in visitor.texts if "class='hl-spelled " in text]
    return text


@pytest.mark.parametrize("fed", ["forced", "free"])
@pytest.mark.parametrize("kind", SITES)
def test_the_maps_are_those_of_the_chosen_snapshot_and_word(ask, kind, fed):
    ask.fill({"explore_text": "ziggy", "kind": kind, "explore_input": fed}).go_to_step(5)
    answer = separate_model(ask, 5).answer("ziggy")
    reading = answer.forced if fed == "forced" else answer.free
    for head in range(3):
        for layer in range(2):
            maps = reading.maps[SITES[kind].format(layer)]
            np.testing.assert_allclose(tile(ask, maps[head].shape, layer, head), maps[head], atol=1e-4)
    ask.click("explore_strip_figure", 0, [len(maps[0]) + 1, len(maps[0][0]) + 1])  # head 2, second layer
    np.testing.assert_allclose(weights(ask), reading.maps[SITES[kind].format(1)][1], atol=1e-4)
    title = ask.drawn("explore_map_figure").changing["title.text"]
    assert title.startswith(f"<b>{kind} 2 · head 2</b><br>")
    assert "“ziggy” · step 5 · " in title
    assert {"forced": "given the right answer so far", "free": "on its own"}[fed] in title
    assert columns(ask) == list(reading.src_tokens if kind != "decoder" else reading.tgt_tokens)


def test_free_running_reads_the_model_s_own_output(ask):
    ask.go_to_step(5).fill({"explore_text": "ziggy", "kind": "decoder", "explore_input": "free"})
    answer = separate_model(ask, 5).answer("ziggy")
    assert 3 < len(answer.free.tgt_tokens) != len(answer.forced.tgt_tokens)  # the model is hardly trained
    assert columns(ask) == list(answer.free.tgt_tokens)
    rows = [text.split(" → ")[1] for text in ask.drawn("explore_map_figure").layout["yaxis"]["ticktext"]]
    assert rows == list(answer.free.predicted)
    ask.set("explore_input", "forced")
    assert columns(ask) == ["[SOS]", *"yggiz"]
    rows = [text.split(" → ")[1] for text in ask.drawn("explore_map_figure").layout["yaxis"]["ticktext"]]
    assert rows == [*"yggiz", "[EOS]"]


@pytest.mark.parametrize("pool", ["mean", "max"])
def test_the_mean_and_the_maximum_are_over_the_heads_of_the_layer(ask, pool):
    ask.fill({"explore_text": "ox", "kind": "encoder"}).click("explore_strip_figure", 0, [0, 0])
    ask.set("explore_pool", pool)
    maps = separate_model(ask, 22).answer("ox").forced.maps["encoder.0"]
    np.testing.assert_allclose(weights(ask), getattr(maps, pool)(axis=0), atol=1e-4)
    title = ask.drawn("explore_map_figure").changing["title.text"]
    assert f"<b>{pool} over the heads of encoder layer 1</b>" in title
    lines = ask.drawn("explore_lines_figure").changing["shapes"]
    np.testing.assert_allclose(
        [line["opacity"] for line in lines], getattr(maps, pool)(axis=0).ravel(), atol=1e-4
    )


def test_rollout_follows_attention_through_all_layers(ask):
    ask.fill({"explore_text": "owl", "kind": "encoder"}).set("explore_pool", "rollout")
    maps = separate_model(ask, 22).answer("owl").forced.maps
    through = np.eye(5)
    for layer in range(2):  # half of each position is the residual stream
        through = (0.5 * np.eye(5) + 0.5 * maps[f"encoder.{layer}"].mean(axis=0)) @ through
    np.testing.assert_allclose(weights(ask), through, atol=1e-4)
    assert "<b>rollout, encoder</b>" in ask.drawn("explore_map_figure").changing["title.text"]
    ask.set("kind", "decoder")
    assert np.isnan(weights(ask)).tolist() == (~np.tri(4, dtype=bool)).tolist()  # the future stays blocked


def test_the_outlined_row_moves_forward_and_back_and_wraps_around(ask):
    ask.go_to_step(5).set("explore_text", "cat")
    answer = separate_model(ask, 5).answer("cat")
    assert len(answer.free.tgt_tokens) > len(answer.forced.tgt_tokens) == 4
    n = max(len(answer.forced.tgt_tokens), len(answer.free.tgt_tokens))
    seen = []
    for i in range(n + 1):
        at = i % n
        seen.append(lit(ask))
        assert lit(ask) == (at if at < 4 else None)  # the map has four rows: three letters and the end
        lines = ask.drawn("explore_lines_figure").changing["shapes"]
        bold = {line["y0"] for line in lines if line["line"]["color"] == colors.HIGHLIGHT}
        assert bold == ({at} if at < 4 else set())
        assert f"data-row='{at}'" in table(ask)
        assert ask.says(f"output **{at + 1}** of {n}")
        ask.press("explore_next")
    assert seen[:4] == [0, 1, 2, 3]
    assert lit(ask) == 1
    ask.press("explore_back").press("explore_back")
    assert f"data-row='{n - 1}'" in table(ask)
    ask.press("explore_next").press("explore_next").set("explore_text", "dog")
    assert lit(ask) == 0  # a new word starts at its first letter
    assert ask.set("kind", "encoder").press("explore_next").errors == []
    assert lit(ask) is None  # rows of the encoder write no letter


def test_the_output_letters_are_shown_with_the_right_ones(ask):
    ask.go_to_step(5).set("explore_text", "cat").press("explore_next")
    answer = separate_model(ask, 5).answer("cat")
    text = table(ask)
    assert "data-step='5'" in text
    assert f"cat → <b>{answer.output}{'' if answer.stopped else '…'}</b>" in text
    assert ("✓ right" in text) == answer.right
    right, forced, free = [line.split("</th>")[1] for line in text.split("<tr>")[1:]]
    assert right.startswith("<td>t</td><td>a</td><td>c</td><td>[EOS]</td>")
    for cells, reading in ((forced, answer.forced), (free, answer.free)):
        expected = ""
        for i, token in enumerate(reading.predicted):
            place = "lit" if i == 1 else "later" if i > 1 else ""
            good = token == (*"tac", "[EOS]")[i] if i < 4 else False
            expected += f"<td class='{place} {'ok' if good else 'no'}'>{token.replace('[EOS]', 'end')}</td>"
        assert cells.startswith(expected)


def test_the_bars_show_the_probabilities_of_the_current_letter(ask):
    ask.set("explore_text", "cat").press("explore_next").go_to_step(10)
    answer = separate_model(ask, 10).answer("cat")
    shown = ask.drawn("explore_bars_figure")
    names = ask.run.task.tgt_tokenizer.tokens(range(ask.run.task.tgt_tokenizer.size))
    assert answer.free.tgt_tokens == ("[SOS]",)  # its own output ends at once: there is no next letter
    assert np.isnan([shown.arrays[f"{trace}.x"] for trace in (3, 4, 5)]).all()
    assert [shown.changing[f"annotations[{2 + panel}].visible"] for panel in (0, 1)] == [False, True]
    ask.set("explore_text", "ziggy").press("explore_next").go_to_step(5)
    answer, shown = separate_model(ask, 5).answer("ziggy"), ask.drawn("explore_bars_figure")
    assert answer.free.tgt_tokens[1] != "y"  # so that the two panels differ
    for panel, reading in enumerate((answer.forced, answer.free)):
        order = np.argsort(-reading.probabilities[1])[:4]
        kinds = np.stack([shown.arrays[f"{3 * panel + kind}.x"] for kind in range(3)])[:, :4]
        np.testing.assert_allclose(np.nanmax(kinds, axis=0), reading.probabilities[1][order], atol=1e-6)
        labels = shown.changing["yaxis2.ticktext" if panel else "yaxis.ticktext"]
        assert all(label.endswith(names[i]) for label, i in zip(labels, order, strict=False))
        assert [label for label in labels if label.startswith("✓")] == ["✓ g"]
    assert "output 2" in shown.changing["title.text"]


@pytest.mark.parametrize(("typed", "offer"), [("über", "uber"), ("猫", None), ("   ", None)])
def test_an_invalid_word_is_refused_in_place_and_the_last_valid_word_stays(ask, typed, offer):
    ask.set("explore_text", "zebra").press("explore_next")
    before = weights(ask)
    ask.set("explore_text", typed)
    for name in ("Break", "Measure", "Beams", "Spell"):
        assert len(ask.tab(name).errors) == 1
    assert ask.value("explore_text") == typed
    np.testing.assert_array_equal(weights(ask), before)
    assert columns(ask) == ["[SOS]", *"zebra", "[EOS]"]
    assert lit(ask) == 1
    assert ("explore_offer" in ask.keys) == (offer is not None)
    if offer:
        ask.press("explore_offer")
        assert ask.value("explore_text") == offer
    else:
        ask.set("explore_text", "Owl ")
    assert columns(ask) == ["[SOS]", *(offer or "owl"), "[EOS]"]
    assert ask.errors == []


def test_at_a_step_without_a_snapshot_the_nearest_snapshot_answers_and_is_named(visit):
    ask = visit(**TWO_LAYERS).press("run_start").until("finished").go("ask").set("explore_text", "owl")
    before = tile(ask.go_to_step(8), (4, 5), 1, 0)
    ask.run.thin_weights(3)
    assert [snapshot.step for snapshot in ask.run.view.snapshots] == [0, 7, 14, 22]
    for step, nearest in ((8, 7), (10, 7), (11, 14), (21, 22)):
        ask.go_to_step(step)
        assert ask.says(f"Step {step} has no snapshot: the model of step **{nearest}** answers.")
        expected = separate_model(ask, nearest).answer("owl").forced.maps["decoder.1.cross"][0]
        np.testing.assert_allclose(tile(ask, expected.shape, 1, 0), expected, atol=1e-4)
        assert f"step {nearest}" in ask.drawn("explore_map_figure").changing["title.text"]
        assert np.abs(expected - before).max() > 1e-3  # not the answer that step 8 gave before thinning


@pytest.mark.parametrize("step", [400, 10**8])
def test_at_a_step_beyond_the_run_the_last_step_answers_and_a_note_says_so(ask, step):
    ask.go_to_step(step)
    assert ask.says("The run is at step 22: the model of step **22** answers.")


def test_the_untrained_model_can_be_asked_before_the_start(visit):
    ask = visit({}, page="ask")
    assert ask.errors == []
    assert "· step 0 ·" in ask.drawn("explore_map_figure").changing["title.text"]
    assert len(ask.drawn("explore_map_figure").arrays["0.z"]) > 0
