"""Make the user's own data and the configuration from the arguments of `train`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from transformer.commands.data import read_files
from transformer.commands.line import print_message
from transformer.config import TASK_INFO, TOKENIZERS, RunConfig
from transformer.config.recipes import RECIPES, recipe_config, with_topology
from transformer.config.tasks import for_pairs, with_task
from transformer.errors import InputError
from transformer.storage.own_data import OwnData


def own_data(arguments: argparse.Namespace) -> tuple[dict[str, Any], OwnData]:
    """The user's own data; remarks on the pairs are printed on standard error.

    Returns:
        The numbers of pairs by name, None where no pairs are given; and the pairs with the tokenizer.

    Raises:
        InputError: a file cannot be used, or arguments about pairs are given without `--pairs`.
    """
    counts: dict[str, Any] = {"pairs_read": None, "pairs_used": None, "pairs_skipped": None}
    pairs, tokenizer = None, None
    if arguments.pairs:
        from transformer.tasks.pairs.caps import Caps, select_pairs
        from transformer.tasks.pairs.own import OwnPairs
        from transformer.tasks.pairs.reading import remarks
        from transformer.tasks.pairs.store import intern_pairs

        reading = read_files(arguments.pairs, arguments.heading)
        for remark in remarks(reading):
            print_message(remark)
        longest = arguments.longest or (None, None)
        caps = Caps(
            swap=arguments.swap,
            longest_source=longest[0],
            longest_target=longest[1],
            min_frequency=arguments.least,
            most_pairs=arguments.most,
        )
        pairs = intern_pairs(OwnPairs(select_pairs(reading, caps)))
        counts = {
            "pairs_read": reading.read,
            "pairs_used": len(pairs.capped.pairs),
            "pairs_skipped": reading.n_skipped,
        }
    elif arguments.swap or arguments.longest or arguments.most is not None or arguments.least != 1:
        raise InputError("--swap, --longest, --least and --most are about pairs; give --pairs FILE.")
    elif arguments.heading is not None:
        raise InputError("--heading and --no-heading are about pairs; give --pairs FILE.")
    if arguments.tokenizer is not None and arguments.tokenizer not in TOKENIZERS:
        from transformer.tasks.pairs.store import intern_tokenizer
        from transformer.tasks.tokenizer import from_hub

        path = Path(arguments.tokenizer)
        try:
            content = path.read_text(encoding="utf-8") if path.exists() else from_hub(arguments.tokenizer)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The tokenizer {path} cannot be read ({error}).") from error
        tokenizer = intern_tokenizer(content)
    return counts, OwnData(pairs=pairs, tokenizer=tokenizer)


def configuration(arguments: argparse.Namespace, held: OwnData) -> RunConfig:
    """The configuration that the arguments describe.

    Raises:
        InputError: arguments exclude each other, the file of `--config` cannot be read, or a setting does not
            exist or has a value that cannot be used.
    """
    if arguments.config is None:
        if arguments.paper and arguments.recipe in (None, "default"):
            raise InputError(f"--paper needs a published recipe; choose {', '.join([*RECIPES][1:])}.")
        name = arguments.recipe or "default"
        topology = arguments.topology
        if name == "default" and arguments.task in TASK_INFO:
            topology = topology or TASK_INFO[arguments.task].topology
        config = recipe_config(name, topology, published=arguments.paper)
    elif arguments.recipe is not None or arguments.paper:
        raise InputError("--config and --recipe exclude each other; choose one of them.")
    else:
        try:
            config = RunConfig.from_json(arguments.config.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The configuration {arguments.config} cannot be read ({error}).") from error
        config = with_topology(config, arguments.topology or config.model.topology)
    if held.pairs is not None:
        if arguments.task not in (None, "pairs"):
            raise InputError(f"--task {arguments.task} has its own examples; leave out --task or --pairs.")
        if config.train.task != "pairs":
            config = for_pairs(with_task(config, "pairs"), in_characters=held.pairs.in_characters)
        config = config.with_changes(pairs=held.pairs.digest)
    elif arguments.task is not None:
        config = with_task(config, arguments.task)
    if held.tokenizer is not None:
        config = config.with_changes(tokenizer="file", tokenizer_file=held.tokenizer.digest)
    given = {
        "tokenizer": arguments.tokenizer if held.tokenizer is None else None,
        "seed": arguments.seed,
        "steps": arguments.steps,
        "device": arguments.device,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    changes["goal"] = arguments.target  # without --target, the goal of --config does not count
    if arguments.tensorboard:
        changes["tensorboard"] = True
    for setting in arguments.set:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting} has no value; write it as NAME=VALUE.")
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            read = value  # plain text needs no quotes
        changes[name] = tuple(read) if isinstance(read, list) else read
    config.check_names(changes)
    return config.with_changes(**changes)
