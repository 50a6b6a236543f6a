"""The examples with which a model is observed, and their maps at each look that pages can show."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from transformer.errors import InputError
from transformer.insight.scores import pattern_scores
from transformer.recording.frame import Array, Word
from transformer.recording.patched import Pictures
from transformer.recording.view import MAX_WORDS
from transformer.shared.attention_info import AttentionInfo
from transformer.watching.ablation import Head
from transformer.watching.attention import MOST_OF_PART, PART, Observer, Part, Seen, checked_part
from transformer.watching.layout import changed
from transformer.watching.sites import (
    GivenTokens,
    grouped,
    is_causal,
    labels_of,
    later_cells,
    pictures_of,
    plain_name,
    word_of,
)

MOST_BYTES = 16 * 2**20
"""Maximum bytes of the maps of all words at one step, 2 per weight; sites beyond it are left out."""
MOST_HEADS = 64
"""Maximum number of heads of one attention; one with more is left out."""
_SPECIAL = re.compile(r"[\[<].+[\]>]")
"""How special tokens are written: [CLS], <s>."""
NO_PART = "part={!r} is no part of maps; give slices, such as {{{!r}: (slice(0, 64), slice(0, 64))}}."

Named = Mapping[str, Mapping[str, Array]]
"""(H, Q, K) by word and site."""


class Examples:
    """The inputs that are looked at, their words and axes, and what becomes of their maps.

    Args:
        observer: looks at the model.
        inputs, tokens, part: those of `Watch`; tokens and parts that cannot be used are left out.
        say: called with what could not be used or shown.
    """

    def __init__(
        self,
        observer: Observer,
        inputs: Mapping[str, Any],
        tokens: Mapping[str, GivenTokens] | None,
        part: Mapping[str, Part] | None,
        say: Callable[[Exception], None],
    ) -> None:
        self._observer, self._inputs, self._say = observer, inputs, say
        if tokens is not None and not isinstance(tokens, Mapping):
            say(
                InputError(
                    "tokens maps the names of inputs to tokens, as {'example': tokens} does.", "tokens"
                )
            )
        if isinstance(inputs, Mapping) and len(inputs) > 1 and inputs.keys() <= _arguments(observer.model):
            say(
                InputError(
                    f"inputs has an entry for each example, but {', '.join(inputs)} are arguments of "
                    "forward. If they belong to one call, give {'example': inputs}.",
                    "inputs",
                )
            )
        self._tokens = tokens if isinstance(tokens, Mapping) else {}
        self._part = self._checked_parts(part)
        self._kinds: dict[str, dict[str, Seen]] = {}  # what the columns of a site are, by word and site
        # By word: the name of its input, and its index in the batch.
        self._batches: dict[str, tuple[str, int | None]] = {}
        self.words: dict[str, Word] = {}
        """The words whose maps are recorded, by their text, from `begin` on."""
        self.axes: dict[str, AttentionInfo] = {}
        """The axes of every recorded attention, from `begin` on."""

    def observed(self, step: int) -> Named:
        """The maps of the first MAX_WORDS words now, of all attentions that can be shown.

        Args:
            step: the newest step, which errors name.

        Raises:
            InputError: `inputs` is no mapping, the model fails on an input, nothing can be shown, or an
                attention that has been recorded so far cannot be shown any more.
        """
        if not isinstance(self._inputs, Mapping) or not self._inputs:
            raise InputError("inputs is a mapping of names to inputs, such as {'example': inputs}.", "inputs")
        device = next((parameter.device for parameter in self._observer.model.parameters()), None)
        maps: dict[str, dict[str, Array]] = {}
        self._kinds = {}
        for name, inputs in self._inputs.items():
            try:
                looked = self._observer.look(_moved(inputs, device), self._part.get(name))
            except InputError:
                raise
            except Exception as error:  # the model's own, of any kind
                why = f"The input {name!r} cannot be observed: {type(error).__name__}: {error}"
                raise InputError(why, "inputs") from error
            n = len(next(iter(looked.values())).weights)
            for site, seen in looked.items():
                for i, of in enumerate(seen.weights if len(seen.weights) == n else ()):
                    text = str(name) if n == 1 else f"{name} {i + 1}"
                    self._batches[text] = name, None if n == 1 else i
                    maps.setdefault(text, {})[plain_name(site)] = of
                    kind = seen._replace(weights=seen.weights[:0])
                    self._kinds.setdefault(text, {})[plain_name(site)] = kind
                if len(seen.weights) != n:
                    self._say(
                        InputError(f"{site} is left out: its batch is of {len(seen.weights)}, and not {n}.")
                    )
        for why in self._observer.left.values():
            self._say(InputError(why))
        if len(maps) > MAX_WORDS:
            self._say(InputError(f"{len(maps)} examples were given; the first {MAX_WORDS} are recorded."))
        return self._fitting(dict(list(maps.items())[:MAX_WORDS]), step)

    def _checked_parts(self, part: Any) -> dict[str, Part]:
        """The parts that can be recorded, by the name of their input; warn of others and of too long ones."""
        if part is not None and not isinstance(part, Mapping):
            self._say(InputError(NO_PART.format(part, "example"), "part"))
        checked: dict[str, Part] = {}
        for name, given in part.items() if isinstance(part, Mapping) else ():
            try:
                checked[name] = checked_part(given)
            except (TypeError, ValueError, AttributeError):
                self._say(InputError(NO_PART.format(given, name), "part"))
                continue
            longest = max((one.stop or 0) - (one.start or 0) for one in given)
            if longest > MOST_OF_PART:
                most = f"of {longest} positions the first {MOST_OF_PART} are recorded in full"
                self._say(InputError(f"part: {most}.", "part"))
        return checked

    def _fitting(self, maps: Named, step: int) -> Named:
        """Leave out attentions that cannot be shown with the others, and warn of them. Raises InputError."""
        left, total = {}, 0
        wanted = self.axes or dict.fromkeys(site for of in maps.values() for site in of)
        for site in wanted:
            shapes = [of[site].shape if site in of else None for of in maps.values()]
            size = sum(2 * math.prod(shape or ()) for shape in shapes)
            if None in shapes:
                left[site] = "it is not called for every input, at every step"
            elif (heads := max(shape[0] for shape in shapes if shape)) > MOST_HEADS:
                left[site] = f"it has {heads} heads, and at most {MOST_HEADS} can be shown"
            elif self.axes and not self._has_shape(site, maps):
                left[site] = f"its shape is now {shapes[0]}; give Watch inputs of a fixed size"
            elif site.removesuffix(PART) in left:
                left[site] = "the whole of it is left out"
            elif total + size > MOST_BYTES:
                left[site] = f"a step would take more than {MOST_BYTES // 2**20} MB; name fewer in `sites`"
            else:
                total += size
        shown = {word: {site: of[site] for site in wanted if site not in left} for word, of in maps.items()}
        some = next(iter(shown.values()))
        if gone := [site for site in self.axes if site not in some]:
            why = left.get(gone[0], "it was not called")
            raise InputError(f"From step {step:,} on {gone[0]} cannot be recorded: {why}.")
        if left:
            site, why = next(iter(left.items()))
            others = f" {len(left) - 1} more are left out, too." if len(left) > 1 else ""
            self._say(InputError(f"{site} is left out: {why}.{others}"))
        if not some:
            raise InputError("No attention is left that can be recorded.")
        return shown

    def _has_shape(self, site: str, maps: Named) -> bool:
        axes = self.axes[site]
        return all(
            maps[text][site].shape[1:] == (len(word.tokens(axes.query)), len(word.tokens(axes.key)))
            for text, word in self.words.items()
        )

    def begin(self, first: Named) -> Pictures:
        """Make words and axes from the first maps; return the pictures that maps can be drawn over."""
        labels = {}
        for text, maps in first.items():
            try:
                labels[text] = labels_of(text, maps, self._tokens_of(text), self._kinds[text])
            except Exception as error:  # what was given may be of any type; positions are shown
                self._say(
                    error
                    if isinstance(error, InputError)
                    else InputError(f"tokens: those of {text!r} are no lists of texts ({error}).", "tokens")
                )
                labels[text] = labels_of(text, maps, (), self._kinds[text])
        self.axes = grouped(first, labels)
        self.words = {text: word_of(text, self.axes, labels[text]) for text in first}
        for what, names in (("tokens", self._tokens), ("part", self._part)):
            if unknown := [name for name in names if name not in self._inputs]:
                self._say(InputError(f"{what}: there is no input {unknown[0]!r}.", what))
        return pictures_of(self.axes, labels)

    def _tokens_of(self, text: str) -> GivenTokens:
        """The tokens of a word: of its input, or of its example of a batch."""
        name, example = self._batches[text]
        given = self._tokens.get(name, ())
        each = isinstance(given, list) and bool(given) and not any(isinstance(one, str) for one in given)
        if example is None or not each:
            return given
        if example >= len(given):
            raise InputError(f"tokens: {len(given)} were given for the examples of {name!r}.", "tokens")
        return given[example]  # type: ignore[index]

    def heads(self) -> dict[str, tuple[Head, ...]]:
        """The heads of every recorded attention that can be switched off."""
        kinds = next(iter(self._kinds.values()), {})
        return {site: kinds[site].heads for site in self.axes if site in kinds and kinds[site].heads}

    def opened(self, maps: Named) -> Named:
        """The maps with NaN above the diagonal of every attention that was causal so far and is now."""
        self.axes = {
            site: replace(axes, causal=axes.causal and all(is_causal(of[site]) for of in maps.values()))
            for site, axes in self.axes.items()
        }
        return {text: {site: self._opened(site, of[site]) for site in self.axes} for text, of in maps.items()}

    def scores(self, opened: Named) -> dict[str, dict[str, Array]]:
        """(H,) scores of every attention, by site and name of the score; a part has those of the whole."""
        scores = {
            site: pattern_scores(
                [self._counted(text, site, of[site]) for text, of in opened.items()],
                [self._tokens_at(text, site) for text in opened],
                [self._kinds[text][site].rest for text in opened],
            )
            for site in self.axes
            if not site.endswith(PART)
        }
        return {site: scores[site.removesuffix(PART)] for site in self.axes}

    def close(self) -> None:
        """Let go of the model and its inputs, whose memory the loop may need."""
        self._observer, self._inputs = Observer(nn.Module()), {}

    def _opened(self, site: str, weights: Array) -> Array:
        """(H, Q, K) weights; NaN above the diagonal if the attention has been causal so far."""
        if not self.axes[site].causal:
            return weights
        return np.where(later_cells(*weights.shape[1:]), np.nan, weights)

    def _tokens_at(self, text: str, site: str) -> list[str | None] | None:
        """The tokens of a self-attention, None for special ones; None if tokens are pooled or axes differ."""
        axes, word = self.axes[site], self.words[text]
        tokens = word.tokens(axes.query)
        if axes.query in word.pooled or tokens != word.tokens(axes.key)[: len(tokens)]:
            return None
        return [None if _SPECIAL.fullmatch(token) else token for token in tokens]

    def _counted(self, text: str, site: str, weights: Array) -> Array:
        """(H, Q, K) weights, NaN in the rows of padding: those whose own column is blocked in all rows."""
        n_rows, n_columns = weights.shape[1:]
        kind = self._kinds[text][site]
        if n_rows != n_columns - kind.rest or kind.relative:
            return weights
        padding: Array = np.all(np.isnan(weights.reshape(-1, n_columns)), axis=0, keepdims=True)[0]
        return np.where(padding[:n_rows, None], np.nan, weights)


def _arguments(model: nn.Module) -> set[str]:
    """The names of the arguments of a model."""
    try:
        return {*inspect.signature(model.forward).parameters}
    except (TypeError, ValueError):  # not written in Python
        return set()


def _moved(inputs: Any, device: torch.device | None) -> Any:
    """The inputs with their tensors moved to a device; unchanged if it is None."""
    if device is None:
        return inputs
    return changed(inputs, lambda one: one.to(device) if isinstance(one, torch.Tensor) else one)
