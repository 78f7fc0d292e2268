"""A file of predictions as a source of rows: all of them at once, or in pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import replace

from verax._settings import settings
from verax.errors import InputError
from verax.files.predictions import Predictions, Roles, concatenate
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
        return () if self.rescaled is None else (self.rescaled.said(),)

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
