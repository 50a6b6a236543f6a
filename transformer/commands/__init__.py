"""The commands of the command line: in the module of a command, `add` adds its arguments, `run` runs it."""
