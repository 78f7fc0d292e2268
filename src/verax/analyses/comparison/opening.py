"""Models compared by questions: grades, and forecasts with rows of their own, as rows with known losses."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from verax.analyses.comparison.checks import refuse
from verax.analyses.comparison.grades import (
    confidence_losses,
    read_confidences,
    read_grades,
    right_or_wrong,
)
from verax.analyses.comparison.references import uniform_losses
from verax.analyses.comparison.ungraded import Ungraded, became_of, counted_as_wrong, reasons_of
from verax.common.checks import check_choice
from verax.errors import InputError, Remedy, show
from verax.inputs.arrays import Array, Bools, Floats, Ints, to_host
from verax.inputs.breakdown import labels_of, not_scanned
from verax.inputs.groups import kinds_of
from verax.inputs.handles import Handle, Part
from verax.inputs.memory import InMemory, paired_by_model
from verax.inputs.questions import Questions, averaged, column_of, first_rows, how_long, ids_of, numbered
from verax.inputs.rows import Baseline, Rows, ScoredRows, at_fault
from verax.inputs.skipping import without_invalid
from verax.scores.base import Rule, losses_of
from verax.scores.grades import Grade

Missing = Literal["refuse", "pairwise", "joint"]


@dataclass(frozen=True)
class QuestionLosses:
    """The losses of one model by rule, with the number of answers if questions have several.

    Attributes
    ----------
    losses : mapping of Rule to array of shape (N,)
        The losses; NaN if unknown.
    answers : array of shape (N,) or None
        The number of answers to each question.
    ungraded : mapping of Rule to array of shape (N,), or None
        The number of answers without a loss.
    became : array of shape (N, D) or None
        The numbers of answers by what became of them, of grades.
    """

    losses: Mapping[Rule, Floats]
    answers: Ints | None = None
    ungraded: Mapping[Rule, Ints] | None = None
    became: Ints | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.losses.values())))

    def by_question(self, question: Ints) -> QuestionLosses:
        """The mean loss of each question over its answers, with their numbers."""
        losses = averaged(self.losses, question, np.ones(self.n_rows))
        n = int(question.max(initial=-1)) + 1
        ungraded = {
            rule: np.bincount(question[np.isnan(of_rule)], minlength=n)
            for rule, of_rule in self.losses.items()
        }
        became = self.became
        if became is not None:
            became = np.stack([np.bincount(question, own, n).astype(np.int64) for own in became.T], axis=1)
        return QuestionLosses(losses, np.bincount(question, minlength=n), ungraded, became)


@dataclass(frozen=True)
class _Answers:
    """Rows of models, each about a question, with known losses.

    Attributes
    ----------
    losses : mapping of str to QuestionLosses
        The losses of each model.
    ids, epochs : object
        The question of each row, and which of its repeats it is.
    columns : mapping of (str, hashable) to object
        Further values per row: by the argument that has them, and by which of several it is.
    averaged : bool
        Whether each question has the mean of its repeats.
    """

    losses: Mapping[str, QuestionLosses]
    ids: object
    epochs: object
    columns: Mapping[tuple[str, Hashable], object]
    averaged: bool = False

    def numbered(self) -> _Answers | None:
        """The same with repeats numbered from 0 in all models; None if questions have different numbers."""
        apart = isinstance(self.ids, Mapping)
        numbering = {
            model: numbered(self.ids, self.epochs, model, self.losses[model].n_rows)
            for model in (self.losses if apart else list(self.losses)[:1])
        }
        if len({int(n) for _, counts in numbering.values() for n in counts}) > 1:
            return None
        places = {model: place for model, (place, _) in numbering.items()}
        return replace(self, epochs=places if apart else next(iter(places.values())))

    def of_questions(self) -> _Answers:
        """One row per model and question where some question has several answers, otherwise the same rows.

        If labels or weights differ between the answers to a question, these stay apart where that makes no
        difference to means: every question has the same number of answers, and all of them count.
        """
        models = self.losses if isinstance(self.ids, Mapping) else list(self.losses)[:1]
        sizes = {
            model: numbered(self.ids, self.epochs, model, self.losses[model].n_rows)[1] for model in models
        }
        if all((counts == 1).all() for counts in sizes.values()):
            return self.numbered() or self
        try:
            return self.by_question()
        except InputError:
            apart = self.numbered()
            known = [~np.isnan(values) for own in self.losses.values() for values in own.losses.values()]
            if apart is None or not all(map(np.all, known)):
                raise
            return apart

    def by_question(self, times: object = None, closes: object = None) -> _Answers:
        """One row per model and question: the mean over its repeats, or over the time that each stood."""
        given: dict[tuple[str, Hashable], object] = {("ids", ""): self.ids, **self.columns}
        columns: dict[tuple[str, Hashable], dict[str, Array]] = {key: {} for key in given}
        losses: dict[str, QuestionLosses] = {}
        for model, of_model in self.losses.items():
            n = of_model.n_rows
            ids = ids_of(self.ids, model, n)
            rows, question = first_rows(ids)
            if times is None:
                losses[model] = of_model.by_question(question)
            else:
                made, closed = column_of(times, model, n, "times"), column_of(closes, model, n, "closes")
                stood = how_long(ids, made, closed, repr(model))
                losses[model] = QuestionLosses(averaged(of_model.losses, question, stood))
            for key, column in columns.items():
                column[model] = _of_questions(given[key], model, rows, question, key[0])
        return _Answers(losses, columns.pop(("ids", "")), None, columns, averaged=times is None)

    def matched(self, n_classes: int, missing: Missing) -> InMemory:
        """A handle of the questions of all models, which have at most one row per question and repeat."""
        sizes = {name: of_model.n_rows for name, of_model in self.losses.items()}
        questions = Questions.of(sizes, self.ids, self.epochs)
        if missing == "refuse":
            questions.refuse_absent()
        columns = {key: questions.column(given, key[0], sizes) for key, given in self.columns.items()}
        groups = [column for (argument, _), column in columns.items() if argument == "groups"]
        if not groups and (questions.repeated or self.averaged):
            # Repeats of a question belong together.
            groups = [questions.ids]
        by = {str(which): _named(column) for (name, which), column in columns.items() if name == "by"}
        if ("task", "") in columns:
            by["task"] = columns["task", ""]
        models = {
            name: ScoredRows(
                {rule: questions.spread(name, values) for rule, values in of_model.losses.items()},
                absent=questions.absent(name),
                n_classes=n_classes,
                weights=columns.get(("weights", "")),
                groups=groups if len(groups) > 1 else next(iter(groups), None),
                answers=None if of_model.answers is None else questions.counts(name, of_model.answers),
                ungraded=None
                if of_model.ungraded is None
                else {rule: questions.counts(name, left) for rule, left in of_model.ungraded.items()},
                became=None if of_model.became is None else questions.counts(name, of_model.became),
            )
            for name, of_model in self.losses.items()
        }
        return InMemory(models, several=True, ids=questions.ids, by=by)


@dataclass(frozen=True)
class QuestionOptions:
    """Options about questions: how rows of models are matched, repeated and grouped.

    Attributes
    ----------
    ids : object
        The question of each row: one column for all models, or a mapping with one per model.
    epochs : object
        Which repeat of the question each row is.
    task : object
        The task of each row.
    missing : str
        What to do with questions that some models were not asked.
    ungraded : str
        What to do with answers that were not graded.
    reasons : object
        What became of each answer.
    groups, weights : object
        A value for each row.
    skip : bool
        Whether invalid forecasts are left ungraded instead of refused.
    times, closes : object
        When each forecast was made, and when its question closes, if forecasts change over time.
    """

    ids: object = None
    epochs: object = None
    task: object = None
    missing: Missing = "refuse"
    ungraded: Ungraded = "by-reason"
    groups: object = None
    weights: object = None
    skip: bool = False
    times: object = None
    closes: object = None
    reasons: object = None

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, get_args(Missing))
        check_choice("ungraded", self.ungraded, get_args(Ungraded))

    def refuse(self) -> None:
        """Refuse options about questions where there are none."""
        columns = {"ids": self.ids, "epochs": self.epochs, "task": self.task, "times": self.times}
        refused = {name: value is not None for name, value in columns.items()}
        refuse(
            refused | {"missing": self.missing != "refuse"}, "without outcomes of each model under its name"
        )

    def with_reading(self, read: Mapping[str, Any]) -> tuple[QuestionOptions, dict[str, Any]]:
        """Move the shared options about rows here; the second value has the other options."""
        rest = dict(read)
        skip = rest.pop("invalid", "raise") == "skip"
        of_rows = {name: rest.pop(name, None) for name in ("groups", "weights")}
        return replace(self, skip=skip, **of_rows), rest

    def task_column(self, handle: Handle) -> str | None:
        """The name of the column of tasks; None without tasks."""
        if self.task is None:
            return None
        if handle.kept is not None:
            return "task"
        if not isinstance(self.task, str) or self.task not in handle.by:
            raise not_scanned(self.task, handle.by, "task")
        return self.task

    def open(
        self,
        losses: Mapping[str, QuestionLosses],
        n_classes: int,
        *,
        by: Mapping[str, object] | None = None,
        graded: Grade | None = None,
    ) -> InMemory:
        """A handle of the questions of all models, with their known losses by each rule."""
        kinds = [] if self.groups is None else _kinds(self.groups)
        columns: dict[tuple[str, Hashable], object] = {("groups", i): kind for i, kind in enumerate(kinds)}
        columns["weights", ""] = self.weights
        columns |= {("by", name): labels for name, labels in (by or {}).items()}
        columns["task", ""] = self.task
        answers = _Answers(
            losses,
            self.ids,
            self.epochs,
            {key: given for key, given in columns.items() if given is not None},
        )
        if self.times is not None:
            if self.ids is None or self.closes is None or self.epochs is not None:
                raise InputError(
                    "need ids and closes, and are not for repeats of a question",
                    argument="times",
                    kind="missing",
                )
            answers = answers.by_question(self.times, self.closes)
        elif self.epochs is not None and self.ids is not None:
            answers = answers.of_questions()
        handle = answers.matched(n_classes, self.missing)
        handle.graded = graded
        return handle


def _named(column: Array) -> Array:
    """Labels of subgroups, with a separate label for rows without one."""
    labels = labels_of(column, len(column))
    return np.asarray(labels.labels[labels.codes])


def _kinds(groups: Any) -> Any:
    """Each kind of groups: one column for all models, or a mapping with one per model."""
    if isinstance(groups, (list, tuple)) and all(isinstance(kind, Mapping) for kind in groups):
        return groups
    return [groups] if isinstance(groups, Mapping) else kinds_of(groups)


def _of_questions(given: object, model: str, rows: Ints, question: Ints, argument: str) -> Array:
    """The value of each question, whose rows must agree."""
    values = column_of(given, model, len(question), argument)
    texts = values.astype(str)
    differ = np.flatnonzero(texts != texts[rows][question])
    if len(differ):
        i = int(differ[0])
        first = int(rows[question[i]])
        raise InputError(
            "must be the same for all rows of a question",
            argument=argument,
            source=repr(model),
            found=f"rows {first} and {i} have {show(values[first])} and {show(values[i])}",
            rows=(first, i),
        )
    return values[rows]


def open_grades(
    grades: object,
    scale: Grade,
    options: QuestionOptions,
    *,
    confidences: object = None,
    rules: Sequence[Rule] = (),
    by: Mapping[str, object] | None = None,
) -> InMemory:
    """Grades of several models, and the losses of their confidences by `rules`, as a handle.

    Invalid confidences are refused or not scored; the grades of their answers still count. `by` has labels of
    subgroups, by the name of the breakdown.
    """
    if not isinstance(grades, Mapping) or not grades:
        raise InputError(
            "must be a mapping from the names of models to their grades",
            argument="grades",
            kind="type",
            found=f"it is a {type(grades).__name__}",
            remedies=[Remedy('Name the models: {"a": values, "b": others}.', python_only=True)],
        )
    if confidences is not None and (not isinstance(confidences, Mapping) or set(confidences) != set(grades)):
        raise InputError(
            "must have the confidences of each model under its name",
            argument="p",
            kind="label",
        )
    losses: dict[str, QuestionLosses] = {}
    for name, column in grades.items():
        values = read_grades(column, scale, repr(name))
        reasons = reasons_of(options.reasons, name, len(values))
        wrong = counted_as_wrong(values, reasons, options.ungraded)
        became = became_of(values, reasons, wrong, scale)
        values = np.where(wrong, scale.low, values)
        by_rule: dict[Rule, Floats] = {scale: scale.loss(values)}
        if isinstance(confidences, Mapping):
            right = right_or_wrong(values, scale, repr(name))
            p = read_confidences(confidences[name], len(values), skip=options.skip, source=repr(name))
            by_rule |= confidence_losses(right, p, rules)
        losses[str(name)] = QuestionLosses(by_rule, became=became)
    return options.open(losses, 2, by=by, graded=scale)


def open_forecasts(
    y: Mapping[Any, object],
    forecasts: Mapping[str, object] | None,
    rules: Sequence[Rule],
    options: QuestionOptions,
    **read: Any,
) -> InMemory:
    """Forecasts of models with different questions, scored by `rules`, as a handle."""
    if not isinstance(forecasts, Mapping) or set(y) != set(forecasts):
        raise InputError("must have the outcomes of each model under its name", argument="y", kind="label")
    losses: dict[str, QuestionLosses] = {}
    n_classes = 0
    for name in forecasts:
        n, kept, rows = _valid(y[name], forecasts[name], skip=options.skip, name=str(name), **read)
        n_classes = n_classes or rows.n_classes
        if rows.n_classes != n_classes:
            raise InputError(
                "must have the same classes for all models",
                argument="forecasts",
                kind="length",
                found=f"{name!r} has {rows.n_classes}, not {n_classes}",
            )
        scored = zip(rules, losses_of(list(rules), rows), strict=True)
        uniform = zip(rules, uniform_losses(list(rules), Part({str(name): rows})), strict=True)
        by_rule: dict[Any, Floats] = {}
        for rule, values in (*scored, *((Baseline(rule), values) for rule, values in uniform)):
            by_rule[rule] = np.full(n, np.nan)
            by_rule[rule][kept] = to_host(values)
        losses[str(name)] = QuestionLosses(by_rule)
    return options.open(losses, n_classes)


def _valid(
    y: object, p: object, *, skip: bool, name: str, **read: Any
) -> tuple[int, Array | Bools | slice, Rows]:
    """The number of rows of one model, which of them are valid, and the valid rows."""
    if skip and not hasattr(p, "with_outcomes"):
        valid, skipped, kept = without_invalid({"y": y, "p": p, **read})
        ((_, rows),) = paired_by_model(valid.pop("y"), {name: valid.pop("p")}, **valid)
        return skipped.n_given, kept, rows
    ((_, rows),) = paired_by_model(y, {name: p}, **read)
    try:
        rows.check()
    except InputError as error:
        raise at_fault(name, error) from None
    return rows.n_rows, slice(None), rows
