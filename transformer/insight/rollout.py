"""Where the tokens of a model's input end up: attention followed through all layers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from transformer.insight.scores import Array


def pooled(maps: Array, how: str) -> Array:
    """One map for all heads of an attention, (H, Q, K) to (Q, K); NaN where a cell is blocked in all of them.

    Args:
        how: mean or max over the heads. Only the mean's rows still sum to 1.
    """
    if how not in ("mean", "max"):
        raise ValueError(f"how={how!r} is neither mean nor max.")
    weights = np.nan_to_num(maps)  # what one head may not look at, the others may
    one = weights.mean(axis=0) if how == "mean" else weights.max(axis=0)
    return np.where(np.isnan(maps).all(axis=0), np.float32("nan"), one)


def rollout(maps: Mapping[str, Array]) -> dict[str, Array]:
    """Attention rollout (Abnar and Zuidema 2020, section 3), carried on through the decoder.

    A position is taken to hold, after each attention, one half of what it held before (the residual stream)
    and one half of what it has looked at, heads averaged. What values carry, and the feed-forward parts, are
    left out: it says where information can have come from and not what it did. A target position holds of
    both sides, so two matrices are carried through the decoder. Its self-attention mixes the rows of both,
    and its cross-attention replaces half of them by the finished encoder's rows.

    Args:
        maps: every attention of the model on one word, `encoder.0`, `decoder.0.self`, `decoder.0.cross`, ...
            to (H, Q, K); NaN where the mask blocks.

    Returns:
        "encoder", (S, S): what each source position holds of each source token. "cross", (T, S), and
        "decoder", (T, T): what each target position holds of source and target tokens. All in 0..1; the
        encoder's rows, and those of cross and decoder together, sum to 1.
    """
    looks = {site: np.nan_to_num(pooled(heads, "mean")) for site, heads in maps.items()}
    n_tgt, n_src = looks["decoder.0.cross"].shape
    n_encoder_layers = sum(site.startswith("encoder.") for site in maps)
    n_decoder_layers = sum(site.endswith(".cross") for site in maps)
    source = np.eye(n_src)
    for i in range(n_encoder_layers):
        source = (source + looks[f"encoder.{i}"] @ source) / 2
    of_source, of_target = np.zeros((n_tgt, n_src)), np.eye(n_tgt)
    for i in range(n_decoder_layers):
        own, cross = looks[f"decoder.{i}.self"], looks[f"decoder.{i}.cross"]
        of_source, of_target = (of_source + own @ of_source) / 2, (of_target + own @ of_target) / 2
        of_source, of_target = (of_source + cross @ source) / 2, of_target / 2
    return {"encoder": source, "decoder": of_target, "cross": of_source}
