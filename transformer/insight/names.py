"""Names of tasks, attentions and heads on the screen, counted from 1."""

from __future__ import annotations

_CALLED = {"dates": "dates", "numbers": "numbers"}
_SENTENCES = ("en-fr", "en-it", "zh-en", "pairs")


def examples_of(task: str) -> str:
    """The name of the examples of a task, in the plural."""
    return "sentences" if task in _SENTENCES else _CALLED.get(task, "words")


def parts_of(task: str) -> str:
    """The name of the parts of an answer, in the plural."""
    return "letters" if examples_of(task) == "words" else "tokens"


def shortened(text: str, most: int = 24) -> str:
    """A text, shortened to a length."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def site_name(site: str) -> str:
    """encoder.0 as "encoder layer 1", decoder.1.cross as "decoder layer 2"."""
    stack, layer, *_ = site.split(".")
    return f"{stack} layer {int(layer) + 1}"


def head_name(site: str, head: int) -> str:
    """decoder.1.cross, 0 as "decoder layer 2, head 1"."""
    return f"{site_name(site)}, head {head + 1}"


def short_head_name(site: str, head: int) -> str:
    """decoder.1.cross, 0 as "decoder 2 · head 1"."""
    stack, layer, *_ = site.split(".")
    return f"{stack} {int(layer) + 1} · head {head + 1}"


def full_head_name(site: str, head: int) -> str:
    """decoder.1.cross, 0 as "dec 2 cross · head 1": a decoder layer has two attentions."""
    stack, layer, *kind = site.split(".")
    return " ".join([stack[:3], str(int(layer) + 1), *kind]) + f" · head {head + 1}"
