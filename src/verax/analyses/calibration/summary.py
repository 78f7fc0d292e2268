"""Measures of probabilities beyond their mean score: skill, miscalibration, discrimination and ECE."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from verax.analyses.calibration.components import Decomposition, ListDecomposition
from verax.analyses.calibration.decomposition import decomposed
from verax.analyses.calibration.ece import binned_error
from verax.analyses.calibration.smooth_ece import smooth_ece
from verax.analyses.calibration.sources import check_places
from verax.analyses.comparison.references import FREQUENCIES, UNIFORM
from verax.analyses.discrimination.ranking import AREA, PRECISION, score_events, score_order
from verax.analyses.discrimination.result import RankScores
from verax.analyses.measures import FOR_TWO, MEASURES, MEASURES_OF_LISTS
from verax.common.checks import check_flag
from verax.display.tables import Column, Table, Tabled
from verax.errors import InputError, Remedy, VeraxError
from verax.inference.intervals import Interval, Resampling, WeightsAre
from verax.inputs.handles import Handle, refuse_lists
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.inputs.skipping import MaySkip
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import brier, name_of, parse, rps, stored_rule

_RANKING = {"auc": AREA, "average_precision": PRECISION}


@dataclass(frozen=True)
class Measure:
    """One number about calibration.

    Attributes
    ----------
    mean : float
        The value.
    interval : Interval
        Its confidence interval; NaN where it was not asked for or is not known.
    orientation : str
        Which direction is better.
    """

    name: str
    mean: float
    interval: Interval
    orientation: str
    summary: str


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationSummary(Tabled, MaySkip):
    """Skill, miscalibration, discrimination and ECE of one model; `summary["skill"]` is a number.

    Attributes
    ----------
    rule : str
        The rule that skill is measured by.
    quantity : str
        The score that miscalibration and discrimination are parts of: the rule, or for the log score of three
        and more classes the sum of the binary log scores.
    measures : dict
        The measures by name.
    uncertainty : float
        The score of the constant forecast of the frequencies.
    reference : str
        The reference of the skill: "frequencies", or "uniform" (empty lists) for top lists.
    """

    rule: str
    quantity: str
    measures: Mapping[str, Measure]
    uncertainty: float
    reference: str = FREQUENCIES

    def __getitem__(self, name: str) -> float:
        return self.measures[name].mean

    def _as_dict(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "quantity": self.quantity,
            "reference": self.reference,
            **{name: measure.mean for name, measure in self.measures.items()},
            "uncertainty": self.uncertainty,
            "intervals": {
                name: list(measure.interval)
                for name, measure in self.measures.items()
                if measure.interval.defined
            },
            **self._noted(),
        }

    def _tables(self) -> list[Table]:
        """A row per measure, with the ends of its interval."""
        of = self.rule if self.rule == self.quantity else f"{self.rule} and {self.quantity}"
        measures = list(self.measures.values())
        known = any(measure.interval.defined for measure in measures)
        columns = [
            Column("rule", value=lambda _: self.rule),
            Column("measure", f"calibration by {of}", value="name", right=False, brief="calibration"),
            Column("value", "value", "z.4f", "mean"),
            Column("low high", "interval" if known else "", "z.4f", "interval"),
            Column("orientation"),
            Column("", "what it is", lambda measure: measure.summary, right=False),
        ]
        return [Table(columns, measures)]

    def _notes(self) -> list[str]:
        note = "Higher skill and discrimination are better, and lower miscalibration and ece."
        if "auc" in self.measures:
            note += " Calibrated forecasts have slope 1 and intercepts 0."
        return [note, *self.remarks]


def decomposable(rule: Rule, n_classes: int = 3) -> bool:
    """Whether a rule has miscalibration and discrimination as parts."""
    from verax.analyses.calibration.events import split

    try:
        split(rule, n_classes)
    except VeraxError:
        return False
    return True


@reads
def summarize(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    rule: Rule | str | None = None,
    bootstrap: int = 0,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    also: Sequence[str] = (),
    **read: Unpack[RowOptions],
) -> CalibrationSummary:
    """Skill against class frequencies, miscalibration, discrimination and ECE, with intervals if asked for.

    Parameters
    ----------
    y, p
        Outcomes and forecasts as for `evaluate`.
    ordered : bool
        The classes have an order: the rule is then `rps` unless another is named.
    rule : rule or str, optional
        A rule that can be decomposed; `brier` unless named.
    bootstrap : int
        Number of random draws for the intervals, as for `decompose`; 0 for no intervals.
    seed, confidence
        Random seed, and confidence of the intervals.
    weights_are : {"importance", "counts"}
        As for `evaluate`.
    also : sequence of str
        "smooth_ece", and ranking scores to compute for more than two classes: "auc", "average_precision",
        "c_index".
    **read

    Examples
    --------
    >>> from verax.analyses.calibration.summary import summarize
    >>> y, p = [1, 0, 1, 1, 0, 0], [0.9, 0.6, 0.6, 0.3, 0.3, 0.1]
    >>> summary = summarize(y, p)
    >>> round(summary["miscalibration"], 4), round(summary["discrimination"], 4), round(summary["ece"], 4)
    (0.04, 0.1667, 0.1333)
    """
    chosen = parse(rule) if rule is not None else rps if check_flag("ordered", ordered) else brier
    # Groups matter to intervals alone, and there may be two kinds of them, which have none.
    plan = Resampling.checked(confidence, bootstrap, seed, least=2, or_none=True, weights_are=weights_are)
    handle = open_rows(y, p, single=True, ordered=needs_order([chosen]), **read)
    parts = decomposed(handle if bootstrap else handle.one_way(), chosen, plan)
    return add_skill(parts, handle, ordered=ordered, also=also)


def add_skill(
    parts: Decomposition, handle: Handle, *, ordered: bool = False, also: Sequence[str] = ()
) -> CalibrationSummary:
    """The summary with these parts of the score, for the forecasts that were decomposed.

    Parameters
    ----------
    parts : Decomposition
        Their decomposition; where it has intervals, so has the summary.
    handle : Handle
        The rows, in the order of their classes where the rule needs it.
    ordered : bool
        Whether the classes have an order.
    also : sequence of str
        Measures to compute beside the usual ones.
    """
    rule, plan = stored_rule(parts.rule), parts.resampling
    by_part = {} if parts.intervals is None else parts.intervals
    skill, interval = _skill(handle, rule, plan, with_interval=bool(by_part))
    named = not isinstance(parts, ListDecomposition) or parts.mean_length > 0
    values = {
        "skill": skill,
        "miscalibration": parts.miscalibration,
        "discrimination": parts.discrimination,
        "ece": binned_error(handle) if named else math.nan,
    }
    intervals = {name: by_part[name] for name in ("miscalibration", "discrimination") if by_part}
    if interval is not None:
        intervals["skill"] = interval
    more = [name for name in also if name not in values]
    if handle.n_classes == 2 and not handle.lists:
        more = list(dict.fromkeys([*FOR_TWO, *more]))
    one_way = handle.one_way()
    others = {name: measure_of(one_way, name, ordered=ordered, plan=plan) for name in more}
    if one_way is not handle:
        none = Interval.undefined("there are two kinds of groups", confidence=plan.confidence)
        others = {name: replace(measure, interval=none) for name, measure in others.items()}
    return _summary(parts, values, intervals, others).with_skipped(parts.skipped)


def measure_of(handle: Handle, name: str, *, ordered: bool, plan: Resampling) -> Measure:
    """A ranking score or the smooth error of any number of classes, or the calibration line of two."""
    if name == "smooth_ece":
        none = Interval.undefined("no interval is known", confidence=plan.confidence)
        about = MEASURES_OF_LISTS if handle.lists else MEASURES
        return Measure(name, smooth_ece(handle), none, *about[name])
    if name in ("slope", "intercept", "in_the_large"):
        if handle.n_classes != 2:
            raise InputError(
                f"must have two classes for {name}",
                argument="p",
                kind="length",
                found=f"there are {handle.n_classes:,}",
                remedies=[Remedy("vx.calibration_slope(y, p) has a slope for each class.", python_only=True)],
            )
        # Imported here: it imports SciPy, which takes longer than scoring a small file.
        from verax.analyses.calibration.slope import fit_slopes

        line = fit_slopes(handle, False, check_places(None), plan).lines[0]
        return Measure(name, getattr(line, name), getattr(line, f"{name}_interval"), *MEASURES[name])
    refuse_lists(handle)
    in_order = name == "c_index" or (ordered and handle.n_classes > 2)
    rows = handle.in_order() if in_order else handle
    if name == "c_index":
        score = score_order(rows, plan)
    else:
        score = score_events(_RANKING[name], rows, plan, ordered=in_order)
    one = next(iter(score.values())) if isinstance(score, RankScores) else score
    return Measure(name, one.value, one.interval, *MEASURES[name])


def _summary(
    parts: Decomposition,
    values: Mapping[str, float],
    intervals: Mapping[str, Interval],
    others: Mapping[str, Measure],
) -> CalibrationSummary:
    rule, plan, lists = stored_rule(parts.rule), parts.resampling, isinstance(parts, ListDecomposition)
    none = Interval.undefined("no interval was requested, or none is known", confidence=plan.confidence)
    measures = {
        name: Measure(name, values[name], intervals.get(name, none), *about)
        for name, about in (MEASURES_OF_LISTS if lists else MEASURES).items()
        if name in values
    }
    quantity = name_of(rule) if parts.quantity == parts.rule else parts.quantity
    reference = UNIFORM if lists else FREQUENCIES
    return CalibrationSummary(name_of(rule), quantity, {**measures, **others}, parts.uncertainty, reference)


def _skill(
    handle: Handle, rule: Rule, plan: Resampling, *, with_interval: bool
) -> tuple[float, Interval | None]:
    """The skill of the only model against its reference; NaN where all rows are one group."""
    from verax.analyses.comparison.compare import compare, skill_against

    reference = UNIFORM if handle.lists else FREQUENCIES
    if not with_interval:
        return skill_against(handle, rule, reference, plan), None
    settings: dict[str, Any] = {"confidence": plan.confidence, "weights_are": plan.weights_are}
    try:
        comparison = compare(handle, rule=rule, reference=reference, **settings)
    except InputError as error:
        if error.argument != "groups":
            raise
        why = "class frequencies are those of the other groups, and there is only one"
        return math.nan, Interval.undefined(why, confidence=plan.confidence)
    model = comparison.models[name_of(rule)][0]
    return model.skill, model.skill_interval
