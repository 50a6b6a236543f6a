"""How attentions and heads are called where people read: counted from 1."""

from __future__ import annotations

_CALLED = {"dates": "dates", "numbers": "numbers"}
_SENTENCES = ("en-fr", "en-it", "zh-en", "pairs")


def examples_of(task: str) -> str:
    """What the examples of a task are called, in the plural."""
    return "sentences" if task in _SENTENCES else _CALLED.get(task, "words")


def parts_of(task: str) -> str:
    """What the answer to an example of a task is made of, in the plural."""
    return "letters" if examples_of(task) == "words" else "tokens"


def shortened(text: str, most: int = 24) -> str:
    """A text where there is little room."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def site_name(site: str) -> str:
    """encoder.0 as "encoder layer 1", decoder.1.cross as "decoder layer 2"."""
    stack, layer, *_ = site.split(".")
    return f"{stack} layer {int(layer) + 1}"


def head_name(site: str, head: int) -> str:
    """One head, counted from 1 as people do."""
    return f"{site_name(site)}, head {head + 1}"


def short_head_name(site: str, head: int) -> str:
    """One head where there is little room."""
    stack, layer, *_ = site.split(".")
    return f"{stack} {int(layer) + 1} · head {head + 1}"


def full_head_name(site: str, head: int) -> str:
    """One head among all of the model, in short: a decoder layer has two attentions."""
    stack, layer, *kind = site.split(".")
    return " ".join([stack[:3], str(int(layer) + 1), *kind]) + f" · head {head + 1}"
