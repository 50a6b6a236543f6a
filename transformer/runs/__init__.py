"""Runs: their threads, the registry of all, the queue, the limits, and recordings that ship with the app."""
