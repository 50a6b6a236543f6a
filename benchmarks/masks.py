"""The effect of each mask: the default with the mask on or off from the start, over several seeds.

    python -m benchmarks.masks [--seeds N] [--json]

Without the causal mask the decoder can read the letter that it has to write. So accuracy is measured twice:
teacher-forced (share of held-out tokens) and free-running (share of held-out words that are exactly right).
Without the padding mask, rows can attend to [PAD]. The share of attention on [PAD] is the mean over the
tracked words that are shorter than the longest and over all heads of the attentions that read the word
(encoder and cross-attention).

Runs of one seed differ only in the mask, and all take the planned steps: no goal ends them early.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

from benchmarks.tools.measuring import end, finished, options
from transformer.config.recipes import RECIPES
from transformer.recording.frame import Frame

MASKS = {"both": {}, "no causal": {"causal_mask": False}, "no padding": {"padding_mask": False}}


def padding_share(frame: Frame) -> float:
    """Return the share of attention on [PAD] in padded words; 0 if the model reads none."""
    longest = max(len(tracked.text) for tracked in frame.words)
    rows = [row for row, tracked in enumerate(frame.words) if len(tracked.text) < longest]
    sites = [site for site, axes in frame.axes.items() if axes.key == "src"]
    shares = [float(frame.on_padding(row, site).mean()) for row in rows for site in sites]
    return statistics.mean(shares) if shares else 0.0


def measure(seed: int, masks: str) -> dict[str, Any]:
    """Measure one run of the default with or without a mask."""
    config = RECIPES["default"].small.with_changes(seed=seed, goal=None, **MASKS[masks])
    view, frame, exact = finished(config)
    return {
        "seed": seed,
        "masks": masks,
        "steps": view.step,
        "token_accuracy": frame.evaluation.token_accuracy,
        "exact": exact,
        "on_padding": padding_share(frame),
    }


def main() -> int:
    """Print three rows for each seed; exit status 1 if a claim does not hold."""
    arguments = options(__doc__, seeds=3)
    write = sys.stdout.write
    write("seed  masks       steps  tokens, right answer read  words, written freely  attention on [PAD]\n")
    rows = []
    for seed in range(arguments.seeds):
        for masks in MASKS:
            row = measure(seed, masks)
            rows.append(row)
            write(
                f"{row['seed']:4d}  {row['masks']:10s}  {row['steps']:5d}  {row['token_accuracy']:25.4f}  "
                f"{row['exact']:21.3f}  {row['on_padding']:18.3f}\n"
            )
            sys.stdout.flush()
    open_rows = [row for row in rows if row["masks"] == "no causal"]
    masked = {row["seed"]: row["exact"] for row in rows if row["masks"] == "both"}
    met = {
        "token_accuracy_99": all(row["token_accuracy"] >= 0.99 for row in open_rows),
        "free_running_below_half": all(row["exact"] < masked[row["seed"]] / 2 for row in open_rows),
    }
    return end(arguments, rows, met)


if __name__ == "__main__":
    sys.exit(main())
