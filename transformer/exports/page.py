"""A run as one HTML page that needs nothing else: no app, no Python, no network."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformer.exports.frames import head_title, share_of
from transformer.exports.page_data import page_data
from transformer.figures import colors
from transformer.insight.names import examples_of
from transformer.recording.view import RunView

_HERE = Path(__file__).parent


def html_page(view: RunView, *, word: str, kind: str, site: str, head: int) -> str:
    """The whole page, with the recorded frames and plotly.js inside.

    Args:
        word: shown first; another one where it has not been recorded.
        kind: of attention shown first: cross, encoder, decoder or sequence.
        site: of the head shown large first; of this kind.
        head: its number, counted from 0.

    Raises:
        InputError: nothing has been recorded yet.
    """
    data = page_data(view)
    assert view.frame is not None
    head_title(view.frame, site, head)  # refuses a head that does not exist
    if kind not in data["kinds"] or site not in data["kinds"][kind]["sites"]:
        raise ValueError(f"{site!r} is no {kind!r} attention; they are {data['kinds']}.")
    if word not in data["words"]:
        word = next(iter(data["words"]))
    data["first"] = {"word": word, "kind": kind, "site": site, "head": head}
    title = f"{view.config.train.task}, seed {view.config.seed}"
    return _filled(
        (_HERE / "page.html").read_text(encoding="utf-8"),
        {
            "title": html.escape(f"Headlight: {title}"),
            "heading": html.escape(title),
            "examples": examples_of(view.config.train.task),
            "example": examples_of(view.config.train.task).removesuffix("s"),
            "facts": html.escape(f"{_facts(view)} · {share_of(view, data['frames'])}"),
            "reason": html.escape(view.reason),
            "right": colors.RIGHT,
            "wrong": colors.WRONG,
            "plotly": _plotly(),
            "data": _as_script_data(data),
            "script": (_HERE / "page.js").read_text(encoding="utf-8"),
        },
    )


def _facts(view: RunView) -> str:
    """The size of the model, and how far it was trained."""
    model = view.config.model
    if model.topology == "encoder-decoder":
        layers = f"{model.n_encoder_layers} + {model.n_decoder_layers} layers"
    else:
        n = model.n_layers(model.kinds[0])
        layers = f"{model.topology} · {n} layer{'s' if n > 1 else ''}"
    usual = replace(model, causal_mask=None, padding_mask=True).masks
    masks = [
        f"{mask} mask {'on' if on else 'off'} · " for mask, on in model.masks.items() if on != usual[mask]
    ]
    return (
        f"{layers} × {model.n_heads} heads · width {model.d_model} · {''.join(masks)}{view.parameters:,} "
        f"parameters · trained for {view.step:,} steps in {view.seconds:.1f} s · {view.state}"
    )


def _filled(template: str, values: dict[str, str]) -> str:
    """Put the values in place of {{name}}, all at once: what a value holds is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)


def _as_script_data(data: dict[str, Any]) -> str:
    """JSON that can stand inside a script element, whatever words it holds."""
    return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )


@lru_cache(maxsize=1)
def _plotly() -> str:
    """The plotly.js of the installed package, safe inside a script element."""
    from plotly.offline import get_plotlyjs

    source: str = get_plotlyjs()
    return re.sub(r"<(?=/script|!--|script)", r"\\x3c", source, flags=re.IGNORECASE)
