"""Interventions on a model: heads off, cells and columns blocked, masks switched. Immutable; no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from transformer.errors import InputError
from transformer.insight.names import head_name, site_name
from transformer.shared.attention_info import AttentionInfo

Array = np.ndarray[Any, np.dtype[Any]]

PAD = "[PAD]"
"""The token that the padding mask blocks; it has this name in every tokenizer of the package."""
MASKS = ("causal", "padding")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Blocked cells of one site: those that agree with every field; None agrees with any value.

    Raises:
        TypeError: the site or the token is no text, or another field no whole number.
    """

    site: str
    """encoder.0, decoder.0.self, decoder.0.cross, ..."""
    head: int | None = None
    row: int | None = None
    """Position of the query, from 0."""
    column: int | None = None
    """Position of the key, from 0."""
    token: str | None = None
    """Token of the key, as it is shown."""

    def __post_init__(self) -> None:
        places = (self.head, self.row, self.column)
        if not isinstance(self.site, str) or not isinstance(self.token, str | None):
            raise TypeError(f"A block of {self.token!r} at {self.site!r} cannot be read.")
        if not all(place is None or type(place) is int for place in places):
            raise TypeError(f"A block of head, row and column {places!r} cannot be read.")

    def text(self) -> str:
        """The block in words, counted from 1: "row 2, column 3 in cross-attention layer 1, head 4"."""
        what = [f"row {self.row + 1}"] if self.row is not None else []
        what += [f"column {self.column + 1}"] if self.column is not None else []
        what += [f"“{self.token}”"] if self.token is not None else []
        return f"{', '.join(what) or 'everything'} in {_place(self.site, self.head)}"


@dataclass(frozen=True, kw_only=True)
class Interventions:
    """All interventions that apply together; falsy if there are none."""

    ablated: tuple[tuple[str, int], ...] = ()
    """(site, head) of each head that is switched off: its output is replaced by zero."""
    blocked: tuple[Block, ...] = ()
    """Blocked cells; the softmax distributes the weight of a row over the remaining ones."""
    masks: tuple[tuple[str, bool], ...] = ()
    """(causal or padding, whether it is on), for each mask that differs from the model's configuration."""

    def __bool__(self) -> bool:
        return bool(self.ablated or self.blocked or self.masks)

    def __or__(self, other: Interventions) -> Interventions:
        """Both combined, without duplicates; for a mask that both switch, `other` decides."""
        return Interventions(
            ablated=tuple(dict.fromkeys(self.ablated + other.ablated)),
            blocked=tuple(dict.fromkeys(self.blocked + other.blocked)),
            masks=tuple({**dict(self.masks), **dict(other.masks)}.items()),
        )

    def with_mask(self, mask: str, on: bool, configured: Mapping[str, bool]) -> Interventions:
        """These interventions with one mask switched.

        Args:
            configured: whether each mask is on in the model's configuration; only differences are kept.
        """
        masks = {**configured, **dict(self.masks), mask: on}
        differing = tuple((name, state) for name, state in masks.items() if state != configured.get(name))
        return replace(self, masks=differing)

    def blocks_at(self, site: str) -> tuple[Block, ...]:
        """The blocks of one site."""
        return tuple(block for block in self.blocked if block.site == site)

    def heads_off_at(self, site: str) -> tuple[int, ...]:
        """The heads of one site that are switched off."""
        return tuple(head for where, head in self.ablated if where == site)

    def text(self) -> str:
        """The interventions in words: "switched off cross-attention layer 2, head 1; blocked ..."."""
        parts = [f"switched off {', '.join(_place(*head) for head in self.ablated)}"] if self.ablated else []
        parts += [f"blocked {block.text()}" for block in self.blocked]
        parts += [f"{mask} mask {'on' if on else 'off'}" for mask, on in self.masks]
        return "; ".join(parts) or "no interventions"

    def change_text(self, before: Interventions) -> str:
        """The change, in words: the switched masks, if only masks were switched; else all interventions."""
        if (self.ablated, self.blocked) != (before.ablated, before.blocked):
            return self.text()
        now, then = dict(self.masks), dict(before.masks)
        changed = [mask for mask in MASKS if now.get(mask) != then.get(mask)]
        # A mask without an entry now is as configured: the opposite of its earlier entry.
        switched = [f"{m} mask switched {'on' if now.get(m, not then.get(m)) else 'off'}" for m in changed]
        return "; ".join(switched) or self.text()

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "ablated": [list(head) for head in self.ablated],
            "blocked": [asdict(b) for b in self.blocked],
            "masks": dict(self.masks),
        }


