"""`read_log`: the answers of evaluation logs as a table with a row per answer."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from verax.common.paths import files_named
from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.records.record import RecordError
from verax.wings.evals.reading.formats import KNOWN, format_of_log
from verax.wings.evals.reading.graded import (
    STATUSES,
    UNSCORED,
    Graded,
    LogFormat,
    LogRecords,
    asking_for_values,
    question_text,
    shortened,
)
from verax.wings.evals.reading.helm import HELM
from verax.wings.evals.reading.means import MEANS

# The columns that every log has; those after them are its metrics and the metadata of its questions.
COLUMNS = ("id", "model", "task", "epoch", "grade", "answer", "confidence", "gold", "status")
# Metrics that an error offers.
_OFFERED = 4
_TYPES = {"epoch": pa.int64(), "grade": pa.float64(), "confidence": pa.float64()}


@dataclass(frozen=True)
class EvalLog:
    """The answers of one model, from one evaluation log or several.

    Attributes
    ----------
    path : str
        What the files are called together.
    shape : str
        The kind of log, such as inspect, lm-eval or promptfoo.
    table : pyarrow.Table
        A row per answer with the columns id, model, task, epoch, grade, answer, confidence, gold and status,
        one per metric and one per field of metadata. `grade` is missing where the log has none. `status` is
        why, or what became of an answer that was graded all the same: error, unscored, limit, refused, empty
        or unparsable.
    model : str or None
        The name of the model, where the log has it.
    metric : str or None
        What `grade` holds.
    metrics : tuple of str
        All metrics, which are columns.
    taken : tuple of str
        How the log was read, one line each.
    notes : tuple of str
        What a reader of results should know: a sentence each.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from verax.files.logs import read_log
    >>> path = pathlib.Path(tempfile.mkdtemp(), "samples_gsm8k_2025-01-31T10-00-00.jsonl")
    >>> sample = {"doc_id": 0, "target": "4", "resps": [["It is 4"]], "filtered_resps": ["4"],
    ...     "filter": "strict-match", "metrics": ["exact_match"], "exact_match": 1.0}
    >>> _ = path.write_text(json.dumps(sample))
    >>> log = read_log(path)
    >>> log.table.select(["id", "task", "grade", "answer", "gold"]).to_pylist()
    [{'id': '0', 'task': 'gsm8k', 'grade': 1.0, 'answer': '4', 'gold': '4'}]
    """

    path: str
    shape: str
    table: Any
    model: str | None
    metric: str | None
    metrics: tuple[str, ...]
    taken: tuple[str, ...]
    notes: tuple[str, ...]


# A row that is told apart from all others: its model, prompt, task, question and epoch.
_Key = tuple[str | None, str | None, str | None, str, int]


class _Columns(dict[str, list[Any]]):
    """Columns by name, in which rows have gaps."""

    def put(self, row: int, values: Mapping[str, Any]) -> None:
        """Fill in the values of a row, of which no later one has been filled in."""
        for name, value in values.items():
            column = self.get(name)
            if column is None:
                column = self[name] = []
            if len(column) < row:
                column.extend([None] * (row - len(column)))
            column.append(value)

    def at(self, name: str, row: int) -> Any:
        """A value; None in a gap."""
        column = self.get(name, ())
        return column[row] if row < len(column) else None

    def cut(self, n: int) -> None:
        """Leave the first rows."""
        for column in self.values():
            del column[n:]


class _Read(NamedTuple):
    """What is read of each answer besides metrics and metadata, and the log that it is of."""

    id: str
    answer: str | None
    gold: str | None
    confidence: float | None
    status: str | None
    model: str | None
    prompt: str | None
    task: str | None
    epoch: int
    log: LogRecords
    same: Any


@dataclass
class _Rows:
    """Answers as they are read, each with its log and which repeat of the question it is."""

    answers: list[_Read] = field(default_factory=list)
    metrics: _Columns = field(default_factory=_Columns)
    about: _Columns = field(default_factory=_Columns)
    grades: list[Any] = field(default_factory=list)
    graded_by: dict[str, None] = field(default_factory=dict)
    of_all: dict[str, None] = field(default_factory=dict)
    other_texts: Counter[str] = field(default_factory=Counter)
    n_unread: int = 0
    _places: dict[_Key, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.answers)

    def add(self, answer: Graded, log: LogRecords, number: int, metric: str | None) -> None:
        """Add an answer; that of another filter adds its metrics to the row of the question."""
        model, task, key = answer.model or log.model, answer.task or log.task, answer.id
        epoch = answer.epoch or 1
        row = len(self.answers)
        place = self._places.setdefault((model, answer.prompt, task, key, epoch), row)
        same = None if answer.epoch is not None else (answer.same,)
        while place != row:
            before = self.answers[place]
            if before.log is not log or same is None or before.same != same:
                raise self._twice(before, answer, f"{log.word} {number}", log)
            if log.format.filters and self._is_filtered(place, answer):
                self._merge(place, answer, metric)
                return
            # The log does not number repeats.
            epoch += 1
            place = self._places.setdefault((model, answer.prompt, task, key, epoch), row)
        self.answers.append(
            _Read(
                key,
                answer.answer,
                answer.gold,
                answer.confidence,
                answer.status,
                model,
                answer.prompt,
                task,
                epoch,
                log,
                same,
            )
        )
        self.metrics.put(row, answer.grades)
        self.about.put(row, answer.about)
        self.n_unread += answer.unread

    def _is_filtered(self, row: int, answer: Graded) -> bool:
        """Whether an answer has only metrics that a row lacks, as another filter of it has."""
        return all(self.metrics.at(name, row) is None for name in answer.grades)

    def _merge(self, row: int, answer: Graded, metric: str | None) -> None:
        for name, value in answer.grades.items():
            column = self.metrics.setdefault(name, [])
            column.extend([None] * (row + 1 - len(column)))
            column[row] = value
        if metric in answer.grades:
            self.answers[row] = self.answers[row]._replace(
                answer=answer.answer, confidence=answer.confidence, status=answer.status
            )

    def cut(self, n: int) -> None:
        """Leave the first rows."""
        del self.answers[n:]
        for columns in (self.metrics, self.about):
            columns.cut(n)
        self._places = {key: row for key, row in self._places.items() if row < n}

    def grade(self, metric: str | None, log: LogRecords, values: Mapping[str, float]) -> None:
        """Make a metric the grade of the rows since the last call, with the grades that texts are."""
        start, n = len(self.grades), len(self)
        column = [] if metric is None else self.metrics.get(metric, [])
        grades = [*column[start:], *[None] * (n - max(start, len(column)))]
        texts = Counter(value for value in grades if type(value) is str)
        if texts:
            if not values and not any(type(value) is float for value in grades):
                raise _texts_as_grades(str(metric), texts, log)
            grades = [values.get(value) if type(value) is str else value for value in grades]
            self.other_texts.update({text: k for text, k in texts.items() if text not in values})
        self.grades.extend(grades)
        if metric is not None:
            self.graded_by[metric] = None

    def columns(self) -> dict[str, list[Any]]:
        """What was read of each answer, by name."""
        named = dict(zip(_Read._fields, map(list, zip(*self.answers, strict=True)), strict=True))
        named["status"] = [
            UNSCORED if status is None and grade is None else status
            for status, grade in zip(named["status"], self.grades, strict=True)
        ]
        named["model"] = _models(named["model"], named["prompt"])
        return named

    def _twice(self, read: _Read, answer: Graded, where: str, log: LogRecords) -> InputError:
        before, task = read.log.source, read.task
        of = f" of task {show(task)}" if task else ""
        number = f", epoch {answer.epoch}," if answer.epoch is not None else ""
        also = "" if before == log.source else f", and so does {before}"
        return InputError(
            "must have every id once per model, task and epoch",
            argument="id",
            kind="label",
            found=f"{where} has the id {show(answer.id)}{number}{of} again{also}",
            values=[answer.id],
            source=log.source,
            remedies=[
                Remedy(
                    "Name one log per model and task; ids of different tasks belong in different files."
                    if before == log.source
                    else "Name only one of these files: they may be two runs of the same task."
                )
            ],
        )


def read_log(
    path: str | Path | Sequence[str | Path],
    *,
    grade: str | None = None,
    values: Mapping[str, float] | None = None,
    questions: bool = False,
    stacked: bool = False,
) -> EvalLog:
    """Read the evaluation logs of one model, of any tool that is known.

    Parameters
    ----------
    path : str, Path or sequence
        A log, a folder of logs (one per task, also in folders below it), a pattern, or a list of these. Of a
        HELM run, its folder or scenario_state.json, which per_instance_stats.json must lie beside.
    grade : str, optional
        The metric that becomes the column `grade`, such as "acc_norm" or "exact_match,flexible-extract". By
        default the first that the log names.
    values : mapping of str to float, optional
        The grades that texts are, where the grades of the log are texts.
    questions : bool, default False
        Whether to add a column `question` with the text of each question, shortened.
    stacked : bool, default False
        Whether the logs may hold several models, which the column `model` then tells apart.

    Returns
    -------
    EvalLog
        The answers, a row each.
    """
    named = logs_named(path)
    if not named:
        raise InputError(
            "must be an evaluation log, or a folder of them",
            argument="path",
            kind="file",
            found=f"{show(str(path), 200)} holds none",
            remedies=[Remedy(f"Known are logs of {KNOWN}.")],
        )
    rows, logs = _Rows(), []
    with _without_collections():
        for file, kind in named:
            logs.append(_read_into(rows, kind, file, grade, values or {}, questions=questions))
    if not len(rows):
        raise InputError(
            "must hold answers", argument="path", kind="file", found="it has none", source=logs[0].source
        )
    columns = rows.columns()
    models = columns["model"]
    if len(dict.fromkeys(models)) > 1 and not stacked:
        raise _several_models(rows, models)
    metric = join(list(rows.graded_by)) if rows.graded_by else None
    files = files_named(path)
    name = str(path) if files is None else files[1]
    table = _table(rows, columns)
    taken = [f"grades: {metric or 'none'} of {join([log.format.what for log in _one_per_kind(logs)])}"]
    known = list(dict.fromkeys(model for model in models if model))
    taken += [f"model{'s' * (len(known) > 1)}: {_some(known)}"] if known else []
    tasks = list(dict.fromkeys(task for task in columns["task"] if task))
    taken += [f"{'task' if len(tasks) == 1 else f'{len(tasks)} tasks'}: {_some(tasks)}"] if tasks else []
    return EvalLog(
        name,
        logs[0].format.name,
        table,
        known[0] if len(known) == 1 else None,
        metric,
        tuple(rows.metrics),
        tuple(taken),
        tuple(_notes(rows, columns, logs, chosen=grade is not None)),
    )


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the search for reference cycles, of which JSON has none; it takes a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read_into(
    rows: _Rows,
    kind: LogFormat,
    file: Path,
    grade: str | None,
    values: Mapping[str, float],
    *,
    questions: bool,
) -> LogRecords:
    """Add the answers of a file, and choose the metric that grades them."""
    start, asked = len(rows), grade
    while True:
        log = kind.opens(file)
        found = _answers_into(rows, log, asked, questions=questions)
        metric = _metric(found, grade, log)
        if metric is None or metric == found.by or log.format.read_by is None:
            break
        # Answers, and how sure they are, may be those of another metric: they are read again.
        rows.cut(start)
        asked = metric
    rows.of_all |= found.of_all
    rows.grade(metric, log, values)
    return log


@dataclass
class _Found:
    """The metrics of a log: all, that which most answers name, those of all answers together, and that which
    answers were read by.
    """

    metrics: dict[str, None] = field(default_factory=dict)
    main: str | None = None
    of_all: dict[str, None] = field(default_factory=dict)
    by: str | None = None


def _answers_into(rows: _Rows, log: LogRecords, metric: str | None, *, questions: bool) -> _Found:
    """Add the answers of a log, by a metric; by default the first one that an answer names."""
    mains: dict[str | None, int] = {}
    found = _Found(by=metric or log.main)
    fits, read_one, read_by = log.format.fits, log.format.read, log.format.read_by
    for number, record in log.records:
        if not fits(record):
            raise _other_record(log, f"{log.word} {number}")
        try:
            if read_by is None:
                answer = read_one(record)
            else:
                found.by = found.by or read_one(record).main
                answer = read_one(record) if found.by is None else read_by(record, found.by)
        except RecordError as problem:
            raise problem.at(f"{log.word} {number}", len(rows), log.source) from None
        if questions:
            answer.about = {"question": question_text(record) or shortened(answer.id), **answer.about}
        named = log.main if log.main in answer.grades else answer.main
        mains[named] = mains.get(named, 0) + 1
        if not answer.grades.keys() <= found.metrics.keys():
            found.metrics |= dict.fromkeys(answer.grades)
        if answer.of_all:
            found.of_all |= dict.fromkeys(answer.of_all)
        rows.add(answer, log, number, found.by)
    mains.pop(None, None)
    found.main = max(mains, key=lambda name: mains[name]) if mains else None
    return found


def logs_named(path: Any) -> list[tuple[Path, LogFormat]]:
    """The logs among the files that a path, a pattern, a folder or a list names, each with its kind."""
    named = files_named(path)
    logs: dict[Path, tuple[Path, LogFormat]] = {}
    for root in [] if named is None else named[0]:
        for file in _below(root):
            kind = format_of_log(file)
            # Means lie beside the answers that they are of. The two files of a HELM run are one log.
            if kind is not None and (kind is not MEANS or file == root):
                logs.setdefault(file.parent if kind is HELM else file, (file, kind))
    answers = [log for log in logs.values() if log[1] is not MEANS]
    return answers or list(logs.values())


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    yield from sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))


def _one_per_kind(logs: Sequence[LogRecords]) -> list[LogRecords]:
    return list({log.format.name: log for log in logs}.values())


def _some(texts: Sequence[str], most: int = 5) -> str:
    more = len(texts) - most
    return join([*texts[:most], *([f"{more} more"] if more > 0 else [])])


def _other_record(log: LogRecords, where: str) -> InputError:
    return InputError(
        f"must be records of {log.format.what}",
        argument="path",
        kind="file",
        found=f"{where} is none",
        source=log.source,
    )


def _models(models: list[str | None], prompts: list[str | None]) -> list[str | None]:
    """The model of each row, with the prompt where there are several."""
    if len(set(prompts)) < 2:
        return models
    return [", ".join(filter(None, pair)) or None for pair in zip(models, prompts, strict=True)]


def _several_models(rows: _Rows, models: Sequence[str | None]) -> InputError:
    """The error about logs of several models, where one is wanted."""
    places: dict[str | None, int] = {}
    for row, name in enumerate(models):
        places.setdefault(name, row)
    (model, place), (other, elsewhere), *_ = places.items()
    source, another = rows.answers[place].log.source, rows.answers[elsewhere].log.source
    one = source == another
    return InputError(
        "must be the logs of one model",
        argument="path",
        kind="label",
        found=f"{source} has {_some([show(name) for name in places])}"
        if one
        else f"{source} has {show(model)} and {another} has {show(other)}",
        remedies=[
            Remedy(f"Compare them: `verax evals compare {source}`.")
            if one
            else Remedy("Name the files of each model: a=FILE b=FILE.")
        ],
    )


def _metric(found: _Found, grade: str | None, log: LogRecords) -> str | None:
    """The metric that the grades of a log are; those of all answers together have no number for an answer."""
    known, of_all = list(found.metrics), list(found.of_all)
    if of_all and (grade in of_all or not known):
        raise InputError(
            "must name a metric that has a number for each answer",
            argument="grade",
            kind="value",
            found=f"these are of all answers together: {_some(of_all)}",
            values=of_all,
            source=log.source,
            remedies=[Remedy(f"Metrics of single answers: {_some(known)}.")] if known else [],
        )
    named = f"the metrics are {_some([show(name) for name in known], 12)}" if known else "there are none"
    if grade is not None:
        if grade in known:
            return grade
        raise InputError(
            f"There is no metric {show(grade)}",
            argument="grade",
            kind="missing",
            found=named,
            values=[grade],
            source=log.source,
        )
    if found.main is not None or len(known) < 2:
        # Where nothing was graded, results say so.
        return found.main or next(iter(known), None)
    raise InputError(
        "must name the metric, because the file has several",
        argument="grade",
        kind="missing",
        found=named,
        source=log.source,
        remedies=[passing(grade=name) for name in known[:_OFFERED]],
    )


def _texts_as_grades(metric: str, texts: Counter[str], log: LogRecords) -> InputError:
    """The error about grades that are texts without a known meaning."""
    return InputError(
        "must be a metric whose grades are numbers, or right and wrong",
        argument="grade",
        kind="type",
        found=f"{show(metric)} holds {_some([f'{show(text)} ({n:,})' for text, n in texts.most_common()])}",
        values=list(texts),
        source=log.source,
        remedies=[asking_for_values(metric, texts)],
    )


def _table(rows: _Rows, read: Mapping[str, list[Any]]) -> Any:
    """All columns; names that are taken are preceded by what they are."""
    values = {**read, "grade": rows.grades}
    columns = {
        name: pa.array(values[name], _TYPES[name]) if name in _TYPES else _texts(values[name])
        for name in COLUMNS
    }
    n = len(rows)
    for kind, named in (("metric", rows.metrics), ("metadata", rows.about)):
        for name, cells in named.items():
            called = _encodable(name)
            while called in columns:
                called = f"{kind}.{called}"
            cells.extend([None] * (n - len(cells)))
            columns[called] = _column(_numbers(cells) if kind == "metric" else cells)
    return pa.table(columns)


def _numbers(grades: list[Any]) -> list[Any]:
    """Grades without texts, unless all are texts."""
    if not any(type(value) is str for value in grades) or not any(type(value) is float for value in grades):
        return grades
    return [None if type(value) is str else value for value in grades]


def _column(values: list[Any]) -> Any:
    """A column of one type; texts where values are of several."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float} and float in kinds:
        return pa.array(values, pa.float64())
    try:
        if len(kinds) <= 1:
            return pa.array(values)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        pass
    return _texts([None if value is None else str(value) for value in values])


