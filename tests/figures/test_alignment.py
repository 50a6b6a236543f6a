"""The picture of an alignment: a line for each link, and ∅ for a token without a link."""

from __future__ import annotations

import pytest

from transformer.figures import colors
from transformer.figures.alignment import Aligned, alignment

CAT = Aligned(
    source=("the", "black", "cat"), target=("le", "chat", "noir", "!"), links=((0,), (2,), (1,), ())
)


def drawn(pair):
    return alignment(pair, title="t").figure()


def test_only_links_have_a_visible_line():
    figure = drawn(CAT)
    rows, columns = (figure["layout"]["meta"]["lines"][name] for name in ("rows", "columns"))
    assert (rows, columns) == (4, 3)
    visible = [i for i, shape in enumerate(figure["layout"]["shapes"]) if shape["opacity"] > 0]
    assert [divmod(i, columns) for i in visible] == [(0, 0), (1, 2), (2, 1)]
    below, above = figure["data"][0]["x"], figure["data"][1]["x"]
    for i in visible:
        row, column = divmod(i, columns)
        shape = figure["layout"]["shapes"][i]
        assert (shape["x0"], shape["x1"]) == (below[row], above[column])
        assert (shape["line"]["color"] == colors.HIGHLIGHT) is (row == 0)  # until the pointer is on a token


def test_a_token_without_a_link_is_italic_and_has_a_sign_opposite_it():
    figure = drawn(Aligned(source=("a", "b"), target=("x", "y"), links=((1,), ())))
    answer, question, below, above = figure["data"]
    assert answer["text"] == ["x", "<i>y</i>"]
    assert question["text"] == ["<i>a</i>", "b"]
    assert (below["text"], below["x"]) == (["∅"], [answer["x"][1]])
    assert (above["text"], above["x"]) == (["∅"], [question["x"][0]])
    assert answer["hovertext"] == ["<b>x</b> comes from <b>b</b>", "<b>y</b> comes from nothing"]
    assert question["hovertext"] == ["nothing comes from <b>a</b>", "<b>b</b> gives <b>x</b>"]


def test_tokens_are_in_order_and_do_not_overlap():
    tokens = ("i", "internationalisation", "纽约", "a")
    figure = drawn(Aligned(source=tokens, target=("x",), links=((0,),)))
    places = figure["data"][1]["x"]
    gaps = [right - left for left, right in zip(places, places[1:], strict=False)]
    widths = [1, 20, 4, 1]
    for gap, left, right in zip(gaps, widths, widths[1:], strict=False):
        assert gap > (left + right) / 2


def test_longer_sentences_have_smaller_text():
    sizes = [
        drawn(Aligned(source=("word",) * n, target=("x",), links=((0,),)))["data"][1]["textfont"]["size"]
        for n in (3, 20, 40)
    ]
    assert sizes[0] > sizes[1] > sizes[2] >= 8


def test_tags_in_a_token_are_escaped():
    figure = drawn(Aligned(source=("<b>",), target=("&",), links=((0,),)))
    assert figure["data"][1]["text"] == ["&lt;b&gt;"]
    assert figure["data"][0]["text"] == ["&amp;"]


def test_links_that_do_not_fit_the_answer_are_refused():
    with pytest.raises(ValueError, match="links for 1 tokens, but the answer has 2"):
        drawn(Aligned(source=("a",), target=("x", "y"), links=((0,),)))
