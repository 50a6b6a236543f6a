"""What every page needs: the selection, words, style."""
