"""Files of predictions, opened as sources of rows whatever their format."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Literal

from verax.common.paths import as_path, matching
from verax.errors import InputError, Remedy
from verax.files.array_files import ArrayFile
from verax.files.column_files import ColumnFile
from verax.files.formats.tables import ARRAYS, Table, common_format, files_of
from verax.files.predictions import Predictions, Request
from verax.files.source import Source


def read(path: str | Path, **options: Any) -> Predictions:
    """All rows of a file of predictions; the parameters are those of `open`."""
    return open(path, **options).read()


def open(  # noqa: A001 - files.open is its name
    path: str | Path,
    *,
    target: str | None = None,
    probs: str | Sequence[str] | None = None,
    classes: Sequence[Hashable] | None = None,
    weights: str | None = None,
    groups: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    id: str | None = None,  # noqa: A002
    positive: str | None = None,
    ordered: bool = False,
    logits: bool = False,
    normalize: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
    invalid: Literal["raise", "skip"] = "raise",
) -> Source:
    """Look at a file of predictions and find out which column is what; no row is kept.

    Parameters
    ----------
    path : str | Path
        CSV, TSV (also .gz, .bz2, .zst), Parquet (also a folder of part files), Arrow or Feather, JSON Lines,
        .npz, .npy; or a pattern such as `"shards/*.parquet"` that several files fit.
    target : str | None
        The column of outcomes: positions or names of classes. For .npy: the file of outcomes.
    probs : str | Sequence[str] | None
        The columns of probabilities, as names or patterns such as `"p_*"`; or one column of lists; or one
        column, the probability of the second of two classes. By default found by name.
    classes : Sequence[Hashable] | None
        The names of the classes: they pick and order the columns of that name, or name columns that are
        only numbered.
    weights, groups, id : str | None
        Further columns. Rows that belong together in two ways have two columns of groups.
    by : str | Sequence[str]
        Columns of subgroups.
    positive : str | None
        The class that a single column of probabilities is about.
    ordered : bool
        The classes must have a known order: given, that of numbers, or of an ordered dictionary.
    logits : bool
        Look for logits instead of probabilities.
    normalize : bool
        Rows will be divided by their sums: look for percentages, too.
    delimiter, decimal : str
        Of CSV files.
    invalid : {"raise", "skip"}
        What to do with rows that are invalid or lack a value: refuse them, or leave them out. They are
        counted and listed, and all other rows keep their numbers.
    """
    request = Request.of(
        target=target,
        probs=probs,
        classes=classes,
        weights=weights,
        groups=groups,
        by=by,
        id=id,
        positive=positive,
        ordered=ordered,
        logits=logits,
        normalize=normalize,
        delimiter=delimiter,
        decimal=decimal,
        invalid=invalid,
    )
    return open_source(as_path(path), request)


def open_source(path: Path, request: Request) -> Source:
    """A file as a source of rows, or several that fit a pattern."""
    paths = matching(path)
    if common_format(paths) in ARRAYS:
        if len(paths) > 1:
            raise InputError(
                "must be one file of arrays",
                argument="path",
                kind="file",
                found=f"{len(paths):,} files fit the pattern",
                remedies=[Remedy("`vx.scan` reads several.", python_only=True)],
            )
        return ArrayFile(paths[0], request)
    if len(paths) == 1:
        return ColumnFile(Table.of_file(paths[0], request), request)
    files = [file for each in paths for file in files_of(each)]
    return ColumnFile(Table.of_files(files, request, str(path)), request)
