"""Benchmarks of the README's claims."""
