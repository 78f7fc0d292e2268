"""The work that runs at the moment, for displays of progress."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, int, int], None]


class Stages:
    """The function that is told of it, if any."""

    listener: Listener | None = None


def stage(what: str, done: int = 0, of: int = 0) -> None:
    """Report the current work and the number of its steps that are done.

    Parameters
    ----------
    what : str
        The work, such as "recalibration methods".
    done, of : int
        Steps that are done, and all of them; 0 where nobody knows.
    """
    if Stages.listener is not None:
        Stages.listener(what, done, of)
