"""Files of predictions, opened as sources of rows whatever their format."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Literal

from verax.common.paths import as_path, files_named
from verax.files.array_files import ArrayFile, ArrayFiles
from verax.files.column_files import ColumnFile
from verax.files.formats.tables import ARRAYS, SourceTable, common_format, files_once
from verax.files.predictions import Predictions
from verax.files.source import Source
from verax.inputs.reading import Reading


def read(path: str | Path | Sequence[str | Path], **options: Any) -> Predictions:
    r"""All rows of a file of predictions.

    Parameters
    ----------
    path : str, path or sequence
        The file or files, as for `open`.
    **options : Any
        The other parameters of `open`: `target`, `probs`, `classes`, `weights`, `groups`, `by`, `id`,
        `positive`, `ordered`, `logits`, `normalize`, `percent`, `delimiter`, `decimal`, `invalid`.

    Returns
    -------
    Predictions
        The rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> files.read(path).p.tolist()
    [[0.8, 0.2], [0.4, 0.6]]
    """
    return open(path, **options).read()


def open(  # noqa: A001 - files.open is its name
    path: str | Path | Sequence[str | Path],
    *,
    target: str | None = None,
    probs: str | Sequence[str] | None = None,
    classes: Sequence[Hashable] | None = None,
    weights: str | None = None,
    groups: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    id: str | Sequence[str] | None = None,  # noqa: A002
    positive: str | None = None,
    ordered: bool = False,
    logits: bool = False,
    normalize: bool = False,
    percent: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
    invalid: Literal["raise", "skip"] = "raise",
) -> Source:
    r"""Look at a file of predictions and find out which column is what; no row is kept.

    Parameters
    ----------
    path : str, path or sequence
        CSV, TSV (also .gz, .bz2, .zst), Parquet (also a folder of part files), Arrow or Feather, JSON Lines,
        JSON (an array of objects), .npz, .npy; or a pattern such as `"shards/*.parquet"` that several files
        fit; or a list of these.
    target : str, optional
        The column of outcomes: positions or names of classes. For .npy: the file of outcomes.
    probs : str or sequence of str, optional
        The columns of probabilities, as names or patterns such as `"p_*"`; or one column of lists; or one
        column, the probability of the second of two classes. By default found by name.
    classes : sequence of labels, optional
        The names of the classes: they pick and order the columns of that name, or name columns that are
        only numbered.
    weights : str, optional
        The column of importance weights.
    groups : str or sequence of two str, optional
        The column of clusters whose rows belong together; two where they belong together in two ways.
    by : str or sequence of str, default ()
        Columns of subgroups.
    id : str or sequence of str, optional
        The column of names of rows; several where they identify rows together.
    positive : str, optional
        The event of two classes: the class of a single column of probabilities. By default the second.
    ordered : bool, default False
        Whether the classes must have a known order: given, that of numbers, or of an ordered dictionary.
    logits : bool, default False
        Whether to look for logits instead of probabilities.
    normalize : bool, default False
        Whether rows will be divided by their sums, so percentages are also looked for.
    percent : bool, default False
        Whether the columns hold percentages, which are divided by 100.
    delimiter : str, optional
        What separates the columns of CSV files; by default a comma, in TSV files a tab.
    decimal : str, default "."
        The decimal mark of CSV files.
    invalid : {"raise", "skip"}, default "raise"
        What to do with rows that are invalid or lack a value: refuse them, or leave them out. They are
        counted and listed, and all other rows keep their numbers.

    Returns
    -------
    Source
        The file, which says which column is what.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> files.open(path).classes
    ('cat', 'dog')
    """
    request = Reading(
        lists=False,
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
        percent=percent,
        delimiter=delimiter,
        decimal=decimal,
        invalid=invalid,
    )
    return open_source(path, request)


def open_source(source: object, request: Reading) -> Source:
    """A file as a source of rows, or several: those that fit a pattern, or a list."""
    paths, name = files_named(source) or files_named(as_path(source))  # type: ignore[misc]
    if common_format(paths) in ARRAYS:
        files = files_once(paths)
        return ArrayFile(files[0], request) if len(files) == 1 else ArrayFiles(files, request, name)
    return ColumnFile(SourceTable.of_paths(paths, request, name), request)
