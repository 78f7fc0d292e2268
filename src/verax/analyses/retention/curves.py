"""Retained-samples curves: a metric as the worst rows are removed.

`retention` ranks rows by a rule, which sees the outcome; `selective` by what is known without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, Unpack

import numpy as np

from verax.analyses.retention.cuts import (
    Area,
    CurveMetric,
    Cuts,
    Metric,
    Options,
    Order,
    Sample,
    Ties,
    Undefined,
    measured,
)
from verax.analyses.retention.doubts import MANY, Doubt, doubt
from verax.analyses.table import RowTable
from verax.display.tables import FrameKind, band_columns, data_frame, stacked
from verax.errors import InputError, passing, show
from verax.inference.bootstrap import percentile_interval
from verax.inference.intervals import WeightsAre
from verax.inputs.arrays import Floats, Ints
from verax.inputs.lists.rows import ListFaults, ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.options import Reading, reads
from verax.inputs.rows import Rows, faults_of, pair
from verax.inputs.skipping import MaySkip, Skipped
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule
from verax.scores.coverage import RowMetric, find_list_metric, refuse_costs
from verax.scores.metrics import CostsLike, DecisionMetric, Normalization, find_metric, needs_order
from verax.scores.registry import as_rules, name_of

MetricLike = str | Metric

SEES_THE_OUTCOME = (
    "The order uses the outcome. The curve shows which rows a rule calls worst; it cannot certify the rule, "
    "because ordering by the hard cost itself, which ignores probabilities, does best or nearly so."
)


# ---- results -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class RetentionCurve(MaySkip):
    """A metric over the rows kept, for growing shares of rows removed.

    Attributes
    ----------
    order : str
        What the rows were ranked by.
    metric : str
        What was measured.
    higher_is_better : bool
        Whether larger values of the metric are better.
    sees_outcome : bool
        Whether the order uses the outcomes.
    removed, values : (C,) arrays
        The shares removed and the metric of the rows kept.
    area : float
        The area under the curve; with `area_kind` "mean" the mean height, in units of the metric.
    ties : {"share", "order"}
        How a cut splits rows that tie.
    interval, band : pair of floats, (2, C) array, or None
        Intervals of the area and of each value, from the bootstrap.
    areas : (B,) array
        The area of each bootstrap replicate.
    """

    order: str
    metric: str
    higher_is_better: bool
    sees_outcome: bool
    removed: Floats
    values: Floats
    area: float
    area_kind: Area
    ties: Ties
    interval: tuple[float, float] | None
    band: Floats | None
    areas: Floats
    confidence: float
    seed: int

    def __repr__(self) -> str:
        return "\n".join([self._line(), *self._said()])

    def _line(self) -> str:
        interval = "" if self.interval is None else f" ({self.interval[0]:.4f} to {self.interval[1]:.4f})"
        unit = "mean height" if self.area_kind == "mean" else "steps"
        last = f"{100 * self.removed[-1]:g}% removed: {self.values[-1]:.4f}"
        return (
            f"RetentionCurve of {self.metric} by {self.order}: area {self.area:.4f}{interval}, {unit}; "
            f"nothing removed: {self.values[0]:.4f}, {last}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain Python values."""
        return {
            "order": self.order,
            "metric": self.metric,
            "orientation": "higher is better" if self.higher_is_better else "lower is better",
            "sees_outcome": self.sees_outcome,
            "removed": self.removed.tolist(),
            "values": self.values.tolist(),
            "area": self.area,
            "area_kind": self.area_kind,
            "ties": self.ties,
            "interval": None if self.interval is None else list(self.interval),
            "band": None if self.band is None else self.band.tolist(),
            "replicates": len(self.areas),
            "confidence": self.confidence,
            "seed": self.seed,
            **self._noted(),
        }

    def columns(self) -> dict[str, list[Any]]:
        """The curve as columns of a table, with one row per share removed."""
        n = len(self.removed)
        names: dict[str, list[Any]] = {"order": [self.order] * n, "metric": [self.metric] * n}
        points = {"removed": self.removed.tolist(), "value": self.values.tolist()}
        return {**names, **points, **band_columns(self.band, n)}

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per share of rows removed, with the band."""
        return data_frame(self.columns(), kind)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve with its band; returns the matplotlib axes."""
        return RetentionCurves({self.order: self}).plot(ax)


