"""Plain data and a cache that several packages share; without torch."""
