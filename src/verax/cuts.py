"""Rows in an order, cut at shares of their weight: what curves are made of.

Rows are sorted once. A bootstrap replicate is a vector of multiplicities along that order, and a
cut may split a row's copies, so nothing is sorted again and the result is that of explicit resampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from verax.arrays import to_host, widen
from verax.caching import cached_property
from verax.clusters import Groups
from verax.decisions import CostsLike, CountMetric, Normalization, cheapest, count_metric
from verax.errors import InputError, RuleError
from verax.forecasts import Forecasts
from verax.registry import name_of
from verax.resample import check_confidence, check_replicates, multiplicities
from verax.rule import Rule, losses_of

Floats = np.ndarray[Any, np.dtype[np.float64]]
Metric = str | Rule | Callable[[Any, Any], float]
Area = Literal["mean", "steps"]
Undefined = Literal["nan", "one", "zero", "omit"]

DEFAULT_REMOVED = tuple(Fraction(i, 100) for i in range(21))


@dataclass(frozen=True)
class Rows:
    """Valid rows in standard form, on the host: curves need all of them.

    Where only their losses and decisions matter, the forecasts themselves (`p`) are left out.
    """

    y: np.ndarray[Any, Any]
    p: Floats
    decisions: np.ndarray[Any, Any]
    losses: dict[Rule, Floats]
    weights: Floats | None
    groups: Groups | None
    n_classes: int

    @classmethod
    def of(cls, forecasts: Forecasts, rules: Sequence[Rule], decision_costs: CostsLike | None = None) -> Rows:
        """Read and check all rows, with their losses by some rules."""
        losses = losses_of(rules, forecasts)
        batch = forecasts.batch(0, forecasts.n_rows)
        p = to_host(widen(batch.p))
        return cls(
            y=to_host(batch.y),
            p=p,
            decisions=np.argmax(p, axis=1) if decision_costs is None else cheapest(p, decision_costs),
            losses={rule: to_host(loss) for rule, loss in zip(rules, losses, strict=True)},
            weights=None if batch.weights is None else to_host(batch.weights),
            groups=forecasts.groups,
            n_classes=forecasts.n_classes,
        )

    def without_forecasts(self) -> Rows:
        """The same rows with all but `p`, their classes in as few bytes as they need."""
        small = np.min_scalar_type(self.n_classes - 1)
        y, decisions = self.y.astype(small), self.decisions.astype(small)
        return replace(self, y=y, decisions=decisions, p=np.zeros((0, self.n_classes)))

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of all parts, one part after the other."""
        first = parts[0]
        if len(parts) == 1:
            return first
        if any(part.n_classes != first.n_classes for part in parts):
            raise InputError("All parts must have the same classes.", argument="p")
        groups = None
        if first.groups is not None:
            labels = [part.groups.labels[part.groups.codes] for part in parts if part.groups is not None]
            groups = Groups.of(np.concatenate(labels), sum(len(part.y) for part in parts))
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            y=np.concatenate([part.y for part in parts]),
            p=np.concatenate([part.p for part in parts]),
            decisions=np.concatenate([part.decisions for part in parts]),
            losses={rule: np.concatenate([part.losses[rule] for part in parts]) for rule in first.losses},
            weights=np.concatenate(weights) if weights else None,
            groups=groups,
            n_classes=first.n_classes,
        )

    @cached_property
    def cells(self) -> Any:
        """The cell of the confusion table that each row falls into."""
        return np.multiply(self.y, self.n_classes, dtype=np.int64) + self.decisions

    @cached_property
    def whole(self) -> bool:
        """Whether all weights are whole numbers, so that they are numbers of copies."""
        return self.weights is None or bool((self.weights == np.floor(self.weights)).all())

    def multiplicities(self, n: int, seed: int) -> Iterator[Floats]:
        """Weights of the rows in each bootstrap replicate."""
        for drawn in multiplicities(len(self.y), self.groups, n, seed):
            yield drawn.astype(float) if self.weights is None else drawn * self.weights


