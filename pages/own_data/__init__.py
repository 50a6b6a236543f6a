"""The page Your data: examples, tokens, and what a person brings."""
