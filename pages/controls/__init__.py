"""The controls of a run: buttons, words, masks and races, and the commands that they send."""