class Options:
    """How curves are cut, summed up and resampled; checked once."""

    def __init__(
        self,
        removed: Sequence[float | Fraction] | None,
        area: Area,
        undefined: Undefined,
        bootstrap: int,
        seed: int,
        confidence: float,
        *,
        sees_outcome: bool,
    ) -> None:
        self.removed = _shares(removed)
        self.shares = np.array([float(r) for r in self.removed])
        self._taken: dict[float, Floats] = {}
        if area not in ("mean", "steps"):
            raise RuleError(f"`area` must be 'mean' or 'steps', not {area!r}.")
        if undefined not in ("nan", "one", "zero", "omit"):
            raise RuleError(f"`undefined` must be 'nan', 'one', 'zero' or 'omit', not {undefined!r}.")
        check_replicates(bootstrap, least=2, or_none=True)
        check_confidence(confidence)
        self.area, self.undefined = area, undefined
        self.bootstrap, self.seed, self.confidence = bootstrap, seed, confidence
        self.sees_outcome = sees_outcome

    def taken(self, total: float, whole: bool) -> Floats:
        """How much of a total weight is removed at each cut: whole rows where the weights are whole."""
        if not whole:
            return np.asarray(total * self.shares)
        if total not in self._taken:
            # Exact: a tenth of 30 rows is three, whatever 0.1 * 30 is in floating point.
            self._taken[total] = np.array([float(int(r * int(total))) for r in self.removed])
        return self._taken[total]

    def fill(self, values: Floats) -> Floats:
        """Undefined values as asked for."""
        replacement = {"one": 1.0, "zero": 0.0}.get(self.undefined)
        return values if replacement is None else np.where(np.isnan(values), replacement, values)

    def area_of(self, values: Floats) -> float:
        """The area under one curve."""
        x = self.shares
        if self.undefined == "omit":
            defined = ~np.isnan(values)
            x, values = x[defined], values[defined]
            if len(x) < 2:
                return float("nan")
        heights = (values[1:] + values[:-1]) / 2
        return float(heights.sum() if self.area == "steps" else (heights * np.diff(x)).sum() / (x[-1] - x[0]))


def _shares(removed: Sequence[float | Fraction] | None) -> tuple[Fraction, ...]:
    if removed is None:
        return DEFAULT_REMOVED
    listed = removed if isinstance(removed, Iterable) else [removed]
    shares = tuple(Fraction(r).limit_denominator(10**6) for r in listed)
    increasing = all(a < b for a, b in pairwise(shares))
    if len(shares) < 2 or not increasing or shares[0] < 0 or shares[-1] >= 1:
        raise InputError(
            "`removed` must be at least two increasing shares from 0 to below 1, such as [0, 0.1, 0.2].",
            argument="removed",
        )
    return shares


class Sample:
    """One vector of weights on the rows, and what does not depend on their order."""

    def __init__(self, rows: Rows, weights: Floats, options: Options) -> None:
        self.weights = weights
        self.total = float(weights.sum())
        self.taken = options.taken(self.total, rows.whole)
        self.counts = np.bincount(rows.cells, weights, rows.n_classes**2)


