"""The rows of a handle that have one label, as a handle: what is asked of all rows is asked of each label."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.inputs.breakdown import BreakdownRecipe, parts_by
from verax.inputs.groups import Groups
from verax.inputs.handles import Handle, Mergeable, Part, Recipe, Summaries
from verax.inputs.memory import InMemory


@dataclass(frozen=True)
class OfLabel(Recipe[Any], cases=True):
    """A recipe for the rows with one label."""

    recipe: Recipe[Any]
    column: str
    label: Hashable

    @property
    def follows(self) -> bool:
        return self.recipe.follows

    def take(self, part: Part) -> Mergeable:
        """Of some rows, of which none may have the label."""
        rows = np.flatnonzero(np.asarray(part.by[self.column]) == self.label)
        assert part.subset is not None
        found: Mergeable = self.recipe.take(part if len(rows) == part.n_rows else part.subset(rows))
        return found

    def load(self, stored: bytes, sizes: Any = None) -> Any:
        """A summary from its bytes."""
        return self.recipe.load(stored, sizes)


class Labelled(Handle):
    """The rows of a handle that have one label of a column."""

    def __init__(self, handle: Handle, column: str, label: Hashable) -> None:
        self._handle, self._column, self._label = handle, column, label
        for name in (
            "name",
            "models",
            "classes",
            "n_classes",
            "taken",
            "lists",
            "sets",
            "outcome",
            "graded",
            "has_rows",
            "shard",
        ):
            setattr(self, name, getattr(handle, name))
        self.n_rows: int | None = None

    def in_order(self) -> Handle:
        return Labelled(self._handle.in_order(), self._column, self._label)

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return self._handle._summarise(
            {name: OfLabel(recipe, self._column, self._label) for name, recipe in recipes.items()}
        )


def each_label(handle: Handle, column: str) -> list[tuple[Hashable, Handle]]:
    """The rows of each label of a column, wherever they are."""
    part = handle.kept
    if part is None:
        labels = handle.summarise({"labels": BreakdownRecipe(column, {})})["labels"].labels
        return [(label, Labelled(handle, column, label)) for label in labels]
    found: list[tuple[Hashable, Handle]] = []
    for label, own in parts_by(part, Groups.of(part.by[column], part.n_rows)):
        rows = InMemory(own.models, several=True)
        rows.graded = handle.graded
        found.append((label, rows))
    return found
