"""`sites`: how sites differ, and what the next one will see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from verax.analyses.discrimination.counts import Ranked, RankRecipe, RankSource
from verax.analyses.subgroups.ratios import event_ratios
from verax.analyses.subgroups.sentences import UNNAMED
from verax.analyses.subgroups.subgroups import check_labels, one_column
from verax.analyses.unitsums import UnitSums, check_weight
from verax.errors import InputError, Remedy, join, show
from verax.inference.estimates import holm
from verax.inference.intervals import Interval, Resampling, WeightsAre
from verax.inputs.breakdown import Breakdown, BreakdownRecipe
from verax.inputs.handles import Handle, Recipe, no_lists
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import headline_rule, name_of, parse
from verax.wings.sites.measures import AUC, LEVEL, SLOPE, SiteCells, site_value
from verax.wings.sites.result import NEAR, AcrossSites, Site, SiteStudy, SiteValue
from verax.wings.sites.spread import SCALES, NextSite, Scale, SiteCounts, SiteSpread
from verax.wings.sites.summaries import InfluenceOfSites, LossRecipe, rank_source

# Fewer sites tell nothing of the next one; three have a caution.
FEWEST_SITES = 3
# The rows that a site has at least, and the events that it is expected to have, to enter what is said of O:E.
# It enters by what is expected: by what was observed, sites with few events would be left out.
FEWEST_ROWS, FEWEST_EXPECTED = 30, 20.0
_FEW = "fewer than three sites are large enough"
_THREE = "three sites are few to learn from"


@reads
def sites(
    y: object,
    p: object = None,
    *,
    sites: object,
    rule: Rule | str | None = None,
    ordered: bool = False,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> SiteStudy:
    """How sites such as hospitals differ, which of them stands out, and what the next one will see.

    An interval for the mean of sites gets shorter with every site. What one more site will have does not: it
    differs from the mean as the others do. So it has a prediction interval, which allows for not knowing how
    far sites lie apart.

    Parameters
    ----------
    y
    p
    sites : array_like of shape (N,) or str
        The site of each row. Of predictions that `scan` has opened, the name of a column that it was told of.
    rule : Rule or str, optional
        The rule of the mean loss; by default RPS for ordered classes, else Brier.
    ordered
    confidence
    weights_are
    **read

    Returns
    -------
    SiteStudy
        The sites, what they tell together, and the next one.

    See Also
    --------
    subgroups : Whether forecasts are calibrated in each subgroup.

    Notes
    -----
    Of two classes the event is the rarer one. O:E, calibration slope and AUC are pooled as log O:E, as it is,
    and as log odds; sites with fewer than 10 rows of an outcome have no slope and no AUC, and those where
    fewer than 20 events are expected do not enter O:E. The mean has the interval of Hartung and Knapp with
    restricted maximum likelihood. The next site is a mixture of normal distributions over the confidence
    distribution of the variance between sites. In simulations of 5 to 10 sites, with normal, skewed and two
    kinds of effects, it held the O:E of a next site in 92 to 96 % of samples, and in 99.7 % where all sites
    are alike: few sites cannot tell. A site stands out if its events are improbable under the mixture of all
    others, by Holm's correction; one was named falsely in 0.2 to 6.2 %. All of it takes log O:E to be normal
    between sites.

    References
    ----------
    Hartung and Knapp (2001), doi:10.1002/sim.1009; Nagashima, Noma and Furukawa (2019),
    doi:10.1177/0962280218773520; Debray et al. (2019), doi:10.1177/0962280218785504

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(1)
    >>> hospital = rng.integers(6, size=6000)
    >>> p = rng.beta(1, 8, 6000)
    >>> found = vx.sites(rng.random(6000) < p, p, sites=hospital)
    >>> found.summary["oe"].n_sites, found.verdict.about("site_stands_out")
    (6, ())
    """
    plan = Resampling.checked(confidence, 0, 0, or_none=True, weights_are=weights_are)
    chosen = parse(rule) if rule is not None else headline_rule(ordered=ordered)
    try:
        column, labels = one_column(sites, y if isinstance(y, Handle) else None)
        # A column without a name is one of sites.
        column = "site" if column == UNNAMED else column
        by = {column: labels}
        handle = open_rows(y, p, ordered=needs_order([chosen], ordered=ordered), single=True, by=by, **read)
        if not isinstance(y, Handle) and handle.n_rows is not None:
            check_labels(labels, handle.n_rows)
    except InputError as error:
        raise (error.replace(argument="sites") if error.argument == "by" else error) from None
    return study(handle, column, chosen, plan)


def study(handle: Handle, column: str, rule: Rule, plan: Resampling) -> SiteStudy:
    """The sites of the only model of a handle."""
    if handle.lists:
        raise no_lists(handle.name)
    model, two = handle.one_model(), handle.n_classes == 2
    source = rank_source(model, copies=plan.copies)
    recipes: dict[str, Recipe[Any]] = {"loss": LossRecipe(model, rule, plan.copies)}
    if two:
        recipes["ranks"] = RankRecipe(source)
    found = handle.summarise({"by": BreakdownRecipe(column, recipes)})
    sums: Breakdown = found["by"]
    labels = sums.labels
    if len(labels) < 2:
        raise InputError(
            "must name two sites or more",
            argument="sites",
            found=f"all rows are at {join(map(show, labels))}",
            remedies=[Remedy("`verax evaluate` judges one site.")],
        )
    losses = [_Losses.of(sums[label]["loss"], rule, handle.n_classes, plan.confidence) for label in labels]
    summary: dict[str, AcrossSites] = {}
    event = None
    lines = [
        Site(label, own.n_rows, own.n_groups, own.mean) for label, own in zip(labels, losses, strict=True)
    ]
    if two:
        cells = []
        for label, own in zip(labels, losses, strict=True):
            (ranked,) = Ranked.all(sums[label]["ranks"], 1, copies=plan.copies)
            cells.append(SiteCells(ranked, own.n_rows))
        units: list[Any] = [None] * len(labels)
        if any(own.n_groups is not None for own in losses):
            exact = [sums[label]["ranks"].exact for label in labels]
            units = _over_groups(handle, source, column, labels, cells, exact)
        weights = np.array([own.effective for own in cells])
        flipped = float(weights @ [own.observed for own in cells]) > float(weights.sum()) / 2
        event = handle.class_names[0 if flipped else 1]
        lines, summary = _of_events(lines, cells, units, plan.confidence, flipped=flipped)
    known = [(own.mean.value, own.variance) for own in losses]
    summary["loss"] = _across("loss", known, plan.confidence, rule.bounds(handle.n_classes))
    result = SiteStudy(column, found.n_rows, event, name_of(rule), tuple(lines), summary, plan.confidence)
    return result.with_skipped(found.skipped)


def _over_groups(
    handle: Handle,
    source: RankSource,
    column: str,
    labels: Sequence[Any],
    cells: Sequence[SiteCells],
    exact: Sequence[bool],
) -> list[Any]:
    """The influence of rows on the estimates of their site, summed over groups."""
    influences = {label: (own.ranked, own.influence()) for label, own in zip(labels, cells, strict=True)}
    recipe = InfluenceOfSites(source, column, influences, dict(zip(labels, exact, strict=True)))
    found = handle.summarise({"by": BreakdownRecipe(column, {"influence": recipe})})
    return [found["by"][label]["influence"] for label in labels]


@dataclass(frozen=True)
class _Losses:
    """The losses of a site: its rows and groups, their mean and its variance."""

    n_rows: int
    n_groups: int | None
    mean: SiteValue
    variance: float

    @classmethod
    def of(cls, sums: UnitSums, rule: Rule, n_classes: int, confidence: float) -> _Losses:
        """From sums over rows and groups."""
        check_weight(sums.total)
        n_groups = None if sums.groups is None else sums.units.n
        known = sums.mean_of(0, rule.bounds(n_classes))
        alone = sums.n < 2 or n_groups == 1
        if alone or not math.isfinite(known.mean):
            why = "all rows belong together" if alone else "a loss is infinite"
            none = SiteValue(known.mean, Interval.undefined(why, confidence=confidence))
            return cls(sums.n, n_groups, none, math.nan)
        value = SiteValue(known.mean, known.interval(confidence))
        return cls(sums.n, n_groups, value, float(known.variance))


def _of_events(
    lines: Sequence[Site],
    cells: Sequence[SiteCells],
    units: Sequence[Any],
    confidence: float,
    *,
    flipped: bool,
) -> tuple[list[Site], dict[str, AcrossSites]]:
    """Sites of two classes with what there is to say of events, and what they tell together."""
    counts = [own.counts(sums, flipped=flipped) for own, sums in zip(cells, units, strict=True)]
    ratios = event_ratios(counts, confidence)
    entering = [
        i
        for i, own in enumerate(cells)
        if own.n_rows >= FEWEST_ROWS and counts[i].expected >= FEWEST_EXPECTED
    ]
    # In a site whose rows belong together, fewer rows tell as much.
    design = np.array([cells[i].design(units[i]) for i in entering])
    together = SiteCounts(
        np.array([counts[i].observed for i in entering]),
        np.array([counts[i].expected for i in entering]),
        np.array([cells[i].effective for i in entering]),
    )
    known: list[tuple[float, float]] = []
    if len(entering) > 1:
        y, v = together.log_ratios()
        known = list(zip(y.tolist(), (v * design).tolist(), strict=True))
    p_values = np.full(len(lines), np.nan)
    if len(entering) > FEWEST_SITES:
        fewer = together.fewer(design)
        p_values[entering] = [fewer.surprise(i) for i in range(len(entering))]
    adjusted = holm(p_values)
    done: list[Site] = []
    pooled: dict[str, list[tuple[float, float]]] = {"slope": [], "auc": []}
    for i, (line, own, sums) in enumerate(zip(lines, cells, units, strict=True)):
        ratio = ratios[i]
        assert ratio is not None
        large, _ = site_value(own.level, LEVEL, sums, own.rarer, confidence)
        slope, of_slope = site_value(own.slope, SLOPE, sums, own.rarer, confidence)
        auc, of_auc = site_value(own.auc, AUC, sums, own.rarer, confidence, SCALES["auc"])
        pooled["slope"].append((slope.value, of_slope))
        pooled["auc"].append((SCALES["auc"].to(auc.value), of_auc))
        # Numbers of rows, not of rows in effect.
        scale = own.n_rows / own.effective
        done.append(
            replace(
                line,
                observed=scale * ratio.observed,
                expected=scale * ratio.expected,
                oe=SiteValue(ratio.ratio, ratio.interval),
                in_the_large=large,
                slope=slope,
                auc=auc,
                p_value=float(p_values[i]),
                p_adjusted=float(adjusted[i]),
                stands_out=bool(adjusted[i] <= 1 - confidence),
            )
        )
    summary = {"oe": _across("oe", known, confidence, (0.0, math.inf))}
    summary["slope"] = _across("slope", pooled["slope"], confidence, (-math.inf, math.inf))
    summary["auc"] = _across("auc", pooled["auc"], confidence, (0.0, 1.0))
    return done, summary


def _across(
    measure: str, known: Sequence[tuple[float, float]], confidence: float, bounds: tuple[float, float]
) -> AcrossSites:
    """What estimates and variances on the scale of pooling tell; those that are not finite do not enter."""
    entering = [(y, v) for y, v in known if math.isfinite(y) and math.isfinite(v) and v > 0]
    y, v = np.array(entering).reshape(-1, 2).T
    k, scale = len(y), SCALES[measure]
    if k < 2:
        none = SiteValue(math.nan, Interval.undefined(_FEW, confidence=confidence))
        return AcrossSites(measure, k, none, none, none, math.nan, math.nan, None)
    spread = SiteSpread.of(y, v, confidence)
    mean = SiteValue(scale.back(spread.mean), _back(spread.interval, scale, bounds))
    tau = SiteValue(spread.tau, spread.of_tau)
    if k < FEWEST_SITES:
        none = SiteValue(math.nan, Interval.undefined(_FEW, confidence=confidence))
        return AcrossSites(measure, k, mean, none, tau, spread.i_squared, spread.q, None)
    mixture = NextSite.of_next(y, v)
    ends = Interval(
        *mixture.interval(confidence),
        method=f"prediction, over {k} sites",
        confidence=confidence,
        caution=_THREE if k == FEWEST_SITES else "",
    )
    following = SiteValue(scale.back(mixture.quantile(0.5)), _back(ends, scale, bounds))
    near = None
    if measure == "oe":
        low, high = (mixture.share_below(scale.to(end)) for end in NEAR)
        near = high - low
    return AcrossSites(measure, k, mean, following, tau, spread.i_squared, spread.q, near, mixture)


def _back(interval: Interval, scale: Scale, bounds: tuple[float, float]) -> Interval:
    """An interval of the scale of pooling as one of the measure."""
    method, confidence, caution = interval.method, interval.confidence, interval.caution
    ends = map(scale.back, interval)
    return Interval(*ends, method=method, confidence=confidence, caution=caution).within(bounds)
