"""Measurements of what the README claims."""
