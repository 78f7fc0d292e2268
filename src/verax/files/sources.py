"""Files of predictions, opened as sources of rows whatever their format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from verax.common.paths import as_path, files_named
from verax.files.array_files import ArrayFile, ArrayFiles
from verax.files.column_files import ColumnFile
from verax.files.formats.tables import ARRAYS, SourceTable, common_format, files_once
from verax.files.predictions import Predictions
from verax.files.source import Source
from verax.inputs.reading import Keywords, Reading, takes_reading


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


# The options of reading that files of predictions have.
_OPTIONS = (
    *("target", "probs", "classes", "weights", "groups", "by", "id", "positive", "ordered", "logits"),
    *("normalize", "percent", "delimiter", "decimal", "invalid"),
)


@partial(takes_reading, names=_OPTIONS)
def open(  # noqa: A001 - files.open is its name
    path: str | Path | Sequence[str | Path], **keywords: Unpack[Keywords]
) -> Source:
    r"""Look at a file of predictions and find out which column is what; no row is kept.

    Parameters
    ----------
    path : str, path or sequence
        CSV, TSV (also .gz, .bz2, .zst), Parquet (also a folder of part files), Arrow or Feather, JSON Lines,
        JSON (an array of objects), .npz, .npy; or a pattern such as `"shards/*.parquet"` that several files
        fit; or a list of these.
    **keywords

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
    return open_source(path, replace(Reading.of(None, keywords), lists=False))


def open_source(source: object, request: Reading) -> Source:
    """A file as a source of rows, or several: those that fit a pattern, or a list."""
    paths, name = files_named(source) or files_named(as_path(source))  # type: ignore[misc]
    if common_format(paths) in ARRAYS:
        files = files_once(paths)
        return ArrayFile(files[0], request) if len(files) == 1 else ArrayFiles(files, request, name)
    return ColumnFile(SourceTable.of_paths(paths, request, name), request)
