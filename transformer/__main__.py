"""The command line: `train` as in the app, `data` shows examples, `attend` asks a saved run."""

from __future__ import annotations

import sys

from transformer.commands import attend, data, train
from transformer.commands.line import OneLineParser


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 where it did what was asked, 1 if a training missed its target, failed or was interrupted, 2 for bad
        arguments.
    """
    parser = OneLineParser(prog="python -m transformer", description="Headlight without a page.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    for command in (train, data, attend):
        command.add(commands)
    arguments = parser.parse_args(argv)
    code: int = arguments.run(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
