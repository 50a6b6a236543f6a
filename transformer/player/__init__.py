"""What draws a recording in a browser: its modules, and what they are told of a run."""
