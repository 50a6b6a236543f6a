"""Watching a model of one's own: its attention, without changing it."""

from transformer.watching.attention import attention_of

__all__ = ["attention_of"]
