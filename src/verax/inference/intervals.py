"""Confidence intervals: one type for all of them, and the plan by which they are computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypedDict, cast, get_args

import numpy as np

from verax.common.checks import check_choice, check_count, check_number, is_whole
from verax.common.packing import UnreadableError
from verax.common.spelling import LATER
from verax.common.stored import text
from verax.common.strictjson import number, plain
from verax.common.texts import in_format
from verax.errors import InputError, passing, show
from verax.inference.shares import between
from verax.inputs.arrays import Floats
from verax.inputs.groups import GroupCount, counts_by_kind, in_words

# With fewer rows or groups than this, intervals are not to be trusted.
_FEW, _FEW_GROUPS = 20, 10
# With fewer rows than this whose most likely class failed, a mean loss is one of rows that were right.
_FEW_MISSES = 5
# A mean over groups whose skewness is larger than this is dominated by a few of them.
_SKEWED = 0.3
# A difference that fewer groups than this have is said to rest on them.
_FEW_DIFFER = 30
# Where one row has nearly all the weight, a share varies as that of less than one row; of fewer than this
# many rows, Wilson's interval is everything.
_LEAST_ROWS = 1e-9
_ROUNDING = 1e-12
# The part of a unit at the bounds that is added to the squares of a bounded mean over units.
_PAD = 0.25
# What weights say: how much a row stands for, or how often it was seen.
WeightsAre = Literal["importance", "counts"]
# How groups are thought of: as of one kind, whose errors are alike up to a correlation that may be stated, or
# as if there might be kinds that were not seen.
FewGroups = float | Literal["unseen"] | None
UNSEEN = "unseen"
# From this many degrees of freedom on, the expansion of the t quantile is as exact as a double.
_MANY = 1000
# More bootstrap replicates than this are refused: they would only fill memory.
MOST_REPLICATES = 1_000_000


class Interval(tuple[float, float]):
    """A confidence interval: the pair (low, high) with its method, level and caution.

    Parameters
    ----------
    low : float
        Lower end; NaN if there is no interval.
    high : float
        Upper end; NaN if there is no interval.
    method : str, default ""
        Method: "t", "mid-P", "gamma over 40 groups".
    confidence : float, default 0.95
        Confidence level: the share of such intervals that should cover the true value.
    caution : str, default ""
        Why the interval may be unreliable, or why there is none; otherwise empty.

    Examples
    --------
    >>> interval = Interval(0.1, 0.25, method="t", confidence=0.95)
    >>> low, high = interval
    >>> interval.high, f"{interval:.2f}"
    (0.25, '0.10 to 0.25')
    >>> Interval.undefined("there is only one row").defined
    False
    """

    method: str
    confidence: float
    caution: str

    def __new__(
        cls, low: float, high: float, *, method: str = "", confidence: float = 0.95, caution: str = ""
    ) -> Interval:
        self = super().__new__(cls, (float(low), float(high)))
        self.method, self.confidence, self.caution = method, float(confidence), caution
        return self

    @classmethod
    def undefined(cls, caution: str, *, method: str = "", confidence: float = 0.95) -> Interval:
        """Create an undefined interval with its reason.

        Parameters
        ----------
        caution : str
            Why there is none.
        method : str, default ""
            How it would have been computed.
        confidence : float, default 0.95
            Confidence level that was asked for.

        Returns
        -------
        Interval
            An interval whose ends are NaN.
        """
        return cls(math.nan, math.nan, method=method, confidence=confidence, caution=caution)

    @property
    def low(self) -> float:
        """The lower end."""
        return self[0]

    @property
    def high(self) -> float:
        """The upper end."""
        return self[1]

    @property
    def defined(self) -> bool:
        """Whether there is an interval: its ends are not NaN."""
        return not (math.isnan(self[0]) or math.isnan(self[1]))

    def within(self, bounds: tuple[float, float]) -> Interval:
        """Clip the interval to the bounds of the quantity.

        Parameters
        ----------
        bounds : tuple of two floats
            The smallest and the largest value that is possible.

        Returns
        -------
        Interval
            A new interval.
        """
        return self._with_ends(*np.clip(self, *bounds))

    def __neg__(self) -> Interval:
        """The interval of the negated quantity."""
        return self._with_ends(-self.high, -self.low)

    def shifted(self, by: float) -> Interval:
        """Return the interval of the quantity plus a constant.

        Parameters
        ----------
        by : float
            The constant.

        Returns
        -------
        Interval
            A new interval.
        """
        return self._with_ends(self.low + by, self.high + by)

    def scaled(self, by: float) -> Interval:
        """Return the interval of the quantity times a positive constant.

        Parameters
        ----------
        by : float
            The constant.

        Returns
        -------
        Interval
            A new interval.
        """
        return self._with_ends(self.low * by, self.high * by)

    def holding(self, value: float) -> Interval:
        """Return the interval with an end moved, where necessary, so that it holds a value.

        Parameters
        ----------
        value : float
            The value.

        Returns
        -------
        Interval
            A new interval.
        """
        return self._with_ends(min(self.low, value), max(self.high, value))

    def by(self, method: str, caution: str = "") -> Interval:
        """Return the interval with another method and caution.

        Parameters
        ----------
        method : str
            How it was computed.
        caution : str, default ""
            Why it may be unreliable.

        Returns
        -------
        Interval
            A new interval.
        """
        return Interval(*self, method=method, confidence=self.confidence, caution=caution)

    def doubted(self, why: str) -> Interval:
        """Return the interval with one more reason why it may be unreliable.

        Parameters
        ----------
        why : str
            The reason.

        Returns
        -------
        Interval
            A new interval.
        """
        return self.by(self.method, "; ".join(filter(None, [self.caution, why])))

    def _with_ends(self, low: float, high: float) -> Interval:
        return Interval(low, high, method=self.method, confidence=self.confidence, caution=self.caution)

    def to_dict(self) -> dict[str, Any]:
        """Return all facts as JSON values; undefined ends are None."""
        facts = {"low": plain(self.low), "high": plain(self.high), "method": self.method}
        return {**facts, "confidence": self.confidence, "caution": self.caution}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Interval:
        """Rebuild an interval from `to_dict`.

        Parameters
        ----------
        facts : mapping of str to value
            What `to_dict` returned.

        Returns
        -------
        Interval
            The interval.
        """
        try:
            low, high, confidence = (number(facts[name]) for name in ("low", "high", "confidence"))
            how = {"method": text(facts["method"]), "caution": text(facts["caution"])}
        except (LookupError, TypeError, ValueError, UnreadableError) as error:
            raise InputError(
                "must be what `to_dict` gave", argument="facts", kind="type", found=show(str(error))
            ) from None
        return cls(low, high, confidence=confidence, **how)

    def __format__(self, spec: str) -> str:
        """Both ends in the format given, joined by "to"; an empty text where there is no interval."""
        return f"{in_format(self.low, spec)} to {in_format(self.high, spec)}" if self.defined else ""

    def __repr__(self) -> str:
        caution = f", caution={self.caution!r}" if self.caution else ""
        how = f"method={self.method!r}, confidence={self.confidence:g}"
        return f"Interval({self.low:g}, {self.high:g}, {how}{caution})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


def with_ends(name: str, value: float, interval: tuple[float, float]) -> dict[str, float]:
    """A number and the ends of its interval under names of their own, as loggers of metrics take them.

    >>> with_ends("brier", 0.2, (0.1, 0.25))
    {'brier': 0.2, 'brier_low': 0.1, 'brier_high': 0.25}
    """
    return {name: value, f"{name}_low": interval[0], f"{name}_high": interval[1]}


class Resampled(TypedDict):
    """A plan of resampling with the method that followed it, for JSON."""

    confidence: float
    replicates: int
    seed: int
    weights_are: WeightsAre
    method: str


@dataclass(frozen=True, repr=False)
class Resampling:
    """Settings for computing confidence intervals.

    Attributes
    ----------
    confidence : float
        The confidence of every interval.
    replicates : int
        The number of bootstrap replicates.
    seed : int
        The random seed.
    weights_are : str
        "importance", or "counts" where a row of weight 3 is three rows.
    few_groups : float, "unseen" or None
        The largest correlation that errors of a group are assumed to have, or "unseen" where there may be
        kinds of groups that were not seen; None for the usual assumption.
    """

    confidence: float = 0.95
    replicates: int = 1000
    seed: int = 0
    weights_are: WeightsAre = "importance"
    few_groups: FewGroups = field(default=None, metadata=LATER)

    def by(self, method: str) -> Resampled:
        """Return the plan with the method, for JSON.

        Parameters
        ----------
        method : str
            The method that follows it, in words.

        Returns
        -------
        dict
            The plan and the method.
        """
        facts: Any = {**asdict(self), "method": method}
        # The method says what is assumed of groups.
        del facts["few_groups"]
        return cast(Resampled, facts)

    def to_values(self) -> dict[str, Any]:
        """The settings by name, to be stored; without that of groups where it is the usual one."""
        values = asdict(self)
        return {name: value for name, value in values.items() if name != "few_groups" or value is not None}

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.to_values().items())
        return f"Resampling({told})"

    def difference(self, other: Resampling) -> str:
        """Describe the differences to another plan.

        Parameters
        ----------
        other : Resampling
            The other plan.

        Returns
        -------
        str
            Such as "confidence 0.95 and 0.9, seed 0 and 3".

        Examples
        --------
        >>> Resampling().difference(Resampling(confidence=0.9, seed=3))
        'confidence 0.95 and 0.9, seed 0 and 3'
        """
        pairs = zip(asdict(self).items(), asdict(other).values(), strict=True)
        return ", ".join(f"{name} {mine} and {others}" for (name, mine), others in pairs if mine != others)

    @classmethod
    def checked(
        cls,
        confidence: float,
        replicates: int,
        seed: int,
        *,
        least: int = 2,
        or_none: bool = False,
        argument: str = "bootstrap",
        weights_are: WeightsAre = "importance",
        few_groups: FewGroups = None,
    ) -> Resampling:
        """Validate the settings and return the plan.

        Parameters
        ----------
        confidence : float
            Confidence level of the intervals.
        replicates : int
            Number of bootstrap replicates.
        seed : int
            Random seed.
        least : int, default 2
            The fewest replicates that make sense.
        or_none : bool, default False
            Whether 0 replicates are allowed.
        argument : str, default "bootstrap"
            What the caller calls the number of replicates.
        weights_are : {"importance", "counts"}, default "importance"
            What weights are. "importance": how much each row counts; only their ratios matter. "counts":
            a row of weight 3 is three rows.
        few_groups : float, "unseen" or None, default None
            What is assumed of the groups of shares: the largest correlation of the errors of a group, or that
            there may be kinds of groups that were not seen.

        Returns
        -------
        Resampling
            The plan.
        """
        check_confidence(confidence)
        check_replicates(replicates, least=least, or_none=or_none, argument=argument)
        check_seed(seed)
        check_choice("weights_are", weights_are, get_args(WeightsAre))
        few_groups = check_few_groups(few_groups)
        return cls(float(confidence), int(replicates), int(seed), weights_are, few_groups)

    @property
    def copies(self) -> bool:
        """Whether weights are numbers of rows."""
        return self.weights_are == "counts"


def t_quantile(freedom: float, confidence: float) -> float:
    """The upper end of the central interval of Student's t distribution.

    >>> round(t_quantile(7, 0.95), 4), round(t_quantile(math.inf, 0.95), 4)
    (2.3646, 1.96)
    """
    tail = (1 - float(confidence)) / 2
    if freedom >= _MANY and confidence <= 0.9999:
        from statistics import NormalDist

        return _expanded(-NormalDist().inv_cdf(tail), freedom)
    from scipy.special import stdtrit

    return float(-stdtrit(freedom, tail))


def _expanded(z: float, freedom: float) -> float:
    """Fisher's expansion of the quantile about the normal one (Abramowitz and Stegun, 26.7.5).

    From 1,000 degrees of freedom on its error is below 2e-13 of the value. Importing `scipy.special`
    takes longer than scoring a file of a few thousand rows.
    """
    terms = (
        z**3 / 4 + z / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term * (1 / freedom) ** i for i, term in enumerate(terms, 1))


def straightened(t: Floats, skewness: Floats) -> Floats:
    """A t statistic of a skewed estimate on a scale where Student's t distribution fits (Hall 1992).

    The estimate of a mean of skewed values and its standard error move together. The transformation of
    Hall (1992, JRSS B 54, 221-228) is monotone; Johnson's (1978) is its first terms.

    >>> straightened(np.array([-2.0, 2.0]), np.array([0.3, 0.3])).round(3)
    array([-1.577,  2.477])
    """
    with np.errstate(invalid="ignore", over="ignore"):
        moved = t + skewness * (t * t / 3 + 1 / 6) + skewness**2 * t**3 / 27
    # Without skewness infinite statistics stay.
    return np.where(np.asarray(skewness) == 0, t, moved)


def bent(t: Floats, skewness: Floats) -> Floats:
    """The inverse of `straightened`: quantiles of the t statistic of a skewed estimate.

    >>> bent(straightened(np.array([-2.0, 2.0]), np.array([0.3, 0.0])), np.array([0.3, 0.0]))
    array([-2.,  2.])
    """
    flat = np.abs(skewness) < _ROUNDING
    by = np.where(flat, 1.0, skewness)
    return np.where(flat, t, 3 / by * (np.cbrt(1 + by * (t - by / 6)) - 1))


def cautious_tail(
    t: Floats, freedom: Floats | float, skewness: Floats | float, skewed_freedom: Floats | float
) -> Floats:
    """The chance of a t statistic at most this large: Student's or Hall's, whichever is larger.

    Means of few skewed values need Hall's transformation. Where most values are zero, the skewness of the
    others is noise that follows the mean, and Hall's chance is far too small. `skewed_freedom` are the
    degrees of freedom of the transformed statistic; NaN where there is none.

    >>> cautious_tail(np.array([-2.0, -2.0]), 30.0, np.array([0.3, -0.3]), 30.0).round(4)
    array([0.0627, 0.0273])
    """
    from scipy.special import stdtr

    moved = straightened(np.asarray(t, float), np.asarray(skewness, float))
    return np.asarray(np.fmax(stdtr(freedom, t), stdtr(skewed_freedom, moved)))


def cautious_limits(
    mean: Floats, error: Floats, student: Floats | float, hall: Floats | float, skewness: Floats | float
) -> tuple[Floats, Floats]:
    """The limits of a mean that `cautious_tail` gives: those of Student and Hall further from it.

    `student` and `hall` are the quantiles of t with the degrees of freedom of either, or NaN.

    >>> low, high = cautious_limits(np.array([0.0]), np.array([1.0]), 2.0, 2.0, 0.3)
    >>> low.round(3), high.round(3)
    (array([-2.]), array([2.725]))
    """
    student, hall, skewness = (np.asarray(x, float) for x in (student, hall, skewness))
    with np.errstate(invalid="ignore"):
        low = mean - error * np.fmax(student, bent(hall, skewness))
        return low, mean - error * np.fmin(-student, bent(-hall, skewness))


def wilson(share: float, n: float, quantile: float, confidence: float) -> Interval:
    """Wilson's interval of a share of `n` independent rows, which also holds for shares of 0 and 1.

    Here the scale of other numbers within bounds. Wilson (1927), doi:10.1080/01621459.1927.10502953.

    >>> f"{wilson(0.0, 30, 1.96, 0.95):.3f}", f"{wilson(0.5, 30, 1.96, 0.95):.3f}"
    ('0.000 to 0.114', '0.332 to 0.668')
    """
    pull = quantile * quantile / max(n, _LEAST_ROWS)
    centre = (share + pull / 2) / (1 + pull)
    half = math.sqrt(share * (1 - share) * pull + pull * pull / 4) / (1 + pull)
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Interval(low, high, method="Wilson", confidence=confidence)


def bounded(
    value: float,
    variance: float,
    freedom: float,
    n: float,
    bounds: tuple[float, float],
    plan: Resampling,
    *,
    smoothed: float | None = None,
) -> Interval:
    """The t interval of a quantity within bounds, on a scale that does not collapse at them.

    With finite bounds it is Wilson's interval of the share (value - least) / (most - least), with the number
    of rows that gives a share this variance; `n` rows where the share is 0 or 1. Where the variance is that
    of a smoothed estimate, the interval is around both that and the value.
    """
    quantile = t_quantile(freedom, plan.confidence)
    least, most = bounds
    centres = [value] if smoothed is None else sorted([value, smoothed])
    if not math.isfinite(most - least):
        half = quantile * math.sqrt(variance)
        ends = centres[0] - half, centres[-1] + half
        return Interval(*ends, method="t", confidence=plan.confidence).within(bounds)
    shares = [min(max((centre - least) / (most - least), 0.0), 1.0) for centre in centres]
    spread = variance / (most - least) ** 2
    share = shares[0] if smoothed is None else shares[centres.index(smoothed)]
    rows = share * (1 - share) / spread if spread > 0 and between(share) else n
    low, high = (wilson(share, rows, quantile, plan.confidence) for share in (shares[0], shares[-1]))
    ends = least + low[0] * (most - least), least + high[1] * (most - least)
    return Interval(*ends, method="Wilson", confidence=plan.confidence)


def padded(variance: float, value: float, n: float, bounds: tuple[float, float], pad: float = _PAD) -> float:
    """The variance of a mean over n units of a quantity within bounds, with a part of a unit more.

    Half of it is at either bound. Near a bound, units unlike the others may not have been seen: with 97 %
    right answers to 40 questions that were asked 5 times, 92 % of intervals cover without it, 97 % with it.

    >>> padded(0.0, 0.0, 2, (0.0, 1.0))
    0.0625
    """
    squares = ((value - bounds[0]) ** 2 + (bounds[1] - value) ** 2) / 2
    return variance + pad * squares / (n * (n - 1)) if n > 1 and math.isfinite(squares) else variance


def few(n: float, one: str, many: str) -> str:
    """The caution about intervals from few rows; empty where there are enough.

    >>> few(5, "row", "rows"), few(50, "row", "rows")
    ('only 5 rows', '')
    """
    return "" if n >= _FEW else f"only {n:.4g} {one if n == 1 else many}"


def skewed(n: float, mean: float, std: float) -> str:
    """The caution about the mean of heavy-tailed losses of too few rows; empty where there are enough.

    Losses whose standard deviation is c times their mean need about 50 c^2 rows for a t interval to cover.

    >>> skewed(100, 0.5, 1.0), skewed(100, 0.5, 0.5)
    ('heavy tails: the losses vary 2 times their mean, and there are only 100 rows', '')
    """
    ratio = std / abs(mean) if mean else 0.0
    if n >= 50 * ratio**2:
        return ""
    return f"heavy tails: the losses vary {ratio:.2g} times their mean, and there are only {n:.4g} rows"


def few_misses(misses: float, n: float) -> str:
    """The caution about a mean loss of rows whose most likely class hardly ever failed; empty otherwise.

    Rows that were right do not tell what wrong ones cost. With 99.75 % right, 48 % of the intervals of a mean
    score of 300 rows miss it: those of samples without a wrong row.

    >>> few_misses(1, 300), few_misses(5, 300)
    ('the most likely class failed in only 1 of 300 rows: what failures cost is hardly known', '')
    """
    if not misses < _FEW_MISSES - _ROUNDING:
        return ""
    share = f"in only {misses:.3g} of {n:.4g} rows" if misses > _ROUNDING else f"in none of {n:.4g} rows"
    return f"the most likely class failed {share}: what failures cost is hardly known"


def unequal(n: float, n_rows: float) -> str:
    """The caution about weights of which a few rows have most; `n` is the effective number of rows.

    With lognormal weights of standard deviation 1.5, 5 % tests of 500 to 5,000 rows reject 8 to 9 %.

    >>> unequal(66, 500), unequal(180, 500)
    ('unequal weights: 500 rows tell as much as 66', '')
    """
    return "" if n >= n_rows / 4 else f"unequal weights: {n_rows:.4g} rows tell as much as {n:.4g}"


def few_groups(count: GroupCount) -> str:
    """The caution about intervals from few groups, of either kind; empty where there are enough.

    >>> few_groups(8), few_groups(10), few_groups((50, 8))
    ('only 8 groups', '', 'only 50 and 8 groups')
    """
    return "" if min(counts_by_kind(count)) >= _FEW_GROUPS else f"only {in_words(count)}"


def few_dominate(skewness: float, count: GroupCount) -> str:
    """The caution about a mean over groups that a few of them dominate; empty where none do.

    `skewness` is that of the mean. Where 6 % of 40 groups have a larger loss by far, 92 % of intervals
    cover: the others are of samples without such a group.

    >>> few_dominate(0.4, 40), few_dominate(-0.2, 40)
    ('heavy tails: a few of the 40 groups dominate the mean', '')
    """
    return f"heavy tails: a few of the {in_words(count)} dominate the mean" if abs(skewness) > _SKEWED else ""


def few_differ(n: int, exact: float, count: GroupCount) -> str:
    """The caution about a difference that few of the groups have; empty where enough have it.

    `exact` is the p-value of the exact sign-flip test, 0 where it was not done.

    >>> few_differ(3, 0.25, 1000), few_differ(20, 0.0, 20), few_differ(30, 0.0, 1000)
    ('only 3 of 1,000 groups differ (exact sign-flip test)', '', '')
    """
    least = min(counts_by_kind(count))
    if n >= min(least, _FEW_DIFFER):
        return ""
    if n == 0:
        return f"none of {least:,} groups differs"
    return f"only {n} of {least:,} groups differ{' (exact sign-flip test)' if exact else ''}"


def check_few_groups(few_groups: object) -> FewGroups:
    """What is assumed of groups, refused unless it is a correlation or "unseen"."""
    if few_groups is None or few_groups == UNSEEN:
        return cast(FewGroups, few_groups)
    wanted = f'must be a correlation from 0 to 1, or "{UNSEEN}"'
    return float(check_number("few_groups", few_groups, wanted, lambda level: 0 <= level <= 1))


def check_confidence(confidence: object) -> None:
    """Refuse a confidence that is no probability, such as 95."""
    percent = isinstance(confidence, (int, float)) and 1 < confidence < 100
    remedies = [passing(confidence=float(confidence) / 100)] if percent else []  # type: ignore[arg-type]
    check_number("confidence", confidence, "must lie between 0 and 1", lambda c: 0 < c < 1, remedies=remedies)


def check_replicates(n: object, *, least: int, or_none: bool = False, argument: str = "bootstrap") -> None:
    """Refuse a number of bootstrap replicates that is too small for an interval, or enormous."""
    if is_whole(n) and (least <= n <= MOST_REPLICATES or (or_none and n == 0)):
        return
    wanted = f"{'0 or ' if or_none else ''}from {least} to {MOST_REPLICATES:,} replicates"
    raise InputError(
        f"must be {wanted}, not {show(n)}",
        argument=argument,
        kind="value" if is_whole(n) else "type",
        values=[n],
    )


def check_seed(seed: object) -> None:
    """Refuse a random seed that is no whole number of at least zero."""
    check_count("seed", seed, least=0)
