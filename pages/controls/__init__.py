"""Controls of a run: buttons, words, masks, kinds and heads, and the commands that they give."""
