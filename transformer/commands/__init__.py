"""The commands of the command line, one file each: `add` adds its arguments, `run` runs it."""
