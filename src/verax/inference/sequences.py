"""Comparing two forecasters while the data come in: intervals that hold at all times together.

One may look at the interval after every row and stop at any time: the probability that it is ever wrong
stays below the level. Ordinary intervals do not allow repeated looks.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from verax.common.checks import check_n_classes
from verax.errors import InputError, Offenders, RuleError
from verax.inference.intervals import Interval, check_confidence
from verax.inputs.arrays import Floats, kind_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.scores.base import Rule
from verax.scores.registry import name_of, parse


class ConfidenceSequence:
    """A sequence of intervals for the mean loss of forecaster `a` minus that of `b`.

    After t rows the interval covers the average over these rows of the expected difference, given
    what came before: neither the forecasters nor the data need to be stationary. With probability
    `confidence` it does so for all t at once.

    The interval is the empirical Bernstein bound of Howard et al. (2021, Theorem 4) for bounded
    differences, with their polynomial stitched boundary (Theorem 1); its use for forecasters is that
    of Choe and Ramdas (2024). It is wider than an interval for a fixed number of rows.

    Parameters
    ----------
    rule : Rule or str
        A bounded rule: the theorem needs the largest possible difference of two losses.
    n_classes : int
        The number of classes, on which the bounds of the rule depend.
    confidence : float
        The confidence for all times together.

    References
    ----------
    Howard, Ramdas, McAuliffe and Sekhon (2021), doi:10.1214/20-AOS1991; Choe and Ramdas (2024),
    doi:10.1287/opre.2021.0792

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> sequence = vx.ConfidenceSequence("brier", n_classes=2)
    >>> for _ in range(40):
    ...     y = (rng.random(100) < 0.8).astype(int)
    ...     _ = sequence.update(y, np.full(100, 0.8), np.full(100, 0.5))
    >>> sequence.n_rows, sequence.interval[1] < 0
    (4000, True)
    """

    # The stitched boundary: epochs grow by this factor, and the level is spent as 1/k^s over them.
    _GROWTH, _SPENDING = 2.04, 1.4

    def __init__(self, rule: Rule | str, *, n_classes: int, confidence: float = 0.95) -> None:
        self.rule = parse(rule)
        self.n_classes = check_n_classes(n_classes)
        if not self.rule.properties.bounded.at(self.n_classes):
            raise RuleError(f"{name_of(self.rule)} has no upper bound, and the theorem needs one.")
        check_confidence(confidence)
        self.confidence = confidence
        low, high = self.rule.bounds(self.n_classes)
        self._range = 2 * (high - low)
        self.n_rows = 0
        self._total = 0.0
        self._variation = 0.0

    def update(
        self,
        y: object,
        a: object,
        b: object,
        *,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        logits: bool = False,
    ) -> Interval:
        """Take in more rows, in the order they came, and return the interval after them."""
        options: dict[str, Any] = {"classes": classes, "normalize": normalize, "logits": logits}
        return self.update_differences(self._losses(y, a, "a", options) - self._losses(y, b, "b", options))

    def _losses(self, y: object, p: object, argument: str, options: dict[str, Any]) -> Floats:
        """The losses of one forecaster; errors name its argument."""
        try:
            n_classes = Forecasts(y, p, **options, ordered=self.rule.ordinal).n_classes
            if n_classes != self.n_classes:
                raise InputError(
                    f"must have {self.n_classes} classes, for which the interval is",
                    argument="p",
                    kind="length",
                    found=f"there are {n_classes}",
                )
            return to_host(self.rule.samples(y, p, **options)).astype(np.float64)
        except InputError as error:
            raise error.replace(argument=argument) if error.argument == "p" else error from None

    def update_differences(self, differences: Any) -> Interval:
        """Take in differences of losses, row by row, and give the interval after them."""
        raw = to_host(to_array(differences, "differences")[0])
        requirement = f"must be numbers from {-self._range / 2:g} to {self._range / 2:g}, one per row"
        if raw.ndim != 1 or kind_of(raw) not in ("real", "integer"):
            raise InputError(
                requirement,
                argument="differences",
                kind="type",
                found=f"the shape is {raw.shape} and the type {raw.dtype}",
            )
        d = raw.astype(np.float64)
        bad = Offenders("differences", requirement)
        bad.add(~(np.abs(d) <= self._range / 2 * (1 + 1e-9)), d, 0)
        if bad.count:
            raise bad.error()
        # Each row is predicted by the mean of those before it, as the theorem requires.
        counts = self.n_rows + np.arange(len(d))
        before = self._total + np.concatenate([[0.0], np.cumsum(d)[:-1]]) if len(d) else np.zeros(0)
        predicted = np.divide(before, counts, out=np.zeros(len(d)), where=counts > 0)
        self._variation += float(((d - predicted) ** 2).sum())
        self._total += float(d.sum())
        self.n_rows += len(d)
        return self.interval

    @property
    def difference(self) -> float:
        """The mean difference so far: negative if `a` is better."""
        return self._total / self.n_rows if self.n_rows else math.nan

    @property
    def interval(self) -> Interval:
        """The interval now; it holds together with all those before and after."""
        largest = self._range / 2
        half = self._boundary(self._variation) / self.n_rows if self.n_rows else math.inf
        mean = self.difference if self.n_rows else 0.0
        method = "confidence sequence"
        interval = Interval(mean - half, mean + half, method=method, confidence=self.confidence)
        return interval.within((-largest, largest))

    @property
    def decided(self) -> bool:
        """Whether the interval excludes zero: one forecaster is better, at whatever time you stop."""
        low, high = self.interval
        return low > 0 or high < 0

    def _boundary(self, variation: float) -> float:
        """The stitched sub-gamma boundary with scale c, the range of a difference; two-sided."""
        from scipy.special import zeta

        c, eta, s = self._range, self._GROWTH, self._SPENDING
        start = c * c
        v = max(variation, start)
        tail = (1 - self.confidence) / 2
        epoch = math.log(v / start, eta)
        spent = s * math.log(epoch + 1) + math.log(zeta(s)) - math.log(tail)
        k1 = (eta**0.25 + eta**-0.25) / math.sqrt(2)
        k2 = (math.sqrt(eta) + 1) / 2
        return math.sqrt(k1**2 * v * spent + k2**2 * c**2 * spent**2) + k2 * c * spent

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"ConfidenceSequence of {name_of(self.rule)} differences after {self.n_rows:,} rows: "
            f"{self.difference:+.5f}, {100 * self.confidence:g}% at all times {low:+.5f} to {high:+.5f}"
        )
