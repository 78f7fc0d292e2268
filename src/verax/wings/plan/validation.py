"""How many rows the external validation of a risk model needs (Riley et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from verax.analyses.discrimination.counts import Ranked, RankRecipe, RankSource
from verax.analyses.units import sums_at
from verax.common.checks import check_choice, check_number
from verax.common.faces import Record
from verax.display.tables import Column, Table, Tabled
from verax.errors import InputError, passing
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict
from verax.inference.intervals import Interval, check_confidence, few
from verax.inputs.arrays import Floats
from verax.inputs.memory import open_rows
from verax.inputs.options import WeightedOptions, reads
from verax.inputs.skipping import MaySkip, Skipped
from verax.wings.plan.criteria import (
    SPANS,
    WORDS,
    Risks,
    beta_risks,
    binormal_risks,
    error_of,
    normal_risks,
    rows_for,
)

# Draws of the pilot's rows for the range that it leaves open, from forecasts in this number of bins.
_DRAWS, _BINS = 500, 1_000


@reads
def plan_validation(
    y: object = None,
    p: object = None,
    *,
    spans: Mapping[str, float] | None = None,
    threshold: float | None = None,
    prevalence: float | None = None,
    auc: float | None = None,
    normal: tuple[float, float] | None = None,
    beta: tuple[float, float] | None = None,
    confidence: float = 0.95,
    **read: Unpack[WeightedOptions],
) -> ValidationPlan:
    """How many rows the external validation of a risk model needs.

    Each criterion asks that the interval of one measure is narrow enough: O:E, the calibration slope, the
    AUC, at a threshold the standardized net benefit, and calibration in the large if it is asked for. The
    answer is the largest number.

    The distribution of the forecasts is that of a pilot, or is stated: normal on the logit scale, beta, or
    by `auc` and `prevalence` alone two normal distributions of logits, with and without the event.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle, optional
        Outcomes: those of the pilot, of two classes. Or predictions that `scan` has opened.
    p : array_like of shape (N, 2) or (N,), optional
        Forecasts: those of the pilot.
    spans : mapping of str to float, optional
        Widths of the intervals, from the lower to the upper end, by criterion: "observed_to_expected" (by
        default 0.2), "slope" (0.2), "auc" (0.1), "net_benefit" (0.2), "in_the_large". A width of None leaves
        the criterion out.
    threshold : float, optional
        The probability from which on is acted, for the net benefit.
    prevalence : float, optional
        The share of events that is expected; by default that of the pilot, or of the stated distribution.
    auc : float, optional
        The AUC that is expected; by default that of the pilot, or of calibrated forecasts.
    normal : tuple of two floats, optional
        Mean and standard deviation of the logits of the forecasts.
    beta : tuple of two floats, optional
        The parameters of a beta distribution of the forecasts.
    confidence
    **read

    Returns
    -------
    ValidationPlan
        The number of rows, and that of each criterion.

    See Also
    --------
    plan : Rows for a difference, or for the interval of a score, also over groups.

    Notes
    -----
    Forecasts are assumed to be calibrated, and rows to be independent; for rows in groups plan the interval
    of each measure with `plan(..., width=)`. From a pilot the range comes from draws of its rows.

    References
    ----------
    Riley et al. (2021), doi:10.1002/sim.9025

    Riley et al. (2024), doi:10.1136/bmj-2023-074821

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.plan_validation(prevalence=0.018, auc=0.8, spans={"observed_to_expected": 1})
    >>> {each.name: round(each.rows, -1) for each in found.criteria}
    {'observed_to_expected': 910.0, 'slope': 17130.0, 'auc': 4250.0}
    >>> found.driver
    'slope'
    """
    check_confidence(confidence)
    _check_share("prevalence", prevalence)
    _check_share("auc", auc)
    _check_share("threshold", threshold)
    widths = _widths(spans, threshold)
    stated = [name for name, value in {"normal": normal, "beta": beta}.items() if value is not None]
    if len(stated) > 1 or (stated and y is not None):
        raise InputError(
            "cannot be combined with a pilot" if y is not None else "cannot be combined with `beta`",
            argument=stated[0],
        )
    if y is not None:
        asked: Risks | _Pilot = _pilot(y, p, read)
    elif stated:
        asked = _stated(normal, beta)
    else:
        asked = _two_normal(auc, prevalence)
    pilot = asked if isinstance(asked, _Pilot) else None
    risks = asked.risks if isinstance(asked, _Pilot) else asked
    rates = None if threshold is None else risks.rates(threshold)
    if "net_benefit" in widths and threshold is not None and not (risks.chance >= threshold).any():
        raise InputError("must be reached by some forecasts", argument="threshold", values=[threshold])
    z = _quantile(confidence)
    expected: dict[str, Any] = {"prevalence": prevalence, "auc": auc, "threshold": threshold}
    rows = {name: float(n[0]) for name, n in rows_for(risks, widths, z, **expected).items()}
    ends = rows if pilot is None else rows_for(pilot.draws(), widths, z, **expected)
    rate = float(risks.prevalence[0]) if prevalence is None else float(prevalence)
    criteria = tuple(
        CriterionSize(
            *(name, span, error_of(name, span, z), rows[name]),
            *_range(ends[name], confidence),
            rate * rows[name],
        )
        for name, span in widths.items()
    )
    found = ValidationPlan(
        criteria,
        rate,
        float(risks.auc[0]) if auc is None else float(auc),
        threshold,
        None if rates is None else float(rates[0][0]),
        None if rates is None else float(rates[1][0]),
        0 if pilot is None else pilot.n_rows,
        0.0 if pilot is None else pilot.n_events,
        confidence,
    )
    return found.with_skipped(None if pilot is None else pilot.skipped)


def _widths(spans: Mapping[str, float] | None, threshold: float | None) -> dict[str, float]:
    """The width of the interval of each criterion, in the order of their names."""
    given = {} if spans is None else dict(spans)
    for name, width in given.items():
        check_choice("spans", name, list(WORDS))
        if width is not None:
            check_number("spans", width, "must be positive widths", lambda number: number > 0)
    known = {**SPANS, **given}
    if threshold is None:
        if given.get("net_benefit") is not None:
            raise InputError(
                "must be given for the net benefit",
                argument="threshold",
                kind="missing",
                remedies=[passing(threshold=0.1)],
            )
        known.pop("net_benefit")
    widths = {name: float(known[name]) for name in WORDS if known.get(name) is not None}
    if not widths:
        raise InputError("must leave a criterion", argument="spans", kind="length")
    return widths


def _check_share(argument: str, value: float | None) -> None:
    if value is not None:
        check_number(argument, value, "must lie between 0 and 1", lambda share: 0 < share < 1)


def _quantile(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


def _stated(normal: object, beta: object) -> Risks:
    """The stated distribution of forecasts."""
    name, value = ("normal", normal) if beta is None else ("beta", beta)
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise InputError("must be two numbers", argument=name, kind="type", values=[value])
    first, second = (
        check_number(name, number, "must hold finite numbers", math.isfinite) for number in value
    )
    if second <= 0 or (name == "beta" and first <= 0):
        what = "positive parameters" if name == "beta" else "a positive standard deviation"
        raise InputError(f"must have {what}", argument=name, values=list(value))
    return normal_risks(first, second) if name == "normal" else beta_risks(first, second)


def _two_normal(auc: float | None, prevalence: float | None) -> Risks:
    """The distribution that an AUC and a prevalence imply."""
    if auc is None or prevalence is None:
        raise InputError(
            "must be given where there is neither a pilot nor a distribution",
            argument="prevalence" if prevalence is None else "auc",
            kind="missing",
            remedies=[passing(prevalence=0.1, auc=0.75)],
        )
    if auc <= 0.5:
        raise InputError("must be above 0.5", argument="auc", values=[auc])
    return binormal_risks(auc, prevalence)


def _range(rows: float | Floats, confidence: float) -> tuple[float, float]:
    """The ends of what the pilot leaves open."""
    if isinstance(rows, float):
        return rows, rows
    # Of numbers that may be infinite, none between two.
    low, high = np.quantile(rows, [(1 - confidence) / 2, (1 + confidence) / 2], method="nearest")
    return float(low), float(high)


# ---- pilots ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pilot:
    """The forecasts and outcomes of a pilot, counted by forecast."""

    risks: Risks
    effective: float
    n_rows: int
    skipped: Skipped | None

    @property
    def n_events(self) -> float:
        """The number of events, with weights of rows of equal weight that tell as much."""
        return float(self.effective * min(self.risks.prevalence[0], 1 - self.risks.prevalence[0]))

    def draws(self) -> Risks:
        """Other pilots of the same size, from draws of its rows."""
        at = np.cumsum(self.risks.share[0]) - self.risks.share[0] / 2
        begins = np.flatnonzero(np.diff(np.floor(_BINS * at).clip(max=_BINS - 1), prepend=-1.0))
        happened, spared, middle = (
            np.add.reduceat(values, begins)
            for values in (
                self.risks.happened[0],
                self.risks.spared[0],
                self.risks.share[0] * self.risks.chance,
            )
        )
        cells = np.concatenate([happened, spared])
        share = cells / cells.sum()
        rng = np.random.default_rng(0)
        drawn = rng.multinomial(round(self.effective), share, size=_DRAWS).astype(float)
        n = len(begins)
        return Risks(middle / (share[:n] + share[n:]), drawn[:, :n], drawn[:, n:])


def _pilot(y: object, p: object, read: WeightedOptions) -> _Pilot:
    """The pilot's rows, wherever they are."""
    handle = open_rows(y, p, dense=True, single=True, **read)
    if handle.n_classes != 2:
        raise InputError(
            "must have two classes, with and without the event",
            argument="y",
            found=f"there are {handle.n_classes}",
        )
    source = RankSource(handle.one_model(), False, False, 1, 2)
    summaries = handle.summarise({"ranks": RankRecipe(source)})
    cells = Ranked.all(summaries["ranks"], 1)[0]
    chance, n = (cells.least + cells.most) / 2, len(cells.keys)
    happened, spared = (
        sums_at(cells.place, np.where(cells.y == k, cells.share, 0.0), n)[None] for k in (1, 0)
    )
    if not happened.any() or not spared.any():
        raise InputError("must hold rows with and without the event", argument="y")
    effective = 1 / float(cells.squares.sum())
    return _Pilot(Risks(chance, happened, spared), effective, summaries.n_rows, summaries.skipped)


