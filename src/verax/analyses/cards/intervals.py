"""How sure the numbers of a card are: an interval for each mean and for each metric of decisions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from verax.analyses.measures import is_share
from verax.common.caching import cached_property
from verax.engines.clusters import Clusters, both_ways
from verax.engines.counts import Counts
from verax.engines.tally import RuleSums
from verax.inference.bootstrap import bootstrap_interval, metric_variances, resampled_metrics, smoothed
from verax.inference.intervals import (
    Interval,
    Resampling,
    between,
    bounded,
    cautious_limits,
    few,
    few_dominate,
    few_groups,
    few_misses,
    padded,
    skewed,
    t_quantile,
    wilson,
)
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import in_words
from verax.scores.cells import table_metrics
from verax.scores.coverage import ListMetric
from verax.scores.metrics import DecisionMetric

# An effective number of rows is 1 up to rounding, and losses are the same.
_ONE, _ROUNDING = 1e-9, 1e-12
_BOOTSTRAP = "bootstrap of confusion counts"
NO_ROWS = "there is only one row to learn from"


@dataclass(frozen=True, eq=False)
class CardIntervals:
    """Intervals of the means and metrics of a tally, over rows or over groups.

    Attributes
    ----------
    tally : RuleSums
        The sums of the rows.
    metrics : tuple of DecisionMetric
        The metrics of decisions.
    plan : Resampling
        How intervals are computed.
    """

    tally: RuleSums
    metrics: tuple[DecisionMetric, ...]
    plan: Resampling

    @property
    def rows(self) -> float:
        """How many rows of equal weight tell as much (Kish); without weights, all rows."""
        return self.tally.effective_rows(copies=self.plan.copies)

    @property
    def too_few(self) -> bool:
        """Whether there is no second row to learn from."""
        return not self.rows > 1 + _ONE

    @property
    def jackknife(self) -> str:
        """How errors over groups are computed."""
        return f"jackknife over {in_words(self.tally.n_groups or 0)}"

    @property
    def _counts(self) -> Counts:
        assert self.tally.counts is not None
        return self.tally.counts

    # ---- means -----------------------------------------------------------------------------

    def of_mean(self, i: int, bounds: tuple[float, float]) -> Interval:
        """The interval of the mean of the i-th formula, which lies within the bounds."""
        moments, n = self.tally.moments, self.rows
        if moments.n_infinite[i] > 0:
            return self._undefined("the mean is infinite", "t")
        if self.tally.clusters is not None:
            return self._mean_over_groups(i, bounds)
        if self.too_few:
            return self._undefined(NO_ROWS, "t")
        if is_share(self.tally.rules[i]):
            return self._of_share(i)
        mean, confidence = float(moments.mean[i]), self.plan.confidence
        half = t_quantile(n - 1, confidence) * math.sqrt(self._variances[i])
        caution = few(n, "row", "rows") or skewed(n, mean, float(moments.std[i])) or self._few_misses(i)
        interval = Interval(mean - half, mean + half, method="t", confidence=confidence, caution=caution)
        return interval.within(bounds)

    def error_of_mean(self, i: int) -> tuple[float, float]:
        """The standard error of the mean of the i-th formula, and its degrees of freedom."""
        if self.tally.moments.n_infinite[i] > 0:
            return math.inf, self.rows - 1
        if self.tally.clusters is None:
            return math.sqrt(self._variances[i]), self.rows - 1
        return math.sqrt(self.group_errors[0][1 + i]), float(self._shapes[0][1 + i])

    def _of_share(self, i: int) -> Interval:
        """Wilson's interval of a mean of zeros and ones, with the effective number of rows."""
        mean, n = float(self.tally.moments.mean[i]), self.rows
        rows = self.tally.weight if self.plan.copies else self.tally.n_positive
        variance = float(self._variances[i]) * (1 - 1 / rows)
        if between(mean) and variance > 0:
            n = mean * (1 - mean) / variance
        return wilson(mean, n, self._quantile, self.plan.confidence)

    def _few_misses(self, i: int) -> str:
        """The caution of the i-th mean where it is a loss and the most likely class hardly ever failed."""
        tally = self.tally
        if isinstance(tally.rules[i], ListMetric) or tally.counts is None:
            return ""
        if tally.decisions:
            right = tally.counts.n_correct / float(tally.weights.high[0])
        else:
            named = [isinstance(rule, ListMetric) and rule.name == "accuracy" for rule in tally.rules]
            right = float(tally.moments.mean[named.index(True)]) if any(named) else math.nan
        return few_misses((1 - right) * self.rows, self.rows)

    @cached_property
    def _variances(self) -> Floats:
        """The variances of the means over independent rows."""
        return self.tally.variances(copies=self.plan.copies)

    def _mean_over_groups(self, i: int, bounds: tuple[float, float]) -> Interval:
        """The t interval of a mean, by the jackknife that leaves out whole groups."""
        variances, freedom = self.group_errors
        variance, mean = float(variances[1 + i]), float(self.tally.moments.mean[i])
        if is_share(self.tally.rules[i]):
            return self._bounded_over_groups(mean, variance, float(freedom[1 + i]), bounds, share=True)
        varies = self.tally.moments.std[i] > _ROUNDING * abs(mean)
        if math.isnan(variance) or (variance == 0 and varies):
            return self._undefined("the groups do not tell how the mean varies", self.jackknife)
        skewed_freedom, skewness = (float(degrees[1 + i]) for degrees in self._shapes)
        both = float(freedom[1 + i]), skewed_freedom
        student, hall = (t_quantile(degrees, self.plan.confidence) for degrees in both)
        error = np.asarray(math.sqrt(variance))
        low, high = map(float, cautious_limits(np.asarray(mean), error, student, hall, skewness))
        interval = Interval(low, high, confidence=self.plan.confidence)
        count = self.tally.n_groups or 0
        caution = few_groups(count) or few_dominate(skewness, count) or self._few_misses(i)
        return interval.within(bounds).by(self.jackknife, caution)

    @cached_property
    def group_errors(self) -> tuple[Floats, Floats]:
        """Variances of accuracy and of the means over groups, and their degrees of freedom."""
        assert self.tally.clusters is not None
        variances, freedom = self.tally.clusters.errors()
        return variances, np.broadcast_to(freedom, variances.shape)

    @cached_property
    def _shapes(self) -> tuple[Floats, Floats]:
        """The degrees of freedom and skewness of accuracy and of the means over groups."""
        assert self.tally.clusters is not None
        return self.tally.clusters.shapes()

    def _undefined(self, caution: str, method: str) -> Interval:
        return Interval.undefined(caution, method=method, confidence=self.plan.confidence)

    @property
    def _quantile(self) -> float:
        return -NormalDist().inv_cdf((1 - self.plan.confidence) / 2)

    # ---- metrics of decisions --------------------------------------------------------------

    def of_metric(self, i: int, value: float) -> Interval:
        """The interval of the i-th metric of decisions, which has this value."""
        metric = self.metrics[i]
        if metric.name == "accuracy":
            return self.of_accuracy(value)
        if self.tally.n_groups is not None:
            variance, freedom = (float(column[i]) for column in self.metric_errors)
            return self._bounded_over_groups(value, variance, freedom, metric.bounds(self.tally.n_classes))
        if self.too_few:
            return self._undefined(NO_ROWS, _BOOTSTRAP)
        of_smoothed, drawn = self._of_counts[0][i], self._of_counts[1][:, i]
        interval = bootstrap_interval(drawn, self.plan.confidence, _BOOTSTRAP)
        if math.isnan(value + of_smoothed) or not interval.defined:
            return interval
        n, bounds, variance = self.rows, metric.bounds(self.tally.n_classes), float(np.nanvar(drawn, ddof=1))
        interval_of_value = bounded(value, variance, n - 1, n, bounds, self.plan, smoothed=float(of_smoothed))
        return interval_of_value.by(_BOOTSTRAP, interval.caution)

    def of_accuracy(self, share: float) -> Interval:
        """Wilson's interval, which also holds for shares of 0 and 1."""
        if self.tally.n_groups is not None:
            variance, freedom = (float(column[0]) for column in self.group_errors)
            return self._bounded_over_groups(share, variance, freedom, (0.0, 1.0), share=True)
        if self.too_few:
            return self._undefined(NO_ROWS, "Wilson")
        n = self.rows
        if not self.plan.copies and between(share):
            # The variance of the weighted share, from the squared weights of right and wrong decisions.
            right, total = self._counts.squared_correct, self.tally.squared[0]
            squares = right * (1 - share) ** 2 + (total - right) * share**2
            n = share * (1 - share) * float(self.tally.weights.high[0]) ** 2 / squares
        return wilson(share, n, self._quantile, self.plan.confidence)

    @cached_property
    def _of_counts(self) -> tuple[Floats, Floats]:
        """(M,) metrics of the smoothed confusion counts, and (B, M) of resampled ones."""
        plan, counts = self.plan, self._counts
        assert counts.confusion is not None
        squares = counts.cells.scaled(self.tally.row) if plan.copies else counts.squared
        shape = counts.n_classes, counts.n_classes
        cells = smoothed(counts.cells.high.reshape(shape), squares.high.reshape(shape))
        occurring = np.flatnonzero(cells[0])
        whole = self._metrics_of(occurring, cells[0].ravel()[occurring][None])[0]
        return whole, resampled_metrics(*cells, plan.replicates, plan.seed, self._metrics_of)

    def _bounded_over_groups(
        self,
        value: float,
        variance: float,
        freedom: float,
        bounds: tuple[float, float],
        *,
        share: bool = False,
    ) -> Interval:
        """The interval of a quantity within bounds, such as a share, from its variance over groups."""
        if math.isnan(value + variance):
            return self._undefined("the number is undefined without some of the groups", self.jackknife)
        assert self.tally.clusters is not None
        n = min(kind.effective for kind in self.tally.clusters.kinds)
        variance = padded(variance, value, n, bounds) if share else variance
        interval = bounded(value, variance, freedom, n, bounds, self.plan)
        return interval.by(self.jackknife, few_groups(self.tally.n_groups or 0))

    @cached_property
    def metric_errors(self) -> tuple[Floats, Floats]:
        """(M,) variances of the metrics over groups, and their degrees of freedom."""
        assert self.tally.clusters is not None
        kinds = self.tally.clusters.kinds
        variances = [self._variances_over(kind) for kind in kinds]
        freedom = [max(1.0, kind.effective - 1) for kind in kinds]
        if len(kinds) > 1:
            return both_ways(variances, (freedom[0], freedom[1]))
        return variances[0], np.full(len(variances[0]), freedom[0])

    @cached_property
    def _others(self) -> list[int]:
        """Places of all metrics but accuracy, which has a variance of its own."""
        return [i for i, metric in enumerate(self.metrics) if metric.name != "accuracy"]

    def _variances_over(self, clusters: Clusters) -> Floats:
        """(M,) variances of the metrics over groups; NaN for accuracy."""
        variances = np.full(len(self.metrics), np.nan)
        if self._others:
            metrics = [self.metrics[i] for i in self._others]
            variances[self._others] = metric_variances(clusters, metrics, self.tally.n_classes)
        return variances

    def _metrics_of(self, cells: Ints, weights: Floats) -> Floats:
        """(b, M) metrics of tables with these weights of cells; NaN for accuracy."""
        values = np.full((len(weights), len(self.metrics)), np.nan)
        if self._others:
            metrics = [self.metrics[i] for i in self._others]
            values[:, self._others] = table_metrics(metrics, self.tally.n_classes, cells, weights)
        return values
