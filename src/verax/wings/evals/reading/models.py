"""The graded answers of one model or of each, as a reading says where they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from verax.common.paths import Files
from verax.errors import InputError, Remedy, passing, show
from verax.inputs.reading import Reading
from verax.wings.evals.reading.files import GradeColumns, GradedAnswers, is_log, read_graded, read_stacked

# The metrics of logs that choose by log-likelihoods per character.
_PER_LENGTH = ("acc_norm", "acc_per_char")


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
    return read_graded(path, GradeColumns.of(reading), reading, questions=questions, named=named)


def read_each(paths: Mapping[str, Files], reading: Reading) -> dict[str, GradedAnswers]:
    """The answers of each model, of files of their own or stacked in one."""
    _check(reading)
    columns = GradeColumns.of(reading)
    if reading.model_column is None and len(paths) == 1:
        ((name, path),) = paths.items()
        if is_log(path) is not None:
            # Tools that compare models write them into one file.
            stacked = read_stacked(path, replace(columns, model="model"), reading)
            return stacked if len(stacked) > 1 else {name: next(iter(stacked.values()))}
    if reading.model_column is None:
        return {name: read_graded(path, columns, reading, named=True) for name, path in paths.items()}
    if len(paths) > 1:
        raise InputError(
            "must be left out where every model has a file of its own",
            argument="model_column",
            values=[reading.model_column],
        )
    return read_stacked(next(iter(paths.values())), columns, reading)
