"""Do the prepared races show what their sentences claim? Each race is run with several seeds.

    python -m benchmarks.races [--seeds N] [--json]

A sentence holds if it is true for at least four of five seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from benchmarks.masks import padding_share
from benchmarks.tools.measuring import end, finished, options
from pages.settings.races import RACES
from transformer.config import RunConfig
from transformer.insight.scores import THRESHOLD

ENOUGH = 0.8
"""Share of the seeds for which a sentence must be true."""


@dataclass(frozen=True)
class Ended:
    """The measures of one run that a sentence can refer to."""

    exact: float
    """Share of all held-out words that are right at the end."""
    token_accuracy: float
    """Share of letters right at the end, teacher-forced."""
    loss: float
    """Loss on held-out words at the end, teacher-forced."""
    half: int
    """The first evaluated step with half of the held-out words right; NEVER if there is none."""
    nine_tenths: int
    turned: int
    """The step at which the first head was clear; NEVER if none was."""
    sharpest: float
    """The highest score of a head that reads the question at the end."""
    on_padding: float
    """Share of attention on [PAD] in padded words."""


NEVER = 10**6


@cache
def run(config: RunConfig) -> Ended:
    """Run a configuration to its end; the default runs only once for all races."""
    view, frame, exact = finished(config)
    steps, shares = view.metrics.columns("step", "exact")

    def first(share: float) -> int:
        return int(
            min((step for step, one in zip(steps, shares, strict=True) if one >= share), default=NEVER)
        )

    return Ended(
        exact=exact,
        token_accuracy=frame.evaluation.token_accuracy,
        loss=frame.evaluation.loss,
        half=first(0.5),
        nine_tenths=first(0.9),
        turned=view.turned_at[0] if view.turned_at else NEVER,
        sharpest=max(float(scores.max()) for scores in frame.scores.values()),
        on_padding=padding_share(frame),
    )


CLAIMS: Mapping[str, Callable[[Ended, Ended], bool]] = {
    "With and without the causal mask": lambda left, right: (
        left.exact >= 0.99 and right.exact == 0 and right.loss < 0.05
    ),
    "With and without the padding mask": lambda left, right: (
        left.on_padding < 1e-6 and right.on_padding > 1 / 3 and right.exact >= 0.99
    ),
    "4 heads against 1": lambda left, right: (
        right.sharpest >= THRESHOLD and abs(left.nine_tenths - right.nine_tenths) <= 50
    ),
    "2 decoder layers against 1": lambda left, right: (
        right.exact >= 0.99 and right.sharpest < left.sharpest - 0.05
    ),
    "Pre-norm against post-norm": lambda left, right: right.half < left.half,
    "With and without √d": lambda left, right: right.sharpest > left.sharpest,
    "Repeating: 2 layers against 1": lambda left, right: (
        left.exact >= 0.9 and right.exact < 0.1 and right.sharpest < THRESHOLD <= left.sharpest
    ),
    "Default against recipe etienne": lambda left, right: (
        left.exact >= 0.99 and right.turned > 300 and right.sharpest < left.sharpest - 0.05
    ),
    "Sinusoidal against learned positions": lambda left, right: right.half >= left.half + 50,
}
"""The claim of each race's sentence, as a condition on the left and the right run."""


def main() -> int:
    """Print a row for each race and seed; exit status 1 if a sentence does not hold."""
    arguments = options(__doc__, seeds=5)
    write = sys.stdout.write
    rows, met, figures = [], {}, {}
    for name, race in RACES.items():
        held = 0
        for seed in range(arguments.seeds):
            left, right = (run(config.with_changes(seed=seed)) for config in (race.left, race.right))
            true = CLAIMS[name](left, right)
            held += true
            rows.append({"race": name, "seed": seed, "holds": true, "left": vars(left), "right": vars(right)})
            write(f"{name}, seed {seed}: {'holds' if true else 'does not hold'}\n")
            for side, one in (("left", left), ("right", right)):
                write(f"  {side:5s} {', '.join(f'{key} {value:g}' for key, value in vars(one).items())}\n")
            sys.stdout.flush()
        met[name] = held >= ENOUGH * arguments.seeds
        figures[name] = f"true for {held} of {arguments.seeds} seeds"
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