class Cuts:
    """Where the cuts fall along an order, the best row first, for one sample.

    Few rows are removed as a rule, so everything is found from the far end of the order.
    """

    def __init__(self, order: Any, sample: Sample) -> None:
        self.order, self.sample, taken = order, sample, sample.taken
        n = len(order)
        length = min(n, int(1.1 * n * taken[-1] / sample.total) + 64)
        while True:
            self.tail = order[: n - length - 1 : -1] if length < n else order[::-1]
            self.tail_weights = sample.weights[self.tail]
            cumulative = np.cumsum(self.tail_weights)
            if length == n or cumulative[-1] > taken[-1]:
                break
            length = min(n, 2 * length)
        # The rows taken whole, and how much of the next one, counted from the far end.
        self.whole = np.minimum(np.searchsorted(cumulative, taken, side="right"), n - 1)
        self.part = taken - np.where(self.whole > 0, cumulative[self.whole - 1], 0.0)

    @property
    def kept(self) -> Floats:
        """The weight kept at each cut."""
        return self.sample.total - self.sample.taken

    def counts(self, cells: Any) -> Floats:
        """Weighted counts of the rows kept at each cut, given the cells of the tail's rows."""
        n_cuts, n_cells = len(self.whole), self.sample.counts.size
        # Each removed row counts from the first cut that removes it on.
        first_cut = np.repeat(np.arange(n_cuts), np.diff(self.whole, prepend=0)) * n_cells
        last = self.whole[-1]
        new = np.bincount(first_cut + cells[:last], self.tail_weights[:last], n_cuts * n_cells).astype(float)
        removed = np.cumsum(new.reshape(n_cuts, n_cells), axis=0)
        removed[np.arange(n_cuts), cells[self.whole]] += self.part
        kept = self.sample.counts - removed
        # What is left of a cell that was removed whole is rounding, which kappa would take for a class.
        return np.where(kept > 1e-12 * self.sample.total, kept, 0.0)

    def sums(self, values: Floats) -> Floats:
        """Weighted sums of `values`, one a row, over the rows kept at each cut."""
        ordered, weights = values[self.order], self.sample.weights[self.order]
        with np.errstate(invalid="ignore"):
            terms = np.where(weights > 0, weights * ordered, 0.0)
            cumulative = np.concatenate([[0.0], np.cumsum(terms)])
            edge = len(self.order) - 1 - self.whole
            left = weights[edge] - self.part
            return np.asarray(cumulative[edge] + np.where(left > 0, left * ordered[edge], 0.0))

    def rows(self, t: int) -> Any:
        """The rows kept at one cut, copies repeated."""
        copies = self.sample.weights[self.order].astype(int)
        edge = len(self.order) - 1 - self.whole[t]
        copies[edge + 1 :] = 0
        copies[edge] -= int(self.part[t])
        return np.repeat(self.order, copies)


class Measure:
    """A metric along one order: the same for every vector of weights."""

    def __init__(self, rows: Rows, metric: Metric, costs: tuple[CostsLike, Normalization]) -> None:
        self.rows, self._metric = rows, metric
        self._counts: CountMetric | None = None
        self._losses: Floats | None = None
        self.higher_is_better = True
        if isinstance(metric, str):
            self._counts = count_metric(metric, costs=costs[0], normalize=costs[1])
            self.name, self.higher_is_better = metric, self._counts.higher_is_better
        elif isinstance(metric, Rule):
            self._losses = rows.losses[metric]
            self.name, self.higher_is_better = name_of(metric), False
        elif callable(metric):
            self.name = getattr(metric, "__name__", repr(metric))
            if not rows.whole:
                raise InputError(
                    "`weights` must be whole numbers where the metric is a function of rows.",
                    argument="weights",
                )
        else:
            raise RuleError(f"`metric` must be a name, a rule or a function, not {metric!r}.")

    @property
    def needs_counts(self) -> bool:
        return self._counts is not None

    def of(self, cuts: list[Cuts], counts: Floats | None) -> Floats:
        """The metric at each cut along each order, from (orders, cuts, K, K) counts if it needs them."""
        if self._counts is not None and counts is not None:
            return np.asarray(self._counts.of(counts))
        if self._losses is not None:
            return np.array([along.sums(self._losses) / along.kept for along in cuts])
        return np.array([[self._of_rows(along.rows(t)) for t in range(len(along.whole))] for along in cuts])

    def _of_rows(self, kept: Any) -> float:
        assert callable(self._metric)
        return float(self._metric(self.rows.y[kept], self.rows.p[kept]))