class RetentionCurves(MaySkip, Mapping[Any, RetentionCurve]):
    """Several curves over the same rows, by the name of the order, or by (order, metric)."""

    def __init__(self, curves: Mapping[Any, RetentionCurve]) -> None:
        self._curves: dict[Any, RetentionCurve] = dict(curves)

    def __getitem__(self, key: Any) -> RetentionCurve:
        return self._curves[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def difference(self, a: Any, b: Any) -> tuple[float, tuple[float, float]]:
        """Area of curve `a` minus that of `b`, with an interval from the same replicates for both."""
        for key in (a, b):
            if key not in self:
                raise KeyError(f"there is no curve {key!r}; there are {', '.join(map(repr, self))}")
        first, second = self[a], self[b]
        if not len(first.areas):
            raise InputError(
                "must be at least 2 for a difference with an interval",
                argument="bootstrap",
                found="these curves have no replicates",
                remedies=[passing("when the curves are computed", bootstrap=200)],
            )
        low, high = percentile_interval(first.areas - second.areas, first.confidence)
        return first.area - second.area, (float(low), float(high))

    def __repr__(self) -> str:
        return "\n".join([*(curve._line() for curve in self._curves.values()), *self._said()])

    def with_skipped(self, skipped: Skipped | None, rows: Ints | None = None) -> Self:
        """The curves, each of which knows what rows were left out."""
        marked = super().with_skipped(skipped, rows)
        marked._curves = {key: curve.with_skipped(skipped, rows) for key, curve in self._curves.items()}
        return marked

    def with_faults(self, faults: Mapping[str, ListFaults]) -> Self:
        """The curves, each of which knows what there is to say of the lists."""
        marked = super().with_faults(faults)
        marked._curves = {key: curve.with_faults(faults) for key, curve in self._curves.items()}
        return marked

    def to_dict(self) -> list[dict[str, Any]]:
        """All curves as plain Python values."""
        return [curve.to_dict() for curve in self._curves.values()]

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per order, metric and share of rows removed, with the bands."""
        return data_frame(stacked(curve.columns() for curve in self.values()), kind)

    def simplified(self) -> RetentionCurve | RetentionCurves:
        """The curve itself where there is only one."""
        return next(iter(self.values())) if len(self) == 1 else self

    def plot(self, ax: Any = None) -> Any:
        """Draw all curves with their bands; returns the matplotlib axes."""
        from verax.display.retention import draw_retention

        return draw_retention(list(self._curves.values()), ax)


# ---- the two questions -------------------------------------------------------------------------


@reads
def retention(
    y: object,
    p: object,
    *,
    rule: Rule | str | Sequence[Rule | str],
    metric: MetricLike | Sequence[MetricLike] = "qwk",
    removed: Sequence[float | Fraction] | None = None,
    area: Area = "mean",
    costs: CostsLike = "quadratic",
    cost_scale: Normalization = None,
    decision_costs: CostsLike | None = None,
    undefined: Undefined = "nan",
    ties: Ties = "share",
    bootstrap: int = 0,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[Reading],
) -> RetentionCurve | RetentionCurves:
    """The curve of a metric as the rows that a rule scores worst are removed, and the area under it.

    The order uses the outcome: the curve shows which rows a rule calls worst. It cannot certify a
    rule: ordering by the hard cost itself, which ignores probabilities, does best for expected cost by
    construction, and for kappa did best or nearly so in simulations.
    `selective` is the sibling whose order uses the forecasts alone.

    Parameters
    ----------
    y, p
        Outcomes and forecasts as for `evaluate`.
    rule : rule, str or list of these
        What ranks the rows.
    metric : str, rule, callable or list of these
        What is measured of the rows kept: the name of a metric of decisions (see
        `verax.scores.metrics.METRICS`: "qwk", "linear_kappa", "kappa", "ec", "mae", "macro_mae",
        "accuracy", "balanced_accuracy", "macro_f1", "off_by_one"), a rule (its mean loss), or a function
        f(y, p) of the rows kept. For `TopLists`: "accuracy", "error", "coverage", "top_5_accuracy",
        "top_5_error" (any number), "length", "unaccounted", "invalid", or a rule.
    removed : list of floats or None
        Increasing shares of rows to remove; by default 0, 1, ..., 20 percent.
    area : {"mean", "steps"}
        The mean height of the curve, or the trapezoid sum with unit spacing.
    costs : {"quadratic", "linear", "zero_one"} or (K, K) array
        The costs of the metric "ec".
    cost_scale : {None, "max", "naive"}
        What these costs are divided by; see `expected_cost`.
    decision_costs : {"quadratic", "linear", "zero_one"}, (K, K) array or None
        Decide by the smallest expected cost instead of by the most likely class.
    undefined : {"nan", "one", "zero", "omit"}
        What an undefined value (kappa of a single class) counts as; "omit" leaves it out of the area.
    ties : {"share", "order"}
        How a cut splits rows that tie. "share": each of them counts in part, so that the curve does not
        depend on the order of the rows; a function of rows then gets all rows repeated until these parts
        are whole numbers. "order": rows that come later are removed first (a stable sort).
    bootstrap : int
        Number of bootstrap replicates for intervals; 0 for none.
    seed, confidence
        Random seed and level of the intervals.
    weights_are : {"importance", "counts"}
        "counts": the intervals are those of rows repeated as often as their weights say.
    **read

    Weights that are whole numbers are numbers of copies; otherwise shares of the weight are removed.
    Metrics and rules that depend on the order of the classes refuse labels without `classes`. Beyond
    1,024 classes no tables of counts are kept: only metrics that are means over rows are available
    ("accuracy", "ec", "mae", "off_by_one"), and rules.

    References
    ----------
    Galdran (2023), doi:10.1007/978-3-031-43898-1_33

    Examples
    --------
    >>> import verax as vx
    >>> y = [0, 1, 2, 2, 1]
    >>> p = [[0.8, 0.2, 0], [0.3, 0.6, 0.1], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> curve = vx.retention(y, p, rule=vx.rps, metric="accuracy", removed=[0, 0.2, 0.4])
    >>> curve.values.tolist(), round(curve.area, 3)
    ([0.8, 1.0, 1.0], 0.95)
    """
    rules, metrics = as_rules(rule), _metrics_for(p, metric, costs, cost_scale, decision_costs)
    rows = pair(y, p, ordered=needs_order(rules, metrics, decision_costs), **read)
    options = Options(
        removed,
        area,
        undefined,
        bootstrap,
        seed,
        confidence,
        ties=ties,
        weights_are=weights_are,
    )
    curves = draw([rows], rules, metrics, options, decision_costs).with_faults(faults_of({"": rows}))
    return curves.simplified() if isinstance(rule, (Rule, str)) else curves


@reads
def selective(
    y: object,
    p: object,
    *,
    by: Rule | str | Sequence[Rule | str] = "max_probability",
    metric: MetricLike | Sequence[MetricLike] = "accuracy",
    removed: Sequence[float | Fraction] | None = None,
    area: Area = "mean",
    costs: CostsLike = "quadratic",
    cost_scale: Normalization = None,
    decision_costs: CostsLike | None = None,
    undefined: Undefined = "nan",
    ties: Ties = "share",
    bootstrap: int = 0,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[Reading],
) -> RetentionCurve | RetentionCurves:
    """The curve of a metric as the rows that look least certain beforehand are removed.

    The order uses the forecasts alone, so this is what handing the doubtful cases to someone else
    would bring (risk against coverage, selective prediction).

    Parameters
    ----------
    by : {"max_probability", "entropy"}, rule, str or list of these
        What ranks the rows: the largest probability, the entropy, or the loss that each forecast itself
        expects under a rule.

    The other parameters are those of `retention`.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.45, 0.55]]
    >>> vx.selective(y, p, removed=[0, 0.25, 0.5]).values.round(3).tolist()
    [0.75, 1.0, 1.0]
    """
    keys = [doubt(key) for key in _listed(by)]
    metrics = _metrics_for(p, metric, costs, cost_scale, decision_costs)
    rows = pair(y, p, ordered=needs_order(keys, metrics, decision_costs), **read)
    options = Options(
        removed,
        area,
        undefined,
        bootstrap,
        seed,
        confidence,
        ties=ties,
        weights_are=weights_are,
    )
    curves = draw([rows], keys, metrics, options, decision_costs).with_faults(faults_of({"": rows}))
    return curves.simplified() if isinstance(by, (Rule, str)) else curves


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _metrics_for(
    p: object,
    metric: MetricLike | Sequence[MetricLike],
    costs: CostsLike,
    cost_scale: Normalization,
    decision_costs: CostsLike | None,
) -> list[Metric]:
    """The metrics for what `p` is: top lists have metrics of their own, and no costs."""
    if not isinstance(p, TopLists):
        return as_metrics(metric, costs, cost_scale)
    refuse_costs("decision_costs", decision_costs)
    return as_list_metrics(metric)


def as_list_metrics(metric: MetricLike | Sequence[MetricLike]) -> list[Metric]:
    """One or several metrics of top lists, names looked up; each once."""
    found = [m if isinstance(m, (Rule, RowMetric)) else find_list_metric(m) for m in _listed(metric)]
    if not found:
        raise InputError("must name at least one metric", argument="metric")
    return list(dict.fromkeys(found))


def as_metrics(
    metric: MetricLike | Sequence[MetricLike],
    costs: CostsLike = "quadratic",
    normalize: Normalization = None,
) -> list[Metric]:
    """One or several metrics, names looked up; each once."""
    found: dict[Any, Metric] = {}
    for given in _listed(metric):
        if isinstance(given, str):
            found[given] = find_metric(given, costs=costs, normalize=normalize)
        elif isinstance(given, (DecisionMetric, Rule)) or (callable(given) and not isinstance(given, type)):
            found[given] = given
        else:
            raise InputError(
                f"must be a name, a rule or a function, not {show(given)}",
                argument="metric",
                kind="type",
                values=[given],
            )
    if not found:
        raise InputError("must name at least one metric", argument="metric")
    return list(found.values())


# ---- what both come to -------------------------------------------------------------------------


def draw(
    parts: Iterable[Rows],
    keys: Sequence[Rule | Doubt],
    metrics: Sequence[Metric],
    options: Options,
    decision_costs: CostsLike | None = None,
) -> RetentionCurves:
    """All curves of the rows of all parts. Of each row only its losses, outcome and decision are kept."""
    rows, ranked = _gather(parts, keys, metrics, decision_costs)
    measures = [CurveMetric(rows, metric) for metric in metrics]
    orders = {name: Order(key, options.ties) for name, key in ranked.items()}
    counting = any(measure.counts is not None for measure in measures)
    cells = [rows.cells[order.rows] for order in orders.values()] if counting else []

    def values(weights: Floats) -> Floats:
        """All curves for one vector of weights: (metrics, orders, cuts)."""
        sample = Sample(rows, weights, options, counting=counting)
        cuts = [Cuts(order, sample) for order in orders.values()]
        return options.fill(measured(measures, cuts, cells))

    observed = values(np.ones(len(rows.y)) if rows.weights is None else rows.weights)
    draws = rows.multiplicities(options.bootstrap, options.seed, copies=options.copies)
    # Functions of users are not called by several threads at once.
    own = all(isinstance(metric, (DecisionMetric, Rule, RowMetric)) for metric in metrics)
    threads = own and len(rows.y) >= MANY
    replicates = np.array(list(in_order(values, draws, n_cores()) if threads else map(values, draws)))
    curves: dict[Any, RetentionCurve] = {}
    by_outcome = {name_of(key) for key in keys if isinstance(key, Rule)}
    for i, name in enumerate(orders):
        for j, measure in enumerate(measures):
            drawn = replicates[:, j, i] if options.bootstrap else np.zeros((0, len(options.removed)))
            key = name if len(measures) == 1 else (name, measure.name)
            curves[key] = _curve(
                name, measure, observed[j, i], drawn, options, sees_outcome=name in by_outcome
            )
    return RetentionCurves(curves)


def _gather(
    parts: Iterable[Rows],
    keys: Sequence[Rule | Doubt],
    metrics: Sequence[Metric],
    decision_costs: CostsLike | None,
) -> tuple[RowTable, dict[str, Floats]]:
    """The rows of all parts, and what ranks them by each key."""
    formulas = list(dict.fromkeys(k for k in [*keys, *metrics] if isinstance(k, (Rule, RowMetric))))
    functions = any(not isinstance(m, (DecisionMetric, Rule, RowMetric)) for m in metrics)
    doubts: dict[Doubt, list[Floats]] = {key: [] for key in keys if isinstance(key, Doubt)}
    read = []
    for part in parts:
        rows = RowTable.of(part, formulas, decision_costs)
        for key, found in doubts.items():
            found.extend([key.of_lists(part)] if isinstance(part, ListRows) else key.by_blocks(rows.p))
        read.append(rows if functions else rows.without_forecasts())
    rows = RowTable.joined(read)
    ranked = {name_of(key): rows.losses[key] for key in keys if isinstance(key, Rule)}
    return rows, ranked | {key.name: np.concatenate(found) for key, found in doubts.items()}


def _curve(
    order: str,
    measure: CurveMetric,
    values: Floats,
    replicates: Floats,
    options: Options,
    *,
    sees_outcome: bool,
) -> RetentionCurve:
    areas = np.array([options.area_of(replicate) for replicate in replicates])
    interval, band = None, None
    if len(areas):
        low, high = percentile_interval(areas, options.confidence)
        interval, band = (float(low), float(high)), percentile_interval(replicates, options.confidence)
    return RetentionCurve(
        order=order,
        metric=measure.name,
        higher_is_better=measure.higher_is_better,
        sees_outcome=sees_outcome,
        removed=options.shares,
        values=values,
        area=options.area_of(values),
        area_kind=options.area,
        ties=options.ties,
        interval=interval,
        band=band,
        areas=areas,
        confidence=options.confidence,
        seed=options.seed,
    )
