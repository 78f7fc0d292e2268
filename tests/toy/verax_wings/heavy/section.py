"""The section of the report: what it asks of the rows of the page, and what its template shows."""

from __future__ import annotations

from typing import Any

from verax.inputs.handles import Recipe
from verax.report.contents import Contents
from verax.report.section import Answered, Asked, Section
from verax.scores.registry import parse

from .analysis import concluded
from .result import HeavyLosses
from .summaries import HeavyRecipe

RULE, LIMIT = parse("brier"), 0.5


class Heavy(Section[dict[str, HeavyLosses]]):
    """The heavy rows of each model."""

    key = "heavy"
    title = "Heavy losses"
    after = "worst"
    template = "heavy/section.html.j2"

    def recipes(self, asked: Asked) -> dict[str, Recipe[Any]]:
        """The sums of each model."""
        return asked.known({model: HeavyRecipe(model, RULE, LIMIT) for model in asked.handle.models})

    def read(self, found: Answered) -> dict[str, HeavyLosses] | None:
        """The result of each model, by the name that the page shows."""
        names = found.problem.models
        return {names[model]: concluded(sums, RULE, LIMIT) for model, sums in found.answers.items()} or None

    def exhibit(self, contents: Contents) -> dict[str, Any] | None:
        """A line for each model."""
        results = self.found(contents)
        return None if results is None else {"lines": [(name, one.rows) for name, one in results.items()]}


HEAVY = Heavy()
