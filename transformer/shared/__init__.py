"""Plain data and a cache that most rooms share; without torch."""
