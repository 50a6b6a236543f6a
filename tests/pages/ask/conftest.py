"""The page Ask, and what its tab Break shows."""

from __future__ import annotations

import pytest

from transformer.asking import Asked
from transformer.interventions import NOTHING


@pytest.fixture
def ask(visit):
    """The Break tab of a run that has taken its first steps and stands still."""
    visitor = visit(layers_decoder=2, heads=3, width=12, steps=1000).set("step_size", 5).step()
    return visitor.go("explore").tab("Break").set("explore_text", "owl").set("kind", "decoder")


def truth(visitor, step, interventions=NOTHING):
    """A model with the weights of this step, built for this question alone."""
    view = visitor.run.view
    (snapshot,) = [snapshot for snapshot in view.snapshots if snapshot.step == step]
    return Asked(view.config, snapshot, interventions)


def weights(visitor, side):
    return visitor.drawn(f"break_{side}_figure").arrays["0.z"]


def verdict(visitor, side):
    """(right, asked) of the held-out words, and what was written."""
    (text,) = [text for text in visitor.texts if f"<small>{side}</small>" in text]
    return text


def block(visitor, row, column, what="cell", where="head"):
    visitor.set("block_row", row).set("block_column", column)
    visitor.set("block_what", what).set("block_where", where)
    return visitor.press("block_add")


def shown_head(visitor):
    """(layer, head) of the decoder's self-attention that is on the left."""
    title = visitor.drawn("break_before_figure").changing["title.text"]
    layer, head = title.split("</b>")[0].removeprefix("<b>decoder ").split(" · head ")
    return int(layer) - 1, int(head) - 1
