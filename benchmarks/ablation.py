"""Does the clearest head matter most? Switch off one cross-attention head at a time, over several seeds.

    python -m benchmarks.ablation [--seeds N] [--json]

Each seed is one run of the default preset to its goal. Then one head at a time is switched off: the head with
the highest mirror score, the head with the lowest, and the head with the lowest in the layer of the highest.
The trained model is otherwise unchanged.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.tools.measuring import end, options, spread
from pages.settings.presets import DEFAULT_PRESET, PRESETS
from transformer.decoding.spelling import spell
from transformer.recording.scorer import Scorer
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions
from transformer.training.loop import train
from transformer.training.state import TrainState


def measure(seed: int) -> dict[str, Any]:
    """Return the held-out accuracy of one trained model, with all heads and without each of three heads."""
    state = TrainState.begin(PRESETS[DEFAULT_PRESET].config.with_changes(seed=seed))
    for _ in train(state):
        pass
    scores = Scorer(state.task).scores(state.model)
    mirror = {
        (site, head): float(score)
        for site, values in scores.items()
        if site.endswith("cross")
        for head, score in enumerate(values["mirror"])
    }
    highest = max(mirror, key=lambda head: mirror[head])
    lowest = min(mirror, key=lambda head: mirror[head])
    beside = min((head for head in mirror if head[0] == highest[0]), key=lambda head: mirror[head])

    def exact(taken: Interventions) -> float:
        state.model.intervene(taken, state.task.src_tokenizer.id_of)
        words = state.task.held_out()
        return sum(spell(state.model, state.task, words).exact) / len(words)

    return {
        "seed": seed,
        "whole": exact(NO_INTERVENTIONS),
        "highest": f"{highest[0]} head {highest[1] + 1}",
        "highest_mirror": mirror[highest],
        "without_highest": exact(Interventions(ablated=(highest,))),
        "lowest": f"{lowest[0]} head {lowest[1] + 1}",
        "lowest_mirror": mirror[lowest],
        "without_lowest": exact(Interventions(ablated=(lowest,))),
        "beside": f"{beside[0]} head {beside[1] + 1}",
        "beside_mirror": mirror[beside],
        "without_beside": exact(Interventions(ablated=(beside,))),
    }


def main() -> int:
    """Print a row for each seed; no limit applies."""
    arguments = options(__doc__, seeds=10)
    write = sys.stdout.write
    write("seed  whole  without the highest mirror score  ...the lowest  ...the lowest of the same layer\n")
    rows = []
    for seed in range(arguments.seeds):
        row = measure(seed)
        rows.append(row)
        write(
            f"{seed:4d}  {row['whole']:.3f}  "
            f"{row['without_highest']:.3f} ({row['highest']}, {row['highest_mirror']:.2f})  "
            f"{row['without_lowest']:.3f} ({row['lowest']}, {row['lowest_mirror']:.2f})  "
            f"{row['without_beside']:.3f} ({row['beside']}, {row['beside_mirror']:.2f})\n"
        )
        sys.stdout.flush()
    spread(rows, ("whole", "without_highest", "without_lowest", "without_beside"), ".3f")
    for other in ("lowest", "beside"):
        more = sum(row["without_highest"] < row[f"without_{other}"] for row in rows)
        write(f"the highest matters more than {other}: {more} of {len(rows)} seeds\n")
    return end(arguments, rows)


if __name__ == "__main__":
    sys.exit(main())
