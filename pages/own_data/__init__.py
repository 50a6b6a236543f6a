"""The page Your data: examples, tokens, and what a user uploads."""
