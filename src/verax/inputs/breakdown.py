"""Summaries of every subgroup of predictions that are not in memory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.checks import is_whole
from verax.common.packing import dump, load, refusing
from verax.errors import InputError
from verax.inputs.arrays import to_array, to_host
from verax.inputs.groups import Groups
from verax.inputs.handles import Part, Recipe, load_summary

_KIND = "subgroups"
MISSING = "(missing)"


def labels_of(column: Any, n_rows: int) -> Groups:
    """The subgroups that rows belong to; rows without a label have one that says so."""
    raw = to_host(to_array(column, "by")[0])
    if raw.dtype.kind in "fO":
        values = [MISSING if v is None or v != v else v for v in raw.tolist()]
        if any(isinstance(v, str) for v in values):
            raw = np.array([str(v) for v in values], dtype=object)
    try:
        return Groups.of(raw, n_rows)
    except InputError as error:
        raise (error.replace(argument="by") if error.argument == "groups" else error) from None


@dataclass(frozen=True)
class Breakdown:
    """Summaries by name, for each label of a column; parts may have other labels."""

    found: Mapping[Hashable, Mapping[str, Any]]

    def merge(self, other: Breakdown) -> Breakdown:
        """Those of the rows of both."""
        merged = dict(self.found)
        for label, theirs in other.found.items():
            ours = merged.get(label)
            merged[label] = (
                theirs if ours is None else {name: ours[name].merge(theirs[name]) for name in ours}
            )
        return Breakdown(merged)

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        stored = [
            {name: summary.to_bytes() for name, summary in summaries.items()}
            for summaries in self.found.values()
        ]
        return dump(_KIND, {"labels": list(self.found), "summaries": stored})

    @classmethod
    def from_bytes(cls, data: bytes) -> Breakdown:
        """What `to_bytes` wrote, of summaries of any kind."""
        values = load(data, _KIND)
        with refusing("is missing or of another type"):
            pairs = zip(values["labels"], values["summaries"], strict=True)
            return cls(
                {label: {name: load_summary(stored) for name, stored in own.items()} for label, own in pairs}
            )

    @property
    def labels(self) -> list[Any]:
        """The labels in their order."""
        labels: list[Any] = list(self.found)
        if all(map(is_whole, labels)):
            # An array of integers of any size would hold floats.
            return sorted(labels)
        return list(Groups.of(np.array(labels), len(labels)).labels.tolist())

    def __getitem__(self, label: Hashable) -> Mapping[str, Any]:
        return self.found[label]


@dataclass(frozen=True)
class BreakdownRecipe(Recipe[Breakdown]):
    """The summaries of each subgroup of a column by the same recipes."""

    column: str
    recipes: Mapping[str, Recipe[Any]]

    def take(self, part: Part) -> Breakdown:
        """Those of some rows."""
        assert part.subset is not None
        groups = Groups.of(part.by[self.column], part.n_rows)
        found = {}
        for code, label in enumerate(groups.labels.tolist()):
            rows = np.flatnonzero(groups.codes == code)
            own = part if len(rows) == part.n_rows else part.subset(rows)
            found[label] = {name: recipe.take(own) for name, recipe in self.recipes.items()}
        return Breakdown(found)

    def load(self, stored: bytes) -> Breakdown:
        """Subgroups from their bytes."""
        return Breakdown.from_bytes(stored)