def _texts(values: Sequence[str | None]) -> Any:
    """A column of texts; what UTF-8 cannot hold is replaced."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array([None if value is None else _encodable(value) for value in values], pa.string())


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _notes(
    rows: _Rows, read: Mapping[str, list[Any]], logs: Sequence[LogRecords], *, chosen: bool
) -> Iterator[str]:
    for log in logs:
        yield from log.notes
    left = [status for status, grade in zip(read["status"], rows.grades, strict=True) if grade is None]
    if left:
        statuses = Counter(left)
        reasons = join([f"{statuses[name]:,} {name}" for name in STATUSES if statuses[name]])
        yield f"Answers not graded: {len(left):,} of {len(rows):,} ({reasons})."
    if rows.other_texts:
        texts = _some([f"{show(text)} ({n:,})" for text, n in rows.other_texts.most_common()])
        yield f"Texts that are no grades, not read: {texts}."
    others = [name for name in rows.metrics if name not in rows.graded_by]
    if others and not chosen:
        yield f"Other metrics of the log, each a column: {_some(others, 8)}."
    if rows.n_unread:
        yield f"Confidences that are texts without a number, not read: {rows.n_unread:,}."
    if rows.of_all and not chosen:
        yield f"Metrics of all answers together, not read: {_some(list(rows.of_all), 8)}."
    if max(read["epoch"]) > 1:
        asked = zip(read["task"], read["id"], strict=True)
        yield f"The {len(rows):,} answers are to {len(set(asked)):,} questions, which are repeated."
