"""`scan`: a handle on predictions that are not in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

from verax.common.checks import check_count, is_whole
from verax.errors import InputError
from verax.inputs.handles import Handle
from verax.scans.options import ScanOptions, unknown_source

# The engines; the first that accepts the source runs. Each is a module here with a function `opened`.
FILES = ("listfiles", "batches")
ENGINES = ("saved", *FILES, "frames", "dask", "spark")


def scan(
    source: object,
    *,
    target: str | None = None,
    probs: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    classes: int | Sequence[Hashable] | None = None,
    weights: str | None = None,
    groups: str | Sequence[str] | None = None,
    id: str | Sequence[str] | None = None,  # noqa: A002
    by: str | Sequence[str] = (),
    positive: str | None = None,
    raters: str | Sequence[str] = (),
    raters_are: Literal["labels", "counts", "shares"] = "labels",
    rater_column: str | None = None,
    label_column: str | None = None,
    sets: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    lists: bool | Mapping[str, Any] | None = None,
    grades: str | Mapping[str, str] | None = None,
    grade_range: tuple[float, float] = (0.0, 1.0),
    logits: bool = False,
    normalize: bool = False,
    percent: bool = False,
    outputs: Literal["probabilities", "cumulative", "exceedance", "conditional"] = "probabilities",
    invalid: Literal["raise", "skip"] = "raise",
    delimiter: str | None = None,
    decimal: str = ".",
    progress: Callable[[int], None] | None = None,
) -> Handle:
    r"""Open predictions that stay where they are. Functions that take `(y, p)` take the result instead.

    Parameters
    ----------
    source : path, list of paths, frame, table, data set or query
        Files (CSV, Parquet, Arrow, JSON, NPZ): one, those in a folder, those that fit a pattern such as
        `"preds/*.parquet"`, or a list. Folders called `site=a` give a column `site`. Or a pyarrow table,
        dataset or record batch reader, a pandas or polars DataFrame, a polars LazyFrame, a DuckDB
        relation: these are read in batches, and queries run when the result is requested. Or a Dask or
        Spark DataFrame, whose partitions are scored where they are; their rows are numbered
        partition * 2^33 + position.
    target : str, optional
        The column of outcomes. By default found by name, as all others are that may be left out.
    probs : str, sequence or dict, optional
        The columns of probabilities, as names or patterns such as `"p_*"`; or one column of lists. Of several
        models: {name: columns, ...}. Of top lists the two columns that hold their classes and their
        probabilities, or the one that holds both.
    classes : sequence or int, optional
        The names of the classes, in order; of top lists also their number.
    weights : str, optional
        The column of importance weights.
    groups : str or sequence of two str, optional
        The column of clusters whose rows belong together; two where they belong together in two ways.
    id : str or sequence of str, optional
        The column of names of rows; several where they identify rows together.
    by : str or sequence of str, default ()
        Columns of subgroups.
    positive : str, optional
        Of two classes, the event: the class of a single column of probabilities. By default the second.
    raters : str or sequence of str, default ()
        Columns, in place of `target`, as names or patterns such as `"n_*"`: the labels of one rater each,
        which may be missing.
    raters_are : {"labels", "counts", "shares"}, default "labels"
        What these columns hold: labels, or for each class the number of raters who chose it or their share.
        Columns of numbers are named like the classes, with a common prefix or without.
    rater_column, label_column : str, optional
        Of a long table with a row for each label: the columns of raters and of their labels; `id` names the
        case. The table is held in memory.
    sets : str, sequence or dict, optional
        Prediction sets, in place of `probs`: one column that names the classes of each set, as a list or as a
        text such as `"a|b"`, which needs `classes`; or a column of 0 and 1 for each class, as names or
        patterns. Of several models: {name: columns, ...}.
    lists : bool or dict, optional
        Whether the predictions are top lists, or options that these have as for `files.lists.open_lists`
        (`shape`, `outcomes`, `position`, `after`, `samples`, `missing`, `others`, ...). By default they are
        where `classes` is a number, and in files whose records hold lists.
    grades : str or dict, optional
        Graded answers, in place of `probs`: the column of grades of a table with a row per question. Of
        several models: {name: column, ...}. Empty cells were not graded. `compare` and `evaluate_grades` take
        them.
    grade_range : tuple of two floats, default (0.0, 1.0)
        The worst and the best possible grade.
    logits : bool, default False
        Whether the columns hold logits; the softmax is applied first.
    normalize : bool, default False
        Whether to divide each row by its sum first.
    percent : bool, default False
        Whether the columns hold percentages, which are divided by 100.
    outputs : {"probabilities", "cumulative", "exceedance", "conditional"}, default "probabilities"
        What the columns of `probs` hold: probabilities of the K classes, or those at the K - 1 thresholds of
        ordered classes, lowest first, as heads such as CORAL and CORN return them (see `from_cumulative`).
    invalid : {"raise", "skip"}, default "raise"
        What to do with rows that are invalid or lack a value.
    delimiter : str, optional
        What separates the columns of CSV files; by default a comma, in TSV files a tab.
    decimal : str, default "."
        The decimal mark of CSV files.
    progress : callable, optional
        Called with the number of rows of every part that has been read.

    Returns
    -------
    Handle
        A handle without rows; it shows how each column was read.

    Examples
    --------
    >>> import tempfile, pathlib, verax as vx
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> card = vx.evaluate(vx.scan(path))
    >>> round(card["brier"], 3)
    0.2
    """
    given: dict[str, Any] = {}
    if sets is not None:
        if probs is not None or not (lists is None or lists is False):
            beside = "probs" if probs is not None else "lists"
            raise InputError("cannot be given beside prediction sets", argument=beside)
        probs, lists, given["sets"] = sets, False, True
        if is_whole(classes):
            check_count("classes", classes, least=2)
            given["n_classes"], classes = classes, None
    asked = ScanOptions.of(
        probs,
        progress,
        lists,
        target=target,
        classes=classes,
        weights=weights,
        groups=groups,
        id=id,
        by=by,
        positive=positive,
        raters=raters,
        raters_are=raters_are,
        rater_column=rater_column,
        label_column=label_column,
        logits=logits,
        normalize=normalize,
        percent=percent,
        outputs=outputs,
        invalid=invalid,
        delimiter=delimiter,
        decimal=decimal,
        **given,
    )
    if grades is not None:
        if probs is not None or not (lists is None or lists is False):
            beside = "sets" if sets is not None else "probs" if probs is not None else "lists"
            raise InputError("cannot be given beside grades", argument=beside)
        asked = asked.with_grades(grades, grade_range)
    return open_asked(source, asked)


def open_asked(source: object, asked: ScanOptions, engines: Sequence[str] = ENGINES) -> Handle:
    """The handle on a source, by the first engine that knows it."""
    for engine in engines:
        handle: Handle | None = import_module(f"verax.scans.{engine}").opened(source, asked)
        if handle is not None:
            return handle
    raise unknown_source(source)
