"""Grades, and forecasts of models with different questions, as rows with known losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from verax.analyses.comparison.references import FREQUENCIES, UNIFORM, check_reference, uniform_losses
from verax.common.checks import check_choice, check_number
from verax.errors import InputError, Offenders, Remedy, passing, show
from verax.inputs.arrays import Array, Bools, Floats, Ints, to_array, to_host
from verax.inputs.breakdown import labels_of, not_scanned
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import kinds_of, missing
from verax.inputs.handles import Handle, Part
from verax.inputs.memory import InMemory, paired_by_model
from verax.inputs.questions import Questions, averaged, column_of, first_rows, how_long, ids_of, numbered
from verax.inputs.rows import Baseline, Rows, ScoredRows, at_fault
from verax.inputs.skipping import without_invalid
from verax.scores.base import Rule, losses_of
from verax.scores.grades import Grade
from verax.scores.registry import name_of


def check_margin(margin: float | None, rules: Sequence[Rule]) -> float | None:
    """Check a margin, which needs a single rule."""
    if margin is None:
        return None
    if len(rules) > 1:
        raise InputError(
            "is in units of one rule",
            argument="margin",
            found=f"there are {len(rules)}: {', '.join(map(name_of, rules))}",
            remedies=[passing(rule=name_of(rules[0]))],
        )
    return check_number("margin", margin, "must be a positive number", lambda value: value > 0)


def check_among(handle: Handle, reference: object) -> None:
    """Refuse fewer than two models, and a reference that is not a model."""
    known = isinstance(reference, str) and reference in handle.models
    check_models(handle, reference if known else None)
    if reference is not None and not known:
        raise InputError(
            f"must be the name of a model, not {show(reference)}", argument="reference", values=[reference]
        )


def check_models(handle: Handle, reference: object) -> None:
    """Refuse too few models, and a reference that is neither a model nor a simple forecast."""
    n = len(handle.models)
    if n < (2 if reference is None else 1):
        simple = UNIFORM if handle.listed else FREQUENCIES
        raise InputError(
            "must name at least two models",
            argument="forecasts",
            found=f"there {'is' if n == 1 else 'are'} {n}",
            remedies=[passing("to measure the skill of one model", reference=simple)],
        )
    if reference is not None and not isinstance(reference, str):
        raise InputError(
            f"must be the name of a model or of a simple forecast, not {show(reference)}",
            argument="reference",
            kind="type",
            values=[reference],
        )
    if reference is not None and reference not in handle.models:
        check_reference(reference, handle.models, lists=bool(handle.listed))
        if reference == FREQUENCIES and not handle.has_rows:
            raise InputError(
                "cannot be class frequencies where there are saved summaries only: they need a second pass",
                argument="reference",
                values=[reference],
                remedies=[passing(reference=UNIFORM)],
            )


def refuse(given: Mapping[str, bool], where: str) -> None:
    """Refuse arguments that were given and cannot be used `where`."""
    for argument, is_given in given.items():
        if is_given:
            raise InputError(f"cannot be used {where}", argument=argument)


Missing = Literal["refuse", "pairwise", "joint"]
Ungraded = Literal["bounds", "exclude", "wrong"]
# If more than this share of the confidences exceeds 1, they are probably percentages.
_MOST = 0.5


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
    """

    losses: Mapping[Rule, Floats]
    answers: Ints | None = None
    ungraded: Mapping[Rule, Ints] | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.losses.values())))

    def counting(self, losses: Mapping[Rule, Floats], question: Ints) -> QuestionLosses:
        """Add the numbers of answers, from their losses and questions."""
        ungraded = {
            rule: np.bincount(question[np.isnan(of_rule)], minlength=self.n_rows)
            for rule, of_rule in losses.items()
        }
        return replace(self, answers=np.bincount(question, minlength=self.n_rows), ungraded=ungraded)


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
    ungraded: Ungraded = "bounds"
    groups: object = None
    weights: object = None
    skip: bool = False
    times: object = None
    closes: object = None

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

    def _numbered(self, sizes: Mapping[str, int]) -> QuestionOptions | None:
        """Number repeats from 0 in all models; None if questions have different numbers of them."""
        by_model = isinstance(self.ids, Mapping)
        numbering = {
            model: numbered(self.ids, self.epochs, model, n)
            for model, n in (sizes.items() if by_model else list(sizes.items())[:1])
        }
        if len({int(n) for _, counts in numbering.values() for n in counts}) > 1:
            return None
        places = {model: place for model, (place, _) in numbering.items()}
        return replace(self, epochs=places if by_model else next(iter(places.values())))

    def _by_question(
        self, losses: Mapping[str, Mapping[Rule, Floats]], by: Mapping[str, object]
    ) -> tuple[QuestionOptions, dict[str, QuestionLosses], dict[str, object]]:
        """One loss per model and question: the mean over its repeats, or over time if forecasts change."""
        if self.times is not None and (self.ids is None or self.closes is None or self.epochs is not None):
            raise InputError(
                "need ids and closes, and are not for repeats of a question", argument="times", kind="missing"
            )
        by_question: dict[str, QuestionLosses] = {}
        per_row = {name: getattr(self, name) for name in ("ids", "task", "weights")}
        per_row |= {f"by {name}": labels for name, labels in by.items()}
        kinds = [] if self.groups is None else _kinds(self.groups)
        per_row |= {f"groups {i}": kind for i, kind in enumerate(kinds)}
        columns: dict[str, Any] = {name: {} for name, value in per_row.items() if value is not None}
        for model, by_rule in losses.items():
            n = len(next(iter(by_rule.values())))
            ids = ids_of(self.ids, model, n)
            stood = np.ones(n)
            if self.times is not None:
                times, closes = (column_of(getattr(self, k), model, n, k) for k in ("times", "closes"))
                stood = how_long(ids, times, closes, repr(model))
            rows, question = first_rows(ids)
            by_question[model] = QuestionLosses(averaged(by_rule, question, stood))
            if self.times is None:
                by_question[model] = by_question[model].counting(by_rule, question)
            for name, column in columns.items():
                column[model] = _of_questions(per_row[name], model, rows, question, name)
        groups = [columns.pop(f"groups {i}") for i in range(len(kinds))]
        options = replace(
            self,
            ids=columns.get("ids"),
            task=columns.get("task"),
            weights=columns.get("weights"),
            groups=groups if len(groups) > 1 else next(iter(groups), None),
            epochs=None,
            times=None,
            closes=None,
        )
        return options, by_question, {name: columns[f"by {name}"] for name in by}

    def open(
        self,
        losses: Mapping[str, Mapping[Rule, Floats]],
        n_classes: int,
        *,
        by: Mapping[str, object] | None = None,
        graded: Grade | None = None,
    ) -> InMemory:
        """A handle of the questions of all models, with their known losses by each rule."""
        options: QuestionOptions | None = self
        answered = {name: QuestionLosses(by_rule) for name, by_rule in losses.items()}
        if self.epochs is not None and self.ids is not None and self.times is None:
            options = self._numbered({name: of_model.n_rows for name, of_model in answered.items()})
        if options is None or self.times is not None:
            options, answered, by = self._by_question(losses, by or {})
        repeated = self.times is None and self.epochs is not None and options.epochs is None
        return options._open(answered, n_classes, by or {}, graded, repeated=repeated)

    def _open(
        self,
        answered: Mapping[str, QuestionLosses],
        n_classes: int,
        by: Mapping[str, object],
        graded: Grade | None,
        *,
        repeated: bool,
    ) -> InMemory:
        """The same with at most one loss per model, question and repeat."""
        sizes = {name: answers.n_rows for name, answers in answered.items()}
        questions = Questions.of(sizes, self.ids, self.epochs)
        if self.missing == "refuse":
            questions.refuse_absent()
        groups: Any = None
        if self.groups is not None:
            columns = [questions.column(kind, "groups", sizes) for kind in _kinds(self.groups)]
            groups = columns if len(columns) > 1 else columns[0]
        elif questions.repeated or repeated:
            # Repeats of a question belong together.
            groups = questions.ids
        weights = None if self.weights is None else questions.column(self.weights, "weights", sizes)
        columns_by = {name: _named(questions.column(v, "by", sizes)) for name, v in by.items()}
        if self.task is not None:
            columns_by["task"] = questions.column(self.task, "task", sizes)
        models = {
            name: ScoredRows(
                {rule: questions.spread(name, values) for rule, values in answers.losses.items()},
                absent=questions.absent(name),
                n_classes=n_classes,
                weights=weights,
                groups=groups,
                answers=None if answers.answers is None else questions.counts(name, answers.answers),
                ungraded=None
                if answers.ungraded is None
                else {rule: questions.counts(name, left) for rule, left in answers.ungraded.items()},
            )
            for name, answers in answered.items()
        }
        handle = InMemory(models, several=True, ids=questions.ids, by=columns_by)
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
    argument = argument.partition(" ")[0]
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


