"""Subgroups of a column that may have very many values: no more than some are kept.

Where there are more, none is: which are the largest is known only at the end, and what was not kept of them
before would be lost. So what is kept does not depend on how rows are divided.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax.analyses.calibration.sums import EventSums
from verax.analyses.cards.scorecard import Scorecard
from verax.common.specs import Valued, Whole
from verax.common.summaries import Summary, merges
from verax.inputs.breakdown import MISSING, Breakdown, labels_of, numbering, ungrouped
from verax.inputs.handles import Part, Recipe

# How many bins the events of all subgroups have together, for each model; each has the same share of them.
_BINS = 2**18
# Bins are counted only when there may be more than this multiple of the limit.
_SPARE = 4


class BoundedBreakdown(Summary, kind="bounded subgroups"):
    """Summaries of every subgroup, if there are few.

    Attributes
    ----------
    most : int
        How many subgroups are kept.
    found : Breakdown or None
        The summaries; None where there are more subgroups.
    alone : Breakdown or None
        The same without the groups of rows, as long as each subgroup is one group.
    beyond : mapping
        The numbers of rows of other subgroups: of rows in memory the largest subgroups are kept.
    """

    most: int = merges(Whole("equal"))
    found: Breakdown | None = merges(Valued(Breakdown, packed=True, optional=True))
    alone: Breakdown | None = merges(Valued(Breakdown, packed=True, optional=True))
    beyond: Mapping[Hashable, int] = field(default_factory=dict)

    def _aligned(self, other: BoundedBreakdown) -> tuple[BoundedBreakdown, BoundedBreakdown]:
        both = [each for each in (self.found, self.alone, other.found, other.alone) if each is not None]
        if not any(MISSING in each.found for each in both):
            return self, other
        return self._with_texts(), other._with_texts()

    def _merged(self) -> BoundedBreakdown:
        return self.fitting()

    def _with_texts(self) -> BoundedBreakdown:
        """With texts as labels, which they are as soon as a row has none."""
        return replace(self, found=_with_texts(self.found), alone=_with_texts(self.alone))

    def fitting(self, spare: int = _SPARE) -> BoundedBreakdown:
        """No more than is kept; while parts are merged there may be some bins to spare."""
        if self.found is None or len(self.found.found) > self.most:
            return BoundedBreakdown(self.most, None, None)
        alone = self.alone if self.alone is not None and _one_group_each(self.found) else None
        return replace(
            self, found=_coarse(self.found, spare), alone=None if alone is None else _coarse(alone, spare)
        )

    def to_values(self) -> dict[str, Any]:
        """The fields without bins to spare, to be stored."""
        return super(BoundedBreakdown, self.fitting(1)).to_values()


def _with_texts(found: Breakdown | None) -> Breakdown | None:
    return None if found is None else Breakdown({str(label): own for label, own in found.found.items()})


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
class BoundedRecipe(Recipe[BoundedBreakdown], cases=True):
    """The summaries of each subgroup of a column by the same recipes, if there are no more than `most`."""

    column: str
    recipes: Mapping[str, Recipe[Any]]
    most: int
    longer = 4

    def take(self, part: Part) -> BoundedBreakdown:
        """Those of some rows."""
        return self.more(part, None)

    def more(self, part: Part, found: BoundedBreakdown | None) -> BoundedBreakdown:
        """Those of some rows, unless there are too many subgroups already."""
        assert part.subset is not None
        groups = labels_of(part.by[self.column], part.n_rows)
        many = len(groups.labels) > self.most
        if (found is not None and found.found is None) or (many and not part.whole):
            return BoundedBreakdown(self.most, None, None)
        sizes = np.bincount(groups.codes, minlength=len(groups.labels))
        largest = np.argsort(-sizes, kind="stable")
        kept = set(largest[: self.most].tolist())
        order = np.argsort(groups.codes, kind="stable")
        divided = np.split(order, np.cumsum(sizes)[:-1])
        labels = groups.labels.tolist()
        parts: dict[Hashable, Part] = {
            labels[code]: part if len(rows) == part.n_rows else part.subset(rows)
            for code, rows in enumerate(divided)
            if code in kept
        }
        beyond = {labels[code]: int(sizes[code]) for code in largest[self.most :].tolist()}
        alone = None
        if part.rows.groups is not None and (found is None or found.alone is not None):
            alone = self._taken({label: ungrouped(own) for label, own in parts.items()})
        with numbering(part):
            taken = BoundedBreakdown(self.most, self._taken(parts), alone, beyond)
        # What is merged with others is made to fit then.
        return taken.fitting() if found is None else taken

    def _taken(self, parts: Mapping[Hashable, Part]) -> Breakdown:
        return Breakdown(
            {
                label: {name: recipe.take(part) for name, recipe in self.recipes.items()}
                for label, part in parts.items()
            }
        )
