"""Says what runs with the same settings and different seeds have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.insight.names import TARGET_SCORES, head_name, site_name

LEAST_SEEDS, MOST_SEEDS = 2, 12
"""The fewest and the most runs that are compared."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What is compared of one run."""

    seed: int
    failed: bool = False
    """Whether its training failed."""
    turned: tuple[int, str, int] | None = None
    """Step, site and head of the first head that became clear; None if none did."""


def in_common(endings: Sequence[Ending], target_score: str) -> str:
    """Say what happens in how many runs, and what differs.

    Such as: In 8 of 8 runs a head began to read backwards, between steps 104 and 131. It is one of
    the heads of cross-attention layer 2; which one differs.

    Args:
        endings: of at least one run.
        target_score: the score of the task, a key of `TARGET_SCORES`.
    """
    n = len(endings)
    turned = [ending.turned for ending in endings if ending.turned is not None]
    lost = sum(ending.failed for ending in endings)
    failed = f" {lost} of {n} failed." if lost else ""
    does = TARGET_SCORES[target_score].turned
    if not turned:
        return f"No head {does} in any of {n} runs.{failed}"
    steps = sorted(step for step, _, _ in turned)
    when = (
        f"at step {steps[0]:,}" if steps[0] == steps[-1] else f"between steps {steps[0]:,} and {steps[-1]:,}"
    )
    sentence = f"In {len(turned)} of {n} runs a head {does}, {when}."
    sites, heads = {site for _, site, _ in turned}, {(site, head) for _, site, head in turned}
    if len(turned) == 1 or len(heads) == 1:
        which = f" It is {head_name(*next(iter(heads)))}."
    elif len(sites) == 1:
        which = f" It is one of the heads of {site_name(next(iter(sites)))}; which one differs."
    else:
        which = " Its layer differs."
    return f"{sentence}{which}{failed}"
