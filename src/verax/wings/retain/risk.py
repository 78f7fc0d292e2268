"""Risk and coverage: the mean loss of the most certain rows, for every share of rows that is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from verax.analyses.parts import faults_in, with_fault_recipes
from verax.analyses.table import RowTable
from verax.analyses.uncertainty_scores import doubt
from verax.common.caching import cached_property
from verax.common.checks import any_number, check_number
from verax.common.sorting import rounded_order
from verax.display.tables import Tabled
from verax.errors import InputError, show
from verax.inference.bootstrap import bootstrap_interval, simultaneous_band, widened_over_groups
from verax.inference.intervals import Interval, Resampling, few_groups
from verax.inputs.arrays import Floats, Ints
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads_ranking
from verax.inputs.skipping import MaySkip
from verax.scores.base import Rule
from verax.scores.coverage import RowMetric, find_list_metric, refuse_costs
from verax.scores.metrics import CostsLike, DecisionMetric, cost_matrix, expected_cost_metric, needs_order
from verax.scores.registry import name_of, parse
from verax.wings.retain.risk_bins import RiskBins, RiskCurve, risk_bins
from verax.wings.retain.summaries import CurveRecipe, Measures

if TYPE_CHECKING:
    from verax.display.figures import Sheet

_BOOTSTRAP = "bootstrap"
_WRONG = "share of wrong decisions"
_WRONG_DECISION = expected_cost_metric("zero_one")


@reads_ranking
def risk_coverage(
    y: object,
    p: object = None,
    *,
    by: Rule | str = "max_probability",
    rule: Rule | str | None = None,
    costs: CostsLike | None = None,
    bootstrap: int = 0,
    seed: int = 0,
    confidence: float = 0.95,
    **read: Unpack[RowOptions],
) -> RiskCoverage:
    """Risk against coverage: the mean loss of the rows that look most certain, with `aurc` and `augrc`.

    Rows are kept from the most certain on, by the forecasts alone. `selective` shows the same for any metric
    and a few shares; here every row is a point of the curve.

    The areas are torch-uncertainty's: trapezoids between the coverages of the rows, from that of the first
    row on, divided by the width of this range. Of rows that tie, each counts with the mean loss of its tie:
    that is the mean over all their orders, so nothing depends on the order of the rows.

    Parameters
    ----------
    y
        Beyond 2^20 rows the curve then comes from a histogram of what ranks them; `aurc_within` and
        `augrc_within` say how far its areas can be off.
    p
    by : {"max_probability", "entropy"}, Rule or str, default "max_probability"
        What ranks the rows, as for `selective`.
    rule : Rule or str, optional
        The loss of each row. By default it is 1 for a wrong decision, 0 for a right one.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
        The costs of decisions: the loss of each row is then what the cheapest decision costs.
    bootstrap : int, default 0
        Number of bootstrap replicates; 0 gives no intervals.
    seed
    confidence
    **read

    Returns
    -------
    RiskCoverage
        The curve.

    References
    ----------
    Geifman and El-Yaniv (2017), arXiv:1705.08500; Traub et al. (2024), arXiv:2407.01032, for AUGRC

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.45, 0.55]]
    >>> curve = vx.risk_coverage(y, p)
    >>> round(curve.aurc, 4), round(curve.augrc, 4)
    (0.0417, 0.0417)
    >>> curve.risk_at(0.75), curve.risk_at(1), curve.coverage_at(0.1)
    (0.0, 0.25, 0.75)
    """
    if rule is not None and costs is not None:
        raise InputError("cannot be combined with `rule`: a row has one loss", argument="costs")
    plan = Resampling.checked(confidence, bootstrap, seed, or_none=True)
    key, scored = doubt(by), None if rule is None else parse(rule)
    rules = [] if scored is None else [scored]
    ordered = needs_order([key, *rules], costs=costs)
    handle = open_rows(y, p, single=True, ordered=ordered, **read)
    n_classes = handle.n_classes
    if handle.lists:
        refuse_costs("costs", costs)
    elif costs is not None:
        cost_matrix(costs, n_classes)
    # Of classes that tie for the first place of a list, each counts in part.
    measure: Rule | RowMetric | DecisionMetric
    if scored is not None:
        measure = scored
    elif handle.lists:
        measure = find_list_metric("error")
    else:
        measure = _WRONG_DECISION if costs is None else expected_cost_metric(costs)
    measures = Measures.of([measure], n_classes)
    recipe = CurveRecipe(handle.one_model(), (key,), measures, costs, plan.replicates, plan.seed)
    summaries = handle.summarise(with_fault_recipes(handle, {"curves": recipe}))
    summary = recipe.fitting(summaries["curves"])
    if summary.rows is not None:
        kept = (summary.rows.in_order() if plan.replicates else summary.rows).weighty()
        rows, doubts, bins = kept.table([measure], n_classes), kept.ranks[key.name], None
        losses = recipe.values_of(measure, kept)
    else:
        bins = risk_bins(summary, key, plan)
        none, losses = np.zeros(0, np.int64), bins.total / bins.weight
        rows = RowTable(none, np.zeros((0, 0)), none, {}, bins.weight, None, n_classes)
        doubts = np.arange(len(losses), dtype=float)
    result = RiskCoverage(
        key.name, _loss_name(scored, costs), doubts, losses, rows, plan, summaries.n_rows, bins
    )
    return result.with_skipped(summaries.skipped).with_faults(faults_in(handle, summaries))


def _loss_name(scored: Rule | None, costs: CostsLike | None) -> str:
    if scored is not None:
        return name_of(scored)
    return _WRONG if costs is None else "mean cost"


@dataclass(frozen=True, repr=False, eq=False)
class RiskCoverage(Tabled, MaySkip):
    """The risk of the rows kept, by their share.

    Attributes
    ----------
    order : str
        The name of the order of the rows.
    loss : str
        The name of the loss whose mean the risk is.
    doubts : array of shape (N,)
        The doubts that rank the rows.
    losses : array of shape (N,)
        The losses of the rows.
    rows : RowTable
        The rows.
    resampling : Resampling
        The replicates and the confidence of intervals.
    n_rows : int
        The number of rows; a case of several raters is one.
    bins : RiskBins or None
        Of more rows than are kept: their histogram. There is a doubt, a loss and a point of the curve for
        each of its bins then, from the most certain on.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.45, 0.55]]
    >>> curve = vx.risk_coverage(y, p)
    >>> curve.risk_at(0.5), curve.order
    (0.0, 'max_probability')
    """

    order: str
    loss: str
    doubts: Floats
    losses: Floats
    rows: RowTable
    resampling: Resampling
    n_rows: int
    bins: RiskBins | None = None

    @property
    def coverage(self) -> Floats:
        """The share of the weight that is kept, at every row."""
        return self._points.coverage

    @property
    def risk(self) -> Floats:
        """The mean loss of the rows kept."""
        return self._points.risk

    @property
    def aurc(self) -> float:
        """Area under the risk-coverage curve: the mean risk over all coverages. Lower is better."""
        return self._observed.area("risk")

    @property
    def augrc(self) -> float:
        """Area under the generalized curve, of risk times coverage. Lower is better.

        For wrong decisions: how probable it is that a row is wrong and kept, at a coverage drawn at random.
        """
        return self._observed.area("generalized")

    @property
    def aurc_within(self) -> float:
        """The bound of the error of `aurc`: 0 where rows are kept."""
        return 0.0 if self.bins is None else self.bins.within[0]

    @property
    def augrc_within(self) -> float:
        """The bound of the error of `augrc`: 0 where rows are kept."""
        return 0.0 if self.bins is None else self.bins.within[1]

    def risk_at(self, coverage: float) -> float:
        """The risk of the most certain rows that make at least this share of all.

        Parameters
        ----------
        coverage : float
            The share of rows to keep, above 0 and at most 1.

        Returns
        -------
        float
            Their mean loss.
        """
        return self._observed.risk_at(_share("coverage", coverage))

    def coverage_at(self, risk: float) -> float:
        """The largest coverage at which the risk is at most this; NaN where there is none.

        Parameters
        ----------
        risk : float
            The largest mean loss that is accepted.

        Returns
        -------
        float
            The share of rows that can be kept.
        """
        return self._observed.coverage_at(any_number("risk", risk))

    @property
    def aurc_interval(self) -> Interval:
        """The interval of `aurc`, from the bootstrap."""
        return self._interval(lambda curve: curve.area("risk"))

    @property
    def augrc_interval(self) -> Interval:
        """The interval of `augrc`, from the bootstrap."""
        return self._interval(lambda curve: curve.area("generalized"))

    def risk_interval(self, coverage: float) -> Interval:
        """The interval of `risk_at`, from the bootstrap.

        Parameters
        ----------
        coverage : float
            The share of rows to keep, above 0 and at most 1.

        Returns
        -------
        Interval
            The confidence interval.
        """
        share = _share("coverage", coverage)
        return self._interval(lambda curve: curve.risk_at(share))

    def coverage_interval(self, risk: float) -> Interval:
        """The interval of `coverage_at`, from the bootstrap.

        Parameters
        ----------
        risk : float
            The largest mean loss that is accepted.

        Returns
        -------
        Interval
            The confidence interval.
        """
        limit = any_number("risk", risk)
        return self._interval(lambda curve: curve.coverage_at(limit), (0.0, 1.0))

    def band(self, coverages: Floats) -> Floats | None:
        """A band of the risk that is to cover it at all of some coverages at once.

        Parameters
        ----------
        coverages : array of shape (C,)
            Shares of rows to keep.

        Returns
        -------
        array of shape (2, C) or None
            The lower and the upper end; None without a bootstrap.
        """
        if not self.resampling.replicates:
            return None
        several = coverages.tolist() if isinstance(coverages, np.ndarray) else coverages
        if not isinstance(several, (list, tuple)) or not several:
            raise InputError(
                "must be shares of rows", argument="coverages", kind="type", found=show(coverages)
            )
        shares = [_share("coverages", coverage) for coverage in several]
        drawn = self._drawn(lambda curve: [curve.risk_at(c) for c in shares])
        risks = np.array([self.risk_at(c) for c in shares])
        return np.clip(simultaneous_band(drawn, risks, self.resampling.confidence), *self._range)

    def _interval(
        self, of: Callable[[RiskCurve], float], bounds: tuple[float, float] | None = None
    ) -> Interval:
        plan = self.resampling
        if not plan.replicates:
            return Interval.undefined("there was no bootstrap", method=_BOOTSTRAP, confidence=plan.confidence)
        caution, groups = "", self.rows.groups
        if groups is not None:
            caution = few_groups(len(groups.labels))
        interval = bootstrap_interval(self._drawn(of), plan.confidence, _BOOTSTRAP, caution)
        return interval.within(self._range if bounds is None else bounds)

    def _drawn(self, of: Callable[[RiskCurve], Any]) -> Floats:
        """Numbers of all replicates, (B, ...)."""
        drawn = np.array([of(curve) for curve in self._replicates])
        observed = np.array(of(self._observed))
        if self.bins is not None:
            # Replicates minus all rows in the same bins.
            with np.errstate(invalid="ignore"):
                drawn = drawn[1:] - drawn[0] + observed
        n_groups = self.bins.n_groups if self.bins is not None else self.rows.effective_groups
        if n_groups is None:
            return drawn
        return widened_over_groups(drawn, observed, n_groups, self.resampling.confidence)

    @property
    def _range(self) -> tuple[float, float]:
        """The range of risks and areas: that of all losses, and zero for rows that are not kept."""
        least, most = (self.losses, self.losses) if self.bins is None else (self.bins.least, self.bins.most)
        return min(0.0, float(least.min())), float(most.max())

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """The rows from the most certain on, and the places where runs of tied rows start."""
        order, rises = rounded_order(self.doubts)
        return order, np.flatnonzero(np.concatenate([[True], rises]))

    @cached_property
    def _observed(self) -> RiskCurve:
        if self.bins is not None:
            return self.bins.curve
        weights = self.rows.weights
        return self._curve(np.ones(len(self.losses)) if weights is None else weights / weights.max())

    @cached_property
    def _points(self) -> RiskCurve:
        return self._observed.each_row() if self.bins is None else self._observed

    @cached_property
    def _replicates(self) -> Sequence[RiskCurve]:
        plan = self.resampling
        if self.bins is not None:
            return list(self.bins.replicates())
        return [self._curve(w) for w in self.rows.multiplicities(plan.replicates, plan.seed)]

    def _curve(self, weights: Floats) -> RiskCurve:
        order, runs = self._order
        w = weights[order]
        here = w > 0
        with np.errstate(invalid="ignore"):
            lost = w * self.losses[order]
        lost[~here] = 0.0
        weight, total, count = (np.add.reduceat(column, runs, dtype=float) for column in (w, lost, here))
        some, whole = weight > 0, weight.sum()
        return RiskCurve(weight[some] / whole, total[some] / whole, count[some])

    # ---- out -------------------------------------------------------------------------------

    def _as_dict(self) -> dict[str, Any]:
        known = self.resampling.replicates > 0
        return {
            "order": self.order,
            "loss": self.loss,
            "coverage": self.coverage.tolist(),
            "risk": self.risk.tolist(),
            "aurc": self.aurc,
            "aurc_interval": list(self.aurc_interval) if known else None,
            "augrc": self.augrc,
            "augrc_interval": list(self.augrc_interval) if known else None,
            "replicates": self.resampling.replicates,
            "confidence": self.resampling.confidence,
            "seed": self.resampling.seed,
            **(
                {}
                if self.bins is None
                else {"within": {"aurc": self.aurc_within, "augrc": self.augrc_within}}
            ),
            **self._noted(),
        }

    def _frame(self) -> dict[str, list[Any]]:
        """One row per row kept."""
        return {"coverage": self.coverage.tolist(), "risk": self.risk.tolist()}

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve, with its band if there was a bootstrap.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw

        return draw(self._sheet(), ax)

    def _sheet(self) -> Sheet:
        """The curve, with its band if there was a bootstrap."""
        from verax.display.axes import Axis
        from verax.display.figures import Figure, Sheet
        from verax.display.marks import Band, Line, Mark, Ranged

        places = np.linspace(0.01, 1, 100)
        band = self.band(places)
        name = f"by {self.order}: AURC {self.aurc:.4f}, AUGRC {self.augrc:.4f}"
        marks: list[Mark] = [Line(name, 100 * self.coverage, self.risk)]
        if band is not None:
            level = f"{100 * self.resampling.confidence:g}%"
            marks.append(Band(f"{level} simultaneous band", 100 * places, *band))
        # A few rows at the beginning may have any risk; they should not set the scale.
        seen = self.risk[self.coverage >= 0.05]
        top = max([float(seen.max()), *([] if band is None else [float(band[1][5:].max())])])
        ends = (0, 1.1 * top) if np.isfinite(top) and top > 0 else (None, None)
        facts = [
            Ranged(area, value, *(interval if interval.defined else (np.nan, np.nan)))
            for area, value, interval in (
                ("AURC", self.aurc, self.aurc_interval),
                ("AUGRC", self.augrc, self.augrc_interval),
            )
        ]
        x = Axis("coverage: most certain rows kept (%)", 0, 100)
        y = Axis(f"{self.loss} of the rows kept", *ends)
        return Sheet([Figure("", marks, x, y, facts=facts)], size=(5.1, 3.3))

    def _heading(self) -> str:
        return f"verax risk and coverage: {self.loss} by {self.order}, {self.n_rows:,} rows"

    def _notes(self) -> list[str]:
        areas = [
            f"{name} {value:.4f}{f' ({interval:.4f})' if interval.defined else ''}"
            for name, value, interval in (
                ("AURC", self.aurc, self.aurc_interval),
                ("AUGRC", self.augrc, self.augrc_interval),
            )
        ]
        risks = ", ".join(f"{self.risk_at(c):.4f} at {100 * c:g}%" for c in (1.0, 0.9, 0.8, 0.5))
        lines = [", ".join(areas), f"risk {risks} coverage"]
        if self.bins is not None:
            lines.append(f"AURC from a histogram: within {self.aurc_within:.1g} of that of the rows.")
        return [*lines, *self.remarks]


def _share(argument: str, value: object) -> float:
    return check_number(argument, value, "must be a share above 0, up to 1", lambda c: 0 < c <= 1)
