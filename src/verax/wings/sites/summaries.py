"""What is kept of the rows of each site."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.analyses.discrimination.counts import Ranked, RankSource
from verax.analyses.parts import scaled
from verax.analyses.unitsums import UnitColumns, UnitRecipe
from verax.inputs.arrays import Floats, to_host
from verax.inputs.groups import Groups
from verax.inputs.handles import Part
from verax.scores.base import Rule, losses_of


def rank_source(model: str, *, copies: bool) -> RankSource:
    """The probabilities of the second of two classes, by outcome."""
    return RankSource(model, ordered=False, means=False, n_events=1, n_outcomes=2, copies=copies)


@dataclass(frozen=True)
class LossRecipe(UnitRecipe):
    """Sums of the loss over rows and groups.

    Attributes
    ----------
    model : str
        The model.
    rule : Rule
        The rule.
    copies : bool
        Whether weights are numbers of rows.
    """

    model: str
    rule: Rule
    copies: bool = field(default=False, repr=False)

    def columns(self, part: Part) -> UnitColumns:
        """The losses of all rows of a part."""
        rows = part.models[self.model]
        losses = np.asarray(to_host(losses_of([self.rule], rows)[0]), float)
        given = None if rows.weights is None else np.asarray(to_host(rows.weights), float)
        w = np.ones(len(losses)) if given is None else given if self.copies else scaled(part, given)
        kept, groups = w > 0, rows.groups
        if not kept.all():
            w, losses = w[kept], losses[kept]
            groups = None if groups is None else Groups(groups.codes[kept], groups.labels)
        return UnitColumns(w, (losses * w)[None, None], groups, w if self.copies and groups is None else None)


@dataclass(frozen=True)
class InfluenceOfSites(UnitRecipe):
    """The influence of the rows of one site on its estimates, summed over groups.

    Attributes
    ----------
    source : RankSource
        What ranks the rows.
    column : str
        The column of sites.
    cells : mapping of label to (Ranked, array of shape (C, B))
        The cells of each site, and the influence of a row of each cell on each estimate.
    exact : mapping of label to bool
        Whether every distinct forecast of a site has a cell of its own.
    """

    source: RankSource
    column: str
    cells: Mapping[Hashable, tuple[Ranked, Floats]]
    exact: Mapping[Hashable, bool]

    @property
    def follows(self) -> bool:
        return True

    def columns(self, part: Part) -> UnitColumns:
        """The influences of all rows of a part, which are of one site."""
        label: Any = Groups.of(part.by[self.column], part.n_rows).labels.tolist()[0]
        ranked, influence = self.cells[label]
        units = self.source.rows(part).units
        (cells,) = self.source.cells(part, exact=self.exact[label])
        columns = influence[ranked.cells_of(cells)].T
        return UnitColumns(units.share, (columns * units.share)[None], units.groups)
