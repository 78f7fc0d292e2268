"""A file of predictions as a source of rows: all of them at once, or in pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.common.ids import id_of
from verax.errors import InputError, Remedy, passing, show
from verax.files.families import NEARLY, PERCENT
from verax.files.predictions import Predictions, Roles, concatenate, short
from verax.inputs.forecasts import Forecasts
from verax.inputs.reading import Reading
from verax.inputs.skipping import NO_ROWS, NO_VALID_ROW, Skipped
from verax.inputs.validity import Rescaled


def rows_at_a_time(width: int) -> int:
    """Number of rows read at a time, given the number of probabilities per row."""
    return max(1, min(settings.part_rows, settings.part_probabilities // width))


class Source(ABC):
    r"""A file whose columns are known and whose rows have not been read.

    Attributes
    ----------
    path : str
        The file.
    roles : Roles
        Which column is what.
    classes : tuple or None
        The names of the classes; None where the file has none.
    n_rows : int or None
        The number of rows; None where only reading tells.
    n_bytes : int
        What its files take on disk, where only reading tells the number of rows.
    width : int
        How many probabilities a row has.
    skipped : Skipped or None
        The invalid rows left out of what was read last; None unless that was asked for.
    rescaled : Rescaled or None
        The rows of what was read last that are to be divided by their sums; None unless that was asked for.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> source = files.open(path)
    >>> source.classes, source.width
    (('cat', 'dog'), 2)
    """

    path: str
    roles: Roles
    classes: tuple[Hashable, ...] | None
    n_rows: int | None
    n_bytes: int = 0
    width: int
    skipped: Skipped | None = None
    rescaled: Rescaled | None = None
    _request: Reading

    @property
    def request(self) -> Reading:
        """What the caller said about it."""
        return self._request

    @property
    def taken(self) -> tuple[str, ...]:
        """How each column was read, one line each."""
        return self.roles.in_words(self.classes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results should know of the rows that were read last: a sentence each."""
        return () if self.rescaled is None else (self.rescaled.sentence(),)

    def batches(self, rows: int | None = None, *, coded: bool = False) -> Iterator[Predictions]:
        """All rows in order, about `rows` at a time, each batch with the number of its first row.

        Parameters
        ----------
        rows : int, optional
            The number of rows of a batch; by default a batch has some megabytes.
        coded : bool, default False
            Whether to return groups as `Groups`, which saves sorting them again.

        Yields
        ------
        Predictions
            The next rows.
        """
        start = left = 0
        self.skipped = Skipped(0) if self._request.invalid == "skip" else None
        self.rescaled = Rescaled() if self._request.normalize else None
        rows = rows_at_a_time(self.width) if rows is None else rows
        for whole in self.given(rows, coded=coded):
            start += whole.n_given
            if self.skipped is not None:
                whole = whole.valid(normalize=self._request.normalize, logits=self._request.logits)
                self.skipped += whole.skipped or Skipped(len(whole))
            if len(whole):
                left += len(whole)
                if self.rescaled is not None:
                    self.rescaled += whole.rescaled()
                yield whole
        if self.skipped is not None:
            self.skipped.refuse_percentages("probs", str(self.path))
        if not start:
            raise InputError(NO_ROWS, argument="path", kind="file", source=self.path)
        if not left:
            raise InputError(
                NO_VALID_ROW, argument="path", kind="file", found=str(self.skipped), source=self.path
            )

    def given(self, rows: int, *, coded: bool) -> Iterator[Predictions]:
        """The same without checking probabilities and weights: rows with invalid ones are included.

        Parameters
        ----------
        rows : int
            The number of rows of a batch.
        coded : bool
            Whether to return groups as `Groups`.

        Yields
        ------
        Predictions
            The next rows.
        """
        start = 0
        for batch in self._batches(rows, coded):
            yield replace(batch, start=start)
            start += batch.n_given

    @abstractmethod
    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]: ...

    def read(self) -> Predictions:
        """All rows."""
        return concatenate(list(self.batches()))


