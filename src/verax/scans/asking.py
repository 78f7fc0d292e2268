"""What a caller of `scan` says about predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from verax.errors import InputError, passing
from verax.files.predictions import Request


@dataclass(frozen=True)
class Asked:
    """Which columns are what, for one model or several.

    Attributes
    ----------
    request : Request
        What is said about all models; for one model also its columns of probabilities.
    probs : Mapping[str, tuple[str, ...]] | None
        The columns of each of several models.
    progress : Callable[[int], None] | None
        Called with the number of rows of every part that has been read.
    """

    request: Request
    probs: Mapping[str, tuple[str, ...]] | None = None
    progress: Callable[[int], None] | None = None

    @classmethod
    def of(cls, probs: Any, progress: Callable[[int], None] | None, **given: Any) -> Asked:
        """What a caller passes, with the types checked."""
        if not isinstance(probs, Mapping):
            return cls(Request.of(probs=probs, **given), None, progress)
        if not probs:
            raise InputError("must name at least one model", argument="probs", kind="length")
        each = {str(name): Request.of(probs=own, **given).probs for name, own in probs.items()}
        return cls(Request.of(probs=None, **given), each, progress)

    def models(self, default: str) -> dict[str, Request]:
        """What is asked of each model; one without a name is called `default`."""
        if self.probs is None:
            return {default: self.request}
        return {name: replace(self.request, probs=own) for name, own in self.probs.items()}

    def in_order(self) -> Asked:
        """The same where the order of the classes must be known."""
        return replace(self, request=replace(self.request, ordered=True))


def unknown_source(source: object) -> InputError:
    """The error about a source that no engine reads."""
    return InputError(
        "must be a path, a list of paths, or a frame, table, data set or query",
        argument="source",
        kind="type",
        found=f"it is a {type(source).__name__}",
        remedies=[passing("as they are, if they are in memory", y=..., p=...)],
    )
