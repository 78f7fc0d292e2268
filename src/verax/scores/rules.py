"""The scoring rules: one formula over row statistics each, with its properties.

Every rule is a loss: lower is better. The conventions are those of the cited papers, with their errors
corrected; see docs/errata.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from verax.common.checks import as_float, check_choice, check_flag, check_number
from verax.engines.stats import RowStats
from verax.errors import Remedy
from verax.inputs.arrays import Array
from verax.scores.base import Rule
from verax.scores.properties import Holds, Properties

ALWAYS, NEVER, BINARY = Holds.ALWAYS, Holds.NEVER, Holds.BINARY


# Rows may sum to a little more than 1 (`inputs.validity`), so that a probability, or a loss made of it, may
# lie beyond the end of its range by as much. Formulas bring it back to that end.


def _at_most(limit: float, x: Array, stats: RowStats) -> Array:
    return stats.xp.minimum(x, limit)


def _at_least(limit: float, x: Array, stats: RowStats) -> Array:
    return stats.xp.maximum(x, limit)


# ---- for classes without an order ------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Brier(Rule):
    """Brier score: the squared error of the forecast, (1 - p_y)^2 + sum of p_j^2 over j != y.

    Lower is better; from 0 to 2 with scale="sum" (Brier's own), halved with "half" (the binary
    score of scikit-learn and most of meteorology), divided by K with "mean". Strictly proper.

    Parameters
    ----------
    scale : {"sum", "half", "mean"}, default "sum"
        The sum over classes, half of it, or their mean.

    References
    ----------
    Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2

    Examples
    --------
    >>> import verax as vx
    >>> round(vx.brier([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), 3)
    0.2
    """

    scale: Literal["sum", "half", "mean"] = "sum"

    name = "brier"
    title = "Brier score"
    summary = "squared error over the classes"
    description = (
        "The squared error of the forecast: (1 - p_y)^2 plus the sum of p_j^2 over the classes j that "
        "did not happen. Strictly proper."
    )
    use = (
        "Comparing and selecting models whose classes have no order. It is bounded, so that no single "
        "row decides a mean, and forecasts of exactly 0 are allowed."
    )
    avoid = (
        "Ordered classes: a miss by one class costs as much as a miss by many. Very rare events: what "
        "small probabilities lose hardly shows beside the rest."
    )
    reference = "doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2"
    needs: ClassVar[frozenset[str]] = frozenset({"rest_sq"})
    properties: ClassVar[Properties] = Properties(
        proper=ALWAYS,
        strictly_proper=ALWAYS,
        local=BINARY,
        symmetric=ALWAYS,
        distance_sensitive=BINARY,
        superior=BINARY,
        bounded=ALWAYS,
    )

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, ("sum", "half", "mean"))

    @property
    def latex(self) -> str:  # type: ignore[override]
        factor = {"sum": "", "half": r"\tfrac{1}{2} ", "mean": r"\tfrac{1}{K} "}[self.scale]
        total = r"(1 - p_y)^2 + \sum_{j \ne y} p_j^2"
        return rf"{factor}\Bigl({total}\Bigr)" if factor else total

    def _factor(self, n_classes: int) -> float:
        return {"sum": 1.0, "half": 0.5, "mean": 1 / n_classes}[self.scale]

    def formula(self, stats: RowStats) -> Array:
        miss = 1 - stats.p_true
        total = miss * miss + _at_most(1.0, stats.rest_sq, stats)
        return total if self.scale == "sum" else self._factor(stats.n_classes) * total

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, 2 * self._factor(n_classes)

    def sup_correct(self, n_classes: int) -> float:
        return self._factor(n_classes) * ((n_classes - 1) / n_classes)

    def inf_wrong(self, n_classes: int) -> float:
        return self._factor(n_classes) / 2


@dataclass(frozen=True, repr=False)
class Log(Rule):
    """Logarithmic score: minus the logarithm of the probability of the outcome.

    Lower is better; from 0 to infinity, reached if the outcome had probability zero. Strictly proper and
    local.

    Parameters
    ----------
    base : float, default e
        The base of the logarithm: e for nats, 2 for bits.
    clip : float, optional
        Raise probabilities to at least this value, as other packages do by default. This makes the rule
        improper near zero.

    References
    ----------
    Good (1952), doi:10.1111/j.2517-6161.1952.tb00104.x

    Examples
    --------
    >>> import verax as vx
    >>> vx.rules.Log(base=2)([0, 1], [[0.5, 0.5], [0.75, 0.25]])
    1.5
    """

    base: float = math.e
    clip: float | None = None

    name = "log_score"
    title = "Log score"
    summary = "minus the log probability of the outcome"
    description = (
        "Minus the logarithm of the probability of the outcome. Infinite where the outcome had "
        "probability zero. Strictly proper and local: only the probability of the outcome counts."
    )
    use = (
        "Comparing models whose small probabilities matter, and training: it is the cross-entropy. "
        "Differences of means are bits or nats of information."
    )
    avoid = (
        "Forecasts that contain exact zeros or hard labels: one outcome of probability zero makes the "
        "mean infinite. Ordered classes: all other classes count the same."
    )
    reference = "doi:10.1111/j.2517-6161.1952.tb00104.x"
    needs: ClassVar[frozenset[str]] = frozenset({"log_true"})

    def __post_init__(self) -> None:
        advice = Remedy("To score, call log_score(y, p).", python_only=True)
        base = check_number(
            "base", self.base, "must be a finite number above 1", lambda base: base > 1, remedies=[advice]
        )
        object.__setattr__(self, "base", base)
        if self.clip is not None:
            clip = check_number("clip", self.clip, "must lie between 0 and 0.5", lambda c: 0 < c < 0.5)
            object.__setattr__(self, "clip", clip)

    @property
    def latex(self) -> str:  # type: ignore[override]
        logarithm = r"\ln" if self.base == math.e else rf"\log_{{{self.base:g}}}"
        return f"-{logarithm} " + ("p_y" if self.clip is None else rf"\max(p_y, {self.clip:g})")

    @property
    def properties(self) -> Properties:
        honest = ALWAYS if self.clip is None else NEVER
        return Properties(
            proper=honest,
            strictly_proper=honest,
            local=ALWAYS,
            symmetric=ALWAYS,
            distance_sensitive=BINARY if self.clip is None else NEVER,
            superior=BINARY,
            bounded=NEVER if self.clip is None else ALWAYS,
        )

    def _in_base(self, nats: float) -> float:
        return nats if self.base == math.e else nats / math.log(self.base)

    def formula(self, stats: RowStats) -> Array:
        if self.clip is None:
            nats = -stats.log_true
        else:
            nats = -stats.xp.log(_at_least(self.clip, stats.sure, stats))
        return nats if self.base == math.e else nats * (1 / math.log(self.base))

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, math.inf if self.clip is None else self._in_base(-math.log(self.clip))

    def sup_correct(self, n_classes: int) -> float:
        return self._in_base(math.log(n_classes))

    def inf_wrong(self, n_classes: int) -> float:
        return self._in_base(math.log(2))


@dataclass(frozen=True, repr=False)
class Spherical(Rule):
    """Spherical score: one minus the cosine between the forecast and the outcome, `1 - p_y / |p|`.

    Lower is better; from 0 to 1. Strictly proper.

    References
    ----------
    Gneiting and Raftery (2007), doi:10.1198/016214506000001437

    Examples
    --------
    >>> import verax as vx
    >>> round(vx.spherical([0], [[0.6, 0.8 / 2, 0.0]]), 3)
    0.168
    """

    name = "spherical"
    title = "Spherical score"
    summary = "one minus the cosine to the outcome"
    description = (
        "One minus the cosine of the angle between the forecast and the outcome, `1 - p_y / |p|`. "
        "Strictly proper."
    )
    latex = r"1 - \frac{p_y}{\sqrt{\sum_j p_j^2}}"
    use = (
        "A bounded alternative to the Brier score: only the direction of the forecast counts, so the "
        "loss of an outcome of small probability is near 1 however the rest is divided."
    )
    avoid = (
        "Reports for readers who do not know it: the Brier score answers the same questions, and more "
        "people can read it."
    )
    reference = "doi:10.1198/016214506000001437"
    needs: ClassVar[frozenset[str]] = frozenset({"rest_sq"})
    properties: ClassVar[Properties] = Brier.properties

    def formula(self, stats: RowStats) -> Array:
        # 1 - p/|p| cancels for good forecasts; multiplied out by |p| + p it does not.
        norm = stats.xp.sqrt(stats.p_true * stats.p_true + stats.rest_sq)
        return _at_most(1.0, stats.rest_sq / (norm * (norm + stats.p_true)), stats)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, 1.0

    def sup_correct(self, n_classes: int) -> float:
        return 1 - 1 / math.sqrt(as_float(n_classes))

    def inf_wrong(self, n_classes: int) -> float:
        return 1 - 1 / math.sqrt(2)


# Which class is the mode where several are most likely.
Ties = Literal["fractional", "lowest", "lenient"]


@dataclass(frozen=True, repr=False)
class ZeroOne(Rule):
    """Zero-one loss: 1 if the most likely class is not the outcome, else 0.

    Lower is better; from 0 to 1. Proper, never strictly. If t classes tie for most likely and the
    outcome is one of them, the loss is 1 - 1/t ("fractional", the only symmetric choice that is
    proper), or the lowest index is the decision ("lowest", like argmax). "lenient" counts such a tie as
    correct; this is not proper.

    Parameters
    ----------
    ties : {"fractional", "lowest", "lenient"}, default "fractional"
        Whether tied classes share the decision, the lowest index takes it, or any of them may be right.

    References
    ----------
    Gneiting and Raftery (2007), doi:10.1198/016214506000001437

    Examples
    --------
    >>> import verax as vx
    >>> vx.zero_one([0, 1], [[0.5, 0.5], [0.9, 0.1]])
    0.75
    """

    ties: Ties = "fractional"

    name = "zero_one"
    title = "Zero-one loss"
    summary = "error rate (ties shared)"
    description = (
        "Whether the most likely class was not the outcome. Where t classes tie for most likely and "
        "the outcome is one of them, the loss is 1 - 1/t. Proper, never strictly. A top list is judged by "
        "the class it puts first, whatever its confidence."
    )
    use = (
        "Decisions that take the most likely class and cost the same for every mistake. It is one "
        "minus the accuracy, with ties shared."
    )
    avoid = (
        "Judging probabilities: it is not strictly proper, and a forecast of 0.51 does as well as one "
        "of 0.99. Small differences need many rows."
    )
    reference = "doi:10.1198/016214506000001437"

    def __post_init__(self) -> None:
        check_choice("ties", self.ties, get_args(Ties))

    @property
    def latex(self) -> str:  # type: ignore[override]
        modes = r"A = \{j : p_j = \max_i p_i\}"
        if self.ties == "lowest":
            return rf"\mathbf{{1}}\{{y \ne \min A\}}, \quad {modes}"
        if self.ties == "lenient":
            return rf"\mathbf{{1}}\{{y \notin A\}}, \quad {modes}"
        return rf"1 - \frac{{\mathbf{{1}}\{{y \in A\}}}}{{|A|}}, \quad {modes}"

    @property
    def answer_alone(self) -> bool:  # type: ignore[override]
        return self.ties == "fractional"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"hit_lowest" if self.ties == "lowest" else "hit"})

    @property
    def properties(self) -> Properties:
        return Properties(
            # A uniform forecast is never wrong where ties are correct.
            proper=NEVER if self.ties == "lenient" else ALWAYS,
            strictly_proper=NEVER,
            local=BINARY,
            symmetric=NEVER if self.ties == "lowest" else ALWAYS,
            distance_sensitive=NEVER,
            superior=ALWAYS,
            bounded=ALWAYS,
        )

    def formula(self, stats: RowStats) -> Array:
        if self.ties == "lenient":
            # The share of a tie is at least one K-th.
            return 1 - stats.xp.minimum(2 * stats.n_classes * stats.hit, 1.0)
        return 1 - (stats.hit if self.ties == "fractional" else stats.hit_lowest)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, 1.0


# ---- for ordered classes -----------------------------------------------------------------------


# The expected distance of a forecast from the outcome, in classes, as TeX.
_DISTANCE = r"\sum_j p_j |j - y|"


def _mean(normalized: bool) -> str:
    """The factor that turns a sum over the thresholds into their mean, as TeX."""
    return r"\frac{1}{K-1} " if normalized else ""


class OrdinalRule(Rule):
    """A rule that depends on the order of the classes: a miss by one costs less than a miss by two."""

    ordinal = True


@dataclass(frozen=True, repr=False)
class RPS(OrdinalRule):
    """Ranked probability score: the squared error of the cumulative forecast, over the K-1 thresholds.

    Lower is better; from 0 to 1, or to K-1 with normalized=False (as in scoringrules). Strictly
    proper. For two classes it is half the Brier score.

    Parameters
    ----------
    normalized : bool, default True
        Whether the sum over thresholds is divided by their number, K-1.

    References
    ----------
    Epstein (1969), doi:10.1175/1520-0450(1969)008<0985:ASSFPF>2.0.CO;2

    Examples
    --------
    >>> import verax as vx
    >>> vx.rps([0], [[0.25, 0.75, 0.0]])
    0.28125
    """

    normalized: bool = True

    name = "rps"
    title = "Ranked probability score"
    summary = "squared error of the cumulative forecast"
    description = (
        "The squared error of the cumulative forecast, averaged over the K - 1 thresholds between the "
        "classes. A forecast near the outcome loses less than one far away. Strictly proper. For two "
        "classes it is half the Brier score."
    )
    use = (
        "Comparing and selecting models of ordered classes, such as grades or stages: near misses "
        "lose less, and honest forecasts are expected to lose least."
    )
    avoid = (
        "Classes without an order. With very unequal steps between the classes, costs of decisions "
        "say more (expected cost)."
    )
    reference = "doi:10.1175/1520-0450(1969)008<0985:ASSFPF>2.0.CO;2"
    needs: ClassVar[frozenset[str]] = frozenset({"cdf_l2"})
    properties: ClassVar[Properties] = Properties(
        proper=ALWAYS,
        strictly_proper=ALWAYS,
        local=BINARY,
        symmetric=BINARY,
        distance_sensitive=ALWAYS,
        superior=BINARY,
        bounded=ALWAYS,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalized", check_flag("normalized", self.normalized))

    @property
    def latex(self) -> str:  # type: ignore[override]
        return rf"{_mean(self.normalized)}\sum_{{i<K}} \bigl(P_i - \mathbf{{1}}\{{y \le i\}}\bigr)^2"

    def formula(self, stats: RowStats) -> Array:
        total = stats.cdf_l2 * (1 / (stats.n_classes - 1)) if self.normalized else stats.cdf_l2
        return _at_most(self._unit(stats.n_classes), total, stats)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, self._unit(n_classes)

    def _unit(self, n_classes: int) -> float:
        return 1.0 if self.normalized else n_classes - 1.0

    def sup_correct(self, n_classes: int) -> float:
        # A convex function is largest at a vertex of {p : p_j <= p_y}: uniform on y and some classes at
        # the ends. It is largest of all for y at one end and n - 1 classes at the other. The sum of its
        # squared cumulative errors is K + 3/2 - 2n/3 - (2K + 5/6)/n + K/n^2, which rises up to one n
        # and falls after it; that n lies within 1 of the square root of 3K. Integers keep it exact.
        root = math.isqrt(3 * n_classes)
        largest, over = 0, 1
        # Plain steps, because compilers of PyTorch follow them.
        for n in range(max(1, root - 2), min(n_classes, root + 2) + 1):
            total, parts = (n - 1) * (n * (2 * n - 1) + 6 * (n - 1) * (n_classes - n)), 6 * n * n
            if total * over > largest * parts:
                largest, over = total, parts
        return largest / (over * (n_classes - 1) if self.normalized else over)

    def inf_wrong(self, n_classes: int) -> float:
        # Half the mass next to an outcome at the end; (.4, .4, .2) around one in the middle.
        nearest = 1 / 4 if n_classes == 2 else 1 / 5
        return nearest / (n_classes - 1) * self._unit(n_classes)


@dataclass(frozen=True, repr=False)
class AbsRPS(OrdinalRule):
    """Absolute RPS: the expected distance of the forecast from the outcome, in classes over K-1.

    Lower is better; from 0 to 1, or to K-1 with normalized=False. Improper, even for two classes: its
    best forecast puts all mass on the median class.

    Parameters
    ----------
    normalized : bool, default True
        Whether the sum over thresholds is divided by their number, K-1.

    References
    ----------
    Galdran (2023), doi:10.1007/978-3-031-43898-1_35

    Examples
    --------
    >>> import verax as vx
    >>> vx.abs_rps([0], [[0.25, 0.75, 0.0]])
    0.375
    """

    normalized: bool = True

    name = "abs_rps"
    title = "Absolute RPS"
    summary = "expected distance from the outcome"
    description = (
        "The expected distance of the forecast from the outcome, in classes, divided by K - 1. Not "
        "proper, for two classes already: all mass on the median class has the lowest expected loss."
    )
    use = "Reading how far a forecast lies from the outcome, in classes, for forecasts that are given."
    avoid = (
        "Selecting or training models: certainty of the median class has a lower expected loss than the "
        "truth."
    )
    reference = "doi:10.1007/978-3-031-43898-1_35"
    needs: ClassVar[frozenset[str]] = frozenset({"cdf_l1"})
    properties: ClassVar[Properties] = Properties(
        proper=NEVER,
        strictly_proper=NEVER,
        local=BINARY,
        symmetric=BINARY,
        distance_sensitive=ALWAYS,
        superior=BINARY,
        bounded=ALWAYS,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalized", check_flag("normalized", self.normalized))

    @property
    def latex(self) -> str:  # type: ignore[override]
        return _mean(self.normalized) + _DISTANCE

    def formula(self, stats: RowStats) -> Array:
        total = stats.cdf_l1 * (1 / (stats.n_classes - 1)) if self.normalized else stats.cdf_l1
        return _at_most(self.bounds(stats.n_classes)[1], total, stats)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, 1.0 if self.normalized else n_classes - 1.0


@dataclass(frozen=True, repr=False)
class SaRPS(OrdinalRule):
    """Squared absolute RPS: the square of the expected distance of the forecast from the outcome.

    Lower is better; from 0 to 1 with scale="unit"; scale="eq7" is the printed equation, whose
    largest value is K-1. Proper for two classes only: with more, it rewards collapsing the forecast
    around the mean class, whatever the spread. Use it to find errors, not to choose models.

    Parameters
    ----------
    scale : {"unit", "eq7"}, default "unit"
        Whether the largest loss is 1, or K-1 as in the printed equation.

    References
    ----------
    Galdran (2023), doi:10.1007/978-3-031-43898-1_35

    Examples
    --------
    >>> import verax as vx
    >>> vx.sa_rps([0], [[0.25, 0.75, 0.0]])
    0.140625
    """

    scale: Literal["unit", "eq7"] = "unit"

    name = "sa_rps"
    title = "Squared absolute RPS"
    summary = "squared expected distance from the outcome"
    description = (
        "The square of the expected distance of the forecast from the outcome, in classes, divided by "
        "K - 1. Proper for two classes only. For more, all mass next to the mean class has the lowest "
        "expected loss, whatever the spread. Use it to find mistakes, not to choose models."
    )
    use = "Ranking rows by how far off they are, to look at the worst first."
    avoid = (
        "Selecting, comparing or training models of three classes and more: all mass next to the mean "
        "class has a lower expected loss than the truth."
    )
    reference = "doi:10.1007/978-3-031-43898-1_35"
    needs: ClassVar[frozenset[str]] = frozenset({"cdf_l1"})
    properties: ClassVar[Properties] = Properties(
        proper=BINARY,
        strictly_proper=BINARY,
        local=BINARY,
        symmetric=BINARY,
        distance_sensitive=ALWAYS,
        superior=BINARY,
        bounded=ALWAYS,
    )

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, ("unit", "eq7"))

    @property
    def latex(self) -> str:  # type: ignore[override]
        if self.scale == "eq7":
            return rf"\frac{{1}}{{K-1}} \Bigl({_DISTANCE}\Bigr)^2"
        return rf"\Bigl(\frac{{1}}{{K-1}} {_DISTANCE}\Bigr)^2"

    def formula(self, stats: RowStats) -> Array:
        distance = _at_most(1.0, stats.cdf_l1 * (1 / (stats.n_classes - 1)), stats)
        square = distance * distance
        return square if self.scale == "unit" else (stats.n_classes - 1) * square

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, 1.0 if self.scale == "unit" else n_classes - 1.0


@dataclass(frozen=True, repr=False)
class RankedLog(OrdinalRule):
    """Ranked log score: the mean binary log score of the K-1 thresholds.

    Lower is better; from 0 to infinity, reached if one threshold is wrong with certainty. Strictly
    proper. For two classes it is the log score.

    References
    ----------
    Tödter and Ahrens (2012), doi:10.1175/MWR-D-11-00266.1

    Examples
    --------
    >>> import verax as vx
    >>> round(vx.ranked_log([0], [[0.5, 0.25, 0.25]]), 4)
    0.4904
    """

    name = "ranked_log"
    title = "Ranked log score"
    summary = "mean log score of the thresholds"
    description = (
        "The mean log score of the K - 1 thresholds between the classes. Infinite as soon as one "
        "threshold is wrong with certainty. Strictly proper. For two classes it is the log score."
    )
    latex = r"\frac{1}{K-1} \sum_{i<K} -\ln \begin{cases} P_i & y \le i \\ 1 - P_i & y > i \end{cases}"
    use = (
        'Ordered classes where small probabilities matter: the log score of every question "at most '
        'this class?".'
    )
    avoid = "Forecasts with exact zeros: one threshold that is wrong with certainty makes the mean infinite."
    reference = "doi:10.1175/MWR-D-11-00266.1"
    needs: ClassVar[frozenset[str]] = frozenset({"cdf_log"})
    properties: ClassVar[Properties] = Properties(
        proper=ALWAYS,
        strictly_proper=ALWAYS,
        local=BINARY,
        symmetric=BINARY,
        distance_sensitive=ALWAYS,
        superior=BINARY,
        bounded=NEVER,
    )

    def formula(self, stats: RowStats) -> Array:
        return _at_least(0.0, stats.cdf_log * (1 / (stats.n_classes - 1)), stats)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, math.inf
