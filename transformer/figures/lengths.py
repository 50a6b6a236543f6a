"""Where in an answer the tokens are right, by the length of the question, and how far training reached."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np

from transformer.figures import colors
from transformer.figures.parts import BARE, Part, axis_title, line, share_bar, titled
from transformer.figures.picture import Array, Picture


def length_heatmap(
    share: Array,
    asked: Array,
    *,
    longest_trained: int,
    title: str,
    step: int,
    exact: Array | None = None,
    shortest: int = 1,
) -> Picture:
    """A row for each length of question, a column for each token that is written.

    Args:
        share: (lengths, positions) of letters that are right; NaN where there is no such letter.
        asked: (lengths,) how many words of each length were asked.
        longest_trained: letters of the longest word of the training; a line stands below its row.
        exact: (lengths,) share of words that are right to the last letter: a column of its own.
        shortest: letters of the words of the first row.
    """
    n_lengths, n_positions = share.shape
    for name, array in (("asked", asked), ("exact", exact)):
        if array is not None and array.shape != (n_lengths,):
            raise ValueError(f"{name} has shape {array.shape}, but share has {n_lengths} lengths.")
    arrays = {"0.z": share}
    if exact is not None:
        arrays["1.z"] = exact[:, np.newaxis]
    labels = [f"{shortest + i} ({int(n):,})" for i, n in enumerate(asked)]
    return Picture(
        spec=_spec(shortest, n_lengths, n_positions, longest_trained, exact is not None),
        arrays=arrays,
        layout={"title.text": title, "yaxis.ticktext": labels},
        step=step,
    )


@lru_cache(maxsize=64)
def _spec(shortest: int, n_lengths: int, n_positions: int, longest_trained: int, has_exact: bool) -> str:
    lengths = list(range(shortest, shortest + n_lengths))
    size = 14 if max(n_lengths, n_positions) <= 10 else 12
    bare = BARE | {"tickangle": 0, "tickfont": {"size": size}}
    shares_end = 0.82 if has_exact else 1.0
    heat: Part = {
        "type": "heatmap",
        "y": lengths,
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": colors.SHARES,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
    }
    shares = {
        "x": list(range(1, n_positions + 1)),
        "hovertemplate": "output %{x}, questions of length %{y}: <b>%{z:.1%}</b> right<extra></extra>",
        "colorbar": share_bar("share right<br><span style='font-size:7px'>&nbsp;</span>"),
    }
    data = [heat | shares]
    layout: Part = {
        "title": titled(),
        "margin": {"l": 4, "r": 0, "t": 48, "b": 4},
        "xaxis": bare
        | {
            "domain": [0.0, shares_end],
            "range": [0.5, n_positions + 0.5],
            "dtick": 1 if n_positions <= 16 else 5,
            "title": axis_title("place in the answer", standoff=10),
            "automargin": True,
        },
        "yaxis": bare
        | {
            "tickvals": lengths,
            "ticktext": [str(n) for n in lengths],
            "range": [lengths[-1] + 0.5, shortest - 0.5],
            "title": axis_title("length of the question (asked)", standoff=16),
            "automargin": True,
        },
        "uirevision": json.dumps([shortest, n_lengths, n_positions]),
    }
    if has_exact:
        exact = {
            "x": [0],
            "xaxis": "x2",
            "showscale": False,
            "texttemplate": "%{z:.0%}",
            "textfont": {"size": size},
            "hovertemplate": "questions of length %{y}: <b>%{z:.1%}</b> right to the last<extra></extra>",
        }
        data.append(heat | exact)
        layout["xaxis2"] = bare | {
            "domain": [shares_end + 0.03, 1.0],
            "anchor": "y",
            "range": [-0.5, 0.5],
            "tickvals": [0],
            "ticktext": ["all<br>right"],
        }
    if shortest <= longest_trained < lengths[-1]:
        border = longest_trained + 0.5
        look = {"color": colors.MIRROR, "width": 3}
        layout["shapes"] = [line((0, border), (1, border), look, xref="paper")]
        layout["annotations"] = [
            {
                "text": "trained<br>up to here",
                "x": n_positions + 0.4,
                "y": border,
                "axref": "x",
                "ayref": "y",
                "ax": n_positions + 0.4,
                "ay": max(border - 3, min(border - 0.2, shortest + 0.5)),  # short words leave room there
                "xanchor": "right",
                "yanchor": "bottom",
                "align": "right",
                "arrowcolor": colors.MIRROR,
                "arrowhead": 2,
                "arrowwidth": 2,
                "font": {"size": 13},
            }
        ]
    return json.dumps({"data": data, "layout": layout})
