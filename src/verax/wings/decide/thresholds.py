"""Thresholds for decisions between ordered classes, chosen on data, with their honest value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from verax.analyses.dealing import dealt
from verax.analyses.sampled import sampled_rows
from verax.analyses.table import RowTable
from verax.common.checks import check_count
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.errors import InputError
from verax.inference.bootstrap import bootstrap_interval, resampled_metrics, widened_over_groups
from verax.inference.intervals import Interval, Resampling, few, few_groups
from verax.inputs.arrays import Floats, Ints
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.inputs.skipping import MaySkip
from verax.scores.decisions import at_thresholds, cheapest, decide
from verax.scores.metrics import CostsLike, DecisionMetric, find_metric

# Values of a threshold that are tried, starts, and rounds in which all are tried in turn.
_CANDIDATES, _STARTS, _ROUNDS = 200, (0.5, 0.3, 0.7), 50
# Up to this number of counts, in the tables of all combinations of thresholds, every combination is tried.
_MOST_TABLES = 2**19
# Improvements that are smaller are rounding.
_ROUNDING = 1e-12
# Beyond this number of classes the tables of counts of all candidates are large.
_MOST_CLASSES = 64
# Up to this number of classes, rows are resampled as joint counts of outcomes and both decisions.
_COUNTED = 8


@reads
def choose_thresholds(
    y: object,
    p: object = None,
    *,
    metric: str | DecisionMetric = "ec",
    costs: CostsLike = "quadratic",
    folds: int = 5,
    bootstrap: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    **read: Unpack[RowOptions],
) -> Thresholds:
    """Choose the thresholds of `decide` by a metric of decisions, and measure them on rows not used for it.

    Where the probabilities are calibrated, the cheapest decision (`decide(p, costs=...)`) cannot be beaten
    by much; thresholds help where they are not, and for metrics such as kappa that no costs stand for.

    All combinations of thresholds are tried: of 200 values each where there are more distinct probabilities,
    and for three classes or fewer whatever the number of rows. Where there are more than about 500,000 counts
    in the confusion tables of all combinations, one threshold is optimised after the other until none can be
    improved, from four starts: a good choice, not always the best. The interval takes the thresholds of each
    fold as they are: it is about these decisions.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
        `scan` has opened, in place of both `y` and `p`; of more than 100,000 rows, or 8 million
        probabilities, thresholds are chosen on a random sample (`sampled`).
    p : array_like of shape (N, K) or (N,), optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough. The columns are ordered from lowest to highest.
    metric : str or DecisionMetric, default "ec"
        The metric of decisions to optimise, such as "ec", "qwk", "balanced_accuracy", "mae".
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), default "quadratic"
        The costs of the metric "ec".
    folds : int, default 5
        Number of folds of the cross-validation; rows of a group are in one fold.
    bootstrap : int, default 1000
        Number of bootstrap replicates for the interval of the gain.
    seed
    confidence : float, default 0.95
        Confidence level of the interval.
    **read

    Returns
    -------
    Thresholds
        The thresholds, and what they gain.

    See Also
    --------
    decide : Decisions by thresholds or costs.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 600)
    >>> p = np.exp(rng.normal(size=(600, 3)) - np.abs(np.arange(3) - y[:, None])) * [1, 1, 3]
    >>> p /= p.sum(axis=1, keepdims=True)
    >>> chosen = vx.choose_thresholds(y, p, metric="qwk")
    >>> chosen.values.round(2).tolist(), round(chosen.honest, 3), round(chosen.reference, 3)
    ([0.67, 0.7], 0.721, 0.61)
    >>> bool((chosen.decide(p) == vx.decide(p, thresholds=chosen.values)).all())
    True
    """
    check_count("folds", folds, least=2)
    plan = Resampling.checked(confidence, bootstrap, seed)
    handle = open_rows(y, p, ordered=True, dense=True, single=True, **read)
    model = handle.one_model()
    measure = metric if isinstance(metric, DecisionMetric) else find_metric(metric, costs=costs)
    _check_size(handle.n_classes)
    # Costs that do not fit the classes are refused here.
    measure.bounds(handle.n_classes)
    sampled, summaries = sampled_rows(handle)
    kept = sampled.by_content()
    forecasts = kept.forecasts(handle.models.index(model), ordered=True)
    by_cost = measure.with_costs is not None
    rows = RowTable.of(forecasts, []).weighty()
    sample = _Sample.of(rows, measure, forecasts.unity.decimals)
    values, in_sample = sample.best()
    fold = dealt(len(rows.y), rows.groups, folds, plan.seed)
    held_out = np.empty(len(rows.y), np.int64)
    per_fold = []
    for i in range(int(fold.max()) + 1):
        without, _ = sample.among(fold != i).best()
        per_fold.append(without)
        held_out[fold == i] = at_thresholds(rows.p[fold == i], without, sample.decimals)
    usual = cheapest(rows.p, costs) if by_cost else rows.decisions
    chosen = _result(sample, rows, values, in_sample, (held_out, usual), np.array(per_fold), by_cost, plan)
    return kept.tell(chosen, summaries.n_rows).with_skipped(summaries.skipped)


def _check_size(n_classes: int) -> None:
    if n_classes > _MOST_CLASSES:
        raise InputError(
            f"must have at most {_MOST_CLASSES} classes to choose thresholds",
            argument="p",
            kind="length",
            found=f"there are {n_classes:,}",
        )


# ---- result ------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class Thresholds(Tabled, MaySkip):
    """Thresholds chosen on data.

    Attributes
    ----------
    values : array of shape (K - 1,)
        The thresholds: decide for the highest class k with P(Y >= k) >= values[k - 1].
    metric : str
        The metric that they were chosen by.
    higher_is_better : bool
        Whether larger values of the metric are better.
    in_sample : float
        The metric of the rows that they were chosen on: too good to be true.
    honest : float
        The metric of decisions by cross-validation: each row by thresholds chosen without its fold.
    reference : float
        The metric of the usual decisions: the cheapest ones for costs, else the most likely class.
    gain : float
        By how much the honest value is better than the reference; negative if it is worse.
    interval : Interval
        The confidence interval of the gain, from a bootstrap of the decisions (of whole groups where there
        are any).
    per_fold : array of shape (folds, K - 1)
        The thresholds chosen in each fold: how much they vary.
    against : str
        The reference in words.
    n_rows : int
        The number of rows.

    Examples
    --------
    >>> import verax as vx
    >>> chosen = vx.choose_thresholds([0, 0, 1, 1] * 10, [0.1, 0.6, 0.7, 0.9] * 10, metric="accuracy")
    >>> chosen.in_sample, chosen.decide([0.5, 0.8]).tolist()
    (1.0, [0, 1])
    """

    values: Floats
    metric: str
    higher_is_better: bool
    in_sample: float
    honest: float
    reference: float
    gain: float
    interval: Interval
    per_fold: Floats
    against: str
    n_rows: int

    def decide(self, p: object, *, normalize: bool = False, logits: bool = False) -> Any:
        """Decide new forecasts by these thresholds.

        Parameters
        ----------
        p : array_like of shape (N, K) or (N,)
            Forecasts: probabilities of the K classes; for two classes, one column with those of
            class 1 is enough.
        normalize : bool, default False
            Whether to divide each row of `p` by its sum first.
        logits : bool, default False
            Whether `p` holds logits; the softmax is applied first.

        Returns
        -------
        array of shape (N,)
            Class positions.
        """
        return decide(p, thresholds=self.values.tolist(), normalize=normalize, logits=logits)

    def _frame(self) -> Table:
        """One line per threshold of P(Y >= class), with its range over the folds."""
        columns = [
            Column("metric", value=lambda _: self.metric),
            Column("at_least", value=lambda i: i + 1),
            Column("threshold", value=lambda i: float(self.values[i])),
            Column("lowest_in_folds", value=lambda i: float(self.per_fold[:, i].min())),
            Column("highest_in_folds", value=lambda i: float(self.per_fold[:, i].max())),
        ]
        return Table(columns, range(len(self.values)))

    def _heading(self) -> str:
        shown = ", ".join(f"{t:.3g}" for t in self.values)
        better = "higher is better" if self.higher_is_better else "lower is better"
        return f"verax thresholds: {shown}, chosen by {self.metric} ({better}) on {self.n_rows:,} rows"

    def _notes(self) -> list[str]:
        honest = f"{self.metric} in cross-validation {self.honest:.4f}"
        level = interval_head(self.interval.confidence)
        gain = f"gain {self.gain:+.4f} ({level} {self.interval:.4f})"
        return [
            f"{honest}, of {self.against} {self.reference:.4f}: {gain}",
            f"{self.metric} of the rows that they were chosen on: {self.in_sample:.4f}",
            *([f"Caution: {self.interval.caution}."] if self.interval.caution else []),
            *self.remarks,
        ]


def _result(
    sample: _Sample,
    rows: RowTable,
    values: Floats,
    in_sample: float,
    decisions: tuple[Ints, Ints],
    per_fold: Floats,
    by_cost: bool,
    plan: Resampling,
) -> Thresholds:
    sign = 1.0 if sample.metric.higher_is_better else -1.0

    def measured(w: Floats) -> Floats:
        return np.array([float(sample.metric.of(sample.table(d, w))) for d in decisions])

    honest, reference = measured(sample.weights).tolist()
    gain, n_groups = sign * (honest - reference), rows.effective_groups
    if rows.groups is None and sample.n_classes <= _COUNTED:
        gains = sign * _resampled(sample, decisions, plan)
    else:
        drawn = np.array([measured(w) for w in rows.multiplicities(plan.replicates, plan.seed)])
        gains = sign * (drawn[:, 0] - drawn[:, 1])
    # Thresholds of a fold come from the rows of the others, so folds vary more than their rows do.
    gains = gain + math.sqrt(len(per_fold) / max(len(per_fold) - 1, 1)) * (gains - gain)
    # The bootstrap cannot see decisions that did not occur.
    apart = int(np.count_nonzero(decisions[0] != decisions[1]))
    rare = few(apart, "row is", "rows are")
    method, cautions = "bootstrap", [f"{rare} decided differently" if rare else ""]
    if rows.groups is not None and n_groups is not None:
        gains = widened_over_groups(gains, gain, n_groups, plan.confidence)
        count = len(rows.groups.labels)
        method = f"bootstrap of {count:,} groups"
        cautions.append(few_groups(count))
    return Thresholds(
        values,
        sample.metric.name,
        sample.metric.higher_is_better,
        in_sample,
        honest,
        reference,
        gain,
        bootstrap_interval(gains, plan.confidence, method, "; ".join(filter(None, cautions))),
        per_fold,
        "the cheapest decisions" if by_cost else "the most likely class",
        len(rows.y),
    )


def _resampled(sample: _Sample, decisions: tuple[Ints, Ints], plan: Resampling) -> Floats:
    """Differences of the metric in bootstrap replicates of independent rows, (B,), from joint counts."""
    k = sample.n_classes
    cells = (sample.y * k + decisions[0]) * k + decisions[1]
    counts, squares = (np.bincount(cells, w, k**3).astype(float) for w in (sample.weights, sample.weights**2))

    def reduce(occurring: Ints, drawn: Floats) -> Floats:
        truth, held_out, usual = occurring // (k * k), occurring // k % k, occurring % k
        values = []
        for decided in (held_out, usual):
            place = np.eye(k * k)[truth * k + decided]
            values.append(np.asarray(sample.metric.of((drawn @ place).reshape(-1, k, k))))
        return (values[0] - values[1])[:, None]

    return resampled_metrics(counts, squares, plan.replicates, plan.seed, reduce)[:, 0]


# ---- search ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    """Rows to choose thresholds on.

    Attributes
    ----------
    tails : array of shape (N, K - 1)
        P(Y >= k) for k = 1 to K - 1, rounded so that equal sums are equal.
    """

    y: Ints
    tails: Floats
    weights: Floats
    metric: DecisionMetric
    decimals: int

    @classmethod
    def of(cls, rows: RowTable, metric: DecisionMetric, decimals: int) -> _Sample:
        tails = np.cumsum(rows.p[:, ::-1].astype(np.float64), axis=1)[:, ::-1][:, 1:]
        weights = np.ones(len(rows.y)) if rows.weights is None else rows.weights / rows.weights.max()
        return cls(rows.y, np.round(tails, decimals), weights, metric, decimals)

    def among(self, kept: Any) -> _Sample:
        """Some of the rows."""
        return _Sample(self.y[kept], self.tails[kept], self.weights[kept], self.metric, self.decimals)

    @property
    def n_classes(self) -> int:
        return int(self.tails.shape[1]) + 1

    def table(self, decisions: Ints, weights: Floats) -> Floats:
        """Confusion counts of decisions."""
        k = self.n_classes
        return np.bincount(self.y * k + decisions, weights, k * k).reshape(k, k).astype(float)

    def best(self) -> tuple[Floats, float]:
        """The best of all combinations of thresholds, and their value.

        Where there are too many, thresholds that no change of a single one improves, from several starts.
        """
        k = self.n_classes
        candidates = [self._candidates(i) for i in range(k - 1)]
        if k * k * math.prod(len(tried) + 1 for tried in candidates) <= _MOST_TABLES:
            return self._best_of_all(candidates)
        starts = [np.full(k - 1, start) for start in _STARTS]
        starts.append(self._as_often_as_it_happens())
        improved = [self._improved(start, candidates) for start in starts]
        return max(improved, key=lambda x: self._goodness(np.array(x[1])))

    def _goodness(self, value: Floats) -> Any:
        """Higher is better; undefined is worst."""
        sign = 1.0 if self.metric.higher_is_better else -1.0
        return np.where(np.isnan(value), -np.inf, sign * value)

    def _candidates(self, i: int) -> Floats:
        """0, and the middle between neighbouring values, of many the quantiles."""
        seen = np.unique(self.tails[self.weights > 0, i])
        # A threshold counts as reached within half a unit of the last decimal.
        unit = 10.0**-self.decimals
        middle = np.round(np.maximum((seen[1:] + seen[:-1]) / 2, seen[:-1] + 0.75 * unit), 15)
        if len(middle) > _CANDIDATES:
            # As many rows between any two candidates.
            rows = np.sort(self.tails[self.weights > 0, i])
            cuts = rows[np.linspace(0, len(rows) - 1, _CANDIDATES + 2).astype(np.int64)[1:-1]]
            middle = np.unique(middle[np.minimum(np.searchsorted(middle, cuts), len(middle) - 1)])
        above = seen[-1] + max(1e-9, unit)
        return np.unique(np.concatenate([[0.0], middle, [above] if above <= 1 else []]))

    def _as_often_as_it_happens(self) -> Floats:
        """Thresholds at which each class or a higher one is decided for as often as it happens."""
        rates = [np.average(self.y > i, weights=self.weights) for i in range(self.n_classes - 1)]
        cuts = [np.quantile(self.tails[:, i], 1 - rate) for i, rate in enumerate(rates)]
        return np.clip(np.array(cuts), 0.0, 1.0)

    def _best_of_all(self, candidates: list[Floats]) -> tuple[Floats, float]:
        """The best of all combinations of candidates; of equally good ones the nearest to one half."""
        k = self.n_classes
        values = np.asarray(self.metric.of(self._all_tables(candidates).reshape(-1, k, k)))
        good = self._goodness(values)
        ties = np.flatnonzero(good >= good.max() - _ROUNDING)
        places = np.unravel_index(ties, [len(tried) for tried in candidates])
        chosen = np.stack([tried[at] for tried, at in zip(candidates, places, strict=True)], axis=1)
        at = int(np.argmin(np.round(np.abs(chosen - 0.5).sum(axis=1), self.decimals)))
        return chosen[at], float(values[ties[at]])

    def _all_tables(self, candidates: list[Floats]) -> Floats:
        """Confusion counts, (C, ..., C, K, K), of every combination of candidates.

        Rows are counted by outcome and by the number of candidates that they reach for each class. A row is
        decided for class k where it reaches the candidate of k and that of no higher class.
        """
        k, slack = self.n_classes, 0.5 * 10.0**-self.decimals
        sizes = [len(tried) + 1 for tried in candidates]
        places = [
            np.searchsorted(tried - slack, self.tails[:, i], side="right")
            for i, tried in enumerate(candidates)
        ]
        code = np.ravel_multi_index((*places, self.y), (*sizes, k))
        counts = np.bincount(code, self.weights, math.prod(sizes) * k).reshape(*sizes, k)
        tables = np.zeros((*(size - 1 for size in sizes), k, k))
        for decided in range(k):
            remaining = counts
            for axis in range(k - 1):
                if axis + 1 < decided:
                    remaining = remaining.sum(axis=axis, keepdims=True)
                elif axis + 1 == decided:
                    reached = np.flip(np.cumsum(np.flip(remaining, axis), axis), axis)
                    remaining = np.take(reached, np.arange(1, sizes[axis]), axis)
                else:
                    remaining = np.take(np.cumsum(remaining, axis), np.arange(sizes[axis] - 1), axis)
            tables[..., decided] = remaining
        return tables

    def _improved(self, start: Floats, candidates: list[Floats]) -> tuple[Floats, float]:
        chosen = start.copy()
        slack = 0.5 * 10.0**-self.decimals
        reached = self.tails >= chosen - slack
        value = float(self.metric.of(self.table(_highest(reached), self.weights)))
        for _ in range(_ROUNDS):
            before = value
            for i, tried in enumerate(candidates):
                values = self.metric.of(self._tables(i, tried - slack, reached))
                good = self._goodness(values)
                # Of equally good ones the nearest to where it stands.
                ties = np.flatnonzero(good >= good.max() - _ROUNDING)
                at = ties[np.argmin(np.abs(tried[ties] - chosen[i]))]
                if good[at] > self._goodness(np.array(value)) + _ROUNDING:
                    chosen[i], value = tried[at], float(values[at])
                    reached[:, i] = self.tails[:, i] >= chosen[i] - slack
            if self._goodness(np.array(value)) <= self._goodness(np.array(before)) + _ROUNDING:
                break
        return chosen, value

    def _tables(self, i: int, tried: Floats, reached: Any) -> Floats:
        """Confusion counts, (C, K, K), if threshold `i` were each of those tried and the others stay.

        Rows that reach a higher class stay there. Others are decided for class i + 1 where they reach the
        threshold tried, and for the highest lower class that they reach where they do not.
        """
        k, n = self.n_classes, len(tried)
        higher = reached[:, i + 1 :].any(axis=1)
        lower = _highest(reached[:, :i])
        place = np.searchsorted(tried, self.tails[:, i], side="right")
        fixed = self.table(_highest(reached), self.weights * higher)
        weights = self.weights * ~higher

        def counted(decisions: Ints) -> Floats:
            code = (place * k + self.y) * k + decisions
            return np.bincount(code, weights, (n + 1) * k * k).reshape(n + 1, k, k).astype(float)

        # A row at place c reaches the first c of the thresholds tried.
        with_it = np.cumsum(counted(np.full(len(self.y), i + 1))[::-1], axis=0)[::-1][1:]
        without = np.cumsum(counted(lower), axis=0)[:-1]
        return np.asarray(fixed + with_it + without)


def _highest(reached: Any) -> Ints:
    """The highest class that each row reaches; 0 where it reaches none."""
    n = reached.shape[1]
    return np.asarray(np.where(reached, np.arange(1, n + 1), 0).max(axis=1, initial=0), np.int64)
