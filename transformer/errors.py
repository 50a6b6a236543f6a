"""The exception for what a user can understand and often put right, such as a value that cannot be used."""

from __future__ import annotations


class InputError(ValueError):
    """A setting, word, file or command that cannot be used; the message says why and, if known, what to do.

    Args:
        message: the text that a user reads.
        field: the setting or control at fault, so that a page can show the message beside it; None if
            there is none.
        suggestion: a valid value, which a page offers with one click; None if there is none.
    """

    def __init__(self, message: str, field: str | None = None, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.suggestion = suggestion


LEFT_ALONE = "Another process of this training has ended, and this one cannot go on without it."


def explained(error: Exception) -> str:
    """A failure in words: what went wrong and, for failures that the app knows, what to do."""
    text, kind = str(error)[:500], type(error).__name__
    if kind in ("MemoryError", "OutOfMemoryError") or "can't allocate memory" in text:
        advice = "There is not enough memory for this model; choose a smaller width or batch."
        return f"{advice} ({text})" if text else advice
    if kind.startswith("Dist") or (kind == "RuntimeError" and "gloo" in text):  # of torch.distributed
        return LEFT_ALONE
    if isinstance(error, InputError) or kind == "NotFinite":
        return text
    return f"{kind}: {text}"
