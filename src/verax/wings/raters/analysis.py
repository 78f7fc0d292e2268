"""`raters`: how much raters disagree, how far a forecast is off beyond that, and its worth in raters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from verax.analyses.cases import Case
from verax.analyses.comparison.paired import PairedSums
from verax.analyses.worst import find
from verax.common.checks import check_count, check_flag
from verax.engines.differences import PairedTally
from verax.errors import InputError
from verax.inference.estimates import Estimate, Units, holm
from verax.inference.intervals import Interval, check_confidence, few, few_groups, t_quantile
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import default_rules, name_of, parse
from verax.scores.rules import RPS, Brier
from verax.wings.raters.result import RatedMean, Rater, RaterStudy
from verax.wings.raters.summaries import ADDED, AGAINST, LOSS, OTHERS, RATED, SEEN, RaterRecipe

_FEW = "no case has two raters or more"
_NO_WORTH = "only the Brier score and RPS have an unbiased disagreement"
# A class that fewer cases than this have a label of may be rare; fewer raters than this stand for few others.
_RARE, _FEW_RATERS = 10, 5


@reads
def raters(
    y: object,
    p: object = None,
    *,
    rule: Rule | str | None = None,
    ordered: bool = False,
    n: int = 10,
    ids: object | None = None,
    confidence: float = 0.95,
    **read: Unpack[RowOptions],
) -> RaterStudy:
    """Rater disagreement, the excess loss of forecasts, and what they are worth in raters.

    The mean loss over the raters of a case is their disagreement, which no forecast avoids, plus the excess
    of the forecast. A panel of r raters used as a forecast has the excess H / r under the Brier score and
    RPS, so a forecast with disagreement H and excess E is worth H / E raters.

    The worth assumes raters who label independently given the case, and who are interchangeable. Raters who
    copy each other disagree too little, which makes the worth too small. Raters with names are a panel: the
    interval of `worth` speaks for this panel, and that of `general` for raters in general.

    Parameters
    ----------
    y
        See `raters` for counts and for one column per rater.
    p
    rule : Rule or str, optional
        A proper rule; by default the Brier score, or RPS if `ordered`.
    ordered
    n : int, default 10
        The number of worst cases.
    ids : array_like of shape (N,), optional
        Names of the cases; by default their numbers.
    confidence
    **read

    Returns
    -------
    RaterStudy
        Loss, disagreement, excess and worth with their intervals; the score of each rater where they have
        names; the worst cases, each with its disagreement and excess.

    See Also
    --------
    worst : The cases with the largest loss.

    Notes
    -----
    The disagreement of the m raters of a case is too small by the factor (m - 1) / m, and is corrected for
    the Brier score and RPS. Other rules have no such correction: their disagreement is that of the raters
    present, and there is no worth. Cases with one rater enter the loss only. Shares without the number of
    raters are treated as exact. The interval of the worth is Fieller's, with errors over cases or groups; it
    has no upper end where the excess is not significantly positive. The interval for raters in general treats
    raters as a second kind of group: it adds the variance between raters, from what each adds to disagreement
    and loss. It needs cases with three raters or more, and fewer than five raters have a caution.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet(np.ones(3), 4000)
    >>> counts = np.array([rng.multinomial(5, row) for row in truth])
    >>> panel = np.array([rng.multinomial(4, row) for row in truth]) / 4
    >>> found = vx.raters(counts, panel, raters="counts")
    >>> round(found.worth.value, 1)
    4.3
    """
    check_confidence(confidence)
    check_count("n", n)
    chosen = parse(default_rules(ordered=check_flag("ordered", ordered))[0] if rule is None else rule)
    handle = open_rows(y, p, ordered=needs_order([chosen], ordered=ordered), single=True, ids=ids, **read)
    return study(handle, chosen, n, confidence)


def study(handle: Handle, rule: Rule, n: int, confidence: float) -> RaterStudy:
    """Rater disagreement for the only model of a handle."""
    if not rule.properties.proper.at(handle.n_classes):
        raise InputError(
            f"must be proper for {handle.n_classes} classes",
            argument="rule",
            found=f"{name_of(rule)} is not, so its loss has no part that is disagreement",
            values=[name_of(rule)],
        )
    summaries = handle.summarise({"raters": recipe_of(handle.one_model(), rule)})
    cases = find(handle, [rule], n).cases
    read = read_raters(summaries["raters"], rule, summaries.n_rows, cases, confidence, handle.class_names)
    return read.with_skipped(summaries.skipped)


def recipe_of(model: str, rule: Rule) -> RaterRecipe:
    """The recipe of the sums over the raters of a model."""
    return RaterRecipe(model, rule, isinstance(rule, (Brier, RPS)))


def read_raters(
    sums: PairedSums,
    rule: Rule,
    n_rows: int,
    cases: tuple[Case, ...],
    confidence: float,
    classes: Sequence[str],
) -> RaterStudy:
    """The study from the sums of `recipe_of` and the worst cases."""
    unbiased = isinstance(rule, (Brier, RPS))
    rated, whole = sums[RATED], sums[LOSS]
    names = [name.removeprefix(AGAINST.format("")) for name in sums.tallies if name.startswith("against:")]
    excess = RatedMean("excess", *_negated(_estimates(rated, confidence)[2]))
    rare = _rare(sums, rule, excess.interval, classes)
    if rare:
        interval = excess.interval
        excess = replace(excess, interval=interval.doubted(rare))
    worth, general = _no_worth(confidence), None
    if unbiased:
        worth = worth_of(rated, confidence, excess.interval.caution)
        added = [sums[ADDED.format(name)] for name in names if ADDED.format(name) in sums.tallies]
        general = in_general(rated, added, confidence, worth[1].caution) if added else None
    return RaterStudy(
        rule=name_of(rule),
        n_rows=n_rows,
        n_rated=rated.n_rows,
        n_groups=whole.n_groups,
        mean_raters=float(whole.means[1]) or None,
        loss=RatedMean("loss", *_estimates(whole, confidence)[0]),
        disagreement=RatedMean("disagreement", *_estimates(rated, confidence)[0]),
        excess=excess,
        worth=RatedMean("worth", *worth),
        unbiased=unbiased,
        raters=_corrected([_rater(name, sums, confidence) for name in names]),
        cases=cases,
        confidence=confidence,
        general=None if general is None else RatedMean("general", *general),
    )


def _rare(sums: PairedSums, rule: Rule, interval: Interval, classes: Sequence[str]) -> str:
    """The caution about a class of few cases, where a few more would move the excess beyond its limits."""
    seen = sums.tallies.get(SEEN)
    if seen is None or not seen.n_rows or not interval.defined:
        return ""
    k = int(np.argmin(seen.means))
    n = round(float(seen.means[k]) * seen.n_rows)
    moved = math.sqrt(n + 1) / seen.n_rows * rule.bounds(len(seen.means))[1]
    if n >= _RARE or moved <= (interval.high - interval.low) / 2:
        return ""
    return f"rare class: raters chose {classes[k]} in {n} of {seen.n_rows:,} cases"


def _estimates(tally: PairedTally, confidence: float) -> list[tuple[float, Interval]]:
    """The mean of every column with its interval."""
    if not tally.n_rows:
        return [(math.nan, Interval.undefined(_FEW, confidence=confidence))] * tally.n_columns
    estimate = _estimate(tally)
    return list(zip(estimate.mean.tolist(), estimate.intervals(confidence), strict=True))


def _estimate(tally: PairedTally) -> Estimate:
    units = Units("rows" if tally.labels is None else "groups")
    return Estimate.of(tally, np.zeros((0, 0)), units)


def _negated(estimate: tuple[float, Interval]) -> tuple[float, Interval]:
    return -estimate[0], -estimate[1]


def _no_worth(confidence: float) -> tuple[float, Interval]:
    return math.nan, Interval.undefined(_NO_WORTH, confidence=confidence)


@dataclass(frozen=True)
class _Errors:
    """Disagreement and excess, with their variances over cases or groups."""

    h: float
    excess: float
    of_h: float
    of_excess: float
    covariance: float
    degrees: float

    @classmethod
    def of(cls, tally: PairedTally) -> _Errors:
        """Estimate from the sums of disagreement and loss."""
        h, loss = (float(mean) for mean in tally.means[:2])
        errors, freedom = tally.standard_errors()
        of_h, of_loss, of_excess = (float(error) ** 2 for error in errors[:3])
        # The difference of disagreement and loss is minus the excess.
        covariance = (of_h + of_loss - of_excess) / 2 - of_h
        return cls(h, loss - h, of_h, of_excess, covariance, float(np.min(freedom)))

    def variance(self, ratio: float) -> float:
        """The variance of the excess minus a ratio times the disagreement."""
        return self.of_excess - 2 * ratio * self.covariance + ratio**2 * self.of_h

    def worth(self, confidence: float, factor: float, degrees: float, caution: str) -> Interval:
        """The interval of the worth, with all variances times a factor."""
        quantile = t_quantile(degrees, confidence)
        of_excess, of_h, covariance = (
            factor * error for error in (self.of_excess, self.of_h, self.covariance)
        )
        low, high = fieller(self.excess, self.h, of_excess, of_h, covariance, quantile)
        ends = (1 / high if high > 0 else math.inf), (1 / low if low > 0 else math.inf)
        return Interval(*ends, method="Fieller", confidence=confidence, caution=caution)


def worth_of(rated: PairedTally, confidence: float, caution: str = "") -> tuple[float, Interval]:
    """The worth in raters, with Fieller's interval, from the sums of disagreement and loss."""
    if not rated.n_rows:
        return math.nan, Interval.undefined(_FEW, method="Fieller", confidence=confidence)
    errors = _Errors.of(rated)
    worth = errors.h / errors.excess if errors.excess > 0 else math.inf
    if not errors.h > 0 or not errors.degrees > 0 or not math.isfinite(errors.of_h + errors.of_excess):
        return worth if errors.h > 0 else math.nan, Interval.undefined(
            "the raters never disagree" if not errors.h > 0 else "there are too few cases",
            method="Fieller",
            confidence=confidence,
        )
    few_units = (
        few(errors.degrees + 1, "case", "cases") if rated.n_groups is None else few_groups(rated.n_groups)
    )
    return worth, errors.worth(confidence, 1.0, errors.degrees, caution or few_units)


