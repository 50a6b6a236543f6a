"""The runs that a visitor knows: listed, opened, shared, taken away."""
