"""Confidence sequences: compare two forecasters while data come in, with intervals valid at all times.

You may look at the interval after every row and stop at any time: the probability that it is ever wrong
stays below the level. Ordinary confidence intervals do not allow repeated looks.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from verax.common.checks import check_flag, check_n_classes, check_number
from verax.errors import InputError, Offenders, passing
from verax.inference.intervals import Interval, check_confidence
from verax.inputs.arrays import Floats, kind_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.scores.base import Rule
from verax.scores.registry import name_of, parse

# The stakes of the bets, as shares of the largest one possible, and how the capital is split among them.
# Large stakes decide early and get more; small ones are needed for narrow intervals after many rows.
STAKES: Floats = 0.98 * 2.0 ** (-np.arange(40) / 2)
SHARES: Floats = np.asarray((np.arange(40) + 2.0) ** -1.5, float)
# How many rows are taken in at once: bounds the memory.
_BLOCK = 4096


class ConfidenceSequence:
    """A confidence sequence for the mean loss of forecaster `a` minus that of `b`.

    After t rows the interval covers the average over these rows of the expected difference, given
    what came before: neither the forecasters nor the data need to be stationary. With probability
    `confidence` it does so for all t at once.

    The interval holds the means m that no betting strategy rejects. A bettor with stake s has
    the capital prod (1 + s d_i) / (1 + s m) after differences d_i; its expectation is at most 1 if m is
    the mean, so that it exceeds 1 / level at any time with probability `level` at most (Ville). The capital
    is split among 40 stakes for each direction. Rules without an upper bound need `scale`; then the factor
    is (1 + s d + s^2 d^2 / 2) / (1 + s m + s^2 scale^2 / 2), where s d counts as -1 below -1.

    It is for one thread: updates of several threads at once may lose rows.

    Parameters
    ----------
    rule : Rule or str
        A bounded rule, or any other together with `scale`.
    n_classes : int
        The number of classes, on which the bounds of the rule depend.
    confidence : float, default 0.95
        The confidence for all times together.
    scale : float, optional
        An assumption about the data: the root mean square of the next difference, given all rows before,
        is at most this. Required for rules without an upper bound, such as the log score. If it
        is too small, the interval is not valid; if it is too large, the interval is wider than necessary.
        With `scale` the interval does not use the bounds of the rule.
    stationary : bool, default False
        The expected difference is assumed never to change. The interval is then the intersection of the
        intervals after all updates so far. It is undefined once nothing is left.

    References
    ----------
    Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009, for betting; Orabona and Jun (2024),
    arXiv:2110.14099, for mixtures of stakes; Wang and Ramdas (2023), arXiv:2202.01250, for unbounded
    differences; Choe and Ramdas (2024), doi:10.1287/opre.2021.0792, for forecasters.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(1)
    >>> sequence = vx.ConfidenceSequence("brier", n_classes=2)
    >>> while not sequence.decided:
    ...     y = (rng.random(10) < 0.8).astype(int)
    ...     _ = sequence.update(y, np.full(10, 0.8), np.full(10, 0.5))
    >>> sequence.n_rows, sequence.interval.high < 0
    (120, True)
    """

    n_rows: int

    def __init__(
        self,
        rule: Rule | str,
        *,
        n_classes: int,
        confidence: float = 0.95,
        scale: float | None = None,
        stationary: bool = False,
    ) -> None:
        self.rule: Rule = parse(rule)
        self.n_classes: int = check_n_classes(n_classes)
        check_confidence(confidence)
        self.confidence = confidence
        if scale is not None:
            scale = check_number("scale", scale, "must be a positive number", lambda value: value > 0)
        self.scale = scale
        self.stationary: bool = check_flag("stationary", stationary)
        low, high = self.rule.bounds(self.n_classes)
        if scale is None and not math.isfinite(high - low):
            advice = "the largest root mean square that a row's difference of losses can have"
            raise InputError(
                f"must be given for {name_of(self.rule)}, which has no upper bound",
                argument="scale",
                kind="missing",
                remedies=[passing(f"with {advice}", scale=...)],
            )
        # The largest possible difference of two losses, and the largest possible mean difference.
        self._largest = high - low
        self._limit = min(self._largest, math.inf if scale is None else scale)
        self._stakes = STAKES / (self._largest if scale is None else scale)
        self.n_rows = 0
        self._total = 0.0
        # The logarithms of the capital of each stake, apart from the denominators: for the mean
        # being larger (first row) and smaller.
        self._gains = np.zeros((2, len(STAKES)))
        self._interval = self._between(-self._limit, self._limit)

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
        """Add rows in their order of arrival and return the interval after them.

        Parameters
        ----------
        y : array_like of shape (N,) or (N, K)
            Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows.
        a : array_like of shape (N, K) or (N,)
            Forecasts of the first model.
        b : array_like of shape (N, K) or (N,)
            Forecasts of the second.
        classes : sequence of K labels, optional
            Names of the columns of `a` and `b`, in order; for ordered classes lowest first.
        normalize : bool, default False
            Whether to divide each row of `a` and `b` by its sum first.
        logits : bool, default False
            Whether `a` and `b` hold logits; the softmax is applied first.

        Returns
        -------
        Interval
            The interval of the mean difference of losses, valid however often you look.
        """
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
        """Add differences of losses, row by row, and return the interval after them.

        Parameters
        ----------
        differences : array_like of shape (N,)
            The loss of the first model minus that of the second, for each row.

        Returns
        -------
        Interval
            The interval of their mean.
        """
        d = self._checked(differences)
        for start in range(0, len(d), _BLOCK):
            bets = np.multiply.outer(d[start : start + _BLOCK], self._stakes)
            self._gains += [self._log_factors(sign * bets).sum(axis=0) for sign in (1.0, -1.0)]
        self._total += float(d.sum())
        self.n_rows += len(d)
        low, high = self._lower_bound(self._gains[0]), -self._lower_bound(self._gains[1])
        if self.stationary:
            # In this order NaN stays NaN: once nothing is left, nothing comes back.
            low, high = max(self._interval.low, low), min(self._interval.high, high)
        self._interval = self._between(low, high)
        return self.interval

    def _checked(self, differences: Any) -> Floats:
        raw = to_host(to_array(differences, "differences")[0])
        range_ = f"numbers from {-self._largest:g} to {self._largest:g}"
        requirement = f"must be {range_ if math.isfinite(self._largest) else 'finite numbers'}, one per row"
        if raw.ndim != 1 or kind_of(raw) not in ("real", "integer"):
            raise InputError(
                requirement,
                argument="differences",
                kind="type",
                found=f"the shape is {raw.shape} and the type {raw.dtype}",
            )
        d = raw.astype(np.float64)
        bad = Offenders("differences", requirement)
        bad.add(~(np.abs(d) <= self._largest * (1 + 1e-9)) | np.isinf(d), d, 0)
        if bad.count:
            raise bad.error()
        return np.asarray(np.clip(d, -self._largest, self._largest))

    def _log_factors(self, bets: Floats) -> Floats:
        """The terms that bets add to the logarithm of the capital, without the denominators."""
        if self.scale is not None:
            bets = np.maximum(bets, -1.0)
            bets = bets + bets * bets / 2
        return np.asarray(np.log1p(bets))

    def _lower_bound(self, gains: Floats) -> float:
        """The smallest mean that the bettors on a larger one have not excluded."""
        from scipy.optimize import brentq

        variance = 0.0 if self.scale is None else (self._stakes * self.scale) ** 2 / 2
        shares = np.log(SHARES / SHARES.sum())
        enough = math.log(2 / (1 - self.confidence))

        def excess(mean: float) -> float:
            prices = self.n_rows * np.log1p(self._stakes * mean + variance)
            return float(np.logaddexp.reduce(shares + gains - prices)) - enough

        if excess(-self._limit) < 0:
            return -self._limit
        if excess(self._limit) >= 0:
            return math.inf
        return float(brentq(excess, -self._limit, self._limit, xtol=1e-12 * self._limit))

    def _between(self, low: float, high: float) -> Interval:
        how: dict[str, Any] = {"method": "confidence sequence", "confidence": self.confidence}
        if low <= high:
            return Interval(low, high, **how)
        return Interval.undefined(
            "no mean is left: the expected difference has changed, the scale is too small, or the data "
            "belong to the few that an interval misses",
            **how,
        )

    @property
    def difference(self) -> float:
        """The mean difference so far: negative if `a` is better."""
        return self._total / self.n_rows if self.n_rows else math.nan

    @property
    def interval(self) -> Interval:
        """The current interval; valid jointly with all earlier and later ones."""
        return self._interval

    @property
    def decided(self) -> bool:
        """Whether the interval excludes zero: one forecaster is significantly better, whenever you stop."""
        low, high = self.interval
        return low > 0 or high < 0

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"ConfidenceSequence of {name_of(self.rule)} differences after {self.n_rows:,} rows: "
            f"{self.difference:+.5f}, {100 * self.confidence:g}% at all times {low:+.5f} to {high:+.5f}"
        )


# The shares of the capital that are bet, and how the capital is split among them.
BETS: Floats = np.array([0.75 * 2.0 ** (-i / 2) for i in range(24)])
_SPLIT: Floats = np.array([1 / (i + 2) for i in range(24)])
LOG_SPLIT: Floats = np.log(_SPLIT / _SPLIT.sum())
# Where bounds of a mean are looked for, as shares of the way to the largest value.
_OFFSETS: Floats = np.geomspace(1e-8, 1.0, 4000)[:-1]
# What the square of an observation costs at each stake.
_PRICES: Floats = -BETS - np.log1p(-BETS)


def log_factors(first: Any, second: Any, n: Any) -> Floats:
    """Logarithms of the factors by which observations multiply the capital at each stake.

    Parameters
    ----------
    first : array of shape (...)
        The sums of the observations, each at least -1.
    second : array of shape (...)
        The sums of their squares.
    n : array of shape (...)
        The number of observations.

    Returns
    -------
    array of shape (..., 24)
        Logarithms of the factors, or bounds below them.

    Examples
    --------
    >>> bool((log_factors(3.0, 4.0, 10) <= 10 * np.log1p(BETS * 0.3)).all())
    True
    """
    first, second, n = (np.asarray(numbers, float)[..., None] for numbers in (first, second, n))
    exact = np.log1p(
        BETS * np.maximum(first, -1.0), where=n == 1, out=np.zeros((*first.shape[:-1], len(BETS)))
    )
    return np.asarray(np.where(n == 1, exact, BETS * first - _PRICES * second))


def log_capital(logs: Floats) -> Floats:
    """The logarithm of the capital of all stakes together, from those of each (on the last axis)."""
    return np.asarray(np.logaddexp.reduce(logs + LOG_SPLIT, axis=-1))


def upper_mean(
    n: float,
    mean: float,
    squares: tuple[float, float, float],
    most: float,
    error: float,
    largest: float = 1.0,
) -> float:
    """An upper confidence bound of the mean of bounded values, for any number and distribution of them.

    The bound is the smallest mean that a betting strategy on smaller values rejects.

    Parameters
    ----------
    n : float
        The number of values; the sum of their weights, where they have weights.
    mean : float
        Their mean.
    squares : tuple of float
        The sum of squared weighted deviations from `mean` + t, as coefficients of 1, t and t*t.
    most : float
        The largest possible value.
    error : float
        The probability with which the bound may lie below the true mean.
    largest : float, default 1
        The largest weight.

    Returns
    -------
    float
        The bound; `most` where the values do not tell.

    Examples
    --------
    >>> round(upper_mean(60, 0.0, (0.0, 0.0, 60.0), 1.0, 0.025), 3)
    0.115
    """
    if not mean < most:
        return float(most)
    above = (most - mean) * _OFFSETS
    scale = largest * (most - mean - above)
    logs = log_factors(n * above / scale, np.polyval(squares[::-1], above) / scale**2, 0)
    rich = np.flatnonzero(log_capital(logs) >= -np.log(error))
    return float(mean + above[rich[0]]) if len(rich) else float(most)


def adjusted(evidence: Floats, weights: Floats, rest: float = 0.0) -> Floats:
    """E-values adjusted for testing several claims: any that reaches 1 / alpha keeps the family-wise error.

    A set of claims is tested by the weighted mean of its e-values. A claim is rejected if every set that
    contains it is (closed testing; Vovk and Wang 2021, doi:10.1214/20-AOS2020).

    Parameters
    ----------
    evidence : array of shape (n,)
        The e-value of each claim.
    weights : array of shape (n,)
        Their weights.
    rest : float, default 0
        The weight of claims that may still come; their e-values are 1.

    Returns
    -------
    array of shape (n,)
        The adjusted e-values.

    Examples
    --------
    >>> adjusted(np.array([90.0, 6.0, 0.0]), np.ones(3)).tolist()
    [32.0, 3.0, 0.0]
    """
    e, w = np.append(evidence, 1.0), np.append(weights, rest)
    order = np.argsort(e, kind="stable")
    weight_within = np.concatenate([[0.0], np.cumsum(w[order])])
    sum_within = np.concatenate([[0.0], np.cumsum((w * e)[order])])
    place = np.empty(len(e), int)
    place[order] = np.arange(len(e))
    # The worst company of a claim are the claims with the smallest e-values: any number of them, and itself.
    inside = np.arange(len(e) + 1)[None, :] > place[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (sum_within + np.where(inside, 0.0, (w * e)[:, None])) / (
            weight_within + np.where(inside, 0.0, w[:, None])
        )
    return np.asarray(np.nanmin(means, axis=1)[:-1])
