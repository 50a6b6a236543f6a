"""The command line: `train` as in the app, without a page; `attend` asks any step of a saved run."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from tqdm import tqdm

from transformer.config import DEVICES, KINDS_OF, RunConfig
from transformer.errors import InputError
from transformer.recipes import RECIPES, beginning, with_topology
from transformer.runs.run import Run
from transformer.runs.view import FAILED, FINISHED, STOPPED, RunView, nearest


class _OneLineParser(argparse.ArgumentParser):
    """Answers bad arguments with one clear line."""

    def error(self, message: str) -> NoReturn:
        _complain(f"{message} (see {self.prog} --help)")
        sys.exit(2)


def _complain(message: str) -> None:
    sys.stderr.write(f"headlight: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(prog="python -m transformer", description="Headlight without a page.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_OneLineParser)
    train = commands.add_parser("train", help="train a model", description="Train a model.")
    train.add_argument("--task", help="what is learned (default: the configuration's, reverse)")
    train.add_argument(
        "--recipe",
        choices=list(RECIPES),
        help="a published architecture, at sizes fit for two cores and trained the app's own way",
    )
    train.add_argument("--paper", action="store_true", help="that recipe at paper size, trained as published")
    train.add_argument(
        "--topology", choices=list(KINDS_OF), help="which stacks there are (default: the recipe's)"
    )
    train.add_argument("--seed", type=int, help="fixes first weights and every batch")
    train.add_argument("--steps", type=int, help="planned steps; the schedule's decay ends with them")
    train.add_argument("--target", type=float, help="stop at this share of exact held-out words, e.g. 0.99")
    train.add_argument("--config", type=Path, metavar="FILE", help="a configuration as JSON")
    train.add_argument("--out", type=Path, metavar="DIR", help="a new folder to keep the run in")
    train.add_argument(
        "--device", choices=DEVICES, help="where to train (default: the configuration's, auto)"
    )
    train.add_argument("--json", action="store_true", help="end with one line of JSON on standard output")
    attend = commands.add_parser(
        "attend", help="ask a saved run", description="Ask the model of any step of a saved run."
    )
    attend.add_argument("folder", type=Path, metavar="DIR", help="a folder that `train --out` has written")
    attend.add_argument("--text", required=True, help="the word to ask")
    attend.add_argument(
        "--step", type=int, help="which step's model; the nearest snapshot answers (default: the last)"
    )
    attend.add_argument("--json", action="store_true", help="maps and scores too, as one line of JSON")
    return parser


def _config(arguments: argparse.Namespace) -> RunConfig:
    """The configuration that the arguments mean. Raises InputError."""
    if arguments.config is None:
        if arguments.paper and arguments.recipe in (None, "default"):
            raise InputError(f"--paper needs a published recipe; choose {', '.join([*RECIPES][1:])}.")
        name = arguments.recipe or "default"
        config = beginning(name, arguments.topology, published=arguments.paper)
    elif arguments.recipe is not None or arguments.paper:
        raise InputError("--config and --recipe both say what to train; choose one of them.")
    else:
        try:
            config = RunConfig.from_json(arguments.config.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The configuration {arguments.config} cannot be read ({error}).") from error
        config = with_topology(config, arguments.topology or config.model.topology)
    given = {
        "task": arguments.task,
        "seed": arguments.seed,
        "steps": arguments.steps,
        "device": arguments.device,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return config.with_changes(**changes, goal=arguments.target)  # without --target all steps are run


def _follow(run: Run) -> RunView:
    """Show a progress bar on standard error until the run has ended; Ctrl-C stops it."""
    with tqdm(total=run.view.planned, unit="step", file=sys.stderr) as bar:
        try:
            while run.view.state not in (FINISHED, STOPPED, FAILED):
                _show(bar, run.view)
                time.sleep(0.1)
        except KeyboardInterrupt:
            run.stop()
            run.wait(10)
        _show(bar, run.view)
    return run.view


def _show(bar: Any, view: RunView) -> None:
    losses = view.metrics.column("loss")
    exact = view.frame.exact if view.frame else None
    bar.update(view.step - bar.n)
    if len(losses) and exact:
        bar.set_postfix_str(f"loss {losses[-1]:.3f}, words right {exact[0]}/{exact[1]}", refresh=False)


def _summary(view: RunView) -> dict[str, Any]:
    """What `--json` prints. The exact share of a finished run is measured on all held-out words."""
    losses, exact = view.metrics.column("loss"), view.metrics.column("exact")
    measured = exact[exact == exact]  # NaN where a step has no evaluation
    return {
        "task": view.config.train.task,
        "recipe": view.config.recipe,
        "topology": view.config.model.topology,
        "seed": view.config.seed,
        "device": view.device,
        "parameters": view.parameters,
        "steps": view.step,
        "seconds": round(view.seconds, 3),
        "train_loss": float(losses[-1]) if len(losses) else None,
        "exact": float(measured[-1]) if len(measured) else None,
        "first_step_at": view.first_step_at,
        "mirror": view.frame.best[1] if view.frame else None,
    }


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 if the run came to its end or reached the target or has answered, 1 if it missed the target, failed
        or was interrupted, 2 for bad arguments.
    """
    arguments = _parser().parse_args(argv)
    return _attend(arguments) if arguments.command == "attend" else _train(arguments)


def _train(arguments: argparse.Namespace) -> int:
    try:
        config = _config(arguments)
        from transformer.training.device import resolve_device  # brings torch: only once arguments are good

        resolve_device(config.device)
        archive = None
        if arguments.out is not None:
            from transformer.runs.archive import Archive

            archive = Archive(arguments.out)
        run = Run(config, archive=archive, live=False)
    except InputError as error:
        _complain(str(error))
        return 2
    run.start()
    view = _follow(run)
    run.close()
    run.join()
    if arguments.json:
        sys.stdout.write(json.dumps(_summary(view)) + "\n")
    elif view.reason:
        sys.stdout.write(view.reason + "\n")
    if view.state == FAILED:
        _complain(view.reason)
    if view.state != FINISHED:
        return 1
    return 0 if config.train.goal is None or view.goal_reached else 1


def _attend(arguments: argparse.Namespace) -> int:
    try:
        from transformer.asking import asked
        from transformer.runs.saved import saved_config, saved_snapshots

        config, snapshots = saved_config(arguments.folder), saved_snapshots(arguments.folder)
        snapshot = snapshots[-1] if arguments.step is None else nearest(snapshots, arguments.step)
        assert snapshot is not None  # a saved run without any has been refused
        model = asked(config, snapshot, snapshot.interventions)
        answer = model.answer(arguments.text)
    except InputError as error:
        _complain(str(error))
        return 2
    if not arguments.json:
        mark = "right" if answer.right else f"wrong, it is {answer.question.answer}"
        sys.stdout.write(f"step {answer.step:,}: {answer.question.text} -> {answer.output} ({mark})\n")
        return 0
    reading = answer.forced
    facts = {
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
    sys.stdout.write(json.dumps(facts) + "\n")
    return 0


def _listed(values: np.ndarray[Any, Any]) -> Any:
    """Numbers as nested lists; a blocked look is exactly 0."""
    return np.nan_to_num(values.astype(np.float64), nan=0.0).tolist()


if __name__ == "__main__":
    sys.exit(main())
