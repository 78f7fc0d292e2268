"""Graded answers at the command line: the options of files that have grades in place of probabilities."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from verax.cli.arguments import Typed
from verax.cli.options import Reading, keyword, reads_files, split
from verax.common.paths import Files, called
from verax.errors import InputError, Remedy, passing, show

if TYPE_CHECKING:
    from verax.files.grades import GradeColumns, GradedAnswers

GradeColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of grades: 1 and 0, true and false, or scores in --grade-range. Empty cells were not "
        "graded. Of an evaluation log, the metric. By default found by name.",
    ),
]
GradeRange = Annotated[str, typer.Option(metavar="LOW,HIGH", help="Worst and best possible grade.")]
Answer = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of answers, which are right if they equal --gold as texts."),
]
Gold = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of right answers, in place of --grade.")
]
ConfidenceColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of confidences: the probability that an answer is right."),
]
ModelColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of models whose answers are stacked in one file."),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of tasks: also report each, with Holm's correction over all."
    ),
]
Epoch = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that numbers the repeats of a question; these are clustered by question.",
    ),
]
Ungraded = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="Answers that were not graded: bounds, exclude or wrong. bounds: leave them out, and show what "
        "they could change; exclude: leave them out, and count them; wrong: give them the worst grade.",
    ),
]

# What files of graded answers have of the options of predictions.
_OF_ANSWERS = (
    *("row_id", "groups", "weights", "weights_are", "by", "percent", "skip_invalid", "delimiter", "decimal"),
    *("stdin_format", "per_length"),
)
_WITHOUT = {name: "" for name in Reading.__dataclass_fields__ if name not in _OF_ANSWERS}
# The metrics of logs that choose by log-likelihoods per character.
_PER_LENGTH = ("acc_norm", "acc_per_char")


@dataclass(frozen=True)
class Grading:
    """How a file of graded answers is read: the options that `reads_answers` adds to a command."""

    grade: GradeColumn = None
    grade_range: GradeRange = "0,1"
    answer: Answer = None
    gold: Gold = None
    confidence_column: ConfidenceColumn = None
    model_column: ModelColumn = None
    task: Task = None
    epoch: Epoch = None
    ungraded: Ungraded = "bounds"

    @property
    def ends(self) -> tuple[float, float]:
        """The worst and the best possible grade."""
        try:
            low, high = map(float, self.grade_range.split(","))
        except ValueError:
            raise InputError(
                "must be two numbers, such as 0,1",
                argument="grade_range",
                values=[self.grade_range],
            ) from None
        return low, high

    def columns(self, reading: Reading) -> GradeColumns:
        """Which column is what."""
        from verax.files.grades import GradeColumns

        return GradeColumns(
            self.grade,
            self.answer,
            self.gold,
            self.confidence_column,
            reading.percent,
            tuple(split(reading.row_id)),
            self.epoch,
            self.model_column,
            self.task,
            tuple(split(reading.groups)),
            reading.weights,
            by=tuple(reading.bins),
        )

    def are_in(self, paths: Files, reading: Reading) -> bool:
        """Whether files hold grades, by the names of columns, or in logs."""
        from verax.files.grades import holds_grades, is_log

        named = reading.probs or reading.target or reading.raters or reading.rater_column or reading.shape
        if named:
            return False
        kind = is_log(paths)
        if kind == "inspect" and reading.classes is None:
            return True
        if kind is not None:
            # Logs of choices with their likelihoods are lists; `verax evals` reads their grades.
            return not _lists(paths, reading)
        return holds_grades(paths, self.columns(reading), reading.request)

    def _check(self, reading: Reading) -> None:
        """Refuse lengths of choices where the metric does not choose by them."""
        if reading.per_length and self.grade not in _PER_LENGTH:
            raise InputError(
                "is about lists: the confidences of grades are those of the choices that a metric graded",
                argument="per_length",
                found=f"the grades are those of {show(self.grade)}" if self.grade else "",
                remedies=[passing("for choices by log-likelihood per character", grade=_PER_LENGTH[0])],
            )

    def read_one(
        self, path: Files, reading: Reading, *, questions: bool = False, named: bool = False
    ) -> GradedAnswers:
        """The answers of the only model; see `read_graded`."""
        from verax.files.grades import read_graded

        self._check(reading)
        if self.model_column is not None:
            found = self.read({"": path}, reading)
            if len(found) > 1:
                raise InputError(
                    "must name one model here",
                    argument="model_column",
                    found=f"there are {len(found)}",
                    remedies=[Remedy("`verax evals compare` takes several models.")],
                )
            return next(iter(found.values()))
        own = self.columns(reading)
        return read_graded(path, own, reading.request, questions=questions, named=named)

    def read(self, paths: Mapping[str, Files], reading: Reading) -> dict[str, GradedAnswers]:
        """The answers of each model, of files of their own or stacked in one."""
        from verax.files.grades import read_graded, read_stacked

        self._check(reading)
        columns = self.columns(reading)
        if self.model_column is None:
            return {
                name: read_graded(path, columns, reading.request, named=True) for name, path in paths.items()
            }
        if len(paths) > 1:
            raise InputError(
                "must be left out where every model has a file of its own",
                argument="model_column",
                values=[self.model_column],
            )
        return read_stacked(next(iter(paths.values())), columns, reading.request)


def _lists(paths: Files, reading: Reading) -> bool:
    try:
        return reading.holds_lists(paths)
    except InputError:
        return False


def reads_answers(**without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of graded answers, as its parameters `grading` and `reading`.

    Parameters
    ----------
    **without : str
        Options of `Reading` that the command has no use for, each with the reason.
    """
    hints = get_type_hints(Grading, include_extras=True)
    own = [keyword(name, getattr(Grading, name), hint) for name, hint in hints.items()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            grading = Grading(**{parameter.name: given.pop(parameter.name) for parameter in own})
            command(grading=grading, **given)

        signature = inspect.signature(command, eval_str=True)
        known = [p for p in signature.parameters.values() if p.name != "grading"]
        parameters = own + [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in known]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return reads_files(lists=True, without={**_WITHOUT, **without})(run)

    return decorate


@dataclass(frozen=True)
class GradedFiles:
    """The answers of several models as arguments of `compare_grades`, and what to say of them."""

    answers: Mapping[str, GradedAnswers]
    files: Mapping[str, str]
    grading: Grading
    reading: Reading
    scored: bool

    @classmethod
    def of(cls, given: list[str], grading: Grading, reading: Reading, *, scored: bool) -> GradedFiles:
        """The files that were named."""
        from verax import files

        paths: dict[str, Files] = dict(files.name_files(given))
        answers = grading.read(paths, reading)
        if len(answers) < 2:
            raise InputError(
                "Compare takes two models or more; evaluate takes one",
                argument="path",
                remedies=[passing("for models that are stacked in rows", model_column=...)],
            )
        names = {name: called(paths.get(name, next(iter(paths.values())))) for name in answers}
        models = {own.model for own in answers.values()} - {None}
        if all(os.path.exists(text) for text in given) and len(models) == len(answers):
            # Nobody named the models, and their logs do.
            answers = {str(own.model): own for own in answers.values()}
            names = dict(zip(answers, names.values(), strict=True))
        return cls(answers, names, grading, reading, scored)

    def arguments(self) -> dict[str, Any]:
        """Keywords of `compare_grades`; with confidences if these are to be `scored`."""
        from verax.files.grades import as_mapping

        ids = as_mapping(self.answers, "ids")
        if ids is not None and any(own is None for own in ids.values()):
            raise InputError("must be in all files", argument="id")
        kinds = [len(own.groups) for own in self.answers.values()]
        found: dict[str, Any] = {
            "grades": {name: own.grades for name, own in self.answers.items()},
            "grade_range": self.grading.ends,
            "ids": ids,
            "ungraded": self.grading.ungraded,
            "invalid": "skip" if self.reading.skip_invalid else "raise",
        }
        if self.scored:
            found["p"] = as_mapping(self.answers, "confidences")
        for name, column in (("epochs", "epochs"), ("task", "task"), ("weights", "weights")):
            value = as_mapping(self.answers, column)
            found[name] = value if ids is not None or value is None else next(iter(value.values()))
        if kinds[0]:
            groups = [{name: own.groups[i] for name, own in self.answers.items()} for i in range(kinds[0])]
            found["groups"] = groups if len(groups) > 1 else groups[0]
            if ids is None:
                found["groups"] = next(iter(groups[0].values()))
        return found

    @property
    def said(self) -> dict[str, list[str]]:
        """How the file of each model was read."""
        return {name: list(own.taken) for name, own in self.answers.items()}

    @property
    def matched(self) -> str:
        """How answers were matched."""
        first = next(iter(self.answers.values()))
        return "by the order of the rows" if first.ids is None else f"by {', '.join(first.columns.id)}"


Typed.reading |= {*Grading.__dataclass_fields__, "missing", "shared_ids"}
