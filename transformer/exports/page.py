"""A run as one HTML page that needs nothing else: no app, no Python, no network."""

from __future__ import annotations

import html
import json
import re
import zlib
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from transformer.config import TASK_INFO
from transformer.errors import InputError
from transformer.exports.frames import check_head, share_of
from transformer.figures.colors import LOOK
from transformer.player.chunks import encoded, name_of
from transformer.player.index import Index
from transformer.recording.chunk import together
from transformer.recording.recording import Recording, nearest_step
from transformer.recording.view import RunView

_HERE = Path(__file__).parent
_PLAYER = _HERE.parent / "player" / "browser"
ROOM = 7_400_000
"""Most bytes of recordings in a page, before compression. A default run has fewer; a larger recording is
shown with fewer of its steps."""
PASSES, ROOM_OF_PASSES, ROOM_OF_PARTS = 12, 1_250_000, 1_250_000
"""Most steps whose whole forward pass a page holds; most characters of these passes; most characters of the
parts of their scores."""
INTEGERS = 50_000
"""`rounded` leaves whole numbers from 0 to this one as they are, so that ids of tokens up to it are exact."""


def html_page(view: RunView, *, word: str, site: str, head: int) -> str:
    """The whole page, with as many of the recorded frames as fit, the player and plotly.js inside.

    Args:
        word: the word shown first; if it has not been recorded, the first recorded one is shown.
        site: the site of the head that is shown large first; all attentions of its kind are shown.
        head: the number of that head, counted from 0.

    Raises:
        InputError: nothing has been recorded yet.
        ValueError: the model has no such head.
    """
    if view.frame is None:
        raise InputError("Nothing has been recorded yet; wait until the untrained model is shown.")
    check_head(view.frame, site, head)
    shown = thinned_to_fit(view)
    words = [tracked.text for tracked in view.frame.asked]
    is_mean = word in view.frames.words and word not in words
    asked = words[0] if is_mean else word  # no single forward pass has the mean map
    passed, parts = passes(view, asked)
    pictures = {"word": asked, "steps": sorted(passed), "parts": sorted(parts)} if passed else None
    data = {
        "runs": [{"index": Index(shown.config).whole(shown), "pictures": pictures}],
        "first": {
            "word": word if word in shown.frames.words else shown.frames.words[0],
            "kind": view.frame.axes[site].kind,
            "pinned": [site, head],
            "step": None,
        },
        "fileName": f"headlight-{view.stem}",
    }
    task = view.config.train.task
    title = view.own.name if view.own else f"{TASK_INFO[task].plural}, {task}, {view.seeded}"
    packs = _chunks(shown) | {f"pass-{step}": made for step, made in passed.items()}
    packs |= {f"parts-{step}": made for step, made in parts.items()}
    return _page(data, packs, title, f"{_facts(view)} · {share_of(view, shown.frames)}", view.reason)


def race_page(views: Sequence[RunView], race: dict[str, Any], first: dict[str, Any]) -> str:
    """The page of runs side by side, each with an equal part of the room.

    Args:
        race: how a player shows them: `names`, `asks`, `says`, `clock`, `difference`, `curves`.
        first: what is shown first: word, kind, pinned and step.

    Raises:
        InputError: nothing has been recorded of one of the runs yet.
    """
    if any(view.frame is None for view in views):
        raise InputError("Nothing has been recorded yet; wait until the untrained models are shown.")
    moments = {moment.step for view in views for moment in view.moments}
    shown = [thinned_to_fit(view, len(views), moments) for view in views]
    data = {
        "runs": [{"index": Index(one.config).whole(one)} for one in shown],
        "first": first,
        "race": race,
        "fileName": f"headlight-race-{views[0].stem}",
    }
    facts = " | ".join(f"{name}: {_facts(view)}" for name, view in zip(race["names"], views, strict=True))
    names = race["names"]
    title = f"{len(names)} runs, {names[0]} to {names[-1]}"
    if len(names) == 2:
        title = ", ".join(filter(None, (f"{names[0]} against {names[1]}", views[0].seeded)))
    return _page(data, {name: pack for one in shown for name, pack in _chunks(one).items()}, title, facts)


def _chunks(shown: RunView) -> dict[str, str]:
    """The packed chunks of a run, by name."""
    chunks = (chunk for word in shown.frames.words for chunk in shown.frames.chunks_of(word))
    return {name_of(chunk): packed(encoded(chunk)) for chunk in chunks}


def packed(content: bytes) -> str:
    """Compress, and write 7 bits in each character.

    The characters that a page would not keep (NUL, line feed, carriage return, <) are replaced by those whose
    code is 128 larger.
    """
    bits = np.unpackbits(np.frombuffer(zlib.compress(content, 9), np.uint8))
    sevens = np.packbits(np.pad(bits, (0, -len(bits) % 7)).reshape(-1, 7), axis=1) >> 1
    return sevens.tobytes().decode("ascii").translate({code: code + 128 for code in b"\0\n\r<"})


def _page(data: dict[str, Any], packs: dict[str, str], title: str, facts: str, reason: str = "") -> str:
    content = json.dumps({"modules": modules(), **data}, allow_nan=False, separators=(",", ":")).encode()
    packs = {"data": packed(content), **packs, "plotly": _plotly()}
    return _filled(
        (_HERE / "page.html").read_text(encoding="utf-8"),
        {
            "title": html.escape(f"Headlight: {title}"),
            "heading": html.escape(title),
            "facts": html.escape(facts),
            "reason": html.escape(reason),
            "style": "".join(
                (_PLAYER / f"{name}.css").read_text(encoding="utf-8")
                for name in ("shared/look", "player/player", "model/model")
            ),
            "player": (_PLAYER / "player" / "player.html").read_text(encoding="utf-8"),
            "packs": "\n".join(
                f'<script type="text/plain" id="{name}">{pack}</script>' for name, pack in packs.items()
            ),
        },
    )


