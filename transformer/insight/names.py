"""Words on the screen: shortened texts, attentions and heads (counted from 1), and the goals of heads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


def shortened(text: str, most: int = 24) -> str:
    """Shorten a text to at most `most` characters, with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


_OURS = re.compile(r"(encoder|decoder)\.\d+(\.(self|cross))?")
"""Sites of this package's Transformer; the attentions of an own model have the names of their modules."""


def is_ours(site: str) -> bool:
    """Whether a name has the form of a site of this package's Transformer."""
    return bool(_OURS.fullmatch(site))


def without_prefix(site: str, sites: Iterable[str]) -> str:
    """The name of a module without the parents that all `sites` share; a number keeps the name before it.

    A site of this package's Transformer is returned unchanged.

    Args:
        sites: all attentions of the model, `site` among them.
    """
    if is_ours(site):
        return site
    *parents, _ = zip(*(site.split(".") for site in sites), strict=False)
    n = next((i for i, names in enumerate(parents) if len(set(names)) > 1), len(parents))
    parts = site.split(".")
    return ".".join(parts[n - 1 if n and parts[n].isdecimal() else n :])


def layer_number(site: str) -> str:
    """The numbers in the name of a module, joined by dots: "1" for decoder.layers.1.self_attn.

    "–" if there are none. What follows a "#", the number of a further call, is left out.
    """
    return ".".join(re.findall(r"\d+", site.partition("#")[0])) or "–"


def site_name(site: str) -> str:
    """encoder.0 as "encoder layer 1", decoder.1.cross as "cross-attention layer 2"; others unchanged."""
    if not is_ours(site):
        return site
    kind, layer = _kind_and_layer(site)
    return f"{kind}-attention layer {layer}" if kind == "cross" else f"{kind} layer {layer}"


def head_name(site: str, head: int) -> str:
    """decoder.1.cross, 0 as "cross-attention layer 2, head 1"."""
    return f"{site_name(site)}, head {head + 1}"


def short_head_name(site: str, head: int) -> str:
    """decoder.1.cross, 0 as "cross 2 · head 1", decoder.1.self, 0 as "decoder 2 · head 1"."""
    return f"{' '.join(_kind_and_layer(site)) if is_ours(site) else site} · head {head + 1}"


def _kind_and_layer(site: str) -> tuple[str, str]:
    """The kind of an attention of ours (cross, or its stack), and the number of its layer."""
    stack, layer, *kind = site.split(".")
    return ("cross" if kind == ["cross"] else stack), str(int(layer) + 1)


@dataclass(frozen=True, kw_only=True)
class TargetScore:
    """The score that the heads of one kind of task are to reach, in words."""

    target: str
    """The tokens whose share of the weight is the score, in words."""
    pronouns: tuple[str, str] = ("it", "its")
    """The pronouns by which a sentence refers to the target."""
    title: str
    """Title of the scores of all heads."""
    turned: str
    """What a head has done once its score has reached the threshold, in words."""
    does: str
    """What such a head does, in words."""


TARGET_SCORES = {
    "mirror": TargetScore(
        target="the letter to write next",
        title="Attention on the letter to write next",
        turned="began to read backwards",
        does="reads the word backwards",
    ),
    "prefix": TargetScore(
        target="what followed the same token before",
        title="Attention on what followed the same token before",
        turned="became an induction head",
        does="continues what came before (induction)",
    ),
    "gold": TargetScore(
        target="the tokens to write next",
        pronouns=("them", "their"),
        title="Attention on the tokens to write next",
        turned="began to look up what it writes",
        does="looks up what it writes",
    ),
    "focus": TargetScore(
        target="the strongest token of each row",
        title="Attention on the strongest token of each row",
        turned="began to look at single tokens",
        does="looks at one token in each row",
    ),
}
"""The words for each target score, by its name."""
