"""What results say of top lists that are not in memory: how many are invalid, and names that do not match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.lists.rows import ListFaults, ListRows

_NAME = "faults of {}"


@dataclass(frozen=True)
class FaultRecipe(Recipe[ListFaults], cases=True):
    """What there is to say of the lists of one model."""

    model: str

    def take(self, part: Part) -> ListFaults:
        """Of some lists."""
        rows = part.models[self.model]
        assert isinstance(rows, ListRows)
        return rows.faults


def with_fault_recipes(handle: Handle, recipes: Mapping[str, Recipe[Any]]) -> dict[str, Recipe[Any]]:
    """These recipes, and where the forecasts are top lists what finds their faults."""
    return {**recipes, **{_NAME.format(model): FaultRecipe(model) for model in handle.listed}}


def faults_in(handle: Handle, summaries: Summaries) -> dict[str, ListFaults]:
    """What these found: by the name of each model, or without one where there is one model only."""
    faults: dict[str, ListFaults] = {model: summaries[_NAME.format(model)] for model in handle.listed}
    return faults if handle.several or not faults else {"": next(iter(faults.values()))}
