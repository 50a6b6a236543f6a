"""The command line: starts the app, trains as the app does, shows examples, asks a saved run or prints its
curves."""

from __future__ import annotations

import sys
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """Run one command; without one, start the app.

    Returns:
        0 on success; 1 if a training missed its target, failed, was interrupted or could not be saved; 2 if a
        command refuses its arguments or packages are missing. The app's server replaces the process.

    Raises:
        SystemExit: the arguments cannot be parsed, or ask for help.
    """
    try:
        from transformer.commands import app, attend, curves, data, train
        from transformer.commands.line import OneLineParser, run_command
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"headlight: {error.name} is not installed. Install all that the commands need: "
            "pip install 'headlight-attention[app]'\n"
        )
        return 2
    named = Path(sys.argv[0]).stem == "headlight"
    prog = "headlight" if named else "python -m transformer"
    parser = OneLineParser(prog=prog, description="Watch attention heads learn.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    for command in (app, train, data, attend, curves):
        command.add(commands)
    arguments = parser.parse_args(sys.argv[1:] or ["app"] if argv is None else argv)
    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
