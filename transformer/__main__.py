"""The command line: `python -m transformer train`, the same training as in the app, without a page."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from tqdm import tqdm

from transformer.config import DEVICES, RunConfig
from transformer.errors import InputError
from transformer.runs.run import Run
from transformer.runs.view import FAILED, FINISHED, STOPPED, RunView


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
    train.add_argument("--seed", type=int, help="fixes first weights and every batch")
    train.add_argument("--steps", type=int, help="planned steps; the schedule's decay ends with them")
    train.add_argument("--target", type=float, help="stop at this share of exact held-out words, e.g. 0.99")
    train.add_argument("--config", type=Path, metavar="FILE", help="a configuration as JSON")
    train.add_argument("--out", type=Path, metavar="DIR", help="a new folder to keep the run in")
    train.add_argument(
        "--device", choices=DEVICES, help="where to train (default: the configuration's, auto)"
    )
    train.add_argument("--json", action="store_true", help="end with one line of JSON on standard output")
    return parser


def _config(arguments: argparse.Namespace) -> RunConfig:
    """The configuration that the arguments mean. Raises InputError."""
    config = RunConfig()
    if arguments.config is not None:
        try:
            config = RunConfig.from_json(arguments.config.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The configuration {arguments.config} cannot be read ({error}).") from error
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
        0 if the run came to its end or reached the target, 1 if it missed the target, failed or was
        interrupted, 2 for bad arguments.
    """
    arguments = _parser().parse_args(argv)
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


if __name__ == "__main__":
    sys.exit(main())
