"""The mask, and why a cell is blocked: by the causal mask, the padding mask, both, or by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.latex import at, number
from transformer.anatomy.panels import Array, Cell, Panel, Stage
from transformer.anatomy.spot import Spot
from transformer.insight.blocking import BOTH, BY_HAND, FUTURE, OPEN, PADDING
from transformer.interventions import PAD

WHY = {
    OPEN: "open",
    FUTURE: "blocked: causal mask",
    PADDING: "blocked: padding mask",
    BOTH: "blocked: causal and padding mask",
    BY_HAND: "blocked by hand",
}


def mask_codes(spot: Spot, head: int) -> Array:
    """(Q, S), why each cell of a head is blocked: by hand if neither mask blocks it."""
    rows, columns = np.indices((len(spot.queries), len(spot.keys)))
    future = (columns > rows) & spot.axes.causal
    padding = (np.array(spot.keys) == PAD) & spot.axes.padding
    codes = FUTURE * future + PADDING * padding
    open_to = spot.attention.mask[head]
    assert not codes[open_to].any()
    return np.where((codes == OPEN) & ~open_to, BY_HAND, codes)


def words_of(spot: Spot, codes: Array) -> tuple[str, ...]:
    """A sentence for each row: the tokens that it may look at, and why the others are blocked."""
    sentences = []
    for i, query in enumerate(spot.queries):
        groups = [(code, np.flatnonzero(codes[i] == code)) for code in WHY]
        said = [
            f"{'' if code == OPEN else 'not at '}{_listed(spot.keys[j] for j in found)}{_reason(code)}"
            for code, found in groups
            if len(found)
        ]
        sentences.append(f"“{query}” (position {i + 1}) may look at {'; '.join(said)}.")
    return tuple(sentences)


def _reason(code: int) -> str:
    return "" if code == OPEN else f" ({WHY[code].removeprefix('blocked: ').removeprefix('blocked ')})"


def _listed(tokens: Iterable[str]) -> str:
    """Tokens one after the other; equal neighbours are counted."""
    runs = [(token, len(list(group))) for token, group in groupby(tokens)]
    return " ".join(f"{token} ×{n}" if n > 2 else " ".join([token] * n) for token, n in runs)


def mask(spot: Spot) -> Stage:
    """The cells that are blocked."""
    i, j, codes = spot.row, spot.column, mask_codes(spot, spot.head)
    code = int(codes[i, j])
    fill = r"-\infty" if spot.model.mask_fill == "-inf" else "-10^9"
    words = words_of(spot, codes)
    if (codes == OPEN).all():
        sentence = f"The mask blocks nothing here: {_why_open(spot)}."
    else:
        blocks = ["later tokens"] if spot.axes.causal else []
        blocks += ["[PAD]"] if spot.axes.padding else []
        blocks += ["cells chosen by hand"] if spot.trace.interventions.blocks_at(spot.site) else []
        listed = " and ".join(filter(None, [", ".join(blocks[:-1]), blocks[-1]]))
        sentence = f"The mask blocks {listed}: {words[i]}"
    return Stage(
        key="mask",
        sentence=sentence,
        shape=spot.shape("Q", "S"),
        panels=(replace(spot.map("mask", codes.astype(np.float32), "mask"), hover_rows=words),),
        formula=rf"m_{{ij}} = \begin{{cases}} 0 & \text{{where }} i \text{{ may look at }} j \\ "
        rf"{fill} & \text{{elsewhere}} \end{{cases}}",
        cell=Cell(
            numbers=rf"m{at(i, j)} = {fill if code else 0} \quad {latex.text(f'({WHY[code]})')}",
            result=float(code),
        ),
    )


def _why_open(spot: Spot) -> str:
    """Why every row of this attention may look at every column."""
    if spot.axes.kind == "cross":
        return "the input is complete before the output begins"
    if spot.axes.kind == "encoder":
        return "each row reads the whole input"
    return "without a causal mask, each row reads later tokens too"


def masked_map(spot: Spot, name: str, values: Array, role: str, head: int | None = None) -> Panel:
    """A number for each row and column, (Q, S), NaN where a head is blocked; by default this one."""
    head = spot.head if head is None else head
    codes = mask_codes(spot, head)
    shown = np.where(codes == OPEN, values, np.float32("nan"))
    off = ((0, len(spot.keys)),) if role == "weights" and spot.is_off(head) else ()
    return replace(spot.map(name, shown, role), codes=codes, off=off)


def masked(spot: Spot) -> Stage:
    """Scores with the mask added."""
    i, j, open_to = spot.row, spot.column, mask_codes(spot, spot.head) == OPEN
    scores = spot.attention.scores[spot.head]
    score, is_open = float(scores[i, j]), bool(open_to[i, j])
    if is_open:
        end = f"0 = {number(score)}"
    elif spot.model.mask_fill == "-inf":
        end = r"(-\infty) = -\infty"
    else:
        end = r"(-10^9) \approx -10^9"
    n_blocked = int((~open_to).sum())
    return Stage(
        key="masked",
        sentence=f"The mask is added to the scores and blocks {n_blocked} of {open_to.size}."
        if n_blocked
        else "The mask blocks nothing here, so the scores do not change.",
        shape=spot.shape("Q", "S"),
        panels=(masked_map(spot, "masked scores", scores, "scores"),),
        formula=r"\tilde{s}_{ij} = s_{ij} + m_{ij}",
        cell=Cell(
            numbers=rf"\tilde{{s}}{at(i, j)} = {number(score)} + {end}",
            sources=(spot.score_strip(f"scaled scores of {spot.query_token}", scores[i]),),
            result=score if is_open else None,
        ),
    )