class FileForecasts(Forecasts):
    """Forecasts of a file, whose errors name the file and its columns."""

    def __init__(self, batch: Predictions, *given: Any, **options: Any) -> None:
        try:
            super().__init__(*given, **options)
        except InputError as error:
            raise error.replace(source=batch.path) from None
        self._batch = batch

    def check(self) -> None:
        """Raise the error that names the file, its columns and the first invalid rows."""
        try:
            super().check()
        except InputError as error:
            if error.kind == "sum" and error.argument == "p":
                error = self._about_sums(error)
            batch = self._batch
            if batch.ids is not None and error.rows:
                at = np.flatnonzero(batch.numbers == error.rows[0])
                error = with_id(error, batch.roles, batch.ids[at[:1]].tolist()) if at.size else error
            raise error.replace(source=batch.path) from None

    def _about_sums(self, error: InputError) -> InputError:
        """The error about sums of rows, with their columns and the remedies that fit."""
        if self._normalize:
            return error.replace(requirement="The probabilities of a row must have a positive sum")
        total, probs = float(error.values[0]), self._batch.roles.probs
        logits = passing("if these are logits", logits=True)
        left = self._batch.roles.not_taken
        if left and total < 1:
            # To rescale would spread the probability of a missing class over the others.
            remedies: tuple[Remedy, ...] = (
                Remedy(f"Is a class missing ({short(left)})?"),
                passing("(all columns of probabilities)", probs=...),
            )
        elif abs(total - 1) <= NEARLY:
            remedies = error.remedies
        elif abs(total - PERCENT) <= PERCENT * NEARLY:
            percentages = Remedy("These are percentages.")
            remedies = (percentages, passing("to divide every row by its sum", normalize=True))
        elif len(probs) == 1:
            remedies = (passing("if these are counts or weights", normalize=True), logits)
        else:
            ask = Remedy("Is a column missing, or one too many?")
            remedies = (ask, passing("to choose the columns", probs=...), logits)
        return error.replace(
            requirement=f"The probabilities of a row must sum to 1 within {self.unity.tolerance:g}",
            found=f"{error.found}; the columns used are {short(probs)}",
            remedies=remedies,
        )


def with_id(error: InputError, roles: Roles, values: Sequence[object]) -> InputError:
    """An error about rows that also gives the id of the first, from the values of its columns."""
    its_id = f"{roles.id_name} {show(values[0] if len(values) == 1 else id_of(values))}"
    return error.replace(found=f"{error.found} ({its_id})")


def doubts_about(source: Source | Predictions, counts: Sequence[float]) -> tuple[InputError, ...]:
    r"""What the numbers of outcomes in all rows say against how the outcomes were read.

    The doubts are errors that are not raised, so that every caller can put them into words.

    Parameters
    ----------
    source : Source or Predictions
        The file.
    counts : sequence of float
        How often each class happened.

    Returns
    -------
    tuple of InputError
        The doubts; empty if there are none.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> files.doubts_about(files.open(path), [1, 1])
    ()
    """
    numbered = source.classes == tuple(range(len(counts)))
    by_number = source.roles.outcomes_are == "positions" or numbered
    if not by_number or counts[0] > 0 or not all(count > 0 for count in counts[1:]):
        return ()
    first = "" if source.classes is None or numbered else f" ({source.classes[0]})"
    return (
        InputError(
            f"Class 0{first} never occurs and all others do",
            argument="target",
            kind="label",
            found=f"if the labels in {source.roles.target!r} count from 1, they were read wrongly",
            remedies=[passing("if they do", classes=[1, 2, ...])],
        ),
    )


def forecasts_of(batch: Predictions, **options: Any) -> Forecasts:
    r"""A part of a file as forecasts whose rows are named by their numbers in the file.

    Parameters
    ----------
    batch : Predictions
        The rows.
    **options : Any
        Options of `Forecasts`, such as `normalize` and `logits`.

    Returns
    -------
    Forecasts
        The rows, ready to be scored.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> files.forecasts_of(files.read(path)).n_classes
    2
    """
    return FileForecasts(
        batch,
        batch.outcomes,
        batch.p,
        classes=batch.classes,
        weights=batch.weights,
        groups=batch.groups,
        first_row=batch.start,
        **options,
    )
