"""Attention rollout: attention followed through all layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from transformer.insight.scores import Array


def pooled(maps: Array, how: str) -> Array:
    """One map for all heads of an attention, (H, Q, K) to (Q, K); NaN where a cell is blocked in all of them.

    Args:
        how: mean or max over the heads. Only with mean do rows still sum to 1.
    """
    weights = np.nan_to_num(maps)  # a cell that is blocked in one head may be open in others
    one = weights.mean(axis=0) if how == "mean" else weights.max(axis=0)
    return np.where(np.isnan(maps).all(axis=0), np.float32("nan"), one)


def rollout(maps: Mapping[str, Array]) -> dict[str, Array]:
    """Attention rollout (Abnar and Zuidema 2020, section 3), extended to the decoder.

    After each attention, a position is assumed to hold one half of what it held before (the residual stream)
    and one half of what it has looked at, averaged over the heads. Values and feed-forward layers are
    ignored: rollout shows where information can have come from, not what it did. A target position holds
    shares of source and target tokens, so two matrices are carried through the decoder. Its self-attention
    mixes the rows of both; its cross-attention halves them, and adds half of a mean of the encoder's final
    rows, weighted by the attention, to those of the source.

    Args:
        maps: every site of the model, `encoder.0`, `decoder.0.self`, `decoder.0.cross`, ..., to its weights
            on one word, (H, Q, K); NaN where a cell is blocked.

    Returns:
        For two stacks: "encoder", (S, S): the share of each source token in each source position. "cross",
        (T, S), and "decoder", (T, T): the shares of source and target tokens in each target position. All in
        0..1; the encoder's rows, and those of cross and decoder together, sum to 1. For one stack: "encoder",
        (S, S), or "sequence", (T, T), alone.
    """
    in_order = sorted(maps, key=lambda site: int(site.split(".")[1]))
    looks = {site: np.nan_to_num(pooled(maps[site], "mean")) for site in in_order}
    encoder = [look for site, look in looks.items() if site.startswith("encoder.")]
    own = [look for site, look in looks.items() if site.endswith(".self")]
    cross = [look for site, look in looks.items() if site.endswith(".cross")]
    if not cross:  # one stack alone
        kind, stack = ("encoder", encoder) if encoder else ("sequence", own)
        return {kind: _through(stack)}
    source = _through(encoder)
    n_tgt, n_src = cross[0].shape
    of_source, of_target = np.zeros((n_tgt, n_src)), np.eye(n_tgt)
    for look_back, look_across in zip(own, cross, strict=True):
        of_source, of_target = (
            (of_source + look_back @ of_source) / 2,
            (of_target + look_back @ of_target) / 2,
        )
        of_source, of_target = (of_source + look_across @ source) / 2, of_target / 2
    return {"encoder": source, "decoder": of_target, "cross": of_source}


def _through(looks: Sequence[Array]) -> Array:
    """The share of each token in each position of one stack, after all its layers."""
    held: Array = np.eye(len(looks[0]))
    for look in looks:
        held = (held + look @ held) / 2
    return held
