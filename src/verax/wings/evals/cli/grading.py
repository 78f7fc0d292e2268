"""Graded answers at the command line: the options of files that have grades in place of probabilities."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verax.cli.arguments import Typed
from verax.cli.models import AboutFiles
from verax.common.paths import Files, called
from verax.errors import InputError, Remedy, passing, show
from verax.inputs.reading import Reading, named_columns

if TYPE_CHECKING:
    from verax.wings.evals.reading.files import GradeColumns, GradedAnswers

# The metrics of logs that choose by log-likelihoods per character.
_PER_LENGTH = ("acc_norm", "acc_per_char")


def grade_columns(reading: Reading) -> GradeColumns:
    """The columns of graded answers by their roles."""
    from verax.wings.evals.reading.files import GradeColumns

    return GradeColumns(
        _column(reading),
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
    )


def _column(reading: Reading) -> str | None:
    if isinstance(reading.grades, Mapping):
        raise InputError("must be one column at the command line", argument="grades", kind="type")
    return reading.grades


def are_grades(paths: Files, reading: Reading) -> bool:
    """Whether files hold grades, by the names of columns, or in logs."""
    from verax.wings.evals.reading.files import holds_grades, is_log

    said = None if Typed.config is None else Typed.config.reading
    if reading.grades or reading.gold or (said is not None and (said.grades or said.gold)):
        return True
    named = reading.probs or reading.target or reading.raters or reading.rater_column or reading.shape
    if named:
        return False
    kind = is_log(paths)
    if kind == "inspect" and reading.classes is None:
        return True
    if kind is not None:
        # Logs of choices with their likelihoods are lists; `verax evals` reads their grades.
        return not _lists(paths, reading)
    return holds_grades(paths, grade_columns(reading), reading)


def _check(reading: Reading) -> None:
    """Refuse lengths of choices where the metric does not choose by them."""
    if reading.per_length and reading.grades not in _PER_LENGTH:
        raise InputError(
            "is about lists: the confidences of grades are those of the choices that a metric graded",
            argument="per_length",
            found=f"the grades are those of {show(reading.grades)}" if reading.grades else "",
            remedies=[passing("for choices by log-likelihood per character", grade=_PER_LENGTH[0])],
        )


def read_one(path: Files, reading: Reading, *, questions: bool = False, named: bool = False) -> GradedAnswers:
    """The answers of the only model; see `read_graded`."""
    from verax.wings.evals.reading.files import read_graded

    _check(reading)
    if reading.model_column is not None:
        answers = read_each({"": path}, reading)
        if len(answers) > 1:
            raise InputError(
                "must name one model here",
                argument="model_column",
                found=f"there are {len(answers)}",
                remedies=[Remedy("`verax evals compare` takes several models.")],
            )
        return next(iter(answers.values()))
    columns = grade_columns(reading)
    return read_graded(path, columns, reading, questions=questions, named=named)


def read_each(paths: Mapping[str, Files], reading: Reading) -> dict[str, GradedAnswers]:
    """The answers of each model, of files of their own or stacked in one."""
    from verax.wings.evals.reading.files import read_graded, read_stacked

    _check(reading)
    columns = grade_columns(reading)
    if reading.model_column is None:
        return {name: read_graded(path, columns, reading, named=True) for name, path in paths.items()}
    if len(paths) > 1:
        raise InputError(
            "must be left out where every model has a file of its own",
            argument="model_column",
            values=[reading.model_column],
        )
    return read_stacked(next(iter(paths.values())), columns, reading)


def _lists(paths: Files, reading: Reading) -> bool:
    from verax.cli.opening import holds_lists

    try:
        return holds_lists(paths, reading)
    except InputError:
        return False


@dataclass(frozen=True)
class GradedFiles:
    """The answers of several models as arguments of `compare_grades`, and what to say of them."""

    answers: Mapping[str, GradedAnswers]
    files: Mapping[str, str]
    reading: Reading
    scored: bool

    @classmethod
    def of(cls, given: list[str], reading: Reading, *, scored: bool) -> GradedFiles:
        """The files that were named."""
        from verax import files

        paths: dict[str, Files] = dict(files.name_files(given))
        answers = read_each(paths, reading)
        if len(answers) < 2:
            raise InputError(
                "Compare takes two models or more; evaluate takes one",
                argument="path",
                remedies=[passing("for models that are stacked in rows", model_column=...)],
            )
        names = {name: called(paths.get(name, next(iter(paths.values())))) for name in answers}
        models = {model_answers.model for model_answers in answers.values()} - {None}
        if all(os.path.exists(text) for text in given) and len(models) == len(answers):
            # Nobody named the models, and their logs do.
            answers = {str(model_answers.model): model_answers for model_answers in answers.values()}
            names = dict(zip(answers, names.values(), strict=True))
        return cls(answers, names, reading, scored)

    def arguments(self) -> dict[str, Any]:
        """Keywords of `compare_grades`; with confidences if these are to be `scored`."""
        from verax.wings.evals.reading.files import as_mapping

        ids = as_mapping(self.answers, "ids")
        if ids is not None and any(answers is None for answers in ids.values()):
            raise InputError("must be in all files", argument="id")
        kinds = [len(answers.groups) for answers in self.answers.values()]
        keywords: dict[str, Any] = {
            "grades": {name: answers.grades for name, answers in self.answers.items()},
            "grade_range": self.reading.grade_range,
            "ids": ids,
            "ungraded": self.reading.ungraded,
            "invalid": self.reading.invalid,
        }
        if self.scored:
            keywords["p"] = as_mapping(self.answers, "confidences")
        for name, column in (("epochs", "epochs"), ("task", "task"), ("weights", "weights")):
            value = as_mapping(self.answers, column)
            keywords[name] = value if ids is not None or value is None else next(iter(value.values()))
        if kinds[0]:
            groups = [
                {name: answers.groups[i] for name, answers in self.answers.items()} for i in range(kinds[0])
            ]
            keywords["groups"] = groups if len(groups) > 1 else groups[0]
            if ids is None:
                keywords["groups"] = next(iter(groups[0].values()))
        return keywords

    @property
    def about(self) -> AboutFiles:
        """How files were read, and how answers were matched."""
        said = {name: list(answers.taken) for name, answers in self.answers.items()}
        first = next(iter(self.answers.values()))
        matched = "the order of the rows" if first.ids is None else ", ".join(first.columns.id)
        return AboutFiles(said, said, f"by {matched}")


Typed.reading |= {"missing", "shared_ids"}
