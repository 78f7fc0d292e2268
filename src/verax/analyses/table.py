"""All rows in memory with their losses and decisions: for what needs an order of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.engines.clusters import effective_groups
from verax.engines.stats import Formula
from verax.inference.bootstrap import drawn_copies, multiplicities
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Batch
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.rows import Rows
from verax.scores.base import losses_of
from verax.scores.decisions import cheapest
from verax.scores.metrics import CostsLike

# The smallest weight is at most this number of units; ratios are whole but for this rounding.
_MOST_UNITS, _ROUNDING = 100, 1e-7
# More different weights than this are not kept, and have no unit.
_MOST_WEIGHTS = 1024
# How many rows are looked at together.
_BLOCK = 2**16


def different(*weights: Floats) -> Floats:
    """The different weights of rows, without zero; infinity alone where they are too many.

    >>> different(np.array([1.0, 1.5, 0.0]), np.array([0.5, 1.0]))
    array([0.5, 1. , 1.5])
    """
    values = np.zeros(0)
    for row_weights in weights:
        for start in range(0, len(row_weights), _BLOCK):
            block = row_weights[start : start + _BLOCK]
            values = np.union1d(values, block[block > 0])
            if len(values) > _MOST_WEIGHTS or np.inf in values[-1:]:
                return np.array([np.inf])
    return values


def common_unit(weights: Floats) -> float | None:
    """The largest number that all of some different weights are whole multiples of; None where there is none.

    >>> common_unit(np.array([1.0, 1.5])), common_unit(np.array([1.0, 2**0.5]))
    (0.5, None)
    """
    if not len(weights):
        return None
    least = float(weights.min())
    with np.errstate(over="ignore", invalid="ignore"):
        relative = weights / least
        for n in range(1, _MOST_UNITS + 1):
            if _whole(n * relative):
                return least / n
    return None


def _whole(numbers: Floats) -> bool:
    return bool((np.abs(numbers - np.rint(numbers)) <= _ROUNDING).all())


@dataclass(frozen=True)
class RowTable:
    """Valid rows in standard form, on the host: curves need all of them.

    Where only their losses and decisions matter, the forecasts themselves (`p`) are left out. Top lists have
    outcomes and losses alone, because they do not always say which class is most likely.

    Attributes
    ----------
    losses : dict
        The value of each row by every rule or metric of rows that was asked for.
    """

    y: Ints
    p: Floats
    decisions: Ints
    losses: dict[Formula, Floats]
    weights: Floats | None
    groups: Groups | None
    n_classes: int

    @classmethod
    def of(
        cls,
        rows: Rows,
        formulas: Sequence[Formula],
        decision_costs: CostsLike | None = None,
        *,
        decided: bool = True,
    ) -> RowTable:
        """Read and check all rows: their losses by some rules or metrics of rows, and their decisions."""
        check_one_way(rows.groups, "decompositions, curves and rankings")
        losses = losses_of(formulas, rows)
        batch = rows.batch(0, rows.n_rows)
        p, decisions = np.zeros((0, 0)), np.zeros(0, np.int64)
        if isinstance(batch, Batch):
            p = to_host(widen(batch.p))
            if decided:
                decisions = np.argmax(p, axis=1) if decision_costs is None else cheapest(p, decision_costs)
        return cls(
            y=to_host(batch.y),
            p=p,
            decisions=decisions,
            losses={formula: to_host(loss) for formula, loss in zip(formulas, losses, strict=True)},
            weights=None if batch.weights is None else to_host(batch.weights),
            groups=rows.groups,
            n_classes=rows.n_classes,
        )

    def weighty(self) -> RowTable:
        """Without rows of weight zero, which are as if absent."""
        if self.weights is None or self.weights.all():
            return self
        rows = np.flatnonzero(self.weights)
        return replace(
            self,
            y=self.y[rows],
            p=self.p[rows] if len(self.p) else self.p,
            decisions=self.decisions[rows] if len(self.decisions) else self.decisions,
            losses={formula: loss[rows] for formula, loss in self.losses.items()},
            weights=self.weights[rows],
            groups=None if self.groups is None else self.groups.at(rows),
        )

    def without_forecasts(self) -> RowTable:
        """The same rows with all but `p`, their classes in as few bytes as they need."""
        if not len(self.decisions):
            return self
        small = np.min_scalar_type(self.n_classes - 1)
        y, decisions = self.y.astype(small), self.decisions.astype(small)
        return replace(self, y=y, decisions=decisions, p=np.zeros((0, self.n_classes)))

    @cached_property
    def cells(self) -> Any:
        """The cell of the confusion table that each row falls into."""
        # In as few bytes as they need, because rows may be many.
        places = self.y.astype(np.min_scalar_type(self.n_classes**2))
        places *= places.dtype.type(self.n_classes)
        places += self.decisions.astype(places.dtype, copy=False)
        return places

    def in_units(self) -> RowTable:
        """The table with weights in their common unit, so that only their ratios matter."""
        if self.weights is None or (unit := self.unit) is None:
            return self
        return replace(self, weights=np.rint(self.weights / unit))

    @cached_property
    def unit(self) -> float | None:
        """The number that all weights are whole multiples of."""
        return 1.0 if self.weights is None else common_unit(different(self.weights))

    @cached_property
    def whole(self) -> bool:
        """Whether all weights are whole numbers."""
        return self.weights is None or bool((self.weights == np.floor(self.weights)).all())

    @property
    def effective_groups(self) -> float | None:
        """How many groups of equal weight tell as much as those of the rows; None without groups."""
        if self.groups is None:
            return None
        return effective_groups(np.bincount(self.groups.codes, self.weights).astype(float))

    def multiplicities(self, n: int, seed: int, *, copies: bool = False) -> Iterator[Floats]:
        """Weights of the rows in each bootstrap replicate; with `copies` weights are numbers of rows."""
        if copies and self.groups is None and self.weights is not None:
            yield from drawn_copies(self.weights, n, seed)
            return
        for drawn in multiplicities(len(self.y), self.groups, n, seed):
            yield drawn.astype(float) if self.weights is None else drawn * self.weights