def in_general(
    rated: PairedTally, added: Sequence[PairedTally], confidence: float, caution: str
) -> tuple[float, Interval]:
    """The worth with an interval for raters in general, from what each rater adds to disagreement and loss.

    The variance between raters is that of what they add, minus the part that is due to the cases.
    """
    worth, interval = worth_of(rated, confidence)
    n, three = len(added), added[0].n_rows
    if not interval.defined:
        return worth, interval
    if n < 3 or 2 * three < rated.n_rows:
        why = "most cases have fewer than three raters" if n > 2 else f"there are only {n} raters"
        return worth, Interval.undefined(why, method="Fieller", confidence=confidence)
    errors, ratio = _Errors.of(rated), 1 / worth
    of_raters = [_Errors.of(tally) for tally in added]
    extra = sum((one.excess - ratio * one.h) ** 2 - one.variance(ratio) for one in of_raters) * n / (n - 1)
    extra, cases = max(float(extra), 0.0), errors.variance(ratio)
    factor = (cases + extra) / cases if cases > 0 else 1.0
    degrees = (
        (cases + extra) ** 2 / (cases**2 / errors.degrees + extra**2 / (n - 1))
        if cases > 0
        else errors.degrees
    )
    few_raters = f"only {n} raters represent raters in general" if n < _FEW_RATERS else ""
    return worth, errors.worth(confidence, factor, degrees, "; ".join(filter(None, [caution, few_raters])))