def grade_scale(grade_range: object) -> Grade:
    """The range of grades, checked."""
    ends = tuple(grade_range) if isinstance(grade_range, (tuple, list)) else ()
    if len(ends) != 2 or not all(isinstance(end, (int, float)) for end in ends):
        raise InputError(
            f"must be the worst and the best possible grade, such as (0, 1), not {show(grade_range)}",
            argument="grade_range",
            kind="type",
        )
    return Grade(float(ends[0]), float(ends[1]))


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
    losses: dict[str, dict[Rule, Floats]] = {}
    for name, column in grades.items():
        values = read_grades(column, scale, repr(name))
        if options.ungraded == "wrong":
            values = np.where(np.isnan(values), scale.low, values)
        losses[str(name)] = {scale: scale.loss(values)}
        if isinstance(confidences, Mapping):
            right = right_or_wrong(values, scale, repr(name))
            p = read_confidences(confidences[name], len(values), skip=options.skip, source=repr(name))
            losses[str(name)] |= confidence_losses(right, p, rules)
    return options.open(losses, 2, by=by, graded=scale)


def check_graded(handle: Handle, scale: Grade, ungraded: Ungraded) -> Grade:
    """The range of the grades of a handle; refuse options that must be stated when opening it."""
    if handle.graded is None:
        raise InputError(
            "must be graded answers",
            argument="grades",
            kind="type",
            found=f"{handle.name} has {'top lists' if handle.lists else 'probabilities'}",
            remedies=[Remedy("Name the columns of grades: `scan(..., grades=...)`.", python_only=True)],
        )
    opened_with: Grade = handle.graded
    if scale not in (opened_with, Grade()):
        raise InputError(
            "must not be given beside answers that `scan` has opened",
            argument="grade_range",
            remedies=[Remedy("Say it when opening them: `scan(...)`.", python_only=True)],
        )
    if ungraded == "wrong":
        raise InputError(
            "must not be 'wrong' for answers that `scan` has opened",
            argument="ungraded",
            remedies=[Remedy("Fill in the worst grade in the column.", python_only=True)],
        )
    return opened_with