NO_INTERVENTIONS = Interventions()


def _place(site: str, head: int | None) -> str:
    """An attention or one of its heads."""
    return site_name(site) if head is None else head_name(site, head)


def blocked_cells(
    blocks: Sequence[Block], heads: Any, rows: Any, columns: Any, keys: Any, id_of: Callable[[str], Any] = str
) -> Any:
    """The blocked cells, computed only with comparisons, so that NumPy arrays and tensors both work.

    Args:
        blocks: of one site.
        heads: (H, 1, 1), their numbers, from 0.
        rows: (Q, 1), positions of the queries.
        columns: (K,), positions of the keys.
        keys: (B, 1, 1, K), the token of each key.
        id_of: converts a token to its value in `keys`; by default the token itself.

    Returns:
        Boolean, broadcastable to (B, H, Q, K).
    """
    blocked = keys != keys  # nothing yet
    for block in blocks:
        cells = keys == keys
        if block.head is not None:
            cells = cells & (heads == block.head)
        if block.row is not None:
            cells = cells & (rows == block.row)
        if block.column is not None:
            cells = cells & (columns == block.column)
        if block.token is not None:
            cells = cells & (keys == id_of(block.token))
        blocked = blocked | cells
    return blocked


@lru_cache(maxsize=256)  # the same for every frame of a word; read-only
def open_cells(
    blocks: tuple[Block, ...],
    rows: tuple[str, ...],
    keys: tuple[str, ...],
    *,
    causal: bool,
    n_heads: int,
    padding: bool = True,
) -> Array:
    """(H, Q, K) bool of one word: True where a row may look.

    Args:
        blocks: of one site.
        rows: the query tokens.
        keys: the key tokens.
        causal: whether the causal mask is on.
        padding: whether the padding mask is on.
    """
    allowed = np.tri(len(rows), len(keys), dtype=bool) if causal else np.ones((len(rows), len(keys)), bool)
    if padding:
        allowed = allowed & (np.array(keys) != PAD)
    heads = np.arange(n_heads)[:, None, None]
    places = np.arange(len(rows))[:, None], np.arange(len(keys))
    taken = blocked_cells(blocks, heads, *places, np.array(keys)[None, None, None])[0]
    return np.broadcast_to(allowed & ~taken, (n_heads, *allowed.shape))


def check_interventions(
    interventions: Interventions,
    axes: Mapping[str, AttentionInfo],
    n_heads: int,
    src: tuple[str, ...],
    tgt: tuple[str, ...],
    *,
    masks: Mapping[str, bool] | None = None,
) -> None:
    """Reject interventions on sites, heads or masks that do not exist, and blocks that leave a row of this
    word without an open cell.

    Args:
        axes: every site of the model.
        src: tokens that the encoder reads.
        tgt: tokens that the decoder reads.
        masks: whether the causal and the padding mask are on in the model's configuration, before
            `interventions` switch any. By default as in `axes`, which must reflect no earlier intervention.

    Raises:
        InputError: a site, head or mask that does not exist, or a row whose last open cell would be
            blocked.
    """
    for site, head in [*interventions.ablated, *((b.site, b.head) for b in interventions.blocked)]:
        if site not in axes:
            raise InputError(
                f"There is no attention {site!r}; choose one of {', '.join(axes)}.", "ablate_heads"
            )
        if head is not None and not 0 <= head < n_heads:
            raise InputError(
                f"{site} has heads 1 to {n_heads}, not {head + 1}; choose one of them.", "ablate_heads"
            )
    for mask, _ in interventions.masks:
        if mask not in MASKS:
            raise InputError(f"There is no mask {mask!r}; choose causal or padding.", "masks")
    if masks is None:
        masks = {mask: any(getattr(kind, mask) for kind in axes.values()) for mask in MASKS}
    on = {**masks, **dict(interventions.masks)}
    for site, kind in axes.items():
        blocks = interventions.blocks_at(site)
        if not blocks:
            continue
        rows, keys = (src if kind.query == "src" else tgt), (src if kind.key == "src" else tgt)
        causal = on["causal"] and kind.writes and kind.query == kind.key
        may = open_cells(blocks, rows, keys, causal=causal, padding=on["padding"], n_heads=n_heads)
        left = may.any(axis=-1)  # (H, Q)
        if not left.all():
            head, row = np.argwhere(~left)[0]
            raise InputError(
                f"In {_place(site, head)}, row {row + 1} (“{rows[row]}”) may look at "
                f"{row + 1 if causal else len(keys)} of {len(keys)} columns, and this would block the "
                "last of them. Leave it at least one.",
                "block_cell",
            )
