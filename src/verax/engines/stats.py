"""Row statistics: the few numbers of each row that every rule is a formula over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from verax.errors import RuleError
from verax.inputs.arrays import Array, Floats, Ints, Namespace, to_host
from verax.inputs.forecasts import Batch, ShareBatch
from verax.kernels.statistics import STATISTICS


class Formula(Protocol):
    """Anything with a loss that is a formula over row statistics. Rules are; they live above."""

    @property
    def needs(self) -> frozenset[str]: ...

    def formula(self, stats: RowStats) -> Array: ...


@dataclass(frozen=True)
class RowStatistic:
    """The formula that is a row statistic itself."""

    name: str

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.name})

    def formula(self, stats: RowStats) -> Array:
        values: Array = getattr(stats, self.name)
        return values


class RowStats:
    """The statistics of some rows that rules are formulas over: an array of length n for each one required.

    The statistics are attributes; `verax.kernels.statistics.STATISTICS` says what each means. `log_p`, where
    it is known from logits, is the logarithm of `p_true`; `buffer` holds the statistics of the compiled pass.
    """

    xp: Namespace
    n_classes: int
    log_p: Any | None
    buffer: np.ndarray[Any, Any] | None

    def __init__(
        self,
        xp: Namespace,
        n_classes: int,
        *,
        log_p: Array | None = None,
        buffer: np.ndarray[Any, Any] | None = None,
        **statistics: Array,
    ) -> None:
        self.xp, self.n_classes, self.log_p, self.buffer = xp, n_classes, log_p, buffer
        self._losses: dict[Formula, Array] = {}
        self.add(**statistics)

    def add(self, **statistics: Array) -> None:
        """Note further statistics of the same rows."""
        # Older versions of PyTorch compile this, but no update of `__dict__`.
        for name, value in statistics.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Array:
        if name in STATISTICS:
            raise AttributeError(f"the statistic {name} was not asked for")
        raise AttributeError(f"there is no statistic called {name}")

    @property
    def log_true(self) -> Array:
        return self.xp.log(self.sure) if self.log_p is None else self.log_p

    @property
    def sure(self) -> Array:
        """`p_true`, at most 1: a valid row may sum to a little more."""
        return self.xp.minimum(self.p_true, 1.0)

    @property
    def impossible(self) -> Array:
        """Whether the outcome had probability zero."""
        return self.p_true == 0 if self.log_p is None else self.log_p == -self.xp.inf

    def loss(self, rule: Formula) -> Array:
        """The losses of `rule` on these rows, computed once however many rules build on it."""
        if rule not in self._losses:
            try:
                self._losses[rule] = rule.formula(self)
            except (TypeError, AttributeError) as error:
                raise RuleError(
                    f"The formula of {rule} failed ({error}). "
                    "Does it use a statistic that `needs` does not name?"
                ) from error
        return self._losses[rule]

    def forget(self) -> None:
        """Drop the losses computed so far: the arrays hold other rows now."""
        self._losses.clear()


# The rows, shares and statistics of pairs of a row and an outcome; without rows, those of all, (n, K).
OfOutcomes = tuple[Ints | None, Array, RowStats]
# What does not depend on the outcome.
_OF_FORECAST = frozenset({"decision", "top"})


class ShareStats(RowStats):
    """Statistics of rows whose outcomes are shares of the classes.

    A loss, like any statistic that depends on the outcome, is the mean over the outcomes, weighted by their
    shares. An outcome whose share is zero costs nothing, even if its loss is infinite.
    """

    def __init__(self, xp: Namespace, n_classes: int, n_rows: int, outcomes: OfOutcomes) -> None:
        super().__init__(xp, n_classes)
        self.n_rows: int = n_rows
        self.outcomes: OfOutcomes = outcomes

    @classmethod
    def of_pairs(cls, batch: ShareBatch, compute: Callable[[Batch], RowStats]) -> ShareStats:
        """The statistics of NumPy rows, from those of each row with each class that has a share in it."""
        place, y = np.nonzero(batch.shares > 0)
        logits = None if batch.logits is None else batch.logits[place]
        pairs = Batch(
            p=batch.p[place],
            y=y,
            weights=None,
            groups=None,
            start=batch.start,
            n_classes=batch.n_classes,
            unity=batch.unity,
            xp=batch.xp,
            logits=logits,
        )
        return cls(np, batch.n_classes, batch.n_rows, (place, batch.shares[place, y], compute(pairs)))

    def loss(self, rule: Formula) -> Array:
        if isinstance(rule, RowStatistic):
            return getattr(self, rule.name)
        if rule not in self._losses:
            self._losses[rule] = self._mean(lambda stats: stats.loss(rule))
        return self._losses[rule]

    def __getattr__(self, name: str) -> Array:
        if name not in STATISTICS:
            raise AttributeError(f"there is no statistic called {name}")
        if name not in _OF_FORECAST:
            return self._mean(lambda stats: getattr(stats, name))
        place, _, stats = self.outcomes
        values = getattr(stats, name)
        return values[:, 0] if place is None else values[np.searchsorted(place, np.arange(self.n_rows))]

    @property
    def impossible(self) -> Array:
        """Whether an outcome with a share had probability zero."""
        return self._mean(lambda stats: self.xp.where(stats.impossible, 1.0, 0.0)) > 0

    def _mean(self, of: Callable[[RowStats], Array]) -> Array:
        """The mean over the outcomes of each row."""
        place, share, stats = self.outcomes
        values = of(stats)
        if place is not None:
            return np.bincount(place, share * values, self.n_rows)
        return self.xp.sum(share * self.xp.where(share > 0, values, self.xp.zeros_like(values)), axis=1)


@dataclass(frozen=True)
class Decided:
    """Outcomes with the decisions of their rows.

    Attributes
    ----------
    y, decision : Ints
        The outcomes, and the decisions of their rows.
    place : Ints or None
        The row of each outcome in its batch; None where every row has one.
    share : Floats or None
        The share of each outcome in its row; None where every row has one.
    """

    y: Ints
    decision: Ints
    place: Ints | None = None
    share: Floats | None = None

    @classmethod
    def of(cls, batch: Any, decision: Array) -> Decided:
        """The outcomes of a batch with these decisions, on the host."""
        decisions = to_host(decision)
        if not isinstance(batch, ShareBatch):
            return cls(to_host(batch.y), decisions)
        shares = to_host(batch.shares)
        place, y = np.nonzero(shares > 0)
        return cls(y, decisions[place], place, shares[place, y])

    def at(self, rows: Any) -> Any:
        """The value of each outcome, from a value per row."""
        return rows if self.place is None else rows[self.place]

    def weights(self, weights: Floats | None) -> Floats | None:
        """The weight of each outcome, from those of the rows; None where all are 1."""
        if self.share is None:
            return weights
        return self.share if weights is None else self.share * self.at(weights)

    def right(self, n_rows: int) -> Floats:
        """The share of each row's outcomes that the decision names."""
        hits: Floats = (self.y == self.decision).astype(float)
        if self.place is None or self.share is None:
            return hits
        return np.bincount(self.place, self.share * hits, n_rows).astype(float)
