"""What a person is told of a run that has failed."""

from __future__ import annotations

from transformer.errors import InputError

LEFT_ALONE = "Another process of this training has ended, and this one cannot go on without it."


def explained(error: Exception) -> str:
    """A failure in words that name what went wrong and what to do."""
    text, kind = str(error)[:500], type(error).__name__
    if kind in ("MemoryError", "OutOfMemoryError") or "can't allocate memory" in text:
        advice = "There is not enough memory for this model; choose a smaller width or batch."
        return f"{advice} ({text})" if text else advice
    if kind.startswith("Dist") or (kind == "RuntimeError" and "gloo" in text):  # of torch.distributed
        return LEFT_ALONE
    if isinstance(error, InputError) or kind == "NotFinite":
        return text
    return f"{kind}: {text}"
