"""Faults of top lists that are not in memory, for results: invalid lists, and names that do not match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.lists.rows import ListFaults, ListRows

_NAME = "faults of {}"


@dataclass(frozen=True)
class FaultRecipe(Recipe[ListFaults], cases=True):
    """The recipe of the faults of one model's lists."""

    model: str

    def take(self, part: Part) -> ListFaults:
        """Count the faults of one part."""
        rows = part.models[self.model]
        assert isinstance(rows, ListRows)
        return rows.faults


def with_fault_recipes(handle: Handle, recipes: Mapping[str, Recipe[Any]]) -> dict[str, Recipe[Any]]:
    """These recipes, and where the forecasts are top lists what finds their faults."""
    return {**recipes, **{_NAME.format(model): FaultRecipe(model) for model in handle.listed}}


def faults_in(handle: Handle, summaries: Summaries) -> dict[str, ListFaults]:
    """The faults by the name of each model, or without a name where there is one model only."""
    faults: dict[str, ListFaults] = {model: summaries[_NAME.format(model)] for model in handle.listed}
    return faults if handle.several or not faults else {"": next(iter(faults.values()))}
