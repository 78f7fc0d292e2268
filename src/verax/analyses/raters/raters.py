"""`raters`: how much raters disagree, how far a forecast is off beyond that, and its worth in raters."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from verax.analyses.cases import Case
from verax.analyses.comparison.paired import PairedSums
from verax.analyses.raters.result import RatedMean, Rater, RaterStudy
from verax.analyses.raters.summaries import AGAINST, LOSS, OTHERS, RATED, RaterRecipe
from verax.analyses.worst import find
from verax.common.checks import check_count, check_flag
from verax.engines.differences import PairedTally
from verax.errors import InputError
from verax.inference.estimates import Estimate, Units
from verax.inference.intervals import Interval, check_confidence, few, few_groups, t_quantile
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import Reading, reads
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import default_rules, name_of, parse
from verax.scores.rules import RPS, Brier

_FEW = "no case has two raters or more"
_NO_WORTH = "only the Brier score and RPS have an unbiased disagreement"


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
    **read: Unpack[Reading],
) -> RaterStudy:
    """Rater disagreement, the excess loss of forecasts, and what they are worth in raters.

    The mean loss over the raters of a case is their disagreement, which no forecast avoids, plus the excess
    of the forecast. A panel of r raters used as a forecast has the excess H / r under the Brier score and
    RPS, so a forecast with disagreement H and excess E is worth H / E raters.

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
    has no upper end where the excess is not significantly positive.

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
    """What raters tell of the only model of a handle."""
    if not rule.properties.proper.at(handle.n_classes):
        raise InputError(
            f"must be proper for {handle.n_classes} classes",
            argument="rule",
            found=f"{name_of(rule)} is not, so its loss has no part that is disagreement",
            values=[name_of(rule)],
        )
    found = handle.summarise({"raters": recipe_of(handle.one_model(), rule)})
    cases = find(handle, [rule], n).cases
    return read_raters(found["raters"], rule, found.n_rows, cases, confidence).with_skipped(found.skipped)


def recipe_of(model: str, rule: Rule) -> RaterRecipe:
    """What is summed up of the raters of a model."""
    return RaterRecipe(model, rule, isinstance(rule, (Brier, RPS)))


def read_raters(
    sums: PairedSums, rule: Rule, n_rows: int, cases: tuple[Case, ...], confidence: float
) -> RaterStudy:
    """What the sums of `recipe_of` say, beside the worst cases."""
    unbiased = isinstance(rule, (Brier, RPS))
    rated, whole = sums[RATED], sums[LOSS]
    names = [name.removeprefix(AGAINST.format("")) for name in sums.tallies if name.startswith("against:")]
    return RaterStudy(
        rule=name_of(rule),
        n_rows=n_rows,
        n_rated=rated.n_rows,
        n_groups=whole.n_groups,
        mean_raters=float(whole.means[1]) or None,
        loss=RatedMean("loss", *_estimates(whole, confidence)[0]),
        disagreement=RatedMean("disagreement", *_estimates(rated, confidence)[0]),
        excess=RatedMean("excess", *_negated(_estimates(rated, confidence)[2])),
        worth=RatedMean("worth", *(worth_of(rated, confidence) if unbiased else _no_worth(confidence))),
        unbiased=unbiased,
        raters=tuple(_rater(name, sums, confidence) for name in names),
        cases=cases,
        confidence=confidence,
    )


def _estimates(tally: PairedTally, confidence: float) -> list[tuple[float, Interval]]:
    """The mean of every column with its interval."""
    if not tally.n_rows:
        return [(math.nan, Interval.undefined(_FEW, confidence=confidence))] * tally.n_columns
    units = Units("rows" if tally.labels is None else "groups")
    estimate = Estimate.of(tally, np.zeros((0, 0)), units)
    return list(zip(estimate.mean.tolist(), estimate.intervals(confidence), strict=True))


def _negated(found: tuple[float, Interval]) -> tuple[float, Interval]:
    return -found[0], -found[1]


def _no_worth(confidence: float) -> tuple[float, Interval]:
    return math.nan, Interval.undefined(_NO_WORTH, confidence=confidence)


def worth_of(rated: PairedTally, confidence: float) -> tuple[float, Interval]:
    """The worth in raters, with Fieller's interval, from the sums of disagreement and loss."""
    method = "Fieller"
    if not rated.n_rows:
        return math.nan, Interval.undefined(_FEW, method=method, confidence=confidence)
    h, loss = (float(mean) for mean in rated.means[:2])
    excess = loss - h
    errors, freedom = rated.standard_errors()
    of_h, of_loss, of_excess = (float(error) ** 2 for error in errors[:3])
    # The difference of disagreement and loss is minus the excess.
    covariance = (of_h + of_loss - of_excess) / 2 - of_h
    degrees = float(np.min(freedom))
    worth = h / excess if excess > 0 else math.inf
    if not h > 0 or not degrees > 0 or not math.isfinite(of_h + of_excess):
        return worth if h > 0 else math.nan, Interval.undefined(
            "the raters never disagree" if not h > 0 else "there are too few cases",
            method=method,
            confidence=confidence,
        )
    quantile = t_quantile(degrees, confidence)
    low, high = fieller(excess, h, of_excess, of_h, covariance, quantile)
    ends = (1 / high if high > 0 else math.inf), (1 / low if low > 0 else math.inf)
    caution = few(degrees + 1, "case", "cases") if rated.n_groups is None else few_groups(rated.n_groups)
    return worth, Interval(*ends, method=method, confidence=confidence, caution=caution)


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
    own, forecast, difference = _estimates(others, confidence)
    return Rater(
        name,
        against.n_rows,
        RatedMean("against", *_estimates(against, confidence)[0]),
        RatedMean("own", *own),
        RatedMean("forecast", *forecast),
        RatedMean("gain", *_negated(difference)),
    )
