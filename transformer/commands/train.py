"""`train`: train as in the app, without a page."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from transformer.commands.data import add_heading
from transformer.commands.line import place, print_json, print_message
from transformer.commands.settings import configuration, own_data
from transformer.config import DEVICES, KINDS_OF, TASKS, TOKENIZERS, RunConfig
from transformer.config.recipes import RECIPES
from transformer.errors import LEFT_ALONE, InputError, explained
from transformer.insight.seeds import LEAST_SEEDS, MOST_SEEDS, in_common
from transformer.recording.view import FAILED, FINISHED, PAUSED, STOPPED, RunView
from transformer.runs.run import Run
from transformer.tasks import resolved

if TYPE_CHECKING:
    from transformer.training.distributed import Distributed

SEVERAL = """\
Several processes, on one machine or on several, train one model together, each with its share of the rows
of every batch, where PyTorch's launcher starts them: torchrun --nproc-per-node N -m transformer train ..."""
"""The epilog of `train --help`."""


def add(commands: Any) -> None:
    train = commands.add_parser("train", help="train a model", description="Train a model.", epilog=SEVERAL)
    train.add_argument(
        "--task",
        metavar="|".join(TASKS),
        help="task to learn, with sizes that fit it (default: the configuration's, reverse)",
    )
    train.add_argument(
        "--pairs", type=Path, nargs="+", metavar="FILE", help="your own pairs: one file, or two aligned ones"
    )
    add_heading(train)
    train.add_argument("--swap", action="store_true", help="pairs: learn from the second side to the first")
    train.add_argument(
        "--longest", type=int, nargs=2, metavar=("SOURCE", "TARGET"), help="pairs: maximum words of each side"
    )
    train.add_argument(
        "--least", type=int, default=1, metavar="N", help="pairs: keep those whose words all occur N times"
    )
    train.add_argument("--most", type=int, metavar="N", help="pairs: keep at most N, at random")
    train.add_argument(
        "--tokenizer",
        metavar="KIND|FILE",
        help=f"{', '.join(TOKENIZERS[:-1])}, a tokenizer.json, or the name of one on the hub",
    )
    train.add_argument(
        "--recipe",
        choices=list(RECIPES),
        help="a published architecture, sized for two cores and trained as in the app",
    )
    train.add_argument("--paper", action="store_true", help="that recipe at paper size, trained as published")
    train.add_argument(
        "--topology", choices=list(KINDS_OF), help="stacks of the model (default: those of recipe and task)"
    )
    train.add_argument("--seed", type=int, help="sets the first weights and every batch")
    train.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help=f"train N runs, {LEAST_SEEDS} to {MOST_SEEDS}, with this seed and those after it, "
        "one after another",
    )
    train.add_argument("--steps", type=int, help="planned steps; the schedule's decay ends with them")
    train.add_argument(
        "--target", type=float, help="stop at this share of exact held-out examples, e.g. 0.99"
    )
    train.add_argument("--config", type=Path, metavar="FILE", help="a configuration as JSON")
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other setting, its value as JSON; may be repeated",
    )
    train.add_argument(
        "--tensorboard",
        action="store_true",
        help="also write TensorBoard curves, to NAME.tensorboard beside the run's file",
    )
    train.add_argument("--out", type=Path, metavar="FILE", help="a new file for the run, such as runs/mine")
    train.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="resume the run in this file",
    )
    train.add_argument(
        "--device", choices=DEVICES, help="where to train (default: the configuration's, auto)"
    )
    train.add_argument("--json", action="store_true", help="end with one line of JSON on standard output")
    train.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train to the end.

    Returns:
        0 if the run came to its end, with `--target` by reaching it; 1 if it missed the target, failed, was
        interrupted or could not be saved.

    Raises:
        InputError: an argument, a file or the device cannot be used.
    """
    if arguments.resume is not None:
        return _resumed(arguments)
    counts, held = own_data(arguments)  # `held` keeps the user's own data alive
    config = configuration(arguments, held)
    from transformer.training.device import resolve_device  # imports torch: only once the arguments are valid

    resolve_device(config.device)
    resolved(config)  # before the file is created: the task may refuse these settings
    if arguments.seeds is not None:
        return _with_seeds(config, arguments, counts)
    config, distributed = _joined(config)
    if distributed is not None and not distributed.leads:
        return _take_part(config, distributed)
    archive = None
    if arguments.out is not None:
        from transformer.storage.archive import Archive

        archive = Archive(arguments.out)
    training = Run(config, archive=archive, every_step=archive is not None, distributed=distributed)
    if distributed is not None:  # the launcher sends SIGTERM when another process fails
        signal.signal(signal.SIGTERM, lambda *_: training.stop())
    training.start()
    return _to_its_end(training, arguments, counts, distributed)


def _with_seeds(config: RunConfig, arguments: argparse.Namespace, counts: dict[str, Any]) -> int:
    """Train runs that differ in their seeds; print a line for each, and what they have in common.

    Returns 1 if one of them failed, was interrupted or missed the target. Raises InputError.
    """
    if not LEAST_SEEDS <= arguments.seeds <= MOST_SEEDS:
        raise InputError(f"--seeds {arguments.seeds} is outside {LEAST_SEEDS} to {MOST_SEEDS}.")
    if arguments.out is not None or place() is not None:
        raise InputError("--seeds trains several runs in one process: leave out --out, and the launcher.")
    endings, code = [], 0
    configs = [config.with_changes(seed=config.seed + i) for i in range(arguments.seeds)]
    for each in configs:  # all are valid before the first one trains
        training = Run(each, every_step=False)
        training.start()
        ended = _to_its_end(training, arguments, counts)
        view, code = training.view, max(code, ended)
        endings.append(view.ending)
        if view.state == STOPPED:
            break
    frame = view.frame
    summary = in_common(endings, "mirror" if frame is None else frame.target_score)
    if arguments.json:
        turned = [
            ending.turned and dict(zip(("step", "site", "head"), ending.turned, strict=True))
            for ending in endings
        ]
        print_json({"seeds": [ending.seed for ending in endings], "turned": turned, "in_common": summary})
    else:
        sys.stdout.write(summary + "\n")
    return code


def _resumed(arguments: argparse.Namespace) -> int:
    """Resume a saved run. Returns the exit status. Raises InputError if it cannot be resumed."""
    if place() is not None:
        raise InputError("--resume works in one process only; start it without the launcher.")
    from transformer.storage.archive import Archive
    from transformer.storage.file import found
    from transformer.storage.saved import read_run

    values = vars(arguments) | {"least": arguments.least != 1, "heading": arguments.heading is not None}
    given = [name for name, value in values.items() if not (value is None or value is False or value == [])]
    if others := sorted(set(given) - {"command", "run", "resume", "json"}):
        raise InputError(f"--resume uses the settings of the run; leave out --{', --'.join(others)}.")
    path = found(arguments.resume)
    saved = read_run(path)
    if saved.view.state == FINISHED:
        raise InputError(f"The run in {arguments.resume} is finished: {saved.view.reason}")
    if saved.view.state == FAILED or not saved.can_go_on:
        raise InputError(
            f"The run in {arguments.resume} cannot be resumed: {saved.damage or saved.view.reason} Start "
            "a new one with --config."
        )
    archive = Archive(path, resumed=True)
    saved = replace(saved, view=replace(saved.view, state=PAUSED))  # a stopped run keeps its plan
    training = Run(saved.view.config, archive=archive, saved=saved)
    training.resume()
    return _to_its_end(training, arguments, {})


def _to_its_end(
    training: Run,
    arguments: argparse.Namespace,
    counts: dict[str, Any],
    distributed: Distributed | None = None,
) -> int:
    """Follow a started run to its end, and print its summary as JSON or the reason for its end.

    Returns the exit status, as `run` does.
    """
    _follow(training)
    training.close()
    training.join()
    view = training.view
    # After a failure, the other processes notice that this one has ended.
    if distributed is not None and view.state in (FINISHED, STOPPED):
        distributed.announce_end()
        distributed.leave()
    if arguments.json:
        print_json(_summary(view) | counts)
    elif view.reason:
        sys.stdout.write(view.reason + "\n")
    if view.state == FAILED:
        print_message(view.reason)
    if view.unsaved:
        print_message(view.unsaved)
    if view.state != FINISHED or view.unsaved:
        return 1
    return 0 if view.config.train.goal is None or view.goal_reached else 1


def _joined(config: RunConfig) -> tuple[RunConfig, Distributed | None]:
    """Join the processes that were started with this one, if any. Raises InputError.

    Returns the configuration, with a number of threads if there are others, and the part of this process.
    """
    mine = place()
    if mine is None:
        return config, None
    import torch

    from transformer.training.distributed import Distributed

    distributed = Distributed.join(config, *mine)
    # Processes share the cores of their machine: the launcher says how many threads each may have.
    return config.with_changes(threads=config.threads or torch.get_num_threads()), distributed


def _take_part(config: RunConfig, distributed: Distributed) -> int:
    """Train in a process that is not the leader. Returns the exit status."""
    from transformer.training.loop import follow_leader

    try:
        follow_leader(config, distributed)
        distributed.leave()
    except Exception as error:  # after any error, the other processes cannot go on
        reason = explained(error)
        if reason != LEFT_ALONE:  # the other process reports why
            print_message(
                f"Process {distributed.rank + 1} of {distributed.n_processes} has failed. {reason}",
                alone=True,
            )
        return 1
    return 0


def _follow(run: Run) -> None:
    """Show a progress bar on standard error until the run has ended; Ctrl-C stops the run."""
    with tqdm(total=run.view.planned, unit="step", file=sys.stderr) as bar:
        try:
            while run.view.state not in (FINISHED, STOPPED, FAILED):
                _show(bar, run.view)
                time.sleep(0.1)
        except KeyboardInterrupt:
            run.stop()
            run.wait(10)
        _show(bar, run.view)


def _show(bar: Any, view: RunView) -> None:
    losses = view.metrics.column("loss")
    bar.update(view.step - bar.n)
    if len(losses) and view.right is not None:
        right, asked = view.right
        bar.set_postfix_str(f"loss {losses[-1]:.3f}, right {right}/{asked}", refresh=False)


def _summary(view: RunView) -> dict[str, Any]:
    """The output of `--json`, without the numbers of pairs.

    The exact share of a finished run is measured on all held-out examples.
    """
    losses, exact = view.metrics.column("loss"), view.metrics.column("exact")
    measured = exact[exact == exact]  # NaN where a step has no evaluation
    frame = view.frame
    best, evaluation = (None, None) if frame is None else (frame.best[1], frame.evaluation)
    return {
        "task": view.config.train.task,
        "recipe": view.config.recipe,
        "topology": view.config.model.topology,
        "seed": view.config.seed,
        "device": view.device,
        "threads": view.threads,
        "parameters": view.parameters,
        "steps": view.step,
        "seconds": round(view.seconds, 3),
        "train_loss": float(losses[-1]) if len(losses) else None,
        "exact": float(measured[-1]) if len(measured) else None,
        "token_accuracy": evaluation and evaluation.token_accuracy,
        "bleu": evaluation and evaluation.bleu,
        "chrf": evaluation and evaluation.chrf,
        "first_step_at": view.first_step_at,
        "mirror": best if frame is not None and frame.target_score == "mirror" else None,
        # For the mirror score too: the mirrored letters are the gold links of the reversal.
        "alignment_mass": best if frame is not None and frame.target_score in ("mirror", "gold") else None,
    }
