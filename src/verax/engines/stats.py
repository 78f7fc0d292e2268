"""Row statistics: the few numbers of each row that every rule is a formula over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from verax.errors import RuleError
from verax.inputs.arrays import Array, Namespace
from verax.kernels.statistics import STATISTICS


class Formula(Protocol):
    """Anything with a loss that is a formula over row statistics. Rules are; they live above."""

    @property
    def needs(self) -> frozenset[str]: ...

    def formula(self, stats: RowStats) -> Array: ...


@dataclass(frozen=True)
class RowStatistic:
    """A row statistic as it is, where there are formulas over them."""

    name: str

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.name})

    def formula(self, stats: RowStats) -> Array:
        found: Array = getattr(stats, self.name)
        return found


class RowStats:
    """What the rules need to know of some rows: an array of length n for each statistic asked for.

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
        self.__dict__.update(statistics)

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
        """Whether the outcome had been given probability zero."""
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
