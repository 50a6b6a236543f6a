"""The time to learn the reversal: the default preset, a published recipe and plain PyTorch.

    python -m benchmarks.time_to_learn [--seeds N] [--limit SECONDS] [--json]

For each seed, three contenders learn to reverse random strings of the default's lengths, one after the other,
on one thread:

- default: the default preset as the app trains it, with every step recorded; every 25th step, as at each
  evaluation of the app, scores and outputs are recorded too;
- etienne: that recipe's architecture and optimiser as published (width 128, batches of 256, Adam at a
  constant 1e-3), in the same loop and on the same words; padding is computed too, as in the published code;
- plain: `nn.Transformer` of the default's size with a `DataLoader` and Adam at 1e-3 (`tools/plain.py`).

After every 25th step each contender is evaluated on the same 200 held-out words, decoded greedily, and if at
least 90 % of these are exact, on all 1,000. Seconds are processor seconds of the training thread, without
evaluations. A model that has not reached 99% within the limit is compared at the largest share of exact words
that it reached. The ratio to a contender is the median over the seeds. The mirror score of the default's
clearest head after training is measured on ten seeds; with `--seeds 0`, only this score is measured.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.tools.measuring import end, machine, options
from benchmarks.tools.plain import PlainTransformer, exact_plainly, train_plainly
from pages.settings.presets import DEFAULT_PRESET, PRESETS
from transformer.config import RunConfig
from transformer.config.recipes import RECIPES
from transformer.decoding.spelling import spell
from transformer.insight.scores import clearest_head
from transformer.recording.scorer import Scorer
from transformer.recording.view import Publisher, untrained
from transformer.runs.training_session import TrainingSession
from transformer.shared.attention_info import reading_sites
from transformer.shared.evaluation import N_LIVE
from transformer.tasks import task_of
from transformer.training.loop import Report, train
from transformer.training.state import TrainState

EVERY, LIMIT = 25, 300.0
"""Steps between evaluations, and maximum seconds of training for each contender and seed."""
MARK, GOAL = 0.9, 0.99
"""Shares of exact words."""
PEERS = {"etienne": 1 / 12, "plain": 1 / 30}
"""Maximum time of the default, relative to each peer."""
MIRROR, MIRROR_SEEDS = 0.75, 10
PLAIN_WORDS = 100_000
DEFAULT = PRESETS[DEFAULT_PRESET].config
NEVER = 10**6


@dataclass
class Contender:
    """One of the models that are compared."""

    steps: Iterator[Report | None]
    """Trains one step for each `next`."""
    exact: Callable[[Sequence[str]], float]
    """Return the current share of exact words."""
    mirror: Callable[[], float] | None = None
    """Return the current mirror score of the clearest head."""
    curve: list[tuple[int, float, float, float]] = field(default_factory=list)
    """At each evaluation: steps, processor seconds of the thread, wall seconds, share of exact words."""

    def learn(self, words: Sequence[str], limit: float) -> None:
        """Train until 99 % of the words are exact, the planned steps end or the limit is reached."""
        n, seconds, wall, share, done = 0, 0.0, 0.0, 0.0, False
        over = object()
        while not done:
            began, began_on_the_wall = time.thread_time(), time.perf_counter()
            report = next(self.steps, over)
            spent, passed = time.thread_time() - began, time.perf_counter() - began_on_the_wall
            if report is not over:
                if isinstance(report, Report) and report.evaluation is not None:
                    # The last planned step includes an evaluation: use the mean of the steps before.
                    spent, passed = seconds / n, wall / n
                n, seconds, wall = n + 1, seconds + spent, wall + passed
            done = report is over or seconds >= limit
            if done or n % EVERY == 0:
                share = self.exact(words[:N_LIVE])
                if share >= MARK:
                    share = self.exact(words)
                self.curve.append((n, seconds, wall, share))
                done = done or share >= GOAL

    def reached(self, share: float) -> tuple[int, float, float] | None:
        """Return steps, processor seconds and wall seconds to this share of exact words, or None."""
        return next((point[:3] for point in self.curve if point[-1] >= share), None)

    @property
    def best(self) -> float:
        """The largest share of exact words that was reached, capped at the goal."""
        return min(GOAL, max(share for *_, share in self.curve))


def bare(config: RunConfig) -> Contender:
    """Return a contender that trains in the app's own loop, without recording; it computes padding too."""
    state = TrainState.begin(config.with_changes(evaluate_every=NEVER, goal=None, device="cpu"))
    state.model.packs = False
    return contender_of(state, train(state))


