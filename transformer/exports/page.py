"""A run as one HTML page that needs nothing else: no app, no Python, no network."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformer.errors import InputError
from transformer.exports.frames import head_title, share_of
from transformer.figures.colors import LOOK
from transformer.insight.names import AIMS, examples_of
from transformer.player.chunks import encoded, name_of
from transformer.player.index import Index
from transformer.recording.chunk import Chunk, together
from transformer.recording.frames import Frames, nearest_step
from transformer.recording.view import RunView

_HERE = Path(__file__).parent
_PLAYER = _HERE.parent / "player" / "browser"
MODULES = (
    "player.js",
    "control.js",
    "stepbox.js",
    "texts.js",
    "pictures.js",
    "maps.js",
    "painter.js",
    "drawing.js",
    "chunks.js",
    "sources.js",
    "map.js",
    "model.js",
    "numbers.js",
    "lines.js",
    "element.js",
    "pair.js",
    "race.js",
    "picture.js",
)
ROOM = 7_400_000
"""Most bytes of maps in a page, before compression: with plotly.js, the page is below 12 MB. A longer run
is shown with fewer steps."""
PICTURES, ROOM_OF_PICTURES = 12, 2_500_000
"""Most steps whose whole forward pass a page holds, and most characters that these take."""
TOGETHER = 64
"""Most steps in one chunk: longer chunks compress better."""


def html_page(view: RunView, *, word: str, site: str, head: int) -> str:
    """The whole page, with the recorded frames, the player and plotly.js inside.

    Args:
        word: the word shown first; if it has not been recorded, the first recorded one is shown.
        site: the site of the head that is shown large first; all attentions of its kind are shown.
        head: the number of that head, counted from 0.

    Raises:
        InputError: nothing has been recorded yet.
    """
    if view.frame is None:
        raise InputError("Nothing has been recorded yet; wait until the untrained model is shown.")
    head_title(view.frame, site, head)  # refuses a head that does not exist
    shown = fitting(view)
    data = {
        "runs": [_carried(shown) | {"pictures": pictures(view, word)}],
        "first": {
            "word": word if word in shown.frames.words else shown.frames.words[0],
            "kind": view.frame.axes[site].kind,
            "pinned": [site, head],
            "step": None,
        },
        "fileName": f"headlight-{view.stem}",
        "mass": f"<b>{AIMS[view.frame.aim].title}</b>, by head and step. Above the dashed line the pattern "
        "is clear.",
    }
    task = view.config.train.task
    title = view.own.name if view.own else f"{examples_of(task)}, {task}, {view.seeded}"
    return _page(data, title, f"{_facts(view)} · {share_of(view, shown.frames)}", view.reason)


def race_page(views: Sequence[RunView], race: dict[str, Any], first: dict[str, Any]) -> str:
    """The page of two runs side by side, each with half of the room.

    Args:
        race: how a player shows them: `names`, `says`, `clock`, `difference`, `curves`.
        first: what is shown first: word, kind, pinned and step.

    Raises:
        InputError: nothing has been recorded of one of the runs yet.
    """
    if any(view.frame is None for view in views):
        raise InputError("Nothing has been recorded yet; wait until the untrained models are shown.")
    shown = [fitting(view, len(views)) for view in views]
    data = {
        "runs": [_carried(one) for one in shown],
        "first": first,
        "race": race,
        "fileName": f"headlight-race-{views[0].stem}",
    }
    facts = " | ".join(f"{name}: {_facts(view)}" for name, view in zip(race["names"], views, strict=True))
    title = ", ".join(filter(None, (f"{race['names'][0]} against {race['names'][1]}", views[0].seeded)))
    return _page(data, title, facts)


def _carried(shown: RunView) -> dict[str, Any]:
    """The data of one run in a page: its index, and its chunks as text."""
    return {
        "index": Index(shown.config).whole(shown),
        "chunks": {
            name_of(chunk): base64.b64encode(gzip.compress(encoded(chunk), 9)).decode()
            for text in shown.frames.words
            for chunk in shown.frames.chunks_of(text)
        },
    }


def _page(data: dict[str, Any], title: str, facts: str, reason: str = "") -> str:
    return _filled(
        (_HERE / "page.html").read_text(encoding="utf-8"),
        {
            "title": html.escape(f"Headlight: {title}"),
            "heading": html.escape(title),
            "facts": html.escape(facts),
            "reason": html.escape(reason),
            "style": "".join(
                (_PLAYER / f"{name}.css").read_text(encoding="utf-8") for name in ("look", "player", "model")
            ),
            "player": (_PLAYER / "player.html").read_text(encoding="utf-8"),
            "modules": modules(),
            "plotly": _plotly(),
            "data": _as_script_data(data),
        },
    )


def fitting(view: RunView, parts: int = 1) -> RunView:
    """The run with as many of its frames as a page has room for, thinned evenly; moments stay.

    Args:
        parts: number of runs that share the room.
    """
    frames = view.frames.thinned({moment.step for moment in view.moments}, ROOM // parts)
    records = [one for one in frames.records if not isinstance(one, Chunk)]
    chunks = [chunk for word in frames.words for chunk in together(frames.chunks_of(word), TOGETHER)]
    whole = Frames([*chunks, *records], numbers=view.metrics.at, aim=frames[-1].aim)
    return replace(view, id="", frames=whole)  # no id: anyone with the id can watch the run


def pictures(view: RunView, word: str) -> dict[str, Any] | None:
    """The forward passes of a word at some steps: the last, the first, near moments, and evenly spaced ones.

    Returns:
        The word, and by step the compressed result of `boxes.packed` as text; None if there is no room, or
        the word cannot be asked.
    """
    from transformer.anatomy.boxes import packed  # imports torch
    from transformer.anatomy.trace import trace

    known = {one.step: one for one in view.snapshots}
    steps = sorted(known)
    near = [moment.step for moment in view.moments] + [view.step * i // PICTURES for i in range(PICTURES)]
    wanted = dict.fromkeys([*steps[-1:], *steps[:1], *(nearest_step(steps, step) for step in near)])
    found: dict[int, str] = {}
    size = 0
    for step in (step for step in wanted if step is not None):
        try:
            passed = packed(trace(view.config, known[step], word), step, word=word, **LOOK)
        except InputError:  # weights thinned meanwhile, or a word that cannot be asked
            continue
        made = base64.b64encode(gzip.compress(passed, 9)).decode()
        size += len(made)
        if len(found) == PICTURES or size > ROOM_OF_PICTURES:
            break
        found[step] = made
    return {"word": word, "steps": found} if found else None


def modules() -> str:
    """The player's modules as an import map of data: URLs."""
    found = {}
    for name in MODULES:
        source = (_PLAYER / name).read_text(encoding="utf-8")
        source = re.sub(r'from "\./([a-z]+\.js)"', r'from "headlight/\1"', source)
        found[f"headlight/{name}"] = (
            f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"
        )
    return json.dumps({"imports": found})


def _facts(view: RunView) -> str:
    """The size of the model, and how far it was trained."""
    model = view.config.model
    if view.own is not None:
        assert view.frame is not None
        heads = sum(view.frame.n_heads(site) for site in view.frame.axes)
        return (
            f"{len(view.frame.axes)} attentions with {heads:,} heads · {view.parameters:,} parameters · "
            f"watched for {view.step:,} steps in {view.seconds:.1f} s · {view.state}"
        )
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
    """Put the values in place of {{name}}, in one pass: the values themselves are not searched."""
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
