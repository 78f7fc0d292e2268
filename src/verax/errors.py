"""The errors that verax raises. All of them are `ValueError`s, so old handlers keep working."""

from __future__ import annotations


class VeraxError(ValueError):
    """Anything verax refuses. The message says what was wrong, where, and what to do about it."""


class InputError(VeraxError):
    """Forecasts, outcomes, weights or classes that break a requirement.

    Attributes
    ----------
    argument : str
        The name of the offending argument, as in the signature of the public functions.
    rows : tuple of int
        The first offending rows (0-based), empty when the fault is not in particular rows.
    """

    def __init__(self, message: str, *, argument: str, rows: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.argument = argument
        self.rows = rows

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_input_error, (str(self), self.argument, self.rows)


def _rebuild_input_error(message: str, argument: str, rows: tuple[int, ...]) -> InputError:
    return InputError(message, argument=argument, rows=rows)


class RuleError(VeraxError):
    """A rule was asked for something that no theorem gives it."""


class ParseError(VeraxError):
    """A text that does not name a rule."""


class MissingPackageError(VeraxError, ImportError):
    """An optional package is needed and is not installed."""
