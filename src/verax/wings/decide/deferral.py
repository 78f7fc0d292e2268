"""Costs and savings of deferring doubtful cases, for several costs of deferring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from verax.analyses.binary import rows_of_part
from verax.analyses.unitsums import Means, UnitColumns, UnitRecipe, means_of
from verax.common.faces import Hidden
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.errors import InputError
from verax.inference.intervals import Interval, check_confidence
from verax.inputs.handles import Part
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.inputs.skipping import MaySkip
from verax.scores.decisions import DEFERRED, cheapest, cheapest_or_deferred, check_deferral
from verax.scores.metrics import CostsLike, cost_matrix, needs_order, row_costs


@reads
def deferral(
    y: object,
    p: object = None,
    *,
    defer: float | Sequence[float],
    costs: CostsLike = "zero_one",
    confidence: float = 0.95,
    **read: Unpack[RowOptions],
) -> Deferral:
    """Number of cases deferred at a given deferral cost, and the resulting mean cost of all decisions.

    By Chow's rule a case is deferred where even the cheapest decision is expected to cost more than deferring
    it. This is optimal if the forecasts are calibrated; the costs shown are observed.

    Parameters
    ----------
    y
    p : array_like of shape (N, K) or (N,), optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough.
    defer : float or sequence of floats
        Cost of deferring a case.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), default "zero_one"
        The costs of decisions; in a matrix each row is an outcome and each column a decision.
    confidence
    **read

    Returns
    -------
    Deferral
        A line for each cost of deferring.

    See Also
    --------
    decide : Defer new cases by the same rule.

    References
    ----------
    Chow (1970), doi:10.1109/TIT.1970.1054406

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [0.1, 0.9, 0.4, 0.6]
    >>> line = vx.deferral(y, p, defer=0.3).lines[0]
    >>> line.deferred, line.cost, line.cost_of_deciding, line.cost_of_decided
    (2, 0.15, 0.5, 0.0)
    """
    check_confidence(confidence)
    several = isinstance(defer, (list, tuple, np.ndarray))
    given = list(np.atleast_1d(np.asarray(defer, object))) if several else [defer]
    limits = [check_deferral(limit) for limit in given]
    if not limits:
        raise InputError("must hold at least one cost", argument="defer", kind="length")
    handle = open_rows(y, p, ordered=needs_order(costs=costs), dense=True, single=True, **read)
    cost_matrix(costs, handle.n_classes)
    means = means_of(handle, _CostRecipe(handle.one_model(), costs, tuple(limits)))
    lines = tuple(_line(means, i, limit, confidence) for i, limit in enumerate(limits))
    summaries = means.summaries
    return Deferral(lines, summaries.n_rows, handle.n_classes, confidence).with_skipped(summaries.skipped)


def _line(means: Means, i: int, limit: float, confidence: float) -> DeferralLine:
    cost, saved, share, decided, _ = means.mean[i].tolist()
    intervals = [
        means.units.interval(value, float(means.covariance[i, j, j]), confidence)
        for j, value in enumerate((cost, saved))
    ]
    rest = decided / (1 - share) if share < 1 - 1e-15 else float("nan")
    count = round(float(means.sums.first.high[i, 4]))
    return DeferralLine(limit, count, share, cost, cost + saved, rest, saved, *intervals)


@dataclass(frozen=True)
class _CostRecipe(UnitRecipe):
    """The costs of rows at each cost of deferring."""

    model: str
    costs: CostsLike
    limits: tuple[float, ...]

    def columns(self, part: Part) -> UnitColumns:
        """Cost, savings, whether deferred, cost of decided rows, and a count, of each row."""
        rows = rows_of_part(part, self.model, ordered=False)
        usual = row_costs(rows.y, cheapest(rows.p, self.costs), self.costs)
        blocks = []
        for limit in self.limits:
            deferred = cheapest_or_deferred(rows.p, self.costs, limit) == DEFERRED
            cost = np.where(deferred, limit, usual)
            weighted = np.stack([cost, usual - cost, deferred, np.where(deferred, 0.0, usual)])
            blocks.append([*(weighted * rows.units.share), deferred.astype(float)])
        return UnitColumns(rows.units.share, np.array(blocks), rows.units.groups)


@dataclass(frozen=True, eq=False)
class DeferralLine:
    """One cost of deferring.

    Attributes
    ----------
    defer : float
        The cost of deferring a case.
    deferred : int
        How many rows are deferred.
    share : float
        Their share of the weight.
    cost : float
        The mean cost of all rows, the deferred ones at the cost of deferring.
    cost_of_deciding : float
        The mean cost if all rows are decided.
    cost_of_decided : float
        The mean cost of the rows that are not deferred; NaN where all are.
    saved : float
        The savings of deferring per row: the cost of deciding minus the cost.
    cost_interval, saved_interval : Interval
        Confidence intervals of `cost` and `saved`.
    """

    defer: float
    deferred: int
    share: float
    cost: float
    cost_of_deciding: float
    cost_of_decided: float
    saved: float
    cost_interval: Interval
    saved_interval: Interval


@dataclass(frozen=True, repr=False, eq=False)
class Deferral(Tabled, MaySkip):
    """The results of deferring at each of some costs.

    Attributes
    ----------
    lines : tuple of DeferralLine
        A line for each cost of deferring.
    n_rows : int
        The number of rows.
    n_classes : int
        The number of classes, K.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> import verax as vx
    >>> deferral = vx.deferral([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.6], defer=[0.2, 0.3])
    >>> [line.deferred for line in deferral.lines]
    [2, 2]
    """

    lines: tuple[DeferralLine, ...]
    n_rows: int
    n_classes: Hidden[int]
    confidence: float

    def _tables(self) -> list[Table]:
        def rest(line: DeferralLine) -> str:
            return "" if line.share >= 1 else f"{line.cost_of_decided:.4f}"

        columns = [
            Column("defer", "cost of deferring", "g"),
            Column("deferred", "deferred", ","),
            Column("share", "share", ".1%"),
            Column("cost", "cost", ".4f"),
            Column("saved", "saved per row", "+.4f"),
            Column("saved_low saved_high", interval_head(self.confidence), ".4f", "saved_interval"),
            Column("cost_of_decided", "cost of the rest", rest),
            Column("cost_of_deciding"),
        ]
        return [Table(columns, self.lines)]

    def _heading(self) -> str:
        deciding = self.lines[0].cost_of_deciding
        return f"verax deferral: {self.n_rows:,} rows; deciding all costs {deciding:.4f} per row"

    def _notes(self) -> list[str]:
        return self.remarks
