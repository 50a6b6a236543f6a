"""Check that a refactoring keeps losses bit for bit, frames within 2e-4, and the commands' JSON.

python -m benchmarks.tools.guard write FILE     # at the commit before
python -m benchmarks.tools.guard compare FILE   # on the same machine, at the commit after
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transformer import TrainState, train
from transformer.__main__ import main as command
from transformer.config import KINDS_OF, RunConfig
from transformer.config.recipes import RECIPES, recipe_config
from transformer.config.tasks import with_task
from transformer.errors import InputError
from transformer.runs.run import Run

STEPS = 50
TASKS = ("reverse", "en-fr")
CLOSE = 2e-4
VOLATILE = ("seconds", "per_second", "steps_per_second", "tokens_per_second", "id", "created", "out")
"""Fields of the printed JSON that differ between two runs of the same commit."""


def losses() -> dict[str, list[str]]:
    """Return the losses of the first steps, as floats in hexadecimal."""
    series = {}
    for name in RECIPES:
        for topology in KINDS_OF:
            for task in TASKS:
                try:
                    config = with_task(recipe_config(name, topology), task).with_changes(
                        steps=STEPS, device="cpu"
                    )
                    state = TrainState.begin(config)
                except InputError:
                    continue  # such as encoder-only for a task whose answers differ in length
                reports = list(train(state))
                series[f"{name} {topology} {task}"] = [
                    float(x).hex() for report in reports for x in report.losses
                ]
    return series


def frames() -> dict[str, list[float]]:
    """Return, for every map of a short default run, its sum, its largest weight and some fixed cells."""
    run = Run(RunConfig().with_changes(steps=STEPS, device="cpu", threads=1))
    run.ready.wait(60)
    run.start()
    run.wait(120)
    recorded = {}
    for frame in run.view.frames:
        for row, maps in enumerate(frame.maps):
            for site, weights in maps.items():
                values = np.nan_to_num(weights).astype(np.float64)
                place = values.reshape(-1)[:: max(1, values.size // 7)]
                recorded[f"{frame.step} {row} {site}"] = [
                    float(x) for x in (values.sum(), values.max(), *place)
                ]
    run.close()
    run.join()
    return recorded


def printed() -> dict[str, Any]:
    """Return the JSON that the commands print."""
    outputs = {}
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        for line in (
            f"train --task reverse --seed 0 --steps 30 --device cpu --json --out {out}",
            f"attend {out} --text banana --step 20 --json",
            "data --task en-fr --n 5 --json",
            "data --task zh-en --n 5 --held-out --json",
            "data --task dates --n 5 --json",
        ):
            told = io.StringIO()
            with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
                command(line.split())
            lines = [json.loads(line) for line in told.getvalue().splitlines() if line.startswith("{")]
            outputs[line.replace(folder, "")] = _steady(lines)
    return outputs


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _steady(part) for name, part in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [_steady(part) for part in value]
    return value


def differences(before: Any, after: Any, close: float = 0.0, at: str = "") -> list[str]:
    """Return the places at which two results differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted({*before, *after})
        return [d for n in names for d in differences(before.get(n), after.get(n), close, f"{at}/{n}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, close, f"{at}/{i}")]
    if isinstance(before, float) and isinstance(after, float) and abs(before - after) <= close:
        return []
    return [] if before == after else [f"{at}: {before!r:.60} → {after!r:.60}"]


def main() -> None:
    torch.set_num_threads(1)
    what, name = sys.argv[1:]
    made = {"losses": losses(), "frames": frames(), "printed": printed()}
    if what == "write":
        Path(name).write_text(json.dumps(made))
        print(hashlib.sha256(json.dumps(made["losses"]).encode()).hexdigest()[:16])  # noqa: T201
        return
    before = json.loads(Path(name).read_text())
    different = [
        *differences(before["losses"], made["losses"], at="losses"),
        *differences(before["frames"], made["frames"], CLOSE, "frames"),
        *differences(before["printed"], json.loads(json.dumps(made["printed"])), CLOSE, "printed"),
    ]
    counted = Counter("/".join(one.split(":")[0].split("/")[:2]) for one in different)
    lines = [*(f"{place}: {n} differ" for place, n in counted.items()), *different[:10]]
    print("\n".join(lines) or "nothing differs")  # noqa: T201
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
