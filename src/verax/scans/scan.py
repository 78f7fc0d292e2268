"""`scan`: a handle on predictions that are not in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Unpack

from verax.errors import InputError, passing
from verax.inputs.handles import Handle
from verax.inputs.reading import Keywords, Reading, takes_reading
from verax.scans.options import ScanOptions, unknown_source

# The engines; the first that accepts the source runs. Each is a module here with a function `opened`.
FILES = ("listfiles", "batches")
ENGINES = ("saved", *FILES, "frames", "dask", "spark")
# Handles have grades in columns; commands read the other shapes of graded answers.
_OF_COMMANDS = ("answer", "gold", "confidence_column", "model_column", "task", "epoch", "ungraded")


@takes_reading
def scan(
    source: object,
    reading: Reading | None = None,
    *,
    record: bool | str = False,
    progress: Callable[[int], None] | None = None,
    **keywords: Unpack[Keywords],
) -> Handle:
    r"""Open predictions without loading them. Functions that take `(y, p)` take the result instead.

    Parameters
    ----------
    source : path, list of paths, frame, table, data set or query
        Files (CSV, Parquet, Arrow, JSON, NPZ): one, those in a folder, those that fit a pattern such as
        `"preds/*.parquet"`, or a list; also as URLs (`"s3://bucket/preds.parquet"`). Folders called `site=a`
        give a column `site`. Or a table of Delta Lake or Iceberg. Or a pyarrow table, dataset or record batch
        reader, anything else with `__arrow_c_stream__`, a pandas or polars DataFrame, a polars LazyFrame, a
        DuckDB relation, or a list of such tables: these are read in batches, and queries run when the result
        is requested. Or a generator of batches or tables, which can be read once. Or a Dask or
        Spark DataFrame, whose partitions are scored where they are; their rows are numbered
        partition * 2^33 + position.
    reading : Reading, optional
        How rows are read, said once for several sources. The keywords below override its fields.
    record : bool or str, default False
        Whether to keep every summary that analyses ask for. The handle then has `save(path)`, which writes
        them to a file that `scan` opens, so that shards are analysed where they are. A text is a name for
        the only model; models of all shards need the same names. The source may be a handle.
    progress : callable, optional
        Called with the number of rows of every part that has been read.
    **keywords

    Returns
    -------
    Handle
        A handle without rows; it shows how each column was read.

    Notes
    -----
    Options that are left out are found by the names and the values of columns. Commands use `ordered`,
    `weights_are` and the options of graded answers other than `grades` and `grade_range`; functions in
    Python have parameters for them.

    Examples
    --------
    >>> import tempfile, pathlib, verax as vx
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> card = vx.evaluate(vx.scan(path))
    >>> round(card["brier"], 3)
    0.2
    """
    if record and isinstance(source, Handle) and reading is None and not keywords:
        return recorded(source, record)
    options = ScanOptions(Reading.of(reading, keywords), progress)
    unread = next((name for name in _OF_COMMANDS if name in keywords), None)
    if unread is not None:
        raise InputError(
            "is an option of commands, which read graded answers",
            argument=unread,
            remedies=[passing("for a column of grades", grades=...)],
        )
    opened = open_by_engine(source, options)
    return recorded(opened, record) if record else opened


def recorded(handle: Handle, model: bool | str) -> Handle:
    """The handle, with all summaries that it is asked for kept."""
    from verax.scans.saved import Recorded

    return Recorded(handle, model=model if isinstance(model, str) else None)


def open_by_engine(source: object, options: ScanOptions, engines: Sequence[str] = ENGINES) -> Handle:
    """The handle on a source, by the first engine that knows it."""
    for engine in engines:
        handle: Handle | None = import_module(f"verax.scans.{engine}").opened(source, options)
        if handle is not None:
            return handle
    raise unknown_source(source)
