"""The section on recalibration, as the report asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from verax.analyses.sampled import list_sample_recipe, sample_recipe
from verax.inference.findings import Finding
from verax.inputs.handles import Recipe
from verax.report.contents import Contents, Findings
from verax.report.figures import Shown
from verax.report.problem import Problem
from verax.report.section import Answered, Asked, Placed, Section, Turn
from verax.wings.recalibrate.records import LISTS, rows_tried
from verax.wings.recalibrate.section.analysis import (
    RecalibrationBenefit,
    Tried,
    remedies_of,
    remedies_of_lists,
    try_recalibration,
)
from verax.wings.recalibrate.section.charts import remedy_figures
from verax.wings.recalibrate.section.exhibit import remedy_exhibit

_ALL = "all models"


class Remedies(Section[dict[str, RecalibrationBenefit]]):
    """What recalibration would bring to every model, by its name on the page."""

    key = "recalibration"
    title = "Recalibration"
    after = "worst"
    template = "recalibrate/section.html.j2"
    turn: ClassVar[Turn] = "beside"

    def recipes(self, asked: Asked) -> dict[str, Recipe[Any]]:
        """A sample of the rows, or of each model's lists.

        Merged files of several versions have samples of several sizes, and none in common.
        """
        handle = asked.handle
        if asked.problem.lists:
            return asked.known({model: list_sample_recipe(handle, model, LISTS) for model in handle.models})
        return asked.known({_ALL: sample_recipe(handle, rows_tried(handle.n_classes))})

    def read(self, found: Answered) -> dict[str, RecalibrationBenefit] | Tried:
        """What was tried; the remedies of lists, whose events are the same everywhere."""
        problem, confidence, seed = found.problem, found.plan.confidence, found.plan.seed
        if problem.lists:
            return remedies_of_lists(problem, found.answers, confidence=confidence, seed=seed)
        return try_recalibration(problem, found.answers.get(_ALL), confidence=confidence, seed=seed)

    def concluded(
        self, read: dict[str, RecalibrationBenefit] | Tried, problem: Problem, findings: Sequence[Findings]
    ) -> dict[str, RecalibrationBenefit]:
        """The remedies, with curves of the most miscalibrated events."""
        if not isinstance(read, Tried):
            return read
        return remedies_of(problem, read, {model.name: model.panels for model in findings})

    def exhibit(self, contents: Contents) -> dict[str, Any]:
        """The tables and figures of all models."""
        return remedy_exhibit(contents, self._of_models(contents))

    def figures(self, contents: Contents) -> dict[str, Shown]:
        """Reliability before and after."""
        return remedy_figures(contents, self._of_models(contents))

    def methods(self, contents: Contents) -> list[Placed[str]]:
        """How the gain was estimated."""
        text = (
            "The gain of recalibration was estimated by cross-validation. A method is used if calibration is "
            "rejected (Rao's score test, 5 %) and its gain exceeds one standard error."
        )
        return [] if contents.problem.lists else [("calibration", text)]

    def remedies(self, contents: Contents) -> tuple[Finding, ...]:
        """What recalibration would bring to the best model."""
        tried = (self.found(contents) or {})[contents.best.name].recalibration
        return () if tried is None else tried.verdict.findings

    def sampled(self, contents: Contents) -> str:
        """Recalibration, where there are very many rows."""
        tried = [remedy.recalibration for remedy in self._of_models(contents)]
        part = any(one is not None and one.n_rows < contents.problem.n_rows for one in tried)
        return "those of recalibration, which is tried on a random sample" if part else ""

    def of_model(self, contents: Contents, model: Findings) -> dict[str, Any]:
        """The remedy of one model, and which events are too high or too low."""
        tried = (self.found(contents) or {})[model.name].recalibration
        biases = [] if model.dense is None else model.dense.class_biases
        return {
            "recalibration": {
                "recalibration": None if tried is None else tried.to_dict(stored=False),
                "verdict": None if tried is None else tried.verdict,
                "leanings": [bias.to_dict() for bias in biases],
            }
        }

    def _of_models(self, contents: Contents) -> list[RecalibrationBenefit]:
        found = self.found(contents) or {}
        return [found[model.name] for model in contents.findings]


REMEDIES = Remedies()
