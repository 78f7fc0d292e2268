"""The section on several raters: their disagreement, the excess of the forecasts, and the worth in raters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from verax.analyses.words import clean, number, said, short_of, span
from verax.inputs.handles import Recipe
from verax.report.charts import lines_figure, of_models
from verax.report.contents import Contents, Findings
from verax.report.figures import FULL, Shown
from verax.report.section import Answered, Asked, Placed, Section
from verax.wings.raters.analysis import read_raters, recipe_of
from verax.wings.raters.result import RatedMean, Rater, RaterStudy, raters_figure

# Panels of raters that are drawn: at least, and at most.
_FEWEST, _MOST = 5, 30
_NO_WORTH = "There is no worth in raters: no case has two raters or more."
_CORRECTED = (
    "Rater disagreement is corrected for the number of raters. A panel of r raters used as a "
    "forecast has an expected loss of (1 + 1/r) times the disagreement, so the worth in raters is "
    "disagreement over excess, with Fieller's confidence interval. This assumes raters who label "
    "independently given the case and are interchangeable. Raters with names are a panel that the "
    "interval speaks for; the one for raters in general adds the variance between them."
)
_LINES = {"loss": "Loss", "disagreement": "Rater disagreement", "excess": "Excess of the forecasts"}


class Raters(Section[dict[str, RaterStudy]]):
    """Rater disagreement of every model, where several raters labelled the rows."""

    key = "raters"
    title = "Raters"
    after = "coverage"
    template = "raters/section.html.j2"

    def recipes(self, asked: Asked) -> dict[str, Recipe[Any]]:
        """The sums over the raters of each model."""
        if asked.problem.lists or not asked.handle.rated:
            return {}
        rule = asked.problem.calibrated_by
        return asked.known({model: recipe_of(model, rule) for model in asked.handle.models})

    def read(self, found: Answered) -> dict[str, RaterStudy] | None:
        """The study of each model."""
        problem, n_rows, level = found.problem, found.summaries.n_rows, found.plan.confidence
        return {
            shown: read_raters(found.answers[model], problem.calibrated_by, n_rows, (), level, problem.names)
            for model, shown in problem.models.items()
            if model in found.answers
        } or None

    def exhibit(self, contents: Contents) -> dict[str, Any] | None:
        """Rater disagreement for each model; None where there is one outcome per row."""
        studies = self.found(contents)
        if studies is None:
            return None
        first, *_ = studies.values()
        return {
            "rule": said(first.rule),
            "about": _about(first),
            "models": [_model(study) for study in studies.values()],
            "named": bool(first.raters),
        }

    def figures(self, contents: Contents) -> dict[str, Shown]:
        """The losses of all models beside those of panels of 1, 2, 3, ... raters."""
        studies = self.found(contents)
        if studies is None:
            return {}
        first, *_ = studies.values()
        if not math.isfinite(first.disagreement.value):
            return {}
        figure = raters_figure(studies, _FEWEST, _MOST)
        figure = replace(figure, y=replace(figure.y, label=f"{short_of(first.rule)}, mean loss"))
        return {"raters": of_models(contents, lambda m: lines_figure(figure, list(studies), m), FULL)}

    def facts(self, contents: Contents, whose: str) -> list[Placed[tuple[str, str]]]:
        """What the forecasts of the best model are worth."""
        study = self._best(contents)
        if study is None or not math.isfinite(study.worth.value):
            return []
        return [("skill", (f"worth in raters{whose}", number(study.worth.value, 2)))]

    def conventions(self, contents: Contents) -> list[Placed[str]]:
        """What disagreement is, and what the worth assumes."""
        return [("raters", _CORRECTED)] if self._best(contents) is not None else []

    def methods(self, contents: Contents) -> list[Placed[str]]:
        """The worth, with its interval."""
        study = self._best(contents)
        return [("raters", study.verdict)] if study is not None and study.verdict else []

    def of_model(self, contents: Contents, model: Findings) -> dict[str, Any]:
        """The study of one model."""
        studies = self.found(contents) or {}
        return {"raters": studies[model.name].to_dict(stored=False)} if model.name in studies else {}

    def _best(self, contents: Contents) -> RaterStudy | None:
        """The study of the best model."""
        return (self.found(contents) or {}).get(contents.best.name)


RATERS = Raters()


def _about(study: RaterStudy) -> str:
    """How many raters there are, and which cases enter what."""
    mean = study.mean_raters
    texts = [
        "The number of raters is not known: their shares are treated as exact."
        if mean is None
        else f"A case has {mean:.3g} raters on average."
    ]
    single = study.n_rows - study.n_rated
    if single:
        cases = "1 case has" if single == 1 else f"{single:,} cases have"
        texts.append(f"{cases} one rater, and so no disagreement: they enter the loss only.")
    return " ".join(texts)


def _model(study: RaterStudy) -> dict[str, Any]:
    lines = [(title, *_cells(getattr(study, name))) for name, title in _LINES.items()]
    worth = [("Worth in raters", *_cells(study.worth, 2))]
    if study.general is not None:
        worth.append(("Worth, raters in general", *_cells(study.general, 2)))
    return {
        "words": " ".join(filter(None, [study.verdict or _NO_WORTH, study.assumption])),
        "lines": [*lines, *worth],
        "raters": [_rater(rater) for rater in study.raters],
    }


def _cells(mean: RatedMean, digits: int = 4) -> tuple[str, str]:
    """A number and its interval, as far as there are such."""
    if math.isnan(mean.value):
        return "–", ""
    low, high = mean.interval
    if math.isinf(high) and not math.isinf(low):
        return number(mean.value, digits), f"at least {number(low, digits)}"
    return number(mean.value, digits), span(mean.interval, digits)


def _rater(rater: Rater) -> dict[str, Any]:
    return {
        "name": clean(rater.name),
        "n": f"{rater.n_rows:,}",
        "cells": [_cells(mean) for mean in (rater.against, rater.own, rater.gain)],
    }
