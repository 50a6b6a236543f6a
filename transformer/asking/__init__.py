"""Questions to a copy of the model at any step, and their answers."""