def recorded(config: RunConfig) -> Contender:
    """Return a contender that trains and records every step, as a run of the app without viewers."""
    config = config.with_changes(evaluate_every=NEVER, goal=None, device="cpu", threads=1)
    task = task_of(config)
    words = [task.question(word) for word in task.corpus.tracked_words()]
    training = TrainingSession(Publisher(untrained(config, "benchmark")), words)

    def steps() -> Iterator[Report | None]:
        for step in range(1, config.train.steps + 1):
            training.step(alone=step % EVERY == 0, watched=False)
            yield None

    return contender_of(training.state, steps())


def contender_of(state: TrainState, steps: Iterator[Report | None]) -> Contender:
    """Return a contender for one of the app's own models, with functions that measure it."""

    def exact(words: Sequence[str]) -> float:
        return float(np.mean(spell(state.model, state.task, words, decoding=state.decoding).exact))

    def mirror() -> float:
        scores, axes = Scorer(state.task).scores(state.model), state.model.axes()
        return clearest_head({site: scores[site]["mirror"] for site in reading_sites(axes)})[1]

    return Contender(steps, exact, mirror)


def default(seed: int) -> Contender:
    """Return the default preset."""
    return recorded(DEFAULT.with_changes(seed=seed))


def etienne(seed: int) -> Contender:
    """Return the published recipe, on the default's words and without a planned end."""
    letters = {"min_letters": DEFAULT.train.min_letters, "max_letters": DEFAULT.train.max_letters}
    own = RECIPES["etienne"].published
    return bare(own.with_changes(examples=None, steps=NEVER, seed=seed, **letters))


def plain(seed: int) -> Contender:
    """Return PyTorch's own Transformer, on words of the same distribution."""
    torch.manual_seed(seed)
    model, train_config = DEFAULT.model, DEFAULT.train
    pairs = task_of(DEFAULT).corpus.drawn(np.random.default_rng([seed]), PLAIN_WORDS)
    layers = model.n_encoder_layers, model.n_decoder_layers
    transformer = PlainTransformer(model.d_model, model.n_heads, layers, model.d_ff)
    steps = train_plainly(transformer, [pair.source for pair in pairs], train_config.batch_size)
    return Contender(steps, partial(exact_plainly, transformer, most=train_config.max_letters))


CONTENDERS: dict[str, Callable[[int], Contender]] = {"default": default, "etienne": etienne, "plain": plain}


def measure(name: str, seed: int, words: Sequence[str], limit: float) -> tuple[Contender, dict[str, Any]]:
    """Train one contender with one seed; return it and its row."""
    contender = CONTENDERS[name](seed)
    contender.learn(words, limit)
    steps, seconds, wall, _ = contender.curve[-1]
    row: dict[str, Any] = {"contender": name, "seed": seed, "steps": steps, "best": contender.best}
    row |= {"seconds": round(seconds, 2), "wall_seconds": round(wall, 2)}
    for share in (MARK, GOAL):
        at = contender.reached(share)
        row[f"steps_to_{share:.0%}"] = at and at[0]
        row[f"seconds_to_{share:.0%}"] = at and round(at[1], 2)
        row[f"wall_seconds_to_{share:.0%}"] = at and round(at[2], 2)
    row["mirror"] = None if contender.mirror is None else round(contender.mirror(), 3)
    return contender, row


def ratio(default: Contender, peer: Contender) -> float:
    """Return the default's seconds to the peer's best share, over the peer's; infinity if not reached."""
    share = max(peer.best, 1 / N_LIVE)  # if no word is right, compare at the first right word
    own, its = default.reached(share), peer.reached(share) or peer.curve[-1]
    return float("inf") if own is None else own[1] / its[1]