def fieller(
    a: float, b: float, of_a: float, of_b: float, covariance: float, quantile: float
) -> tuple[float, float]:
    """The ratios t for which a - t b does not differ from zero; unbounded where b does not either."""
    square = quantile**2
    first, half, last = b * b - square * of_b, a * b - square * covariance, a * a - square * of_a
    if first <= 0:
        return -math.inf, math.inf
    root = math.sqrt(max(half * half - first * last, 0.0))
    return (half - root) / first, (half + root) / first


def _rater(name: str, sums: PairedSums, confidence: float) -> Rater:
    against, others = sums[AGAINST.format(name)], sums[OTHERS.format(name)]
    label, forecast, difference = _estimates(others, confidence)
    return Rater(
        name,
        against.n_rows,
        RatedMean("against", *_estimates(against, confidence)[0]),
        RatedMean("own", *label),
        RatedMean("forecast", *forecast),
        RatedMean("gain", *_negated(difference)),
        float(_estimate(others).p_values()[2]) if others.n_rows else math.nan,
    )


def _corrected(raters: Sequence[Rater]) -> tuple[Rater, ...]:
    """The same with p-values corrected for all raters."""
    adjusted = holm(np.array([rater.p_value for rater in raters], dtype=float)).tolist()
    return tuple(replace(rater, p_adjusted=p) for rater, p in zip(raters, adjusted, strict=True))
