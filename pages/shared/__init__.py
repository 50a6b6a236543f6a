"""The basis of every page: the selection, words, style."""