def read_grades(grades: object, scale: Grade, source: str = "") -> Floats:
    """Grades as numbers; NaN for answers without one. Grades outside their range are refused."""
    values = _numbers(grades, "grades", source)
    outside = Offenders("grades", f"must lie between {scale.low:g} and {scale.high:g}", "value")
    outside.add((values < scale.low) | (values > scale.high), values, 0)
    if outside.count:
        known = values[np.isfinite(values)]
        ends = min(scale.low, float(known.min(initial=0.0))), float(known.max(initial=scale.high))
        remedy = passing("if grades are on another scale", grade_range=ends)
        raise outside.error(remedy).replace(source=source)
    return values


def _numbers(column: object, argument: str, source: str) -> Floats:
    """One number per row; NaN for None and missing values of pandas."""
    raw = to_host(to_array(column, argument)[0])
    if raw.dtype == object and raw.ndim == 1:
        known = np.where(missing(raw), np.nan, raw)
        raw = known.astype(float) if all(isinstance(v, (bool, int, float)) for v in known) else raw
    if raw.ndim != 1 or raw.dtype.kind not in "biuf":
        shown = f", such as {show(raw.flat[0])}" if raw.size and raw.dtype.kind in "OUS" else ""
        raise InputError(
            "must be one number per row, missing where there is none",
            argument=argument,
            kind="type",
            source=source,
            found=f"its shape is {raw.shape} and its type {raw.dtype}{shown}",
            remedies=[Remedy("Grade answers first: 1 for right, 0 for wrong.")],
        )
    return raw.astype(float)


def right_or_wrong(grades: Floats, scale: Grade, source: str = "") -> Floats:
    """Grades as 1 for right, 0 for wrong and NaN for none; others are refused."""
    between = Offenders("grades", "must be right or wrong, for confidences to be about", "value")
    between.add((grades > scale.low) & (grades < scale.high), grades, 0)
    if between.count:
        raise between.error().replace(source=source)
    return np.where(np.isnan(grades), np.nan, (grades == scale.high).astype(float))


def read_confidences(
    confidences: object, n: int, *, skip: bool, percent: bool = False, source: str = ""
) -> Floats:
    """Probabilities that answers are right; NaN for missing ones, and for invalid ones that are skipped."""
    p = _numbers(confidences, "forecasts", source)
    if len(p) != n:
        raise InputError(
            f"must be {n} confidences, one per answer",
            argument="forecasts",
            kind="length",
            source=source,
            found=f"there are {len(p)}",
        )
    p = p / 100 if percent else p
    bad = Offenders("forecasts", "must be probabilities between 0 and 1", "sign")
    bad.add((p < 0) | (p > 1), p, 0)
    if not bad.count:
        return p
    known = p[~np.isnan(p)]
    if np.mean(known > 1) > _MOST and known.max() <= 100:
        divided = Remedy("Divide percentages by 100 (--percent on the command line).")
        raise bad.error(divided).replace(source=source)
    if not skip:
        raise bad.error(passing("to score the other confidences", invalid="skip")).replace(source=source)
    return np.where((p < 0) | (p > 1), np.nan, p)


def confidence_losses(right: Floats, p: Floats, rules: Sequence[Rule]) -> dict[Rule, Floats]:
    """Losses of confidences by each rule; NaN if the grade or the confidence is missing."""
    both = ~np.isnan(right) & ~np.isnan(p)
    losses: dict[Rule, Floats] = {rule: np.full(len(right), np.nan) for rule in rules}
    if both.any():
        rows = Forecasts(right[both].astype(np.int64), p[both])
        for rule, of_rule in zip(rules, losses_of(list(rules), rows), strict=True):
            losses[rule][both] = to_host(of_rule)
    return losses


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
    losses: dict[str, dict[Rule, Floats]] = {}
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
        losses[str(name)] = by_rule
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
