"""`read_log`: the answers of evaluation logs as a table with a row per answer."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from verax.common.paths import files_named
from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.records.record import RecordError
from verax.wings.evals.reading.containers import LogRecords, kind_of_log, open_log
from verax.wings.evals.reading.graded import STATUSES, UNSCORED, Graded, question_text

# The columns that every log has; those after them are its metrics and the metadata of its questions.
COLUMNS = ("id", "model", "task", "epoch", "grade", "answer", "confidence", "gold", "status")
_TYPES = {"epoch": pa.int64(), "grade": pa.float64(), "confidence": pa.float64()}


@dataclass(frozen=True)
class EvalLog:
    """The answers of one model, from one evaluation log or several.

    Attributes
    ----------
    path : str
        What the files are called together.
    shape : str
        The kind of log: inspect, lm-eval, olmes, helm or openai-evals.
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


@dataclass
class _Rows:
    """Answers as they are read, each with its log, its task and which repeat of the question it is."""

    answers: list[Graded] = field(default_factory=list)
    logs: list[LogRecords] = field(default_factory=list)
    tasks: list[str | None] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    graded_by: list[str | None] = field(default_factory=list)
    of_all: dict[str, None] = field(default_factory=dict)
    metrics: dict[str, None] = field(default_factory=dict)
    _places: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.answers)

    def add(self, answer: Graded, log: LogRecords, number: int) -> None:
        """Add an answer; that of another filter adds its metrics to the row of the question."""
        task = answer.task or log.task
        epoch = answer.epoch or 1
        place = self._places.get((log.model, task, answer.id, epoch))
        while place is not None:
            before = self.answers[place]
            if self.logs[place] is not log or not _may_repeat(before, answer):
                raise self._twice(place, answer, f"{log.word} {number}", log)
            if not before.grades.keys() & answer.grades.keys():
                before.grades = {**before.grades, **answer.grades}
                before.by_metric |= answer.by_metric
                return
            # The log does not number repeats.
            epoch += 1
            place = self._places.get((log.model, task, answer.id, epoch))
        self._places[log.model, task, answer.id, epoch] = len(self.answers)
        self.answers.append(answer)
        self.logs.append(log)
        self.tasks.append(task)
        self.epochs.append(epoch)

    def grade(self, metric: str | None, known: Iterable[str]) -> None:
        """Make a metric the grade of the rows since the last call; `known` are all that these have."""
        self.metrics |= dict.fromkeys(known)
        for answer in self.answers[len(self.graded_by) :]:
            if metric in answer.by_metric:
                answer.answer, answer.confidence, answer.status = answer.by_metric[metric]
            if answer.status is None and answer.grades.get(metric or "") is None:
                answer.status = UNSCORED
        self.graded_by.extend([metric] * (len(self) - len(self.graded_by)))

    @property
    def grades(self) -> list[float | None]:
        """The grade of every row; None where the log has none."""
        return [
            None if metric is None else answer.grades.get(metric)
            for answer, metric in zip(self.answers, self.graded_by, strict=True)
        ]

    def _twice(self, place: int, answer: Graded, where: str, log: LogRecords) -> InputError:
        before, task = self.logs[place].source, self.tasks[place]
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


def _may_repeat(before: Graded, answer: Graded) -> bool:
    """Whether two answers may be to one question: the same content, and no numbers of their own."""
    return before.same == answer.same and before.epoch is None and answer.epoch is None


