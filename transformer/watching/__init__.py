"""Watching a model of the user's own, without changing it."""

from transformer.watching.attention import attention_of
from transformer.watching.patches import Patches
from transformer.watching.watch import Watch

__all__ = ["Patches", "Watch", "attention_of"]
