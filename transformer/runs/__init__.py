"""Runs: the background thread of each, the registry of all, and the folder on disk."""
