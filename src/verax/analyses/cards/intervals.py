"""How sure the numbers of a card are: an interval for each mean and for each metric of decisions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.analyses.measures import is_share
from verax.common.caching import cached_property
from verax.engines.clusters import Clusters, both_ways
from verax.engines.counts import Counts
from verax.engines.tally import RuleSums
from verax.inference.bootstrap import bootstrap_interval, metric_variances, resampled_metrics, smoothed
from verax.inference.estimated import (
    ONE_GROUP,
    MeanEstimate,
    ShareEstimate,
    mean_over_groups,
    rows_without_errors,
)
from verax.inference.intervals import (
    Interval,
    Resampling,
    bounded,
    few,
    few_dominate,
    few_groups,
    few_misses,
    skewed,
)
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import counts_by_kind, in_words
from verax.scores.cells import table_metrics
from verax.scores.coverage import ListMetric
from verax.scores.metrics import DecisionMetric

# An effective number of rows is 1 up to rounding.
_ONE = 1e-9
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
        """How errors of metrics of decisions over groups are computed."""
        return f"jackknife over {in_words(self.tally.n_groups or 0)}"

    @property
    def method(self) -> str:
        """How the intervals of a card are computed, in words."""
        if self.tally.n_groups is None:
            return "means: gamma; shares: mid-P; other metrics: bootstrap of the confusion matrix"
        over, shares = in_words(self.tally.n_groups), self._assumed
        return f"over {over}: means: gamma; shares: mid-P{shares}; other metrics: jackknife"

    @property
    def _assumed(self) -> str:
        """What intervals of shares assume of groups, in brackets; empty where there are none."""
        named = [i for i, rule in enumerate(self.tally.rules) if is_share(rule)]
        known = None
        if self.tally.decisions and self.tally.counts is not None and self.tally.weight > 0:
            known = self.accuracy(self._counts.n_correct / float(self.tally.weights.high[0]))
        elif named:
            known = self.share(named[0])
        return "" if known is None else f" ({known.over.partition(' (')[2]}"

    @property
    def _counts(self) -> Counts:
        assert self.tally.counts is not None
        return self.tally.counts

    @property
    def _over(self) -> str:
        return f" over {in_words(self.tally.n_groups or 0)}"

    @property
    def _why_undefined(self) -> str:
        """Why nothing is known about variances; empty where it is."""
        if self.tally.n_groups is not None:
            return ONE_GROUP if min(counts_by_kind(self.tally.n_groups)) < 2 else ""
        return NO_ROWS if self.too_few else ""

    # ---- means -----------------------------------------------------------------------------

    def of_mean(self, i: int, bounds: tuple[float, float]) -> Interval:
        """The interval of the mean of the i-th formula, which lies within the bounds."""
        if self.tally.moments.n_infinite[i] > 0:
            return self._undefined("the mean is infinite", "t")
        share = self.share(i)
        if share is not None:
            return share.interval(self.plan.confidence)
        if self._why_undefined:
            return self._undefined(self._why_undefined, "t")
        return self._mean(i, bounds).interval(self.plan.confidence)

    def guaranteed_mean(self, i: int) -> Interval | None:
        """The interval for gates of the i-th formula where its mean is a share; None of others."""
        share = self.share(i)
        return None if share is None else share.guaranteed(self.plan.confidence)

    def error_of_mean(self, i: int) -> tuple[float, float]:
        """The standard error of the mean of the i-th formula, and its degrees of freedom."""
        if self.tally.moments.n_infinite[i] > 0:
            return math.inf, self.rows - 1
        variance, freedom = self._variance(i)
        return math.sqrt(variance), freedom

    def share(self, i: int) -> ShareEstimate | None:
        """The i-th formula as a share of rows; None where its mean is none, or nothing is known."""
        if not is_share(self.tally.rules[i]) or self._why_undefined or self.tally.moments.n_infinite[i] > 0:
            return None
        mean = float(self.tally.moments.mean[i])
        rows = self.tally.weight if self.plan.copies else self.tally.n_positive
        variance = float(self._variances[i]) * (1 - 1 / rows)
        if self.tally.clusters is None:
            return self._of_rows(mean, variance)
        return self._over_groups(mean, variance, 2 + i)

    def _of_rows(self, share: float, variance: float) -> ShareEstimate:
        return ShareEstimate.of_rows(share, self.rows, variance, self.tally.n_positive)

    def _over_groups(self, share: float, variance: float, column: int) -> ShareEstimate:
        """A share whose sums over groups are in this column, with its variance over independent rows."""
        assert self.tally.clusters is not None
        kinds = [(kind.sums.high[:, column], kind.weight) for kind in self.tally.clusters.kinds]
        count = self.tally.n_groups or 0
        rows = float(self._of_rows(share, variance).shares.n)
        return ShareEstimate.over_groups(kinds, rows, count, self.plan.few_groups)

    def _mean(self, i: int, bounds: tuple[float, float]) -> MeanEstimate:
        """The mean of the i-th formula with its variance over rows or groups."""
        mean, n = float(self.tally.moments.mean[i]), self.rows
        variance, freedom = self._variance(i)
        if self.tally.clusters is None:
            caution = few(n, "row", "rows") or skewed(n, mean, float(self.tally.moments.std[i]))
            return MeanEstimate(mean, variance, freedom, bounds, n, "", caution or self._few_misses(i))
        count = self.tally.n_groups or 0
        caution = few_groups(count) or few_dominate(float(self._skewness[1 + i]), count)
        if mean in bounds:
            # Losses that are all at a bound are alike like errors, none of which was seen.
            assert self.tally.clusters is not None
            n = rows_without_errors([kind.weight for kind in self.tally.clusters.kinds], n)
        return MeanEstimate(mean, variance, freedom, bounds, n, self._over, caution or self._few_misses(i))

    def _variance(self, i: int) -> tuple[float, float]:
        """The variance of the mean of the i-th formula, and its degrees of freedom."""
        if self.tally.clusters is None:
            return float(self._variances[i]), self.rows - 1
        kinds = [(kind.totals[:, i], kind.weight) for kind in self.tally.clusters.kinds]
        return mean_over_groups(kinds, float(self.tally.moments.mean[i]), float(self._variances[i]))

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

    @cached_property
    def _skewness(self) -> Floats:
        """The skewness of accuracy and of the means over groups."""
        assert self.tally.clusters is not None
        return self.tally.clusters.shapes()[1]

    def _undefined(self, caution: str, method: str) -> Interval:
        return Interval.undefined(caution, method=method, confidence=self.plan.confidence)

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
        """The interval of the share of right decisions."""
        known = self.accuracy(share)
        if known is None:
            return self._undefined(self._why_undefined, "mid-P")
        return known.interval(self.plan.confidence)

    def guaranteed_accuracy(self, share: float) -> Interval | None:
        """The interval of the share of right decisions for gates; None where nothing is known."""
        known = self.accuracy(share)
        return None if known is None else known.guaranteed(self.plan.confidence)

    def accuracy(self, share: float) -> ShareEstimate | None:
        """The share of right decisions; None where nothing is known about it."""
        if self._why_undefined:
            return None
        # The variance of the weighted share, from the squared weights of right and wrong decisions.
        right, total, weight = self._squared_right
        variance = (right * (1 - share) ** 2 + (total - right) * share**2) / weight**2
        if self.tally.n_groups is None:
            return self._of_rows(share, variance)
        return self._over_groups(share, variance, 1)

    @property
    def _squared_right(self) -> tuple[float, float, float]:
        """The sums of the squared weights of right decisions and of all rows, and that of the weights."""
        weight = float(self.tally.weights.high[0])
        if self.plan.copies:
            return self._counts.n_correct * self.tally.row, weight * self.tally.row, weight
        return self._counts.squared_correct, self.tally.squared[0], weight

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
        self, value: float, variance: float, freedom: float, bounds: tuple[float, float]
    ) -> Interval:
        """The interval of a metric within bounds, from its variance over groups."""
        if math.isnan(value + variance):
            return self._undefined("the number is undefined without some of the groups", self.jackknife)
        assert self.tally.clusters is not None
        n = min(kind.effective for kind in self.tally.clusters.kinds)
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
