"""The runs of a visitor: to list, open, share and export them."""
