"""The exception for mistakes of users: a value that they typed or chose cannot be used."""

from __future__ import annotations


class InputError(ValueError):
    """A setting, word or file that cannot be used; the message gives the value, the limit and the next step.

    Args:
        message: the text that a user reads.
        field: the setting that is at fault, so that a page can show the message beside it.
        suggestion: a valid value, which a page offers with one click.
    """

    def __init__(self, message: str, field: str | None = None, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.suggestion = suggestion


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
