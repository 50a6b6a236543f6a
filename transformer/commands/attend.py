"""`attend`: ask the model of any step of a saved run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transformer.commands.line import print_json
from transformer.errors import InputError


def add(commands: Any) -> None:
    attend = commands.add_parser(
        "attend", help="ask a saved run", description="Ask the model of any step of a saved run."
    )
    attend.add_argument("path", type=Path, metavar="FILE", help="a run written by `train --out`")
    attend.add_argument("--text", required=True, help="the word or sentence to ask")
    attend.add_argument(
        "--step", type=int, help="step of the model; the nearest with saved weights (default: the last)"
    )
    attend.add_argument("--json", action="store_true", help="one line of JSON, with maps and scores")
    attend.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer and return 0.

    Raises:
        InputError: the file cannot be read or holds no weights, or the word cannot be asked.
    """
    from transformer.asking.model import snapshot_model
    from transformer.storage.file import found
    from transformer.storage.saved import read_run

    saved = read_run(found(arguments.path))  # keep the reference: it holds the own data that the model needs
    view = saved.view
    snapshot = view.snapshot_at(view.step if arguments.step is None else arguments.step)
    if snapshot is None:
        raise InputError(f"{arguments.path} holds no weights to ask.")
    model = snapshot_model(view.config, snapshot, snapshot.interventions)
    answer = model.answer(arguments.text)
    if not arguments.json:
        sys.stdout.write(
            f"step {answer.step:,}: {answer.question.text} -> {answer.output} ({_judged(answer)})\n"
        )
        return 0
    reading = answer.forced
    print_json(
        {
            "step": answer.step,
            "src_tokens": reading.src_tokens,
            "tgt_tokens": reading.tgt_tokens,
            "output": answer.output,
            "maps": {site: _listed(weights) for site, weights in reading.maps.items()},
            "scores": {
                site: {name: _listed(values) for name, values in scores.items()}
                for site, scores in model.head_scores.items()
            },
        }
    )
    return 0


def _judged(said: Any) -> str:
    if said.question.answer is None:
        return "the right answer is not known"
    return "right" if said.right else f"wrong; the answer is {said.question.answer}"


def _listed(values: np.ndarray[Any, Any]) -> Any:
    """Numbers as nested lists; NaN, as in a blocked cell, becomes 0."""
    return np.nan_to_num(values.astype(np.float64), nan=0.0).tolist()