# ---- results -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CriterionSize(Record):
    """How many rows one criterion takes.

    Attributes
    ----------
    name : str
        The criterion.
    span : float
        The width of the interval, from its lower to its upper end.
    error : float
        The standard error that has this width; of O:E that of its logarithm.
    rows : float
        The number of rows; infinite where no number is enough.
    rows_low, rows_high : float
        The same at the ends of what the pilot leaves open.
    events : float
        The number of events among them.
    """

    name: str
    span: float
    error: float
    rows: float
    rows_low: float
    rows_high: float
    events: float


@dataclass(frozen=True, repr=False, eq=False)
class ValidationPlan(WithVerdict, Tabled, MaySkip):
    """How many rows the external validation of a risk model needs.

    Attributes
    ----------
    criteria : tuple of CriterionSize
        The number of rows of each criterion.
    prevalence : float
        The share of events that is expected.
    auc : float
        The AUC that is expected.
    threshold : float or None
        The threshold of the net benefit.
    sensitivity, specificity : float or None
        Those of calibrated forecasts at the threshold.
    n_rows : int
        The number of rows of the pilot; 0 without one.
    n_events : float
        How many rows of the pilot have its rarer outcome, of equal weight that tell as much.
    confidence : float
        Confidence level of the intervals.

    See Also
    --------
    plan_validation : How to get it.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.plan_validation(normal=(-2.5, 1), threshold=0.1)
    >>> found.rows, found.driver
    (5614.0, 'slope')
    """

    criteria: tuple[CriterionSize, ...]
    prevalence: float
    auc: float
    threshold: float | None
    sensitivity: float | None
    specificity: float | None
    n_rows: int
    n_events: float
    confidence: float

    _facts = ("rows", "events", "driver", "notes")

    @property
    def _largest(self) -> CriterionSize:
        return max(self.criteria, key=lambda each: each.rows)

    @property
    def rows(self) -> float:
        """The number of rows that is enough for every criterion."""
        return self._largest.rows

    @property
    def events(self) -> float:
        """The number of events that is expected among them."""
        return self._largest.events

    @property
    def driver(self) -> str:
        """The criterion that needs the most rows."""
        return self._largest.name

    @property
    def notes(self) -> list[str]:
        """Remarks for the reader."""
        notes = ["The sizes assume calibrated forecasts and independent rows (Riley et al. 2021)."]
        if caution := self._caution:
            notes.append(f"Caution: the pilot may mislead: {caution}.")
        return notes

    @property
    def _caution(self) -> str:
        return (
            few(self.n_events, "row of its rarer outcome", "rows of its rarer outcome") if self.n_rows else ""
        )

    def _findings(self) -> list[Finding]:
        largest, more = self._largest, max(0.0, self.rows - self.n_rows)
        rows: Any = largest.rows
        step = None
        if self.n_rows and largest.rows_low < largest.rows_high < math.inf:
            rows = (largest.rows, Interval(largest.rows_low, largest.rows_high, confidence=self.confidence))
        if self.n_rows and 0 < more < math.inf:
            step = NextStep(f"collect {more:,.0f} more rows")
        numbers = {"rows": rows, "events": largest.events, "size": largest.span}
        return [
            Finding(Claim.ROWS_NEEDED, self._sentence(), numbers=numbers, caution=self._caution, step=step)
        ]

    def _sentence(self) -> str:
        largest = self._largest
        what = f"{self._named(largest)} within an interval {largest.span:g} wide"
        aim = f"To validate the risks at {100 * self.confidence:g}% confidence"
        if math.isinf(largest.rows):
            return f"{aim}: no number of rows gives the {what}."
        left = ""
        if self.n_rows and largest.rows_low < largest.rows_high:
            ends = " to ".join(map(_count, (largest.rows_low, largest.rows_high)))
            left = f" ({ends} by what the pilot leaves open)"
        return f"{aim}: {largest.rows:,.0f} rows{left}, {largest.events:,.0f} of them events, for the {what}."

    def _named(self, criterion: CriterionSize) -> str:
        at = f" at {self.threshold:g}" if criterion.name == "net_benefit" else ""
        return f"{WORDS[criterion.name]}{at}"

    def _heading(self) -> str:
        return f"verax plan: validation, prevalence {self.prevalence:.3g}, AUC {self.auc:.3g}"

    def _tables(self) -> list[Table]:
        columns = [
            Column("name", "criterion", self._named, right=False),
            Column("span", "interval", "g"),
            Column("rows", "rows", lambda each: _count(each.rows)),
            Column("rows_low", "from", lambda each: _count(each.rows_low)),
            Column("rows_high", "to", lambda each: _count(each.rows_high)),
            Column("events", "events", lambda each: _count(each.events)),
        ]
        return [Table([c for c in columns if self.n_rows or "_" not in c.name], self.criteria)]

    def _notes(self) -> list[str]:
        return [*self.notes, *self.remarks]


def _count(value: float) -> str:
    return "no number" if math.isinf(value) else f"{value:,.0f}"
