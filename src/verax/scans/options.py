"""How a source is opened: what all readers of rows are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from verax.errors import InputError, passing, show
from verax.files.predictions import Followup
from verax.inputs.reading import Reading, named_columns


@dataclass(frozen=True)
class ScanOptions:
    """How `scan` opens a source.

    Attributes
    ----------
    reading : Reading
        How rows are found in it.
    progress : Callable[[int], None] | None
        Called with the number of rows in every part read.
    hold : str
        The lists to read at once: "fitting" those that fit in memory, "all", or none.
    densify : bool
        Whether lists that are read at once, and all name every class, become full distributions.
    pooled : str
        Duplicate rows: "refused" if ids repeat or two files look like those of two models; "named", for files
        of one stated model, refused if ids repeat; "matched" by their ids elsewhere.
    followup : Followup | None
        How outcomes are judged at the horizon of the reading, which the times of all rows tell.
    rounded : bool
        Whether rows whose sums differ from 1 by rounding are divided by them instead of refused.
    """

    reading: Reading = field(default_factory=Reading)
    progress: Callable[[int], None] | None = None
    hold: Literal["", "fitting", "all"] = ""
    densify: bool = False
    pooled: Literal["refused", "named", "matched"] = "refused"
    rounded: bool = False
    followup: Followup | None = None

    def __post_init__(self) -> None:
        if self.progress is not None and not callable(self.progress):
            raise InputError(
                f"must be a function that takes a number of rows, not {show(self.progress)}",
                argument="progress",
                kind="type",
                values=[self.progress],
            )

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that identify rows."""
        return named_columns(self.reading.id)

    @property
    def distinct(self) -> bool:
        """Whether ids must not repeat; they may if rows of an id form groups, or are sampled repeats."""
        sampled = bool(self.reading.are_lists) and self.reading.samples == "repeats"
        grouped = set(self.ids) <= set(named_columns(self.reading.groups))
        return bool(self.ids) and not (self.pooled == "matched" or sampled or grouped)

    @property
    def may_be_two_models(self) -> bool:
        """Whether several files might be of two models: nothing states that their rows differ."""
        return self.pooled == "refused" and not self.ids

    def list_models(self, default: str) -> dict[str, Reading]:
        """The reading of lists for each model; one without a name is called `default`."""
        models = self.reading.models(default)
        for reading in models.values():
            if len(reading.columns) > 2:
                raise InputError(
                    "must be the column of lists, or those of their classes and of their probabilities",
                    argument="probs",
                    found=f"there are {len(reading.columns)}",
                    values=reading.columns,
                )
        return models

    def with_reading(self, **fields: Any) -> ScanOptions:
        """The same with some fields of the reading replaced."""
        return replace(self, reading=replace(self.reading, **fields))


def unknown_source(source: object) -> InputError:
    """The error about a source that no engine reads."""
    return InputError(
        "must be a path, a list of paths, or a frame, table, data set or query",
        argument="source",
        kind="type",
        found=f"it is a {type(source).__name__}",
        remedies=[passing("as they are, if they are in memory", y=..., p=...)],
    )