def print_row(row: dict[str, Any]) -> None:
    """Print a line of the table."""

    def shown(value: float | None, width: int, form: str = "") -> str:
        return f"{'–' if value is None else format(value, form):>{width}}"

    parts = [f"{row['seed']:4d}  {row['contender']:9s}"]
    for share in ("90%", "99%"):
        parts += [shown(row[f"steps_to_{share}"], 6), shown(row[f"seconds_to_{share}"], 7, ".1f")]
    parts += [shown(row["wall_seconds_to_99%"], 7, ".1f"), f"{row['steps']:6d}", f"{row['seconds']:7.1f}"]
    parts += [f"{row['best']:.3f}", shown(row["mirror"], 6, ".3f")]
    for peer in PEERS:
        parts.append(f"{peer} {row[peer]:.4f}" if peer in row else "")
    sys.stdout.write("  ".join(parts).rstrip() + "\n")
    sys.stdout.flush()


def print_spread(rows: Sequence[dict[str, Any]]) -> None:
    """Print the lowest, median and highest value for each contender and each ratio."""
    for name in CONTENDERS:
        for column in ("steps_to_90%", "seconds_to_90%", "steps_to_99%", "seconds_to_99%", "best", "mirror"):
            values = [row[column] for row in rows if row["contender"] == name and row[column] is not None]
            if values:
                low, middle, high = min(values), statistics.median(values), max(values)
                times = f" ({len(values)} times)" if column.endswith("%") else ""
                sys.stdout.write(
                    f"{name}, {column.replace('_', ' ')}{times}: "
                    f"min {low:g}, median {middle:g}, max {high:g}\n"
                )
    for peer in PEERS:
        values = [row[peer] for row in rows if peer in row]
        if not values:
            continue
        low, middle, high = min(values), statistics.median(values), max(values)
        sys.stdout.write(f"default over {peer}: min {low:.4f}, median {middle:.4f}, max {high:.4f}\n")


def main() -> int:
    """Print a row for each contender and seed; exit status 1 if a limit is not met."""
    arguments = options(__doc__, seeds=5, limit=LIMIT)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")  # inside nn.Transformer
    words = task_of(DEFAULT).held_out()
    write = sys.stdout.write
    write(f"{machine()}, one thread\n")
    write(
        "                     to 90 %          to 99 %  on the    in all\n"
        "seed  contender   steps  seconds   steps  seconds   wall   steps  seconds   best  mirror  "
        "default over\n"
    )
    default(0).learn(words, 1.0)  # the first steps of a process are slower than all others
    rows: list[dict[str, Any]] = []
    for seed in range(max(arguments.seeds, MIRROR_SEEDS)):
        first = None
        for name in CONTENDERS if seed < arguments.seeds else ("default",):
            contender, row = measure(name, seed, words, arguments.limit)
            first = first or contender
            if name in PEERS:
                row[name] = round(ratio(first, contender), 5)
            rows.append(row)
            print_row(row)
    print_spread(rows)
    ratios_of = {peer: [row[peer] for row in rows if peer in row] for peer in PEERS}
    ratios = {peer: statistics.median(values) for peer, values in ratios_of.items() if values}
    mirrors = [row["mirror"] for row in rows if row["contender"] == "default"][:MIRROR_SEEDS]
    named = {"etienne": "default_over_etienne_at_most_1_12th", "plain": "default_over_plain_at_most_1_30th"}
    met = {named[peer]: ratio <= PEERS[peer] for peer, ratio in ratios.items()}
    met["mirror_at_least_0.75_in_ten_seeds"] = min(mirrors) >= MIRROR
    for name, holds in met.items():
        write(f"{name}: {'yes' if holds else 'no'}\n")
    own = [row for row in rows if row["contender"] == "default"]
    reached = [row for row in own if row["steps_to_99%"] is not None]
    learned = "not within its plan"
    if reached:
        steps, seconds = (
            statistics.median(row[f"{what}_to_99%"] for row in reached) for what in ("steps", "seconds")
        )
        learned = f"{steps:g} steps, {seconds:.1f} s of one core (median; {len(reached)} of {len(own)} seeds)"
    figures = {
        "reversal, 99 % of held-out words": learned,
        "clearest head's mirror score": f"{min(mirrors):.2f} to {max(mirrors):.2f} ({len(mirrors)} seeds)",
    }
    peers = {"etienne": "the etienne recipe as published", "plain": "`nn.Transformer` with Adam"}
    figures |= {f"of the time of {peers[peer]}": f"1/{1 / ratio:.0f}" for peer, ratio in ratios.items()}
    return end(arguments, rows, met, figures)


if __name__ == "__main__":
    sys.exit(main())
