"""`scan`: a handle on predictions that are not in memory; `together`: several analyses in one pass."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NoReturn, Unpack

from verax.common.wings import all_of, answer_to
from verax.errors import InputError, passing, show
from verax.inputs.handles import Handle, Recipe, Summaries
from verax.inputs.reading import Keywords, Reading, takes_reading
from verax.scans.options import ScanOptions, unknown_source

Analysis = Callable[[Any], Any]
# The engines: forms that wings declare, and modules of these names here. Each has `opened`; the first that
# accepts the source runs.
FORMS = "forms"
FILES = (FORMS, "batches")
ENGINES = ("saved", *FILES, "frames", "dask", "spark")
# Handles read grades in columns; only commands read other shapes of graded answers.
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
    if not isinstance(record, (bool, str)):
        raise InputError(
            "must be True, False or the name of a model",
            argument="record",
            kind="type",
            found=f"it is {show(record)}",
        )
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
    """The handle, which now keeps all summaries that analyses need."""
    handle_class: Any = import_module("verax.scans.record").Recorded
    recording: Handle = handle_class(handle, model=model if isinstance(model, str) else None)
    return recording


def open_by_engine(source: object, options: ScanOptions, engines: Sequence[str] = ENGINES) -> Handle:
    """The handle on a source; outcomes are judged at the horizon if there is one, which takes a pass."""
    handle = _opened(source, options, engines)
    if options.reading.horizon is None:
        return handle
    followup = answer_to("followup")(handle, options.reading)
    return _opened(source, replace(options, followup=followup), engines)


def _opened(source: object, options: ScanOptions, engines: Sequence[str]) -> Handle:
    """The handle on a source, by the first engine that accepts it."""
    for engine in engines:
        for opens in all_of(FORMS) if engine == FORMS else [import_module(f"verax.scans.{engine}")]:
            handle: Handle | None = opens.opened(source, options)
            if handle is not None:
                return handle
    raise unknown_source(source)


# ---- several analyses in one pass ----------------------------------------------------------------


class _QuestionError(BaseException):
    """Stops an analysis at its first question; not an `Exception`, so that no handler catches it."""

    def __init__(self, recipes: Mapping[str, Recipe[Any]]) -> None:
        super().__init__()
        self.recipes = recipes


def together(handle: Handle, analyses: Sequence[Analysis]) -> list[Any]:
    r"""Run several analyses of the same rows, with a single pass for the first question of each.

    Each runs until it needs summaries, and again once these are known. Further questions of an analysis take
    a pass each.

    Parameters
    ----------
    handle : Handle
        Rows that are not in memory.
    analyses : sequence of callables
        Each takes a handle.

    Returns
    -------
    list
        Their results.

    Examples
    --------
    >>> import pathlib, tempfile, verax as vx
    >>> path = pathlib.Path(tempfile.mkdtemp(), "days.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> card, parts = together(vx.scan(path), [vx.evaluate, lambda rows: vx.decompose(rows, rule="brier")])
    >>> round(card["brier"], 3), round(parts.score, 3)
    (0.2, 0.2)
    """
    return [analysis(rows) for analysis, rows in zip(analyses, answered(handle, analyses), strict=True)]


def answered(handle: Handle, analyses: Sequence[Analysis]) -> list[Handle]:
    """The rows for each of several analyses, with the answer to its first question, from a single pass.

    Parameters
    ----------
    handle : Handle
        Rows that are not in memory.
    analyses : sequence of callables
        Each takes a handle.

    Returns
    -------
    list of Handle
        The handles that the analyses are to be run with, each once.
    """
    questions = [_first_question(handle, analysis) for analysis in analyses]
    # Analyses with many recipes come first: the others can reuse their losses.
    order = sorted(range(len(questions)), key=lambda i: -len(questions[i]))
    summaries = handle._summarise({f"{i}/{name}": questions[i][name] for i in order for name in questions[i]})
    answers = [_answer(summaries, i) for i in range(len(questions))]
    # Analyses drop summaries that they no longer need.
    del summaries
    return [_answering(handle, answers.pop(0)) for _ in analyses]


def _first_question(handle: Handle, analysis: Analysis) -> Mapping[str, Recipe[Any]]:
    """The recipes that an analysis needs first."""

    def stop(recipes: Mapping[str, Recipe[Any]]) -> NoReturn:
        raise _QuestionError(recipes)

    try:
        analysis(_with_summaries(handle, stop))
    except _QuestionError as question:
        return question.recipes
    return {}


def _answer(summaries: Summaries, i: int) -> Summaries:
    """The summaries for one of the analyses."""
    named = (name.partition("/") for name in summaries.by_name)
    return replace(
        summaries, by_name={name: summaries.by_name[f"{i}/{name}"] for of, _, name in named if of == str(i)}
    )


def _answering(handle: Handle, answer: Summaries) -> Handle:
    """A handle that already has the answer to the first question."""
    known = [answer]

    def summarise(recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return known.pop() if known else handle._summarise(recipes)

    return _with_summaries(handle, summarise)


def _with_summaries(handle: Handle, summarise: Callable[[Mapping[str, Recipe[Any]]], Summaries]) -> Handle:
    """The same handle, with another way of making summaries."""
    same = copy.copy(handle)
    vars(same)["_summarise"] = summarise
    return same
