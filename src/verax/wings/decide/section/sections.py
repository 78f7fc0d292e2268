"""The sections on two classes and on confident rows, as the report asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from verax.analyses.rates import RATES
from verax.analyses.words import clean, number
from verax.common.texts import percent
from verax.report.contents import Contents
from verax.report.figures import Shown
from verax.report.section import Answered, Placed, Section
from verax.wings.decide.section.analysis import ThresholdCurves, TwoClassCurves, find_thresholds
from verax.wings.decide.section.charts import rate_figures
from verax.wings.decide.section.exhibit import confidence_exhibit, thresholds_exhibit


class DecisionSection(Section[ThresholdCurves]):
    """Curves over thresholds: ROC, precision-recall, decision curves and rates of two classes."""

    key = "thresholds"
    title = "ROC and thresholds"
    after = "coverage"
    template = "decide/thresholds.html.j2"

    def read(self, found: Answered) -> ThresholdCurves | None:
        """The curves, from further passes; None for top lists, and where these would take too long."""
        return None if found.problem.lists else find_thresholds(found.handle, found.problem, found.plan)

    def exhibit(self, contents: Contents) -> dict[str, Any] | None:
        """The section on two classes; None for more, and where it was not computed."""
        found = self.found(contents)
        if found is None or found.two is None:
            return None
        confident = confidence_exhibit(contents, found.confidence)
        return {**thresholds_exhibit(contents, found.two), "confident": confident}

    def figures(self, contents: Contents) -> dict[str, Shown]:
        """The figures over thresholds; none where the curves were not computed."""
        found = self.found(contents)
        return {} if found is None else rate_figures(contents, found)

    def facts(self, contents: Contents, whose: str) -> list[Placed[tuple[str, str]]]:
        """How often the event was observed, and the area under the ROC curve."""
        two = self._two(contents)
        if two is None:
            return []
        best = [model.name for model in contents.findings].index(contents.best.name)
        observed = percent(two.net_benefit.curves[best].prevalence, 1)
        return [
            ("classes", (f"observed {clean(contents.problem.titles[1], 40)}", observed)),
            ("", (f"ROC AUC{whose}", number(two.roc.curves[best].area, 3))),
        ]

    def scored(self, contents: Contents) -> list[str]:
        """Rates of two classes, by threshold."""
        return [] if self._two(contents) is None else [name for name in RATES if name != "accuracy"]

    def conventions(self, contents: Contents) -> list[Placed[str]]:
        """What is left out for many rows."""
        problem = contents.problem
        if problem.n_classes != 2 or problem.lists or self.found(contents) is not None:
            return []
        text = (
            "ROC, precision-recall and decision curves take further passes over the rows, so they are left "
            f"out for {problem.n_rows:,} rows. `verax decide` and `vx.roc_curve` compute them."
        )
        return [("limits", text)]

    def methods(self, contents: Contents) -> list[Placed[str]]:
        """What a paper on a model of two classes says besides."""
        two = self._two(contents)
        if two is None:
            return []
        rate, event = two.net_benefit.curves[0].prevalence, clean(contents.problem.titles[1], 60)
        grouped = contents.problem.grouped
        areas = "confidence intervals over groups" if grouped else "DeLong's confidence intervals"
        rates = "Wilson's confidence intervals" + (" with variances over groups" if grouped else "")
        text = (
            f"The event was {event}, observed in {percent(rate, 1)} of the rows. "
            f"Discrimination was assessed by the area under the ROC curve, with {areas}, "
            "and by average precision; clinical utility by net benefit (Vickers and Elkin, 2006). "
            f"Sensitivity, specificity and predictive values have {rates}; at thresholds "
            "chosen on the data they were estimated by cross-validation."
        )
        return [("gains", text)]

    def of_all(self, contents: Contents) -> dict[str, Any]:
        """All curves."""
        found = self.found(contents)
        return {} if found is None else found.to_dict()

    def _two(self, contents: Contents) -> TwoClassCurves | None:
        """The curves of two classes."""
        found = self.found(contents)
        return None if found is None else found.two


class Confidence(Section[ThresholdCurves]):
    """Accuracy by confidence beside curves of dropped cases, where the section on two classes has it not."""

    key = "confidence"
    inside: ClassVar[Mapping[str, str]] = {
        "retention: figures": "decide/confidence_figure.html.j2",
        "retention: numbers": "decide/confidence_numbers.html.j2",
    }

    def exhibit(self, contents: Contents) -> dict[str, Any] | None:
        """The numbers of each model."""
        found = DECISIONS.found(contents)
        if found is None or found.two is not None:
            return None
        return {"confident": confidence_exhibit(contents, found.confidence)}


DECISIONS, CONFIDENCE = DecisionSection(), Confidence()
