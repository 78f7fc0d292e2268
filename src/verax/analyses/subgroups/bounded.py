"""Subgroups of a column that may have very many values: no more than some are kept.

Where there are more, none is: which are the largest is known only at the end, and what was not kept of them
before would be lost. So what is kept does not depend on how rows are divided.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.calibration.eventsums import EventSums
from verax.analyses.cards.scorecard import Scorecard
from verax.common.packing import dump, load, refusing
from verax.inputs.breakdown import MISSING, Breakdown, labels_of
from verax.inputs.handles import Part, Recipe
from verax.inputs.rows import without_groups

_KIND = "bounded subgroups"
# How many bins the events of all subgroups have together, for each model; each has the same share of them.
_BINS = 2**18
# So many times as many there may be before they are counted.
_SPARE = 4


@dataclass(frozen=True)
class BoundedBreakdown:
    """Summaries of every subgroup, if there are few.

    Attributes
    ----------
    most : int
        How many subgroups are kept.
    found : Breakdown or None
        The summaries; None where there are more subgroups.
    alone : Breakdown or None
        The same without the groups of rows, as long as each subgroup is one group.
    """

    most: int
    found: Breakdown | None
    alone: Breakdown | None

    def merge(self, other: BoundedBreakdown) -> BoundedBreakdown:
        """Those of the rows of both."""
        if self.found is None or other.found is None:
            return BoundedBreakdown(self.most, None, None)
        alone = None if self.alone is None or other.alone is None else _both(self.alone, other.alone)
        return BoundedBreakdown(self.most, _both(self.found, other.found), alone).fitting()

    def fitting(self, spare: int = _SPARE) -> BoundedBreakdown:
        """No more than is kept; while parts are merged there may be some bins to spare."""
        if self.found is None or len(self.found.found) > self.most:
            return BoundedBreakdown(self.most, None, None)
        alone = self.alone if self.alone is not None and _one_group_each(self.found) else None
        return BoundedBreakdown(
            self.most, _coarse(self.found, spare), None if alone is None else _coarse(alone, spare)
        )

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        fit = self.fitting(1)
        stored = {
            name: None if own is None else own.to_bytes()
            for name, own in (("found", fit.found), ("alone", fit.alone))
        }
        return dump(_KIND, {"most": self.most, **stored})

    @classmethod
    def from_bytes(cls, data: bytes) -> BoundedBreakdown:
        """What `to_bytes` wrote."""
        values = load(data, _KIND)
        with refusing("is missing or of another type"):
            both = [
                None if values[name] is None else Breakdown.from_bytes(values[name])
                for name in ("found", "alone")
            ]
            return cls(int(values["most"]), *both)


def _both(one: Breakdown, other: Breakdown) -> Breakdown:
    """The subgroups of both; labels are texts as soon as a row has none."""
    if any(MISSING in each.found for each in (one, other)):
        one, other = (Breakdown({str(label): own for label, own in x.found.items()}) for x in (one, other))
    return one.merge(other)


def _one_group_each(found: Breakdown) -> bool:
    """Whether each subgroup is one group."""
    cards = (own for summaries in found.found.values() for own in summaries.values())
    return all(card.n_groups == 1 for card in cards if isinstance(card, Scorecard))


def _coarse(found: Breakdown, spare: int) -> Breakdown:
    """With as few bins joined as fit into memory; without bins to spare, whatever the order of merging."""
    most = _BINS // max(1, len(found.found))
    return Breakdown(
        {
            label: {
                name: own.at_most(most, spare) if isinstance(own, EventSums) else own
                for name, own in summaries.items()
            }
            for label, summaries in found.found.items()
        }
    )


@dataclass(frozen=True)
class BoundedRecipe(Recipe[BoundedBreakdown]):
    """The summaries of each subgroup of a column by the same recipes, if there are no more than `most`."""

    column: str
    recipes: Mapping[str, Recipe[Any]]
    most: int

    def take(self, part: Part) -> BoundedBreakdown:
        """Those of some rows."""
        return self.more(part, None)

    def more(self, part: Part, found: BoundedBreakdown | None) -> BoundedBreakdown:
        """Those of some rows, unless there are too many subgroups already."""
        assert part.subset is not None
        groups = labels_of(part.by[self.column], part.n_rows)
        if (found is not None and found.found is None) or len(groups.labels) > self.most:
            return BoundedBreakdown(self.most, None, None)
        parts: dict[Hashable, Part] = {}
        order = np.argsort(groups.codes, kind="stable")
        ends = np.cumsum(np.bincount(groups.codes, minlength=len(groups.labels)))[:-1]
        for label, rows in zip(groups.labels.tolist(), np.split(order, ends), strict=True):
            parts[label] = part if len(rows) == part.n_rows else part.subset(rows)
        alone = None
        if part.rows.groups is not None and (found is None or found.alone is not None):
            alone = self._taken({label: _ungrouped(own) for label, own in parts.items()})
        taken = BoundedBreakdown(self.most, self._taken(parts), alone)
        # What is merged with others is made to fit then.
        return taken.fitting() if found is None else taken

    def _taken(self, parts: Mapping[Hashable, Part]) -> Breakdown:
        return Breakdown(
            {
                label: {name: recipe.take(part) for name, recipe in self.recipes.items()}
                for label, part in parts.items()
            }
        )

    def load(self, stored: bytes) -> BoundedBreakdown:
        """Subgroups from their bytes."""
        return BoundedBreakdown.from_bytes(stored)


def _ungrouped(part: Part) -> Part:
    """Rows that are taken to be independent."""
    models = {name: without_groups(rows) for name, rows in part.models.items()}
    return replace(part, models=models, subset=None, _made={})