def read_log(
    path: str | Path | Sequence[str | Path], *, grade: str | None = None, questions: bool = False
) -> EvalLog:
    """Read evaluation logs of one model: Inspect, lm-evaluation-harness, HELM, OLMES, OpenAI's evals.

    Parameters
    ----------
    path : str, Path or sequence
        A log, a folder of logs (one per task, also in folders below it), a pattern, or a list of these. Of a
        HELM run, its folder or scenario_state.json, which per_instance_stats.json must lie beside.
    grade : str, optional
        The metric that becomes the column `grade`, such as "acc_norm" or "exact_match,flexible-extract". By
        default the first that the log names.
    questions : bool, default False
        Whether to add a column `question` with the text of each question, shortened.

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
            remedies=[Remedy("Known are Inspect, lm-evaluation-harness, HELM, OLMES and OpenAI evals logs.")],
        )
    logs = [open_log(file, shape) for file, shape in named]
    shapes = dict.fromkeys(log.shape.name for log in logs)
    rows = _Rows()
    with _without_collections():
        for log in logs:
            _read_into(rows, log, grade, questions=questions)
    if not len(rows):
        raise InputError(
            "must hold answers", argument="path", kind="file", found="it has none", source=logs[0].source
        )
    model = _one_model(logs)
    graded = list(dict.fromkeys(name for name in rows.graded_by if name is not None))
    metric = join(graded) if graded else None
    files = files_named(path)
    name = str(path) if files is None else files[1]
    table = _table(rows, rows.grades)
    taken = [f"grades: {metric or 'none'} of {join([log.shape.what for log in _one_per_kind(logs)])}"]
    taken += [f"model: {model}"] if model else []
    tasks = list(dict.fromkeys(task for task in rows.tasks if task))
    taken += [f"{'task' if len(tasks) == 1 else f'{len(tasks)} tasks'}: {_some(tasks)}"] if tasks else []
    return EvalLog(
        name,
        next(iter(shapes)),
        table,
        model,
        metric,
        tuple(rows.metrics),
        tuple(taken),
        tuple(_notes(rows, logs, chosen=grade is not None)),
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


def _read_into(rows: _Rows, log: LogRecords, grade: str | None, *, questions: bool) -> None:
    """Add the answers of a log, and choose the metric that grades them."""
    mains: dict[str | None, int] = {}
    known: dict[str, None] = {}
    of_all: dict[str, None] = {}
    fits, read_one = log.shape.fits, log.shape.read
    for number, record in log.records:
        if not fits(record):
            raise _other_record(log, f"{log.word} {number}")
        try:
            answer = read_one(record)
        except RecordError as problem:
            raise problem.at(f"{log.word} {number}", len(rows), log.source) from None
        if questions:
            answer.about = {"question": question_text(record), **answer.about}
        named = log.main if log.main in answer.grades else answer.main
        mains[named] = mains.get(named, 0) + 1
        if not answer.grades.keys() <= known.keys():
            known |= dict.fromkeys(answer.grades)
        of_all |= dict.fromkeys(answer.of_all)
        rows.add(answer, log, number)
    mains.pop(None, None)
    main = max(mains, key=lambda name: mains[name]) if mains else None
    rows.of_all |= of_all
    rows.grade(_metric(list(known), main, grade, log.source, list(of_all)), known)


def logs_named(path: Any) -> list[tuple[Path, Any]]:
    """The logs among the files that a path, a pattern, a folder or a list names, each with its kind."""
    named = files_named(path)
    logs: dict[Path, Any] = {}
    for root in [] if named is None else named[0]:
        for file in _below(root):
            kind = kind_of_log(file)
            # The two files of a HELM run are one log.
            key = file.parent if kind is not None and kind.name == "helm" else file
            if kind is not None:
                logs.setdefault(key, (file, kind))
    return list(logs.values())


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    yield from sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))


def _one_per_kind(logs: Sequence[LogRecords]) -> list[LogRecords]:
    return list({log.shape.name: log for log in logs}.values())


def _some(texts: Sequence[str], most: int = 5) -> str:
    more = len(texts) - most
    return join([*texts[:most], *([f"{more} more"] if more > 0 else [])])


def _other_record(log: LogRecords, where: str) -> InputError:
    return InputError(
        f"must be records of {log.shape.what}",
        argument="path",
        kind="file",
        found=f"{where} is none",
        source=log.source,
    )


def _one_model(logs: Sequence[LogRecords]) -> str | None:
    """The model of all logs; several are refused."""
    models = {log.model: log.source for log in reversed(logs) if log.model is not None}
    if len(models) > 1:
        (model, source), (other, elsewhere), *_ = reversed(models.items())
        raise InputError(
            "must be the logs of one model",
            argument="path",
            kind="label",
            found=f"{source} has {show(model)} and {elsewhere} has {show(other)}",
            remedies=[Remedy("Name the files of each model: a=FILE b=FILE.")],
        )
    return next(iter(models), None)


def _metric(
    known: list[str], main: str | None, grade: str | None, source: str, of_all: list[str]
) -> str | None:
    """The metric that the grades of a log are; `of_all` are those that have no number for an answer."""
    if of_all and (grade in of_all or not known):
        raise InputError(
            "must name a metric that has a number for each answer",
            argument="grade",
            kind="value",
            found=f"these are of all answers together: {_some(of_all)}",
            values=of_all,
            source=source,
            remedies=[Remedy(f"Metrics of single answers: {_some(known)}.")] if known else [],
        )
    if grade is not None:
        if grade in known:
            return grade
        raise InputError(
            f"There is no metric {show(grade)}",
            argument="grade",
            kind="missing",
            found=f"the metrics are {_some([show(name) for name in known], 12)}"
            if known
            else "there are none",
            values=[grade],
            source=source,
        )
    if main is not None or not known:
        # Where nothing was graded, results say so.
        return main
    raise InputError(
        "must name the metric, because the log has none of the usual ones",
        argument="grade",
        kind="missing",
        found=f"the metrics are {_some([show(name) for name in known], 12)}",
        source=source,
        remedies=[passing(grade=...)],
    )


def _table(rows: _Rows, grades: list[float | None]) -> Any:
    """All columns; names that are taken are preceded by what they are."""
    answers = rows.answers
    values = {
        **{
            name: [getattr(answer, name) for answer in answers] for name in ("id", "answer", "gold", "status")
        },
        "confidence": [answer.confidence for answer in answers],
        "model": [log.model for log in rows.logs],
        "task": rows.tasks,
        "epoch": rows.epochs,
        "grade": grades,
    }
    columns = {
        name: pa.array(values[name], _TYPES[name]) if name in _TYPES else _texts(values[name])
        for name in COLUMNS
    }
    fields = dict.fromkeys(name for answer in answers for name in answer.about)
    metrics = {name: [answer.grades.get(name) for answer in answers] for name in rows.metrics}
    about = {name: [answer.about.get(name) for answer in answers] for name in fields}
    for kind, named in (("metric", metrics), ("metadata", about)):
        for name, cells in named.items():
            called = _encodable(name)
            while called in columns:
                called = f"{kind}.{called}"
            columns[called] = _column(cells)
    return pa.table(columns)


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


def _notes(rows: _Rows, logs: Sequence[LogRecords], *, chosen: bool) -> Iterator[str]:
    for log in logs:
        yield from log.notes
    left = [
        answer.status
        for answer, grade in zip(rows.answers, rows.grades, strict=True)
        if grade is None and answer.status
    ]
    if left:
        statuses = Counter(left)
        reasons = join([f"{statuses[name]:,} {name}" for name in STATUSES if statuses[name]])
        yield f"Answers not graded: {len(left):,} of {len(rows):,} ({reasons})."
    others = [name for name in rows.metrics if name not in rows.graded_by]
    if others and not chosen:
        yield f"Other metrics of the log, each a column: {_some(others, 8)}."
    if unread := sum(answer.unread for answer in rows.answers):
        yield f"Confidences that are texts without a number, not read: {unread:,}."
    if rows.of_all and not chosen:
        yield f"Metrics of all answers together, not read: {_some(list(rows.of_all), 8)}."
    if max(rows.epochs) > 1:
        n = len(set(zip(rows.tasks, (answer.id for answer in rows.answers), strict=True)))
        yield f"The {len(rows):,} answers are to {n:,} questions, which are repeated."
