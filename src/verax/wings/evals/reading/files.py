"""Files of graded answers: a row per answer, with its grade, or with the right answer beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from verax.common.ids import id_of
from verax.common.paths import Files, files_named
from verax.errors import InputError, Remedy, join, passing, show
from verax.files.column_roles import require_column
from verax.files.formats.several import Files as Several
from verax.files.formats.tables import ARRAYS, SourceTable, format_of
from verax.files.rater_tables import whole_table
from verax.files.two_models import SameRows
from verax.inputs.arrays import Array, Floats
from verax.inputs.reading import Reading, named_columns
from verax.inputs.records.texts import number_of
from verax.wings.evals.reading.graded import RIGHT, WRONG, asking_for_values, named_values
from verax.wings.evals.reading.people import remedies_for, unused_people
from verax.wings.evals.reading.repeats import found_repeats, may_matter
from verax.wings.evals.reading.table import EvalLog, logs_named, read_log

# What columns are called where nobody says it.
_GRADES = ("correct", "is_correct", "grade")
_CONFIDENCES = ("confidence", "conf")
# What columns are called that tell what was asked and answered.
_GOLD = ("gold", "target", "correct_answer")
_ABOUT = ("question", "prompt", "problem", "query", "answer", *_GOLD)
# Fields that are about all answers, or have a value for some of them in another form.
_OF_ALL = (
    *("name", "columns", "groups", "model", "origin"),
    *("by", "about", "texts", "repeats", "people"),
)
# Reasons for missing grades that are shown, and models that an error names.
_SHOWN = 3


@dataclass(frozen=True)
class GradeColumns:
    """Which column of a file of graded answers is what.

    Attributes
    ----------
    grade : str or None
        The grades: numbers, or true and false. Empty cells were not graded.
    answer, gold : str or None
        In place of grades: answers, and the right ones, which are compared as texts.
    confidence : str or None
        The probability that an answer is right.
    percent : bool
        Whether confidences are percentages.
    id : tuple of str
        The question.
    epoch, model, task, weights, status : str or None
        The repeat of the question, the model, the task, the weight, and why an answer was not graded.
    groups : tuple of str
        One or two kinds of groups.
    by : tuple of str
        Columns of subgroups.
    values : mapping of str to float
        The grades that texts are, where grades are texts.
    """

    grade: str | None = None
    answer: str | None = None
    gold: str | None = None
    confidence: str | None = None
    percent: bool = False
    id: tuple[str, ...] = ()
    epoch: str | None = None
    model: str | None = None
    task: str | None = None
    groups: tuple[str, ...] = ()
    weights: str | None = None
    status: str | None = None
    by: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, reading: Reading) -> GradeColumns:
        """The columns that a reading names."""
        if isinstance(reading.grades, Mapping):
            raise InputError("must be one column at the command line", argument="grades", kind="type")
        grade, values = named_values(reading.grades)
        return cls(
            grade,
            reading.answer,
            reading.gold,
            reading.confidence_column,
            reading.percent,
            named_columns(reading.id),
            reading.epoch,
            reading.model_column,
            reading.task,
            named_columns(reading.groups),
            reading.weights,
            by=tuple(reading.cuts),
            values=values,
        )

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """The columns that are named, by argument."""
        single = ("grade", "answer", "gold", "confidence", "epoch", "model", "task", "weights", "status")
        named = {name: (getattr(self, name),) for name in single if getattr(self, name) is not None}
        return {
            **named,
            **{name: getattr(self, name) for name in ("id", "groups", "by") if getattr(self, name)},
        }

    def with_usual_columns(self, names: Sequence[str]) -> GradeColumns:
        """With the columns that are known by their names, where no grades and no right answers are named."""
        columns = self
        known = {name.casefold(): name for name in reversed(names)}
        if columns.grade is None and columns.gold is None:
            columns = replace(columns, grade=next((known[name] for name in _GRADES if name in known), None))
        if columns.confidence is None:
            confidence = next((known[name] for name in _CONFIDENCES if name in known), None)
            columns = replace(columns, confidence=confidence)
        if columns.gold is not None and columns.answer is None:
            columns = replace(columns, answer=known.get("answer"))
        extra: dict[str, Any] = {name: known[name] for name in ("epoch", "status") if name in known}
        return replace(
            columns, **{name: value for name, value in extra.items() if getattr(columns, name) is None}
        )


@dataclass(frozen=True)
class GradedAnswers:
    """The answers of one model, or of several stacked in rows.

    Attributes
    ----------
    name : str
        The file.
    grades : array of shape (N,)
        The grades; NaN where there is none.
    columns : GradeColumns
        Which column is what.
    confidences : array of shape (N,) or None
        The probability that each answer is right; NaN where there is none.
    ids, epochs, task, weights : array of shape (N,) or None
        A value for each answer.
    groups : tuple of arrays
        The groups of each kind.
    status : array of shape (N,) or None
        Why an answer was not graded.
    model : str or None
        The model that an evaluation log names.
    origin : tuple of str
        How an evaluation log was read, one line each.
    by : mapping of str to array of shape (N,)
        The label of each answer in each breakdown.
    about : mapping of str to array of shape (N,)
        What was asked and answered, where that was asked for.
    texts : mapping of str to int
        The number of confidences that are texts: how many were "read" and "left out".
    repeats : str
        How repeats of questions were found, in a line; empty where they were named or are none.
    people : str
        A line about grades by people that are not used; empty without any.
    """

    name: str
    grades: Floats
    columns: GradeColumns
    confidences: Floats | None = None
    ids: Array | None = None
    epochs: Array | None = None
    task: Array | None = None
    weights: Array | None = None
    groups: tuple[Array, ...] = ()
    status: Array | None = None
    model: str | None = None
    origin: tuple[str, ...] = ()
    by: Mapping[str, Array] = field(default_factory=dict)
    about: Mapping[str, Array] = field(default_factory=dict)
    texts: Mapping[str, int] = field(default_factory=dict)
    repeats: str = ""
    people: str = ""

    def __len__(self) -> int:
        return len(self.grades)

    def at(self, rows: Array) -> GradedAnswers:
        """Some of the answers."""
        columns: dict[str, Any] = {
            name: None if value is None else value[rows]
            for name, value in vars(self).items()
            if name not in _OF_ALL
        }
        by = {name: column[rows] for name, column in self.by.items()}
        about = {name: column[rows] for name, column in self.about.items()}
        groups = tuple(kind[rows] for kind in self.groups)
        return replace(self, groups=groups, by=by, about=about, **columns)

    @property
    def reasons(self) -> dict[str, int]:
        """Why answers were not graded, the commonest reasons first; empty where nobody says it."""
        if self.status is None:
            return {}
        left = [str(self.status[row] or "no reason") for row in np.flatnonzero(np.isnan(self.grades))]
        return dict(Counter(left).most_common(_SHOWN))

    @property
    def taken(self) -> tuple[str, ...]:
        """How each column was read, one line each."""
        named = [f"{argument}: {', '.join(names)}" for argument, names in self.columns.named.items()]
        lines = [*filter(None, [self.repeats]), *(self.origin or named)]
        left = int(np.isnan(self.grades).sum())
        if left:
            why = ", ".join(f"{n:,} {reason}" for reason, n in self.reasons.items())
            lines.append(f"{left:,} of {len(self):,} answers not graded" + (f" ({why})" if why else ""))
        lines += [self.people] if self.people else []
        lines += [f"confidences that are texts: {n:,} {what}" for what, n in self.texts.items()]
        return tuple(lines)


def holds_grades(path: Files, request: Reading) -> bool:
    """Whether a file has columns of grades and of confidences in them, by their names."""
    try:
        named = files_named(path)
        if named is None or not named[0][0].is_file() or format_of(named[0][0]) in ARRAYS:
            return False
        names = source_of(path, request).schema.names
    except (InputError, OSError):
        return False
    complete = GradeColumns.of(request).with_usual_columns(names)
    return complete.grade is not None and complete.confidence is not None


def is_log(path: Files) -> str | None:
    """The kind of evaluation logs that a path names; None where it names none."""
    try:
        logs = logs_named(path)
    except (InputError, OSError):
        return None
    return str(logs[0][1].name) if logs else None


def read_graded(
    path: Files,
    columns: GradeColumns,
    request: Reading | None = None,
    *,
    questions: bool = False,
    named: bool = False,
) -> GradedAnswers:
    """The graded answers of one model: of a file, of several with the same columns, or of evaluation logs.

    With `questions` also what was asked and answered. Files that look like those of two models are refused,
    unless they were `named` as those of one.
    """
    table, columns, name, log = _table(path, columns, request, questions=questions, named=named)
    skip = request is not None and request.invalid == "skip"
    answers = graded_of(table, columns, name, skip=skip)
    if questions:
        about = [column for column in table.column_names if column.casefold() in _ABOUT]
        answers = replace(answers, about={column: _labels(table[column].to_pylist()) for column in about})
    return answers if log is None else replace(answers, model=log.model, origin=_origin(log))


def _origin(log: EvalLog) -> tuple[str, ...]:
    """How a log was read. The number of answers that were not graded is said of all files in the same way."""
    notes = [note.removesuffix(".") for note in log.notes if not note.startswith("Answers not graded")]
    return (*log.taken, *(f"note: {note}" for note in notes))


def read_stacked(
    path: Files, columns: GradeColumns, request: Reading | None = None
) -> dict[str, GradedAnswers]:
    """The graded answers of each model of a file that has a column of models."""
    table, columns, name, log = _table(path, columns, request, named=True)
    skip = request is not None and request.invalid == "skip"
    answers = graded_of(table, columns, name, skip=skip)
    if log is not None:
        answers = replace(answers, origin=_origin(log))
    models = table[columns.model].to_pylist()
    if log is not None and set(models) == {None}:
        return {name: answers}
    if None in models:
        raise InputError(
            f"Column {show(columns.model)} must name the model of every row",
            argument="model_column",
            kind="missing",
            source=name,
            found=f"row {models.index(None)} has no value",
            rows=(models.index(None),),
        )
    labels = np.array([str(model) for model in models])
    return {model: answers.at(np.flatnonzero(labels == model)) for model in dict.fromkeys(labels.tolist())}


def _table(
    path: Files,
    columns: GradeColumns,
    request: Reading | None,
    *,
    questions: bool = False,
    named: bool,
) -> tuple[Any, GradeColumns, str, EvalLog | None]:
    """The rows of files, which column is what, what they are called, and the log if they are one."""
    if logs_named(path):
        how: dict[str, Any] = {"values": columns.values, "stacked": columns.model is not None}
        log = read_log(path, grade=columns.grade, questions=questions, **how)
        known: dict[str, Any] = {name: name for name in ("epoch", "status") if getattr(columns, name) is None}
        several = log.table["task"].null_count == 0
        if several and columns.task is None and len(log.table["task"].unique()) > 1:
            known["task"] = "task"
        # Ids are those of a task.
        ids = columns.id or (("task", "id") if several else ("id",))
        answers = any(value is not None for value in log.table["confidence"].to_pylist())
        confidence = columns.confidence or ("confidence" if answers else None)
        log_columns = replace(columns, grade="grade", id=ids, confidence=confidence, **known)
        return log.table, log_columns, log.path, log
    source = source_of(path, Reading() if request is None else request)
    if not (named or columns.id) and isinstance(source.reader, Several):
        gold = [name for name in source.schema.names if name in (columns.gold, *_GOLD)]
        source.reader.watch = SameRows(source.schema.names, gold[:1], len(source.reader.files))
    return whole_table(source), columns.with_usual_columns(source.schema.names), source.name, None


def source_of(path: Files, request: Reading) -> SourceTable:
    """The columns of files."""
    files = files_named(path)
    assert files is not None
    paths, name = files
    return SourceTable.of_paths(paths, request, name)


def graded_of(table: Any, columns: GradeColumns, name: str, *, skip: bool = False) -> GradedAnswers:
    """The graded answers of an Arrow table.

    Parameters
    ----------
    table : pyarrow.Table
        A row per answer.
    columns : GradeColumns
        Which column is what.
    name : str
        What errors call the table.
    skip : bool, default False
        Whether confidences that are not numbers are missing; they are refused otherwise.
    """
    for argument, names in columns.named.items():
        for column in names:
            require_column(column, table.column_names, argument, name)
    if columns.grade is None and (columns.gold is None or columns.answer is None):
        raise InputError(
            "must have a column of grades, or of answers and right answers",
            argument="grade",
            kind="missing",
            source=name,
            found=f"the columns are {join(map(show, table.column_names))}",
            remedies=[
                *remedies_for(table.column_names),
                passing("for grades", grade=...),
                passing("for right answers", gold=...),
            ],
        )
    columns, repeats = _with_repeats(table, columns)
    values = {column: table[column].to_pylist() for names in columns.named.values() for column in names}
    if columns.model is None:
        _refuse_models(table, name)
    grades = (
        _grades(values[columns.grade], columns.grade, name, columns.values)
        if columns.grade is not None
        else _matches(values[str(columns.answer)], values[str(columns.gold)])
    )
    confidences, texts = None, Counter[str]()
    if columns.confidence is not None:
        confidences, texts = _confidences(values[columns.confidence], columns, name, skip=skip)
    made: dict[str, Any] = {
        "epochs": columns.epoch,
        "task": columns.task,
        "status": columns.status,
    }
    columns_of: dict[str, Any] = {
        key: None if column is None else _labels(values[column]) for key, column in made.items()
    }
    if columns.weights is not None:
        columns_of["weights"] = _grades(values[columns.weights], columns.weights, name)
    ids = None
    if columns.id:
        keys = zip(*(values[column] for column in columns.id), strict=True)
        ids = _labels([None if None in key else id_of(list(key)) for key in keys])
    return GradedAnswers(
        name,
        grades,
        columns,
        confidences,
        ids,
        groups=tuple(_labels(values[column]) for column in columns.groups),
        by={column: _labels(values[column]) for column in columns.by},
        texts=texts,
        repeats=repeats,
        people=unused_people(table, [] if columns.grade is None else [columns.grade]),
        **columns_of,
    )


def _with_repeats(table: Any, columns: GradeColumns) -> tuple[GradeColumns, str]:
    """The columns with those of repeats, if these are found by their values, and a line about them."""
    if columns.epoch is not None or len(columns.id) > 1:
        return columns, ""
    taken = {name for argument, names in columns.named.items() if argument != "id" for name in names}
    known = set(columns.id)
    whole = {
        name: table[name].to_pylist()
        for name in table.column_names
        if name in known or (may_matter(name, known=bool(known)) and name not in taken)
    }
    model = None if columns.model is None else _labels(table[columns.model].to_pylist())
    found = found_repeats(whole, columns.id, taken, model)
    if found is None:
        return columns, ""
    words = found.words(models=model is not None)
    return replace(columns, id=(found.question,), epoch=found.repeat), words


def _refuse_models(table: Any, name: str) -> None:
    """Refuse a file that mixes models without saying so."""
    column = next((c for c in table.column_names if c.casefold() in ("model", "model_name")), None)
    if column is None:
        return
    models = [str(value) for value in table[column].unique().to_pylist() if value is not None]
    if len(models) > 1:
        more = [f"{len(models) - _SHOWN} more"] if len(models) > _SHOWN else []
        shown = [*map(show, models[:_SHOWN]), *more]
        raise InputError(
            "must be the answers of one model",
            argument="path",
            kind="file",
            source=name,
            found=f"column {show(column)} has {join(shown)}",
            remedies=[passing("to compare models that are stacked in rows", model_column=column)],
        )


def _grades(
    cells: Sequence[Any], column: str, name: str, values: Mapping[str, float] | None = None
) -> Floats:
    """Cells as grades, by the `values` of texts where these are given; NaN where one is empty."""
    grades = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        text = cell.strip() if isinstance(cell, str) else cell
        if text is None or text == "":
            continue
        if values and text in values:
            grades[row] = values[text]
            continue
        if isinstance(text, str):
            known = text.casefold()
            text = 1.0 if known in RIGHT else 0.0 if known in WRONG else text
        try:
            grades[row] = float(text)
        except (TypeError, ValueError):
            texts = Counter(cell.strip() for cell in cells if isinstance(cell, str) and cell.strip())
            raise InputError(
                f"Column {show(column)} must hold numbers, or true and false",
                argument="grade",
                source=name,
                found=f"row {row} holds {show(cell)}",
                rows=(row,),
                values=[cell],
                remedies=[
                    Remedy("Leave the cell empty where an answer was not graded."),
                    asking_for_values(column, texts),
                ],
            ) from None
    return grades


def grades_in(column: Any, name: str, source: str) -> Floats:
    """A column of an Arrow table as grades; NaN where a cell is empty."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        numbers = column.cast(pa.int8()) if pa.types.is_boolean(kind) else column
        return np.asarray(numbers.cast(pa.float64()).to_numpy(), float)
    return _grades(column.to_pylist(), name, source)


