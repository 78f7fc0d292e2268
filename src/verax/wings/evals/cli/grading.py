"""Graded answers at the command line: those of several models, as arguments of a comparison."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verax.cli.models import AboutFiles
from verax.common.paths import Files, called
from verax.errors import InputError, passing
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.wings.evals.reading.files import GradedAnswers


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
        from verax.files.joining import name_files
        from verax.wings.evals.reading.models import read_each

        paths: dict[str, Files] = dict(name_files(given))
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
        columns = {"epochs": "epochs", "task": "task", "weights": "weights", "reasons": "status"}
        for name, column in columns.items():
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
