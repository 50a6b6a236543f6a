"""Every recipe at its small size, and each stack alone: does it learn, how fast, which head is clearest?

    python -m benchmarks.recipes [--seeds N] [--json]

Each row is one run to its goal (99 % of 1,000 held-out words exactly right) or to the end of its schedule.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

from benchmarks.tools.measuring import end, finished, options
from transformer.config import RunConfig
from transformer.config.recipes import DECODER_ONLY, ENCODER_ONLY, RECIPES
from transformer.insight.names import short_head_name

EXACT, ALONE_EXACT, MIRROR = 0.95, 0.99, 0.7
BEGINNINGS = {
    **{name: recipe.small for name, recipe in RECIPES.items()},
    ENCODER_ONLY.recipe: ENCODER_ONLY,
    DECODER_ONLY.recipe: DECODER_ONLY,
}


def measure(config: RunConfig) -> dict[str, Any]:
    """Measure one run of these settings."""
    view, frame, exact = finished(config)
    (site, head), mirror = frame.best
    model = config.model
    return {
        "recipe": config.recipe,
        "topology": model.topology,
        "layers": [model.n_layers(kind) for kind in model.kinds if kind != "cross"],
        "heads": model.n_heads,
        "width": model.d_model,
        "parameters": view.parameters,
        "seed": config.seed,
        "steps": view.step,
        "seconds": round(view.seconds, 1),
        "exact": exact,
        "mirror": round(mirror, 3),
        "where": short_head_name(site, head),
        "turned_at": view.turned_at[0] if view.turned_at else None,
    }


def main() -> int:
    """Print a row for each recipe and seed; exit status 1 if a claim does not hold."""
    arguments = options(__doc__, seeds=3)
    write = sys.stdout.write
    write(f"Python {platform.python_version()} on {platform.machine()}, one training thread\n")
    write(
        "recipe        topology         layers  heads  width  parameters  seed  steps  seconds  exact  "
        "mirror  turned at  where\n"
    )
    rows = []
    for config in BEGINNINGS.values():
        for seed in range(arguments.seeds):
            row = measure(config.with_changes(seed=seed))
            rows.append(row)
            layers = "+".join(str(n) for n in row["layers"])
            write(
                f"{row['recipe']:12s}  {row['topology']:15s}  {layers:>6s}  {row['heads']:5d}  "
                f"{row['width']:5d}  {row['parameters']:10,}  {row['seed']:4d}  {row['steps']:5d}  "
                f"{row['seconds']:7.1f}  {row['exact']:.3f}  {row['mirror']:6.3f}  "
                f"{row['turned_at'] or 'never':>9}  {row['where']}\n"
            )
            sys.stdout.flush()
    alone = [row for row in rows if row["recipe"] in (ENCODER_ONLY.recipe, DECODER_ONLY.recipe)]
    encoders = [row for row in rows if row["recipe"] == ENCODER_ONLY.recipe]
    met = {
        "recipes_reach_95_percent": all(row["exact"] >= EXACT for row in rows),
        "one_stack_alone_reaches_99_percent": all(row["exact"] >= ALONE_EXACT for row in alone),
        "encoder_only_mirror_at_least_0.7": all(row["mirror"] >= MIRROR for row in encoders),
    }
    return end(arguments, rows, met)


if __name__ == "__main__":
    sys.exit(main())
