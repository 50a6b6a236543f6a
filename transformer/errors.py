"""The one exception for people: something they typed or chose cannot be used."""

from __future__ import annotations


class InputError(ValueError):
    """A setting, word or file that cannot be used; the message gives the value, the limit and the next step.

    Args:
        message: what a person reads, in place.
        field: the setting that is at fault, so that a page can show the message beside it.
        offer: a value that would do instead, which a page can offer with one click.
    """

    def __init__(self, message: str, field: str | None = None, offer: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.offer = offer
