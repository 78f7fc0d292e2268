"""The weights of a pool that lose least by a proper rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verax.common.caching import cached_property
from verax.common.checks import as_float
from verax.engines.stats import RowStats
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.toplists import TopLists
from verax.scores.base import Rule, losses_of
from verax.wings.lists.pooling import Pool, PoolKind

# While weights are sought, no outcome counts as less likely: an infinite loss has no slope.
_LEAST = 1e-12


@dataclass(frozen=True)
class PoolSample:
    """The forecasts of several forecasters of rows with known outcomes.

    Attributes
    ----------
    y : object
        The outcomes as given.
    pool : Pool
        The forecasts of all forecasters.
    kind : {"linear", "log"}
        The kind of pool.
    rule : Rule
        The rule that is minimised: a formula over the probability of the outcome and the squares of others.
    weights : array or None
        The weights of the rows.
    """

    y: object
    pool: Pool
    kind: PoolKind
    rule: Rule
    weights: Floats | None

    @property
    def n_forecasters(self) -> int:
        return int(self.pool.rest.shape[1])

    @property
    def equal(self) -> Floats:
        """The same weight for everybody."""
        return np.full(self.n_forecasters, 1 / self.n_forecasters)

    @property
    def n_rows(self) -> int:
        return len(self.pool.lengths)

    @cached_property
    def codes(self) -> Ints:
        """The codes of the outcomes among all classes that someone lists."""
        return self._rows(self.pool.pooled(self.equal, "linear")).batch(0, self.n_rows).y

    def _rows(self, lists: TopLists) -> ListRows:
        return lists.with_outcomes(self.y)

    def losses(self, weights: Floats) -> Floats:
        """The loss of the pool with these weights in every row."""
        pooled = self._rows(self.pool.pooled(weights, self.kind))
        return np.asarray(losses_of([self.rule], pooled)[0], dtype=float)

    def fit(self, rows: Bools) -> Floats:
        """The weights that lose least in some rows."""
        from scipy.optimize import minimize

        share = np.where(rows, 1.0 if self.weights is None else self.weights, 0.0)
        share = share / share.sum()

        def mean(weights: Floats) -> float:
            return float(share @ self._smooth(np.clip(weights, 0, 1)))

        minimum = minimize(
            mean,
            self.equal,
            method="SLSQP",
            jac="3-point",
            bounds=[(0.0, 1.0)] * self.n_forecasters,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(len(w))},
            options={"maxiter": 200, "ftol": 1e-12},
        )
        ends = [*np.eye(self.n_forecasters), self.equal]
        if np.isfinite(minimum.x).all() and minimum.x.max() > 0:
            weights = np.clip(minimum.x, 0, 1)
            ends.append(weights / weights.sum())
        return min(reversed(ends), key=mean)

    def _smooth(self, weights: Floats) -> Floats:
        """The losses by a formula over statistics of the pool, without its lists."""
        p_true, squares = self._linear(weights) if self.kind == "linear" else self._logarithmic(weights)
        rest = np.maximum(squares - p_true * p_true, 0.0)
        stats = RowStats(
            np,
            self.pool.n_classes,
            p_true=np.maximum(p_true, _LEAST),
            rest_sq=rest,
            invalid=np.zeros(len(rest)),
        )
        return np.asarray(stats.loss(self.rule), dtype=float)

    def _linear(self, weights: Floats) -> tuple[Floats, Floats]:
        return self._p_true @ weights, np.einsum("nij,i,j->n", self._products, weights, weights)

    def _logarithmic(self, weights: Floats) -> tuple[Floats, Floats]:
        listed, others = self.pool.values(weights, "log")
        squares = np.bincount(self.pool.rows, listed * listed, self.n_rows)
        unlisted = as_float(self.pool.n_classes) - self.pool.lengths
        return self._of_outcomes(listed, others), squares + unlisted * others * others

    @cached_property
    def _p_true(self) -> Floats:
        """(N, M) what every forecaster said of what happened."""
        columns = zip(self.pool.says.T, self.pool.rest.T, strict=True)
        return np.column_stack([self._of_outcomes(says, rest) for says, rest in columns])

    def _of_outcomes(self, listed: Floats, others: Floats) -> Floats:
        chances = others.copy()
        chances[self.pool.rows[self._happened]] = listed[self._happened]
        return chances

    @cached_property
    def _happened(self) -> Ints:
        """The pairs whose class happened."""
        return np.flatnonzero(self.pool.classes == self.codes[self.pool.rows])

    @cached_property
    def _products(self) -> Floats:
        """(N, M, M) the sums over all classes of the products of two forecasters' probabilities."""
        pool, m = self.pool, self.n_forecasters
        unlisted = as_float(pool.n_classes) - pool.lengths
        products = np.empty((self.n_rows, m, m))
        for i in range(m):
            for j in range(i + 1):
                listed = np.bincount(pool.rows, pool.says[:, i] * pool.says[:, j], self.n_rows)
                products[:, i, j] = products[:, j, i] = listed + unlisted * pool.rest[:, i] * pool.rest[:, j]
        return products


def cross_fitted(sample: PoolSample, folds: Ints) -> tuple[Floats, Floats, Floats]:
    """(V, M) weights fitted without each fold, (V, N) losses of rows by them, and (N,) those held out."""
    weights = np.array([sample.fit(folds != fold) for fold in range(int(folds.max()) + 1)])
    losses = np.array([sample.losses(fitted) for fitted in weights])
    return weights, losses, losses[folds, np.arange(sample.n_rows)]


def valid_lists(given: Sequence[TopLists]) -> list[TopLists]:
    """The lists as they are scored: an invalid one is its largest valid sublist."""
    return [lists.largest_valid() for lists in given]