def thinned_to_fit(view: RunView, parts: int = 1, moments: Set[int] = frozenset()) -> RunView:
    """The run with as many of its frames as a page has room for, thinned evenly; moments stay.

    Args:
        parts: number of runs that share the room.
        moments: further steps that stay: the moments of the other runs beside it.
    """
    frames = view.frames.thinned({moment.step for moment in view.moments} | moments, ROOM // parts)
    chunks = [chunk for word in frames.words for chunk in together(frames.chunks_of(word))]
    whole = Recording(
        [*chunks, *frames.measured], numbers=view.metrics.at, target_score=frames[-1].target_score
    )
    return replace(view, id="", frames=whole)  # no id: anyone with the id can watch the run


def passes(view: RunView, word: str) -> tuple[dict[int, str], dict[int, str]]:
    """The forward passes of a word at some steps: the last, the first, near moments, and evenly spaced ones.

    Returns:
        By step the packed result of `rounded`, as far as there is room; empty if no weights are kept, or the
        word cannot be asked. And by step the packed parts of its scores, as far as there is room.
    """
    from transformer.anatomy import boxes
    from transformer.anatomy.parts import packed_parts
    from transformer.anatomy.trace import trace  # imports torch

    snapshots = {snapshot.step: snapshot for snapshot in view.snapshots}
    steps = sorted(snapshots)
    near = [moment.step for moment in view.moments] + [view.step * i // PASSES for i in range(PASSES)]
    wanted = dict.fromkeys([*steps[-1:], *steps[:1], *(nearest_step(steps, step) for step in near)])
    packed_passes: dict[int, str] = {}
    parts: dict[int, str] = {}
    size = size_of_parts = 0
    for step in (step for step in wanted if step is not None):
        try:
            traced = trace(view.config, snapshots[step], word)
        except InputError:  # weights thinned meanwhile, or a word that cannot be asked
            continue
        made = packed(rounded(boxes.packed(traced, step, word=word, **LOOK)))
        size += len(made)
        if len(packed_passes) == PASSES or size > ROOM_OF_PASSES:
            break
        packed_passes[step] = made
        if size_of_parts <= ROOM_OF_PARTS:
            made = packed(packed_parts(traced, traced.attentions))
            size_of_parts += len(made)
            if size_of_parts <= ROOM_OF_PARTS:
                parts[step] = made
    return packed_passes, parts


def rounded(passed: bytes) -> bytes:
    """A result of `boxes.packed` with four digits of each number; whole ones up to `INTEGERS` stay exact.

    Returns:
        A line of JSON, then the numbers, integers times powers of 10: the low bytes of all integers plus
        10,000, their high bytes, and the exponents.
    """
    line, _, body = passed.partition(b"\n")
    numbers = np.frombuffer(body, "<f4").astype(np.float64)
    tables = [table for box in json.loads(line)["boxes"] for table in box["tables"]]
    shares = np.repeat(
        [table["role"] in ("weights", "probabilities") for table in tables],
        [prod(table["shape"]) for table in tables],
    )
    whole = (numbers == np.floor(numbers)) & (numbers >= 0) & (numbers <= INTEGERS)
    exponents = np.where(whole, 0, np.floor(np.log10(np.abs(np.where(whole, 1, numbers)))) - 3)
    scaled = np.abs(numbers * 10.0**-exponents)
    below = np.floor(scaled)
    # Pages round shares once more, to fewer digits: a share that is no multiple of 5 must not become one.
    integers = np.where(shares, below + ((below % 5 == 0) & (below < scaled)), np.floor(scaled + 0.5))
    codes = (10_000 + np.copysign(integers, numbers)).astype("<u2")
    planes = codes.view(np.uint8).reshape(-1, 2).T.tobytes()
    return line + b"\n" + planes + exponents.astype(np.int8).tobytes()


def modules() -> dict[str, str]:
    """The source of each module that a page imports, by the name under which others import it there."""
    sources: dict[str, str] = {}
    for name in (wanted := ["race/seeds.js", "player/sources.js"]):  # grows
        source = (_PLAYER / name).read_text(encoding="utf-8")
        source = re.sub(r'from "\./', f'from "headlight/{name.partition("/")[0]}/', source)
        source = source.replace('from "../', 'from "headlight/')
        source = re.sub(r"^ *//.*\n", "", source, flags=re.MULTILINE)  # comments on lines of their own
        wanted += sorted({*re.findall(r'from "headlight/([a-z/]+\.js)"', source)} - {*wanted})
        sources[f"headlight/{name}"] = source
    return sources


def _facts(view: RunView) -> str:
    """The size of the model, and how far it was trained."""
    model = view.config.model
    if view.own is not None:
        assert view.frame is not None
        heads = sum(view.frame.n_heads(site) for site in view.frame.axes)
        n = len(view.frame.axes)
        return (
            f"{n} attention{'s' if n > 1 else ''} with {heads:,} heads · {view.parameters:,} parameters · "
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


@lru_cache(maxsize=1)
def _plotly() -> str:
    """The packed plotly.js of the installed package."""
    from plotly.offline import get_plotlyjs

    return packed(get_plotlyjs().encode())
