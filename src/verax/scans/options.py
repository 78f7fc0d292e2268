"""What a caller of `scan` asks for: how rows are read, and what is not about reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from verax.errors import InputError, passing, show
from verax.files.outcomes_beside import Beside
from verax.inputs.reading import Reading, named_columns


@dataclass(frozen=True)
class ScanOptions:
    """How a source is opened.

    Attributes
    ----------
    reading : Reading
        How rows are found in it.
    progress : Callable[[int], None] | None
        Called with the number of rows of every part that has been read.
    hold : str
        Which lists are read at once: "fitting" those that fit in memory, "all", or none.
    densify : bool
        Whether lists that are read at once and all name all classes are full distributions.
    pooled : str
        Duplicate rows: "refused" where ids repeat or two files look like those of two models; of
        files that were "named" as those of one model, where ids repeat; "matched" by their ids elsewhere.
    rounded : bool
        Whether rows whose sums differ from 1 by rounding are divided by them; otherwise they are refused.
    """

    reading: Reading = field(default_factory=Reading)
    progress: Callable[[int], None] | None = None
    hold: Literal["", "fitting", "all"] = ""
    densify: bool = False
    pooled: Literal["refused", "named", "matched"] = "refused"
    rounded: bool = False

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
        """Whether no two rows may have the same id: unless rows of an id are groups, or sampled repeats."""
        sampled = bool(self.reading.are_lists) and self.reading.samples == "repeats"
        grouped = set(self.ids) <= set(named_columns(self.reading.groups))
        return bool(self.ids) and not (self.pooled == "matched" or sampled or grouped)

    @property
    def may_be_two_models(self) -> bool:
        """Whether nothing says that the rows of several files are different rows of one model."""
        return self.pooled == "refused" and not self.ids

    def list_models(self, default: str) -> dict[str, Reading]:
        """How the lists of each model are read; one without a name is called `default`."""
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

    def with_outcomes(self, beside: Beside) -> ScanOptions:
        """The same for a table that has the outcomes of another file."""
        given: Any = self.reading.probs
        if not self.reading.sets:
            # A column of both files is of probabilities in this one.
            several = isinstance(given, Mapping)
            given = (
                {name: columns or beside.probs for name, columns in given.items()}
                if several
                else given or beside.probs
            )
        return self.with_reading(target=beside.target, id=beside.id, probs=given, outcomes=None)

    def with_reading(self, **fields: Any) -> ScanOptions:
        """The same with other fields of the reading."""
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