def _matches(answers: Sequence[Any], gold: Sequence[Any]) -> Floats:
    """1 where an answer is the right one, as a text; NaN where one of both is missing."""
    return np.array(
        [
            np.nan if {answer, right} & {None, ""} else float(str(answer).strip() == str(right).strip())
            for answer, right in zip(answers, gold, strict=True)
        ]
    )


def _confidences(
    cells: Sequence[Any], columns: GradeColumns, name: str, *, skip: bool
) -> tuple[Floats, Counter[str]]:
    """Cells as probabilities, from percentages if stated; NaN where one is empty. Texts are counted.

    A text with one number, such as "70%" or "about 0.7", states it. One without is refused, or empty with
    `skip`.
    """
    confidences, texts = np.full(len(cells), np.nan), Counter[str]()
    for row, cell in enumerate(cells):
        if cell is None or cell == "":
            continue
        try:
            confidences[row] = float(cell) / (100 if columns.percent else 1)
        except (TypeError, ValueError):
            number = number_of(cell)
            if number is None and not skip:
                raise InputError(
                    f"Column {show(columns.confidence)} must hold probabilities",
                    argument="confidence_column",
                    source=name,
                    found=f"row {row} holds {show(cell)}",
                    rows=(row,),
                    values=[cell],
                    remedies=[
                        Remedy("Leave the cell empty where there is no confidence."),
                        passing("to leave out such cells", invalid="skip"),
                    ],
                ) from None
            texts["left out" if number is None else "read"] += 1
            confidences[row] = np.nan if number is None else number
    return confidences, texts


def _labels(values: Sequence[Any]) -> Array:
    """Values as texts: a CSV file has nothing else, and files are matched."""
    labels = np.empty(len(values), object)
    labels[:] = [None if value is None else str(value) for value in values]
    return labels


def as_mapping(answers: Mapping[str, GradedAnswers], what: str) -> Any:
    """One column of all models, by name; None where they have none."""
    by_model = {name: getattr(model_answers, what) for name, model_answers in answers.items()}
    lacking = [name for name, column in by_model.items() if column is None]
    return None if len(lacking) == len(by_model) else by_model
