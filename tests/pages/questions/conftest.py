"""Helpers for the Ask page and its Break tab."""

from __future__ import annotations

import pytest

from transformer.asking.model import SnapshotModel
from transformer.shared.interventions import NO_INTERVENTIONS


@pytest.fixture
def ask(visit):
    """The Break tab of a run that is paused at step 5."""
    return open_break_tab(visit(layers_decoder=2, heads=3, width=12, steps=1000).set("step_size", 5).step())


def open_break_tab(visitor):
    """Open the Break tab with the decoder's self-attention for the word owl."""
    visitor.go("ask").tab("Break")
    return visitor.fill({"explore_text": "owl", "kind": "decoder"})


def separate_model(visitor, step=None, interventions=NO_INTERVENTIONS):
    """Build a model with the weights of this step, by default the newest, independently of the page."""
    view = visitor.run.view
    (snapshot,) = [
        snapshot for snapshot in view.snapshots if snapshot.step == (view.step if step is None else step)
    ]
    return SnapshotModel(view.config, snapshot, interventions)


def weights(visitor, side):
    return visitor.drawn(f"break_{side}_figure").arrays["0.z"]


def caption(visitor, side):
    """Return the text above one side: how many held-out words are right, and the model's answer."""
    (text,) = [text for text in visitor.texts if f"<small>{side}</small>" in text]
    return text


def block(visitor, row, column, what="cell", where="head"):
    visitor.fill({"block_row": row, "block_column": column, "block_what": what, "block_where": where})
    return visitor.press("block_add")


def shown_head(visitor):
    """Return (layer, head) of the map on the left, both from 0; the map is of decoder self-attention."""
    title = visitor.drawn("break_before_figure").changing["title.text"]
    layer, head = title.split("</b>")[0].removeprefix("<b>decoder ").split(" · head ")
    return int(layer) - 1, int(head) - 1
